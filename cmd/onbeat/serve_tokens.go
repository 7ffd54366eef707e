package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/onbeat/onbeat/api"
	"github.com/onbeat/onbeat/cmd/onbeat/internal/config"
)

// tokenFault is why a token has not the secret that its place should have.
type tokenFault struct {
	name string
	gone bool // its file is gone, and the token is withdrawn. Else it keeps the secret that it had
	err  error
}

// readTokens reads each token by itself. A token that cannot be read keeps its old secret, if it has one. If two tokens have the same
// secret, the token that had it before keeps it, or else the first one gets it. The other token keeps its own old secret, unless another
// token has that by now. A token whose file is gone has no secret: it stays in the list, and nobody is its holder.
func (s *secrets) readTokens(old []api.Token) (list []api.Token, faults []tokenFault) {
	n := len(s.cfg.Tokens)
	had, want, errs, gone := make([]string, n), make([]string, n), make([]error, n), make([]bool, n)
	holders := map[string]int{} // by secret
	for i := range s.cfg.Tokens {
		if old != nil {
			had[i] = old[i].Secret
		}
		if want[i], errs[i] = s.cfg.Tokens[i].Secret(s.env); errs[i] != nil {
			want[i] = had[i]
			if gone[i] = isGone(&s.cfg.Tokens[i]); gone[i] {
				want[i] = ""
			}
		}
		if _, taken := holders[want[i]]; !taken || had[i] == want[i] {
			holders[want[i]] = i
		}
	}
	for i := range s.cfg.Tokens {
		t := &s.cfg.Tokens[i]
		own := api.Token{Name: t.Name, Role: api.Role(t.Role), Queues: t.Queues, Types: t.Types, Secret: want[i]}
		if holder := holders[want[i]]; want[i] != "" && holder != i {
			errs[i] = cmp.Or(errs[i], refuse("api.tokens", "", fmt.Sprintf("%s and %s have the same secret", s.cfg.Tokens[holder].Name, t.Name), "give each token its own"))
			if own.Secret = had[i]; own.Secret != "" {
				if _, taken := holders[own.Secret]; taken {
					own.Secret = ""
				} else {
					holders[own.Secret] = i
				}
			}
		}
		if errs[i] != nil {
			own.Trouble, own.Since = errs[i].Error(), time.Now()
			if old != nil && old[i].Trouble != "" {
				own.Since = old[i].Since
			}
			faults = append(faults, tokenFault{t.Name, gone[i], errs[i]})
		}
		list = append(list, own)
	}
	return list, faults
}

// isGone reports whether the file of a token is gone, also because its folder is. An empty file is not gone: somebody may be writing it.
func isGone(t *config.Token) bool {
	if t.File == "" {
		return false
	}
	_, err := os.Stat(t.File)
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
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
