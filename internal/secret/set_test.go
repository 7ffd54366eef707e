package secret

import (
	"strings"
	"testing"
	"time"
)

func TestHide_findsWhatAReceiverChanged(t *testing.T) {
	t.Parallel()
	list := named(map[string]string{"KEY": "-----BEGIN KEY-----\nMIIabcd\nefgh\n", "TOKEN": "Tok-3n_of the É\ttest", "REGION": "eu"})
	for text, want := range map[string]string{
		"x tok-3N_OF THE é TEST y":                    "x ${TOKEN} y",
		"x Tok-3n_of\r\n  the É test":                 "x ${TOKEN}",
		"-----BEGIN KEY-----\r\nMIIabcd\r\nefgh\r\n.": "${KEY}\r\n.",
		"-----BEGIN KEY----- MIIabcd efgh":            "${KEY}",
		"x Tok-3n_o, more":                            "x ${TOKEN}, more",
		"x Tok-3n_, more":                             "x Tok-3n_, more",
		"x Tok-":                                      "x ${TOKEN}",
		"EU e u E\nU":                                 "${REGION} e u E\nU",
		"Tok-3n_of the É testTok-3n_of the É test":    "${TOKEN}${TOKEN}",
		"the \xff\t  end, É ok":                       "the \xff\t  end, É ok",
		"":                                            "",
	} {
		if got := list.Hide(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	// One secret begins within another.
	list = named(map[string]string{"A": "one-two-three", "B": "three-four-five"})
	if got := list.Hide("x one-two-three-four-five y"); got != "x ${A} y" {
		t.Error(got)
	}
	if got := list.HideStart("x  one-two-three", 2); got != "x " {
		t.Errorf("%q", got)
	}
	if got := named(map[string]string{"BLANK": " \n"}).Hide("x one-two"); got != "x one-two" {
		t.Errorf("%q", got)
	}
}

// A long answer that is nearly a long secret, over and over, takes no longer than any other.
func TestHide_isLinear(t *testing.T) {
	t.Parallel()
	list := named(map[string]string{"A": strings.Repeat("a", 100_000) + "b"})
	begin := time.Now()
	list.Hide(strings.Repeat("a", 300_000))
	if d := time.Since(begin); d > 30*time.Second { // a square of these lengths takes minutes
		t.Errorf("took %v", d)
	}
}

func named(values map[string]string) *Set {
	s := &Set{}
	for name, value := range values {
		s.AddNamed(name, value)
	}
	return s
}
