package task

import (
	"fmt"
	"strings"

	"github.com/onbeat/onbeat/internal/wording"
)

// Encryption says with which keys payloads are encrypted in Redis. The zero value has no keys: payloads are stored as they are.
type Encryption struct {
	// Keys are the keys that decrypt; the first one also encrypts.
	Keys []EncryptionKey
	// OpenOnly encrypts nothing. Give every instance the keys this way first, so that each can decrypt what the next rollout encrypts.
	OpenOnly bool
}

// EncryptionKey is a key and its name. Redis keeps the name beside what the key encrypted: a name that was used stays with its key.
type EncryptionKey struct {
	// ID is 1 to 64 letters, digits or - _ .
	ID string
	// Secret is [EncryptionKeyBytes] random bytes.
	Secret []byte
}

// EncryptionKeyBytes is the length of the secret of a key.
const EncryptionKeyBytes = 32

const maxKeyID = 64

// Validate refuses a key that cannot be used, and two keys of one name, with a [*FieldError] that does not show the secret.
func (e Encryption) Validate() error {
	seen := map[string]bool{}
	for i, key := range e.Keys {
		id := fmt.Sprintf("keys[%d].id", i)
		if err := checkKeyID(id, key.ID); err != nil {
			return err
		}
		if seen[key.ID] {
			return &FieldError{Field: id, Value: key.ID, Reason: "names two keys", Hint: "give each key its own id"}
		}
		seen[key.ID] = true
		if len(key.Secret) != EncryptionKeyBytes {
			return &FieldError{Field: fmt.Sprintf("keys[%d].secret", i), Reason: fmt.Sprintf("%d bytes long", len(key.Secret)),
				Hint: "32 random bytes, such as those of: openssl rand -base64 32"}
		}
	}
	return nil
}

func checkKeyID(field, id string) error {
	strange := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-_.", r)
	}
	if id != "" && len(id) <= maxKeyID && !strings.ContainsFunc(id, strange) {
		return nil
	}
	return &FieldError{Field: field, Value: wording.Cut(id, maxKeyID), Reason: "not the name of a key", Hint: "1 to 64 letters, digits or - _ ."}
}
