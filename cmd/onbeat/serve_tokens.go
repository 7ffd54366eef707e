package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/onbeat/onbeat/api"
	"github.com/onbeat/onbeat/cmd/onbeat/internal/config"
)

// tokenFault is why a token has not the secret that its place should have.
type tokenFault struct {
	name string
	gone bool // its file is: the token is withdrawn. Else it keeps the secret that it had
	err  error
}

// readTokens reads each token by itself. One that cannot be read keeps the secret of old, if it has one and no other token has it by
// now. One whose file is gone has none: it stays in the list, and nobody is its holder.
func (s *secrets) readTokens(old []api.Token) (list []api.Token, faults []tokenFault) {
	holders := map[string]string{}
	for i := range s.cfg.Tokens {
		t := &s.cfg.Tokens[i]
		own := api.Token{Name: t.Name, Role: api.Role(t.Role), Queues: t.Queues, Types: t.Types}
		secret, err := t.Secret(s.env)
		if other, taken := holders[secret]; err == nil && taken {
			err = refuse("api.tokens", "", fmt.Sprintf("%s and %s have the same secret", other, t.Name), "give each token its own")
		}
		if err != nil {
			f := tokenFault{t.Name, isGone(t), err}
			if secret = ""; !f.gone && old != nil && holders[old[i].Secret] == "" {
				secret = old[i].Secret
			}
			own.Trouble, own.Since = err.Error(), time.Now()
			if old != nil && old[i].Trouble != "" {
				own.Since = old[i].Since
			}
			faults = append(faults, f)
		}
		if own.Secret = secret; secret != "" {
			holders[secret] = t.Name
		}
		list = append(list, own)
	}
	return list, faults
}

func isGone(t *config.Token) bool {
	if t.File == "" {
		return false
	}
	_, err := os.Stat(t.File)
	return errors.Is(err, fs.ErrNotExist)
}

// tell logs and counts the tokens that could not be read: again and again, while it is so.
func (s *secrets) tell(faults []tokenFault) {
	for _, f := range faults {
		s.count("token", f.name)
		switch {
		case !s.due(f.name, f.err):
		case f.gone:
			s.log.Warn().Str("token", f.name).Str("hint", "remove the token from the config, or bring its file back").Msg("withdrew a token of the API: its file is gone")
		default:
			s.log.Error().Err(f.err).Str("token", f.name).Msg("kept the old secret of a token of the API: its file cannot be used")
		}
	}
}
