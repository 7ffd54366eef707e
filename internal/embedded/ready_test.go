package embedded

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"testing"
	"time"
)

// A process on the port may claim to be our child. Start does not believe it: the child itself must say that it listens.
func TestAwaitReady_believesNoStrangerOnThePort(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	pid := os.Getpid()
	over := make(chan struct{})
	go func() {
		defer close(over)
		info := fmt.Sprintf("process_id:%d\r\nredis_version:7.0.0\r\nloading:0\r\n", pid)
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			r := bufio.NewReader(conn)
			_, _ = r.ReadString('\n')
			fmt.Fprint(conn, "+OK\r\n")
			_, _ = r.ReadString('\n')
			fmt.Fprintf(conn, "$%d\r\n%s", len(info), info)
			_ = conn.Close()
		}
	}()
	s := &Server{addr: ln.Addr().String(), pid: pid, password: "secret"}
	exited := make(chan struct{})
	if _, err := awaitReady(t.Context(), s, exited, func() bool { return true }); err != nil {
		t.Fatalf("the stranger is not asked as it should be: %v", err)
	}
	ctx, done := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer done()
	if _, err := awaitReady(ctx, s, exited, func() bool { return false }); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a stranger was believed: %v", err)
	}
	_ = ln.Close()
	<-over
}
