// Package containers runs the Redis of tests in containers, if a Docker engine answers and has the image named by
// ONBEAT_TEST_IMAGE (default onbeat-test-redis:local, which integration/image/build.sh makes). Nothing is ever pulled.
//
// A container shares this host's network where it can; else its port is mapped. ONBEAT_TEST_NETWORK, host or bridge,
// overrides that.
package containers

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	tclog "github.com/testcontainers/testcontainers-go/log"
	"go.uber.org/goleak"

	"github.com/onbeat/onbeat/internal/testredis"
)

// defaultImage is the image that integration/image/build.sh makes.
const defaultImage = "onbeat-test-redis:local"

// engine runs servers as containers.
type engine struct {
	provider *testcontainers.DockerProvider
	image    string
	net      string // onHost or onBridge
}

// The networks that a container can be on. They are also the values of ONBEAT_TEST_NETWORK, for an engine that is judged
// wrongly.
const (
	onHost   = "host"
	onBridge = "bridge"
)

// Main is testredis.Main for a package whose tests run in containers where they can.
func Main(m *testing.M, opts ...goleak.Option) {
	testredis.Containers = func() testredis.Backend {
		if e := only(); e != nil {
			return e
		}
		return nil
	}
	testredis.Main(m, opts...)
}

// only finds the engine once, and returns nil if there is none to use.
var only = sync.OnceValue(func() *engine {
	e, err := findEngine()
	if err != nil {
		if os.Getenv("ONBEAT_TEST_ON") == testredis.OnContainer {
			fmt.Fprintln(os.Stderr, "containers: none:", err)
		}
		return nil
	}
	e.sweep()
	return e
})

func (e *engine) docker() *client.Client { return dockerClient(e.provider) }

func dockerClient(p *testcontainers.DockerProvider) *client.Client {
	return p.Client().(*testcontainers.DockerClient).Client
}

