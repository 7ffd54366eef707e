package main

import (
	"fmt"
	"io"
)

// fields are names and values, one a line. Empty values are left out.
type fields struct {
	style style
	rows  [][2]string
}

func (a *app) fields() *fields { return &fields{style: a.style} }

func (f *fields) add(name, value string) {
	if value != "" {
		f.rows = append(f.rows, [2]string{name, value})
	}
}

func (f *fields) print(w io.Writer) {
	width := 0
	for _, r := range f.rows {
		width = max(width, len(r[0]))
	}
	for _, r := range f.rows {
		fmt.Fprintf(w, "%s  %s\n", f.style.dim(fmt.Sprintf("%-*s", width, r[0])), r[1])
	}
}
