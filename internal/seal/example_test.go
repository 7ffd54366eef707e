package seal_test

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/onbeat/onbeat/internal/seal"
	"github.com/onbeat/onbeat/task"
)

func Example() {
	keys, err := seal.New(task.Encryption{Keys: []task.EncryptionKey{{ID: "k1", Secret: bytes.Repeat([]byte{7}, task.EncryptionKeyBytes)}}}, "shop")
	if err != nil {
		fmt.Println(err)
		return
	}
	box := keys.Seal(seal.Task("invoice-42", "invoice.send"), []byte(`{"card":"4111"}`), []string{"card"})
	plain, secret, err := keys.Open(seal.Task("invoice-42", "invoice.send"), box)
	fmt.Println(box.Key, string(plain), secret, err)

	_, _, err = keys.Open(seal.Task("invoice-43", "invoice.send"), box)
	fmt.Println(errors.Is(err, task.ErrDamaged))
	// Output:
	// k1 {"card":"4111"} [card] <nil>
	// true
}