func findEngine() (e *engine, err error) {
	// testcontainers panics in environments that it does not expect.
	defer func() {
		if p := recover(); p != nil {
			e, err = nil, fmt.Errorf("testcontainers: %v", p)
		}
	}()
	// The cleaner of testcontainers is an image that would have to be pulled. Main and sweep do its work. And a passing
	// test should print nothing.
	if os.Getenv("TESTCONTAINERS_RYUK_DISABLED") == "" {
		if err := os.Setenv("TESTCONTAINERS_RYUK_DISABLED", "true"); err != nil {
			return nil, err
		}
	}
	tclog.SetDefault(tclog.NewNoopLogger())

	// Naming an existing network as the default keeps testcontainers from making its own, which an engine without bridges
	// cannot do.
	mode := os.Getenv("ONBEAT_TEST_NETWORK")
	provider, err := testcontainers.NewDockerProvider(testcontainers.WithDefaultBridgeNetwork(cmp.Or(mode, onHost)))
	if err != nil {
		return nil, fmt.Errorf("no Docker engine answers: %w", err)
	}
	defer provider.Close() // closes connections, which the next call opens again
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	image := cmp.Or(os.Getenv("ONBEAT_TEST_IMAGE"), defaultImage)
	if _, err := dockerClient(provider).ImageInspect(ctx, image); err != nil {
		return nil, fmt.Errorf("image %s (integration/image/build.sh makes it): %w", image, err)
	}
	e = &engine{provider: provider, image: image, net: mode}
	if mode != "" {
		return e, nil
	}
	info, err := e.docker().Info(ctx, client.InfoOptions{})
	if err != nil {
		return nil, fmt.Errorf("no Docker engine answers: %w", err)
	}
	e.net = onHost
	if !sharesOurNetwork(provider, info.Info.OperatingSystem, info.Info.SecurityOptions) {
		e.net = onBridge
		if e.provider, err = testcontainers.NewDockerProvider(testcontainers.WithDefaultBridgeNetwork(onBridge)); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// sharesOurNetwork reports whether the engine's host is ours, so that a container on the host's network listens on our
// 127.0.0.1. That is better where it works: it needs no bridge and no proxy, and a port stays the same over a restart.
func sharesOurNetwork(p *testcontainers.DockerProvider, system string, security []string) bool {
	return runtime.GOOS == "linux" &&
		strings.HasPrefix(dockerClient(p).DaemonHost(), "unix://") &&
		system != "Docker Desktop" &&
		!slices.ContainsFunc(security, func(s string) bool { return strings.Contains(s, "rootless") })
}

func (e *engine) Where() string { return "in a container" }

// Labels by which sweep finds containers whose test is gone.
const (
	labelHost = "onbeat.testredis.host"
	labelPID  = "onbeat.testredis.pid"
)

func (e *engine) Start(ctx context.Context, port int, args []string) (testredis.Process, error) {
	return e.run(ctx, port, args, os.Getpid())
}

// run starts a server that belongs to the process owner.
func (e *engine) run(ctx context.Context, port int, args []string, owner int) (testredis.Process, error) {
	mark := "onbeat-" + rand.Text() + ".rdb"
	inside := network.MustParsePort(strconv.Itoa(port) + "/tcp")
	cmd := []string{
		"redis-server",
		"--port", strconv.Itoa(port),
		"--save", "",
		"--appendonly", "no",
		"--maxmemory-policy", "noeviction",
		"--dbfilename", mark, // no such file is ever written
	}
	host := "127.0.0.1"
	req := testcontainers.ContainerRequest{
		Image:  e.image,
		Labels: map[string]string{labelHost: hostname(), labelPID: strconv.Itoa(owner)},
	}
	if e.net == onHost {
		cmd = append(cmd, "--bind", "127.0.0.1")
		req.HostConfigModifier = func(hc *container.HostConfig) { hc.NetworkMode = onHost }
	} else {
		cmd = append(cmd, "--bind", "0.0.0.0", "--protected-mode", "no")
		var err error
		if host, err = e.provider.DaemonHost(ctx); err != nil {
			return nil, err
		}
		mapped := network.PortBinding{HostPort: strconv.Itoa(port)} // fixed, so that it stays the same over a restart
		if host == "localhost" || host == "127.0.0.1" {
			mapped.HostIP = netip.MustParseAddr("127.0.0.1") // only this machine needs to reach it
		}
		req.ExposedPorts = []string{inside.String()}
		req.HostConfigModifier = func(hc *container.HostConfig) {
			hc.PortBindings = network.PortMap{inside: {mapped}}
		}
	}
	req.Cmd = append(cmd, args...)

	made, err := e.provider.CreateContainer(ctx, req)
	if err != nil {
		_ = e.provider.Close()
		return nil, fmt.Errorf("create the container: %w", err)
	}
	b := &box{engine: e, id: made.GetContainerID(), address: net.JoinHostPort(host, strconv.Itoa(port)), mark: mark}
	if err := b.Restart(ctx); err != nil {
		return nil, errors.Join(err, b.Remove(context.WithoutCancel(ctx)))
	}
	return b, nil
}

func hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return "unknown"
	}
	return name
}

// sweep removes containers of tests on this machine that were killed before they could remove them.
func (e *engine) sweep() {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	defer e.docker().Close()
	list, err := e.docker().ContainerList(ctx, client.ContainerListOptions{
		All:     true,
		Filters: client.Filters{}.Add("label", labelHost+"="+hostname()),
	})
	if err != nil {
		return
	}
	for _, c := range list.Items {
		pid, err := strconv.Atoi(c.Labels[labelPID])
		if err != nil || !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			continue
		}
		_, _ = e.docker().ContainerRemove(ctx, c.ID, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
	}
}

// box is a container with a Redis in it.
type box struct {
	engine  *engine
	id      string
	address string
	mark    string // a setting that tells our server from a stranger on its port
}

