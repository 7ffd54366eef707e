package wording

import (
	"slices"
	"strings"
)

// Join is errors.Join with a message of one line: "every \"0s\": zero; missed \"never\": unknown policy".
func Join(errs ...error) error {
	list := slices.DeleteFunc(slices.Clone(errs), func(err error) bool { return err == nil })
	switch len(list) {
	case 0:
		return nil
	case 1:
		return list[0]
	}
	return joined(list)
}

type joined []error

func (j joined) Error() string {
	texts := make([]string, len(j))
	for i, err := range j {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "; ")
}

func (j joined) Unwrap() []error { return j }
