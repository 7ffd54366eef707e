package dashboard

import (
	"path"
	"regexp"
	"slices"
)

// importLine is how the modules here import each other: by relative names, at the beginning of a line.
var importLine = regexp.MustCompile(`(?m)^(?:import|export|\})\s*(?:[^'\n]*\sfrom\s+)?'(\.{1,2}/[^']+)'`)

// importsOf returns the assets that a module imports.
func importsOf(name string, text []byte) (names []string) {
	if path.Ext(name) != ".js" {
		return nil
	}
	for _, found := range importLine.FindAllSubmatch(text, -1) {
		names = append(names, path.Join(path.Dir(name), string(found[1])))
	}
	return names
}

// modules returns the addresses of all that a module imports, and of what those import. The head of a page names them, so that a browser
// asks for all at once: else it learns of each only when it has read the one before.
func (a assets) modules(name string) (urls []string, err error) {
	seen := map[string]bool{name: true}
	for next := []string{name}; len(next) > 0; next = next[1:] {
		for _, imported := range a.list[next[0]].imports {
			if seen[imported] {
				continue
			}
			seen[imported] = true
			url, err := a.url(imported)
			if err != nil {
				return nil, err
			}
			urls = append(urls, url)
			next = append(next, imported)
		}
	}
	slices.Sort(urls)
	return urls, nil
}
