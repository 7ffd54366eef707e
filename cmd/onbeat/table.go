package main

import (
	"io"
	"strings"
	"unicode/utf8"
)

// table is text in columns. Colours do not count for the width.
type table struct {
	style style
	head  []string
	rows  [][]cell
}

type cell struct {
	text  string
	paint func(string) string
}

func (a *app) table(head ...string) *table { return &table{style: a.style, head: head} }

// add appends a row of strings and cells.
func (t *table) add(values ...any) {
	row := make([]cell, len(values))
	for i, v := range values {
		switch v := v.(type) {
		case string:
			row[i] = cell{text: oneCell(v)}
		case cell:
			row[i] = cell{oneCell(v.text), v.paint}
		}
	}
	t.rows = append(t.rows, row)
}

// print writes the rows under their headings, with two spaces between columns.
func (t *table) print(w io.Writer) {
	widths := make([]int, len(t.head))
	for i, h := range t.head {
		widths[i] = utf8.RuneCountInString(h)
	}
	for _, row := range t.rows {
		for i, c := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(c.text))
		}
	}
	head := make([]cell, len(t.head))
	for i, h := range t.head {
		head[i] = cell{h, t.style.dim}
	}
	var b strings.Builder
	for _, row := range append([][]cell{head}, t.rows...) {
		line := ""
		for i, c := range row {
			text := c.text
			if c.paint != nil {
				text = c.paint(text)
			}
			line += text + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c.text)+2)
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	_, _ = io.WriteString(w, b.String())
}
