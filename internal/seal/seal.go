package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/onbeat/onbeat/internal/field"
)

var (
	// ErrNoKey reports that a box was sealed with a key that these Keys do not have.
	ErrNoKey = errors.New("encrypted with a key that this process does not have")
	// ErrDamaged reports that a box does not open with its own key: it was changed, or moved from another task.
	ErrDamaged = errors.New("encrypted, and cannot be opened: it was changed in Redis, or comes from another task")
)

// KeyBytes is the length of a secret.
const KeyBytes = 32

// MaxKeyID is the length of the longest name of a key.
const MaxKeyID = 64

// Key is a secret and its name. The name is stored beside what it sealed: a name that was used stays with its secret.
type Key struct {
	// ID is 1 to 64 letters, digits or - _ .
	ID string
	// Secret is KeyBytes random bytes.
	Secret []byte
}

// Config says which keys there are. The zero value has none: nothing is sealed.
type Config struct {
	// Keys are those that open; the first one also seals.
	Keys []Key
	// OpenOnly seals nothing. Every instance gets the keys this way first, so that each can open what the next rollout seals.
	OpenOnly bool
}

// Keys seal and open. A nil *Keys has no key. It is safe for concurrent use.
type Keys struct {
	first string // "" seals nothing
	byID  map[string]cipher.AEAD
}

// New returns the keys of a config, or nil if it has none. It refuses a key that cannot be used, and a name that is there twice,
// with a [*field.Error] that does not show the secret.
func New(c Config) (*Keys, error) {
	if len(c.Keys) == 0 {
		return nil, nil //nolint:nilnil // no keys are keys that seal nothing
	}
	k := &Keys{byID: make(map[string]cipher.AEAD, len(c.Keys))}
	for i, key := range c.Keys {
		place := fmt.Sprintf("encryption.keys[%d]", i)
		if err := checkKeyID(place+".id", key.ID); err != nil {
			return nil, err
		}
		if k.Has(key.ID) {
			return nil, &field.Error{Field: place + ".id", Value: key.ID, Reason: "names two keys", Hint: "give each key its own id"}
		}
		aead, err := newAEAD(key.Secret)
		if err != nil {
			return nil, &field.Error{Field: place + ".key", Reason: fmt.Sprintf("%d bytes long", len(key.Secret)),
				Hint: "32 random bytes, such as those of: openssl rand -base64 32"}
		}
		k.byID[key.ID] = aead
	}
	if !c.OpenOnly {
		k.first = c.Keys[0].ID
	}
	return k, nil
}

func newAEAD(secret []byte) (cipher.AEAD, error) {
	if len(secret) != KeyBytes {
		return nil, aes.KeySizeError(len(secret))
	}
	block, err := aes.NewCipher(secret)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

func checkKeyID(name, id string) error {
	strange := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-_.", r)
	}
	if id != "" && len(id) <= MaxKeyID && !strings.ContainsFunc(id, strange) {
		return nil
	}
	return &field.Error{Field: name, Value: field.Cut(id, MaxKeyID), Reason: "not the name of a key", Hint: "1 to 64 letters, digits or - _ ."}
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

// Seal returns a box that opens only for its owner. It returns nil if no key seals, or if there is nothing to seal.
func (k *Keys) Seal(o Owner, plain []byte) *Box {
	if k == nil || k.first == "" || len(plain) == 0 {
		return nil
	}
	return &Box{Key: k.first, Kind: o.kind, Data: k.byID[k.first].Seal(nil, nil, plain, o.bind(k.first))}
}

// Open returns what was sealed. The error matches [ErrNoKey] or [ErrDamaged].
func (k *Keys) Open(o Owner, b *Box) ([]byte, error) {
	if !k.Has(b.Key) {
		return nil, fmt.Errorf("%w: key %q", ErrNoKey, b.Key)
	}
	plain, err := k.byID[b.Key].Open(nil, nil, b.Data, o.bind(b.Key))
	if err != nil {
		return nil, fmt.Errorf("%w (key %q)", ErrDamaged, b.Key)
	}
	return plain, nil
}

// Stale reports whether a box, or nil for what is not sealed, is not sealed as these keys would seal it now.
func (k *Keys) Stale(b *Box) bool {
	if b == nil {
		return k.First() != ""
	}
	return b.Key != k.First()
}

// Kind says what a box belongs to. The letters are stored.
type Kind byte

// The kinds.
const (
	OfTask     Kind = 't'
	OfSchedule Kind = 's'
	OfAnswer   Kind = 'a'
)

// Owner is the one task, schedule or answer for which a box opens. The type is part of it: a payload that was sealed for one handler
// must not come to another, which may show it.
type Owner struct {
	kind      Kind
	name, typ string
}

// Task returns the owner that is a task of a type.
func Task(id, typ string) Owner { return Owner{OfTask, id, typ} }

// Schedule returns the owner that is a schedule whose tasks have a type.
func Schedule(name, typ string) Owner { return Owner{OfSchedule, name, typ} }

// Answer returns the owner that is the answer of a request, under the ID that its sender chose.
func Answer(id, request string) Owner { return Owner{OfAnswer, id, request} }

// bind returns the owner and the key as the additional data of AES-GCM. The lengths keep two owners from reading alike.
func (o Owner) bind(key string) []byte {
	b := append(make([]byte, 0, 16+len(o.name)+len(o.typ)+len(key)), byte(o.kind))
	for _, s := range []string{o.name, o.typ, key} {
		b = append(strconv.AppendInt(b, int64(len(s)), 10), ':')
		b = append(b, s...)
	}
	return b
}
