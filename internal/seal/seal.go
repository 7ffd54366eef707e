package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"

	"github.com/onbeat/onbeat/task"
)

// Keys seal and open. A nil *Keys has no key. It is safe for concurrent use.
type Keys struct {
	namespace string
	first     string // "" seals nothing
	byID      map[string]cipher.AEAD
}

// New returns the keys of a config for a namespace, or nil if it has none. A box of one namespace opens in no other. New returns the
// error of [task.Encryption.Validate].
func New(e task.Encryption, namespace string) (*Keys, error) {
	if err := e.Validate(); err != nil || len(e.Keys) == 0 {
		return nil, err
	}
	k := &Keys{namespace: namespace, byID: make(map[string]cipher.AEAD, len(e.Keys))}
	for _, key := range e.Keys {
		block, err := aes.NewCipher(key.Secret)
		if err != nil {
			return nil, err
		}
		if k.byID[key.ID], err = cipher.NewGCMWithRandomNonce(block); err != nil {
			return nil, err
		}
	}
	if !e.OpenOnly {
		k.first = e.Keys[0].ID
	}
	return k, nil
}

// Has reports whether a key is among them.
func (k *Keys) Has(id string) bool { return k != nil && k.byID[id] != nil }

// First returns the name of the key that seals, or "" if none does.
func (k *Keys) First() string {
	if k == nil {
		return ""
	}
	return k.first
}

// Seal returns a box that opens only for its owner. It returns nil if no key seals, or if there is nothing to seal. The secret paths of
// a payload go into the box too: a user who may write to Redis can change them outside it, and must not uncover by that what a box hides.
func (k *Keys) Seal(o Owner, plain []byte, secret []string) *task.Sealed {
	if k == nil || k.first == "" || len(plain) == 0 {
		return nil
	}
	data := k.byID[k.first].Seal(nil, nil, packed(plain, secret), o.bind(k.namespace, k.first))
	return &task.Sealed{Key: k.first, Kind: o.kind, Data: data}
}

// Open returns what was sealed. The error matches [task.ErrNoKey] or [task.ErrDamaged].
func (k *Keys) Open(o Owner, b *task.Sealed) (plain []byte, secret []string, err error) {
	if !k.Has(b.Key) {
		return nil, nil, fmt.Errorf("%w: key %q", task.ErrNoKey, b.Key)
	}
	data, err := k.byID[b.Key].Open(nil, nil, b.Data, o.bind(k.namespace, b.Key))
	if err == nil {
		plain, secret, err = unpacked(data)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%w (key %q)", task.ErrDamaged, b.Key)
	}
	return plain, secret, nil
}

// packed is what a box holds: how many secret paths, each with its length, and then the payload.
func packed(plain []byte, secret []string) []byte {
	b := binary.AppendUvarint(make([]byte, 0, len(plain)+64), uint64(len(secret)))
	for _, path := range secret {
		b = binary.AppendUvarint(b, uint64(len(path)))
		b = append(b, path...)
	}
	return append(b, plain...)
}

var errPacked = errors.New("not what packed made")

func unpacked(b []byte) (plain []byte, secret []string, err error) {
	next := func() uint64 {
		v, n := binary.Uvarint(b)
		if n <= 0 || v > uint64(len(b)-n) {
			err = errPacked
			return 0
		}
		b = b[n:]
		return v
	}
	for n := next(); n > 0 && err == nil; n-- {
		size := next()
		secret, b = append(secret, string(b[:size])), b[size:]
	}
	return b, secret, err
}

// Stale reports whether a box is not sealed as these keys would seal it now. Nil stands for a payload that is not sealed.
func (k *Keys) Stale(b *task.Sealed) bool {
	if b == nil {
		return k.First() != ""
	}
	return b.Key != k.First()
}

// The kinds of owners of a box. The letters are stored.
const (
	OfTask     = 't'
	OfSchedule = 's'
	OfAnswer   = 'a'
)

// Owner is the one task, schedule or answer for which a box opens. The type is part of it: a payload that was sealed for one handler
// must not come to another, which may show it.
type Owner struct {
	kind      byte
	name, typ string
}

// Task returns the owner that is a task of a type.
func Task(id, typ string) Owner { return Owner{OfTask, id, typ} }

// Schedule returns the owner that is a schedule whose tasks have a type.
func Schedule(name, typ string) Owner { return Owner{OfSchedule, name, typ} }

// Answer returns the owner that is the answer of a request, under the ID that its sender chose.
func Answer(id, request string) Owner { return Owner{OfAnswer, id, request} }

// bind returns the namespace, the owner and the key as the additional data of AES-GCM. The lengths keep two owners from reading alike.
func (o Owner) bind(namespace, key string) []byte {
	b := append(make([]byte, 0, 20+len(namespace)+len(o.name)+len(o.typ)+len(key)), o.kind)
	for _, s := range []string{namespace, o.name, o.typ, key} {
		b = append(strconv.AppendInt(b, int64(len(s)), 10), ':')
		b = append(b, s...)
	}
	return b
}
