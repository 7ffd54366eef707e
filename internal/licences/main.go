// Licences prints the licences of everything that is linked into the program: of its modules, on each system that it is
// built for, and of Go. `make licences` keeps the output in THIRD_PARTY_LICENSES.
package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

// program is the package to examine, and systems are those that it is built for.
const program = "github.com/onbeat/onbeat/cmd/onbeat"

var systems = []string{"darwin", "linux", "windows"}

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "licences:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, w io.Writer) error {
	parts, err := linked(ctx)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	b.WriteString("What is linked into onbeat, and under which licences. Made by `make licences`; do not edit.\n\n")
	for _, p := range parts {
		fmt.Fprintln(&b, "  "+strings.TrimSpace(p.name+" "+p.version))
	}
	for _, p := range parts {
		if err := p.print(&b); err != nil {
			return err
		}
	}
	_, err = w.Write(b.Bytes())
	return err
}

// part is a module that is linked, or Go itself.
type part struct {
	name, version, dir string
	folders            map[string]bool // the folders that hold what is linked, up to the root of the part
}

// linked returns the parts of the program, by name.
func linked(ctx context.Context) ([]*part, error) {
	root, err := output(exec.CommandContext(ctx, "go", "env", "GOROOT"))
	if err != nil {
		return nil, err
	}
	goroot := strings.TrimSpace(string(root))
	all := map[string]*part{}
	for _, system := range systems {
		if err := addLinked(ctx, all, system); err != nil {
			return nil, err
		}
	}
	parts := slices.SortedFunc(maps.Values(all), func(a, b *part) int { return cmp.Compare(a.name, b.name) })
	own := &part{name: "Go, its runtime and standard library", dir: goroot, folders: map[string]bool{goroot: true}}
	module, err := output(exec.CommandContext(ctx, "go", "env", "GOMOD"))
	if err != nil {
		return nil, err
	}
	charts := filepath.Join(filepath.Dir(strings.TrimSpace(string(module))), "api", "dashboard", "assets", "vendor", "uplot")
	drawn := &part{name: "uPlot, for the charts of the dashboard", version: "1.6.32", dir: charts, folders: map[string]bool{charts: true}}
	return append([]*part{own, drawn}, parts...), nil
}

// goPackage is what go list prints about a package.
type goPackage struct {
	Dir    string
	Module *struct {
		Path, Version, Dir string
		Main               bool
		Replace            *struct{ Path string }
	}
}

func addLinked(ctx context.Context, all map[string]*part, system string) error {
	cmd := exec.CommandContext(ctx, "go", "list", "-deps", "-json=Dir,Module", program)
	cmd.Env = append(os.Environ(), "GOOS="+system, "GOARCH=amd64", "CGO_ENABLED=0", "GOFLAGS=-mod=readonly")
	out, err := output(cmd)
	if err != nil {
		return err
	}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p goPackage
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		m := p.Module
		if m == nil || m.Main {
			continue
		}
		if m.Replace != nil {
			return fmt.Errorf("%s is replaced by %s: what is built is not what is named", m.Path, m.Replace.Path)
		}
		if all[m.Path] == nil {
			all[m.Path] = &part{name: m.Path, version: m.Version, dir: m.Dir, folders: map[string]bool{}}
		}
		for dir := p.Dir; ; dir = filepath.Dir(dir) {
			all[m.Path].folders[dir] = true
			if dir == m.Dir || len(dir) <= len(m.Dir) {
				break
			}
		}
	}
}

// output runs a command and returns its output; an error includes what the command printed.
func output(cmd *exec.Cmd) ([]byte, error) {
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, strings.TrimSpace(said.String()))
	}
	return out, nil
}

var isLicence = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)([._-].*)?$`)

// print writes the licence files of a part.
func (p *part) print(w io.Writer) error {
	found := false
	for _, dir := range slices.Sorted(maps.Keys(p.folders)) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return fmt.Errorf("%s: %w (go mod download)", p.name, err)
		}
		for _, e := range entries {
			if e.Type()&fs.ModeType != 0 || !isLicence.MatchString(e.Name()) || strings.HasSuffix(e.Name(), ".go") {
				continue
			}
			text, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if err != nil {
				return err
			}
			name, err := filepath.Rel(p.dir, filepath.Join(dir, e.Name()))
			if err != nil {
				return err
			}
			fmt.Fprintf(w, "\n%s\n%s: %s\n\n%s\n", strings.Repeat("=", 80), p.name, filepath.ToSlash(name), clean(text))
			found = true
		}
	}
	if !found {
		return fmt.Errorf("%s: no licence file in %s on %s: find out by which licence it may be passed on", p.name, p.dir, runtime.GOOS)
	}
	return nil
}

// clean returns a text without what editors would change.
func clean(text []byte) string {
	var b strings.Builder
	for line := range strings.Lines(strings.TrimRight(string(text), " \t\r\n") + "\n") {
		b.WriteString(strings.TrimRight(line, " \t\r\n\f") + "\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}
