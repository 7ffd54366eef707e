package config

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"github.com/onbeat/onbeat/internal/private"
	"github.com/onbeat/onbeat/task"
)

// encryptionSettings name the keys that encrypt payloads. The file itself holds none.
type encryptionSettings struct {
	OpenOnly bool          `yaml:"open_only"`
	Keys     []keySettings `yaml:"keys"`
}

type keySettings struct {
	ID      text `yaml:"id"`
	Key     text `yaml:"key"`
	KeyFile text `yaml:"key_file"`
}

// maxKeyFile is more bytes than the base64 of a key has.
const maxKeyFile = 4 << 10

const keyHint = "base64 of 32 random bytes, such as the output of: openssl rand -base64 32"

// takeKeys reads the keys from the environment and from files. A key that cannot be read is a problem, and not one key less: new
// payloads would be stored as they are.
func (f *File) takeKeys(e *encryptionSettings, getenv func(string) string) {
	f.Dispatcher.Encryption.OpenOnly = e.OpenOnly
	if e.OpenOnly && len(e.Keys) == 0 {
		f.problems = append(f.problems, f.doc.at("", refuse("encryption.open_only", "true", "there is no key to open with", "name one in encryption.keys")))
	}
	var keys []task.EncryptionKey
	for i := range e.Keys {
		if name := f.path(string(e.Keys[i].KeyFile)); name != "" {
			f.KeyFiles = append(f.KeyFiles, name)
		}
		secret, err := f.secretOf(&e.Keys[i], getenv)
		if err != nil {
			f.problems = append(f.problems, f.doc.at(fmt.Sprintf("encryption.keys[%d]", i), err))
			continue
		}
		keys = append(keys, task.EncryptionKey{ID: string(e.Keys[i].ID), Secret: secret})
	}
	if len(keys) == len(e.Keys) {
		f.Dispatcher.Encryption.Keys = keys
	}
}

// secretOf reads one key. No error shows any of it.
func (f *File) secretOf(k *keySettings, getenv func(string) string) ([]byte, error) {
	const either = "say key: ${NAME} for an environment variable, or key_file for a file of your own"
	switch name := variable.FindStringSubmatch(string(k.Key)); {
	case (k.Key == "") == (k.KeyFile == ""):
		return nil, refuse("key", "", "missing, or beside a key_file", either)
	case k.KeyFile != "":
		data, err := private.ReadLinked(f.path(string(k.KeyFile)), maxKeyFile)
		if err != nil {
			return nil, unreadKey(string(k.KeyFile), err)
		}
		return decodeKey("key_file", string(k.KeyFile), string(data))
	case name == nil || name[0] != string(k.Key):
		return nil, refuse("key", "", "written in the file", either)
	default:
		value := getenv(name[1])
		if value == "" {
			return nil, refuse("key", name[0], "the environment variable is not set", "set "+name[1]+"; "+keyHint)
		}
		return decodeKey("key", name[0], value)
	}
}

func decodeKey(field, from, text string) ([]byte, error) {
	secret, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text))
	if err != nil || len(secret) != task.EncryptionKeyBytes {
		return nil, refuse(field, from, "does not hold a key", keyHint)
	}
	return secret, nil
}

func unreadKey(name string, err error) error {
	if own, ok := errors.AsType[*private.Refusal](err); ok {
		return refuse("key_file", name, own.Reason, own.Hint)
	}
	return refuse("key_file", name, reasonOf(err), "name a file of your own that holds the key: "+keyHint)
}
