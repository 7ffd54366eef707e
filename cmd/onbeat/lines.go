package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// lineReader reads lines of a bounded length and counts them.
type lineReader struct {
	r     *bufio.Reader
	limit int
	n     int // the number of the last line, from 1
}

func newLineReader(r io.Reader, limit int) *lineReader {
	return &lineReader{r: bufio.NewReaderSize(r, 64<<10), limit: limit}
}

// next returns the next line that is not blank, io.EOF after the last line, and a usageError for a line that is too long.
func (l *lineReader) next() ([]byte, error) {
	for {
		line, long, err := l.read()
		if err != nil {
			return nil, err
		}
		l.n++
		if l.n == 1 {
			line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
		}
		if long {
			return nil, &usageError{"longer than any task", "one JSON object a line"}
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			return line, nil
		}
	}
}

// read reads up to the next line feed. It keeps only the start of a line that is too long.
func (l *lineReader) read() (line []byte, long bool, err error) {
	for {
		part, err := l.r.ReadSlice('\n')
		if room := l.limit - len(line); len(part) > room {
			part, long = part[:max(room, 0)], true
		}
		line = append(line, part...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && len(line) > 0:
			return line, long, nil
		default:
			return line, long, err
		}
	}
}
