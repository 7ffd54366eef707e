package foreign

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
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

// Reasons why a unit is not read.
var (
	errOddFile = errors.New("is no regular file")
	errMasked  = errors.New("is masked: systemd never starts it")
)

// readUnit reads dir/name and then dir/name.d/*.conf.
func readUnit(dir, name string) (*unit, error) {
	u := &unit{}
	dropIns, err := namesLike(filepath.Join(dir, name+".d"), ".conf")
	if err != nil && !isMissing(err) {
		return nil, err
	}
	files := []string{filepath.Join(dir, name)}
	if isMasked(files[0]) {
		return nil, errMasked
	}
	for _, n := range dropIns {
		files = append(files, filepath.Join(dir, name+".d", n))
	}
	for _, file := range files {
		if isMasked(file) { // of a drop-in, that it is left out
			continue
		}
		data, err := readSmall(file)
		if err != nil {
			return nil, err
		}
		u.read(file, string(data))
	}
	return u, nil
}

// readSmall reads a file that people write by hand. It opens regular files alone: a pipe in a folder has no end.
func readSmall(file string) ([]byte, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errOddFile
	}
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
	if value == "" { // it empties the list, and an empty trigger empties those of all triggers
		emptied := []string{key}
		if section == "Timer" && slices.Contains(triggers, key) {
			emptied = triggers
		}
		kept := u.settings[:0]
		for _, s := range u.settings {
			if s.section != section || !slices.Contains(emptied, s.key) {
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

func (u *unit) hasAny(section string, keys ...string) bool {
	return slices.ContainsFunc(u.settings, func(s setting) bool { return s.section == section && slices.Contains(keys, s.key) })
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

// isMasked reports whether a file says that there is none: it is empty or a link to /dev/null, systemd.unit(5).
func isMasked(file string) bool {
	if to, err := os.Readlink(file); err == nil && to == os.DevNull {
		return true
	}
	info, err := os.Stat(file)
	return err == nil && info.Mode().IsRegular() && info.Size() == 0
}

// namesLike lists the names in a folder that end so, in order. Names that begin with a dot are left out.
func namesLike(dir, suffix string) (names []string, err error) {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if n := e.Name(); strings.HasSuffix(n, suffix) && n[0] != '.' {
			names = append(names, n)
		}
	}
	return names, err
}

func isMissing(err error) bool { return errors.Is(err, fs.ErrNotExist) }
