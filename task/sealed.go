package task

// Sealed is an encrypted payload, or the encrypted answer of a request.
type Sealed struct {
	Key  string `json:"key"`  // the ID of its key
	Kind byte   `json:"-"`    // the kind of its owner: 't' a task, 's' a schedule, 'a' an answer
	Data []byte `json:"data"` // nonce, ciphertext, tag
}

// Append appends the form that [ParseSealed] reads: the length of the key's ID in one byte, the ID, the kind, the data.
func (x *Sealed) Append(b []byte) []byte {
	b = append(b, byte(len(x.Key)))
	b = append(b, x.Key...)
	b = append(b, x.Kind)
	return append(b, x.Data...)
}

// Len returns how many bytes Append appends.
func (x *Sealed) Len() int { return 2 + len(x.Key) + len(x.Data) }

// ParseSealed reads what Append wrote. It returns nil for a text that Append cannot have written.
func ParseSealed(s string) *Sealed {
	if s == "" || len(s) < 2+int(s[0]) || s[0] == 0 {
		return nil
	}
	n := 1 + int(s[0])
	x := &Sealed{Key: s[1:n], Kind: s[n], Data: []byte(s[n+1:])}
	if x.Kind != 't' && x.Kind != 's' && x.Kind != 'a' || checkKeyID("", x.Key) != nil {
		return nil
	}
	return x
}
