package sqlarchive_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat/archive"
	"github.com/onbeat/onbeat/archive/sqlarchive"
	"github.com/onbeat/onbeat/internal/history"
	"github.com/onbeat/onbeat/internal/testpostgres"
	"github.com/onbeat/onbeat/internal/testredis"
)

// asFollower is the present and the URL in the environment of a child of this test, which archives until it is killed.
const asFollower = "ONBEAT_TEST_ARCHIVE"

// each batch of the endless history below has so many entries.
const perBatch = 50

// nextBatch is what comes after a position in an endless history, of which every entry is known by its number.
func nextBatch(was archive.Position) archive.Batch {
	var entries []history.Entry
	for i := range perBatch {
		n := int(was.Read) + i
		entries = append(entries, ran(now.Add(time.Duration(n)*time.Millisecond), 0, n))
	}
	return batch(was, entries...)
}

// follow archives the endless history until ctx is done, and through all errors that pass by.
func follow(ctx context.Context, a archive.Archive) error {
	for ctx.Err() == nil {
		was, err := a.Position(ctx)
		for err == nil {
			b := nextBatch(was)
			err = a.Add(ctx, was, b)
			was = b.Next
		}
		if !archive.Retryable(err) && !errors.Is(err, archive.ErrMoved) && ctx.Err() == nil {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
	return nil
}

// whole checks that the archive has each entry up to its position once, and no other, and returns how many. It looks again when the
// position moved meanwhile: a server commits what a process told it last, though the process has been killed since.
func whole(t *testing.T, a archive.Archive) int64 {
	t.Helper()
	for {
		before, err := a.Position(t.Context())
		must(t, err)
		n := int64(0)
		must(t, a.History(t.Context(), time.Time{}, func(e history.Entry) error {
			if want := idOf(now.Add(time.Duration(n)*time.Millisecond), 0); e.ID != want || len(e.Notes) != 1 {
				t.Fatalf("entry %d is %s with %d notes, want %s", n, e.ID, len(e.Notes), want)
			}
			n++
			return nil
		}))
		after, err := a.Position(t.Context())
		must(t, err)
		switch {
		case after.Read != before.Read:
			continue
		case n != after.Read:
			t.Fatalf("%d entries, and the position says %d", n, after.Read)
		}
		return n
	}
}

// progress waits until more entries are archived than before.
func progress(t *testing.T, a archive.Archive, before int64) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		if p, err := a.Position(t.Context()); err == nil && p.Read > before {
			return
		} else if time.Now().After(deadline) {
			t.Fatalf("nothing is archived any more: %v", err)
		}
	}
}

func TestAdd_throughCrashesOfTheServerLosesAndDoublesNothing(t *testing.T) {
	t.Parallel()
	server := testpostgres.Private(t)
	a := open(t, server.Database())
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- follow(ctx, a) }()
	defer func() {
		stop()
		<-ended
	}()
	n := int64(0)
	for i := range 4 {
		progress(t, a, n)
		if time.Sleep(time.Duration(i*7) * time.Millisecond); i%2 == 0 {
			server.Kill()
		} else {
			server.Stop()
		}
		server.Start()
		p, err := a.Position(t.Context())
		for ; err != nil; p, err = a.Position(t.Context()) {
			if !archive.Retryable(err) {
				t.Fatal(err)
			}
		}
		n = p.Read
	}
	progress(t, a, n)
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	ended <- nil
	t.Logf("%d entries through 4 crashes and stops", whole(t, a))
}

// beFollower archives until it is killed.
func beFollower(what string) int {
	ms, url, _ := strings.Cut(what, " ")
	n, _ := strconv.ParseInt(ms, 10, 64)
	now = time.UnixMilli(n).UTC()
	a, err := sqlarchive.Config{URL: url}.Open(context.Background(), "test", zerolog.Nop())
	if err == nil {
		err = follow(context.Background(), a)
	}
	_, _ = os.Stderr.WriteString(err.Error())
	return 1
}

func TestAdd_throughKillsOfTheProcessLosesAndDoublesNothing(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, url string) {
		a := open(t, url)
		n := int64(0)
		for i := range testredis.Size(2, 4) {
			child := exec.Command(os.Args[0])
			var said bytes.Buffer
			child.Env, child.Stderr = append(os.Environ(), asFollower+"="+strconv.FormatInt(now.UnixMilli(), 10)+" "+url), &said
			must(t, child.Start())
			progress(t, a, n)
			time.Sleep(time.Duration(i*3) * time.Millisecond)
			must(t, child.Process.Kill())
			if err := child.Wait(); err == nil || said.Len() > 0 {
				t.Fatalf("%v: %s", err, said.String())
			}
			n = whole(t, a)
		}
		t.Logf("%d entries through the kills", n)
	})
}

