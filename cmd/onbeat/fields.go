package main

import (
	"fmt"
	"io"
	"strings"
)

// fields is a list of names and values, printed one a line without the empty values.
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
	indent := "\n" + strings.Repeat(" ", width+2) // so that no value looks like a field
	for _, r := range f.rows {
		fmt.Fprintf(w, "%s  %s\n", f.style.dim(fmt.Sprintf("%-*s", width, r[0])), strings.ReplaceAll(r[1], "\n", indent))
	}
}
