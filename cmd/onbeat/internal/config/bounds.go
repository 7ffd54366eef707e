package config

import (
	"bytes"
	"fmt"

	"github.com/onbeat/onbeat/internal/input"
)

// The most that a YAML file may hold. A file of a few hundred bytes can stand for gigabytes, by aliases of aliases, and the
// parser takes time by the square of some lengths.
const (
	maxFile      = input.MaxSize     // bytes
	maxNodes     = 500_000           // of tokens, and of values when aliases are written out
	maxExpanded  = 64 << 20          // bytes of text when aliases are written out
	maxDepth     = 100               // of lists and mappings in each other
	maxKeys      = 10_000            // in one mapping
	maxKeyWork   = maxKeys * maxKeys // of keys × keys of the same mapping: two full mappings
	maxPathBytes = 64 << 20          // of the names of places: each is as long as all keys that lead to it
	maxNullWork  = 4_000_000_000     // empty values × tokens
	maxBlankWork = 4_000_000         // the square of blank lines in a row
)

// bound refuses a file at a line.
func (f *document) bound(line int, reason, hint string) error {
	return &Problem{f.name, line, &invalid{reason, hint}}
}

// checkText refuses a text that would take too long to cut into tokens.
func (f *document) checkText(data []byte) error {
	if len(data) > maxFile {
		return f.bound(0, fmt.Sprintf("larger than %d MiB", maxFile>>20), "split it, or pass the right file")
	}
	if bytes.IndexByte(data, 0) >= 0 {
		return f.bound(0, "not a text file", "a config file is YAML")
	}
	work, run, line := 0, 0, 0
	for text := range bytes.Lines(data) {
		line++
		if len(bytes.TrimSpace(text)) > 0 {
			run = 0
			continue
		}
		run++
		if work += 2*run - 1; work > maxBlankWork {
			return f.bound(line, "too many blank lines in a row", "remove some")
		}
	}
	return nil
}
