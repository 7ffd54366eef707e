package foreign

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/onbeat/onbeat/internal/input"
)

// A unit is a unit file of systemd, with its drop-ins: systemd.syntax(7).
type unit struct {
	settings []setting
}

// A setting is one line of a unit.
type setting struct {
	Place
	section, key, value string
}

// readUnit reads dir/name and then dir/name.d/*.conf.
func readUnit(dir, name string) (*unit, error) {
	u := &unit{}
	dropIns, err := filepath.Glob(filepath.Join(dir, name+".d", "*.conf"))
	if err != nil {
		return nil, err
	}
	for _, file := range append([]string{filepath.Join(dir, name)}, dropIns...) {
		data, err := readSmall(file)
		if err != nil {
			return nil, err
		}
		u.read(file, string(data))
	}
	return u, nil
}

// readSmall reads a file that people write by hand.
func readSmall(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	data, err := input.All(f, file, "file")
	return data, errors.Join(err, f.Close())
}

func (u *unit) read(file, text string) {
	section, whole, began := "", "", 0
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(strings.TrimSuffix(line, "\r"))
		if line == "" || line[0] == '#' || line[0] == ';' {
			if line == "" && whole != "" {
				u.add(Place{file, began}, section, whole)
				whole = ""
			}
			continue
		}
		if whole == "" {
			began = i + 1
		}
		if rest, more := strings.CutSuffix(line, `\`); more {
			whole += rest + " "
			continue
		}
		whole += line
		if name, ok := strings.CutPrefix(whole, "["); ok {
			section = strings.TrimSuffix(name, "]")
		} else {
			u.add(Place{file, began}, section, whole)
		}
		whole = ""
	}
	if whole != "" {
		u.add(Place{file, began}, section, whole)
	}
}

func (u *unit) add(at Place, section, line string) {
	key, value, ok := strings.Cut(line, "=")
	if !ok {
		return
	}
	key, value = strings.TrimSpace(key), strings.TrimSpace(value)
	if value == "" { // it empties the list
		kept := u.settings[:0]
		for _, s := range u.settings {
			if s.section != section || s.key != key {
				kept = append(kept, s)
			}
		}
		u.settings = kept
		return
	}
	u.settings = append(u.settings, setting{at, section, key, value})
}

// all lists the settings of a key.
func (u *unit) all(section, key string) (list []setting) {
	for _, s := range u.settings {
		if s.section == section && s.key == key {
			list = append(list, s)
		}
	}
	return list
}

// last returns the value that holds: the last one.
func (u *unit) last(section, key string) (setting, bool) {
	if list := u.all(section, key); len(list) > 0 {
		return list[len(list)-1], true
	}
	return setting{}, false
}

// isOn reports whether a setting is a yes of systemd.
func (u *unit) isOn(section, key string) bool {
	s, _ := u.last(section, key)
	switch strings.ToLower(s.value) {
	case "1", "yes", "y", "true", "t", "on":
		return true
	}
	return false
}

func isMissing(err error) bool { return errors.Is(err, fs.ErrNotExist) }
