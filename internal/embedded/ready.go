package embedded

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// about is what a server reports about itself.
type about map[string]string

// name returns the program and its version. Besides its own version, Valkey reports the Redis version that it is compatible
// with.
func (a about) name() string {
	if v := a["valkey_version"]; v != "" {
		return "valkey " + v
	}
	return "redis-server " + a["redis_version"]
}

// oldest is the first version on which the scripts of onbeat run.
const oldest = "6.2"

func (a about) tooOld() bool {
	major, rest, _ := strings.Cut(a["redis_version"], ".")
	minor, _, _ := strings.Cut(rest, ".")
	ma, err1 := strconv.Atoi(major)
	mi, err2 := strconv.Atoi(minor)
	return err1 == nil && err2 == nil && (ma < 6 || ma == 6 && mi < 2)
}

// answerTimeout is how long a child may take until it answers at all. How long it then takes to load its data depends on
// the data, and only the context bounds that.
const answerTimeout = 20 * time.Second

// awaitReady waits until the server answers, has loaded its data, and is the process that we started. A stranger on the
// same port could report our child's process ID, so the child itself must have printed that it listens.
func awaitReady(ctx context.Context, s *Server, exited <-chan struct{}, bound func() bool) (about, error) {
	late := time.NewTimer(answerTimeout)
	defer late.Stop()
	for wait := 5 * time.Millisecond; ; wait = min(2*wait, 100*time.Millisecond) {
		a, err := ask(ctx, s.addr, s.password)
		loading := err == nil && a["loading"] == "1"
		switch {
		case err == nil && a["process_id"] != strconv.Itoa(s.pid):
			return nil, errPortTaken
		case err == nil && a.tooOld():
			return nil, fmt.Errorf("version %s is older than %s; upgrade it, or take it off PATH to use the in-process one",
				a["redis_version"], oldest)
		case err == nil && !loading && bound():
			return a, nil
		}
		if loading {
			late.Reset(answerTimeout)
		}
		next := time.NewTimer(wait)
		select {
		case <-next.C:
		case <-exited:
			next.Stop()
			return nil, errors.New("it ended as soon as it was started")
		case <-ctx.Done():
			next.Stop()
			return nil, fmt.Errorf("wait for it to answer: %w", context.Cause(ctx))
		case <-late.C:
			next.Stop()
			return nil, fmt.Errorf("no answer within %v: %w", answerTimeout, err)
		}
	}
}

// errPassword is also the error while a Redis that does not have our password listens there.
var errPassword = errors.New("it refuses onbeat's password")

// ask reads the sections of INFO that say which server answers and whether it is ready. It speaks the protocol by hand: one
// request needs no client with a pool.
func ask(ctx context.Context, addr, password string) (about, error) {
	dialer := net.Dialer{Timeout: time.Second}
	conn, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(2 * time.Second)); err != nil {
		return nil, err
	}
	r := bufio.NewReader(conn)
	if password != "" {
		if _, err := io.WriteString(conn, "AUTH "+password+"\r\n"); err != nil {
			return nil, err
		}
		if answer, err := r.ReadString('\n'); err != nil || answer != "+OK\r\n" {
			return nil, cmp.Or(err, errPassword)
		}
	}
	if _, err := io.WriteString(conn, "INFO\r\n"); err != nil {
		return nil, err
	}
	head, err := r.ReadString('\n')
	if err != nil {
		return nil, err
	}
	size, err := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(head, "$")))
	if err != nil || size < 0 || size > 1<<20 {
		return nil, fmt.Errorf("unexpected answer %q", strings.TrimSpace(head))
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(r, body); err != nil {
		return nil, err
	}
	a := about{}
	for line := range strings.Lines(string(body)) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			a[key] = value
		}
	}
	return a, nil
}