// proxy stands between the archive and a server, and can lose the answer to a COMMIT.
type proxy struct {
	armed atomic.Bool
	lost  atomic.Int64
	group sync.WaitGroup
}

func throughProxy(t *testing.T, raw string) (*proxy, string) {
	t.Helper()
	u, err := url.Parse(raw)
	must(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	p, server := &proxy{}, u.Host
	p.group.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			p.group.Go(func() { p.relay(client, server) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		p.group.Wait()
	})
	u.Host = l.Addr().String()
	return p, u.String()
}

func (p *proxy) relay(client net.Conn, server string) {
	defer client.Close()
	upstream, err := net.Dial("tcp", server)
	if err != nil {
		return
	}
	defer upstream.Close()
	p.group.Go(func() {
		_, _ = io.Copy(client, upstream)
		client.Close()
	})
	buffer := make([]byte, 64<<10)
	for {
		n, err := client.Read(buffer)
		if err != nil {
			return
		}
		if bytes.Contains(buffer[:n], []byte("commit\x00")) && p.armed.CompareAndSwap(true, false) {
			p.lost.Add(1)
			client.Close() // the server gets the COMMIT, and nobody its answer
			_, _ = upstream.Write(buffer[:n])
			time.Sleep(200 * time.Millisecond)
			return
		}
		if _, err := upstream.Write(buffer[:n]); err != nil {
			return
		}
	}
}

func TestAdd_whoseAnswerIsLostIsFoundByItsPosition(t *testing.T) {
	t.Parallel()
	p, url := throughProxy(t, postgres(t))
	a := open(t, url)
	was := add(t, a, ran(now, 0, 1))
	b := batch(was, ran(now, 1, 2))
	p.armed.Store(true)
	err := a.Add(t.Context(), was, b)
	if !errors.Is(err, archive.ErrUnavailable) || p.lost.Load() != 1 {
		t.Fatalf("%v, %d answers were lost", err, p.lost.Load())
	}
	for got := was; got.Read == was.Read; {
		got, err = a.Position(t.Context())
		must(t, err)
	}
	if err := a.Add(t.Context(), was, b); !errors.Is(err, archive.ErrMoved) {
		t.Errorf("the same again: %v", err)
	}
	if n := len(all(t, a)); n != 2 {
		t.Errorf("%d entries", n)
	}
}

// small mounts a file system of some size, where the test may.
func small(t *testing.T, size string) (dir string, resize func(size string)) {
	t.Helper()
	dir, err := os.MkdirTemp("", "onbeat-small-") // not t.TempDir, into which the user postgres may not look
	must(t, err)
	t.Cleanup(func() { must(t, os.Remove(dir)) })
	mount := func(options string) error {
		out, err := exec.Command("mount", "-t", "tmpfs", "-o", options, "tmpfs", dir).CombinedOutput()
		if err != nil {
			return errors.New(strings.TrimSpace(string(out)))
		}
		return nil
	}
	if os.Getuid() != 0 {
		t.Skip("only root mounts a small file system")
	}
	if err := mount("size=" + size); err != nil {
		t.Skip("no small file system: ", err)
	}
	t.Cleanup(func() { must(t, exec.Command("umount", dir).Run()) })
	return dir, func(size string) {
		t.Helper()
		must(t, mount("remount,size="+size))
	}
}

// fillUp adds until there is no more room, gives room, and adds again.
func fillUp(t *testing.T, a archive.Archive, grow func()) {
	t.Helper()
	var err error
	for range 100_000 {
		var was archive.Position
		if was, err = a.Position(t.Context()); err != nil {
			break
		}
		b := nextBatch(was)
		for i := range b.Entries {
			b.Entries[i].Notes[0].Error = strings.Repeat(b.Entries[i].ID, 50)
		}
		if err = a.Add(t.Context(), was, b); err != nil {
			break
		}
	}
	if !errors.Is(err, archive.ErrFull) {
		t.Fatalf("on a full disk: %v", err)
	}
	n := whole(t, a)
	grow()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- follow(ctx, a) }()
	progress(t, a, n+perBatch)
	stop()
	must(t, <-ended)
	whole(t, a)
}

func TestAdd_onAFullDiskSaysSoAndGoesOnWhenThereIsRoom(t *testing.T) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		dir, resize := small(t, "4m")
		fillUp(t, open(t, fileIn(dir)), func() { resize("64m") })
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		dir, resize := small(t, "20m")
		must(t, exec.Command("chown", "postgres", dir).Run())
		server := testpostgres.Private(t)
		db := raw(t, server.URL("postgres"))
		execute(t, db, "create tablespace small location '"+dir+"'", "create database small tablespace small")
		fillUp(t, open(t, server.URL("small")), func() { resize("200m") })
	})
}
