package embedded

import (
	"fmt"

	"github.com/alicebob/miniredis/v2"
)

// startInProcess starts a server inside this process.
func startInProcess(opts Options) (*Server, error) {
	mini := miniredis.NewMiniRedis()
	password := newPassword(opts)
	if password != "" {
		mini.RequireAuth(password)
	}
	if err := mini.StartAddr(fmt.Sprintf("127.0.0.1:%d", opts.Port)); err != nil {
		return nil, fmt.Errorf("embedded Redis: listen on port %d: %w%s", opts.Port, err, portHint(opts.Port))
	}
	mini.ClockTTL(true) // without it, no key expires by itself

	s := newServer(InProcess, nil)
	s.name = "miniredis"
	s.addr, s.password = mini.Addr(), password
	s.stop = func() error {
		mini.Close()
		s.ended(nil)
		return nil
	}
	return s, nil
}

func portHint(port int) string {
	if port == 0 {
		return ""
	}
	return " (leave the port at 0 to get a free one)"
}