func (b *box) Addr() string { return b.address }

func (b *box) signal(ctx context.Context, name string) error {
	_, err := b.engine.docker().ContainerKill(ctx, b.id, client.ContainerKillOptions{Signal: name})
	return err
}

func (b *box) Stop(ctx context.Context) error {
	return errors.Join(b.signal(ctx, "SIGTERM"), b.awaitGone(ctx))
}

func (b *box) Kill(ctx context.Context) error {
	return errors.Join(b.signal(ctx, "SIGKILL"), b.awaitGone(ctx))
}

func (b *box) Pause(ctx context.Context) error  { return b.signal(ctx, "SIGSTOP") }
func (b *box) Resume(ctx context.Context) error { return b.signal(ctx, "SIGCONT") }

func (b *box) running(ctx context.Context) (bool, error) {
	got, err := b.engine.docker().ContainerInspect(ctx, b.id, client.ContainerInspectOptions{})
	if err != nil {
		return false, err
	}
	return got.Container.State != nil && got.Container.State.Running, nil
}

func (b *box) awaitGone(ctx context.Context) error {
	return poll(ctx, func() (bool, error) {
		up, err := b.running(ctx)
		return !up, err
	})
}

// restart starts the container and waits until its Redis answers.
func (b *box) Restart(ctx context.Context) error {
	if _, err := b.engine.docker().ContainerStart(ctx, b.id, client.ContainerStartOptions{}); err != nil {
		if strings.Contains(err.Error(), "port is already allocated") || strings.Contains(err.Error(), "address already in use") {
			return fmt.Errorf("%w: %w", testredis.ErrPortTaken, err)
		}
		return fmt.Errorf("start the container: %w", err)
	}
	return poll(ctx, func() (bool, error) {
		if answers(ctx, b.address, b.mark) {
			return true, nil
		}
		up, err := b.running(ctx)
		if err == nil && !up {
			err = b.death(ctx)
		}
		return false, err
	})
}

// death returns the error for a server that ended by itself.
func (b *box) death(ctx context.Context) error {
	out := "nothing"
	logs, err := b.engine.docker().ContainerLogs(ctx, b.id, client.ContainerLogsOptions{ShowStdout: true, ShowStderr: true, Tail: "5"})
	if err == nil {
		text, _ := io.ReadAll(io.LimitReader(logs, 4<<10))
		_ = logs.Close()
		out = string(bytes.TrimSpace(text))
	}
	if strings.Contains(out, "Address already in use") || strings.Contains(out, "Failed listening") {
		return testredis.ErrPortTaken
	}
	return fmt.Errorf("redis-server ended as soon as it was started; it printed %q", out)
}

func (b *box) Remove(ctx context.Context) error {
	defer b.engine.provider.Close()
	_, err := b.engine.docker().ContainerRemove(ctx, b.id, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
	return err
}

// answers reports whether the server with that mark listens at addr and is ready.
func answers(ctx context.Context, addr, mark string) bool {
	dialer := net.Dialer{Timeout: time.Second}
	conn, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return false
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(2 * time.Second)); err != nil {
		return false
	}
	if _, err := io.WriteString(conn, "PING\r\nCONFIG GET dbfilename\r\n"); err != nil {
		return false
	}
	lines := bufio.NewScanner(conn)
	if !lines.Scan() || lines.Text() != "+PONG" {
		return false // it still loads its data, and would answer CONFIG all the same
	}
	// An array of the name and the value, each as a length and a text.
	for n := 0; n < 5 && lines.Scan(); n++ {
		if n == 0 && lines.Text() != "*2" {
			return false
		}
		if n == 4 {
			return lines.Text() == mark
		}
	}
	return false
}

// poll asks until done returns true or an error, or the context ends.
func poll(ctx context.Context, done func() (bool, error)) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, err := done()
		if ok || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
