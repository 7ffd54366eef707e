package main

import (
	"bytes"
	"strconv"
)

// plainJSON returns JSON without the escapes for HTML: Go's encoder writes \u0026 to Redis where people wrote &. The result means
// the same. JSON without such escapes is returned as it is.
func plainJSON(b []byte) []byte {
	if !bytes.Contains(b, []byte(`\u00`)) {
		return b
	}
	out := make([]byte, 0, len(b))
	for i := 0; i < len(b); i++ {
		if b[i] != '\\' || i+1 == len(b) {
			out = append(out, b[i])
			continue
		}
		if b[i+1] == 'u' {
			if c := hexUnit(b[i+2:]); c == '<' || c == '>' || c == '&' {
				out = append(out, byte(c))
				i += 5
				continue
			}
		}
		out = append(out, b[i], b[i+1]) // copy any other escape, also of a backslash, with its next byte
		i++
	}
	return out
}

func hexUnit(b []byte) uint64 {
	if len(b) < 4 {
		return 0
	}
	n, _ := strconv.ParseUint(string(b[:4]), 16, 16)
	return n
}
