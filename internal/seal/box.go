package seal

import "strings"

// Box is what was sealed.
type Box struct {
	Key  string `json:"key"` // the ID of its key
	Kind Kind   `json:"-"`
	Data []byte `json:"data"` // nonce, ciphertext, tag
}

// Append appends the box to b, as [ParseBox] reads it: the length of the key's ID in one byte, the ID, the kind, the data.
func (x *Box) Append(b []byte) []byte {
	b = append(b, byte(len(x.Key)))
	b = append(b, x.Key...)
	b = append(b, byte(x.Kind))
	return append(b, x.Data...)
}

// Len returns how many bytes Append appends.
func (x *Box) Len() int { return 2 + len(x.Key) + len(x.Data) }

const kinds = string(OfTask) + string(OfSchedule) + string(OfAnswer)

// ParseBox reads what Append wrote. It returns nil for what can be no box.
func ParseBox(s string) *Box {
	if s == "" || len(s) < 2+int(s[0]) || s[0] == 0 {
		return nil
	}
	n := 1 + int(s[0])
	x := &Box{Key: s[1:n], Kind: Kind(s[n]), Data: []byte(s[n+1:])}
	if !strings.ContainsRune(kinds, rune(x.Kind)) || checkKeyID("", x.Key) != nil {
		return nil
	}
	return x
}
