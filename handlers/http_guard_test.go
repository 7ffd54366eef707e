package handlers_test

import (
	"errors"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/task"
)

func TestIsPublic(t *testing.T) {
	t.Parallel()
	for want, list := range map[bool]string{
		true: `1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0 169.253.255.255 169.255.0.0
			172.15.255.255 172.32.0.0 192.0.1.0 192.167.255.255 192.169.0.0 198.17.255.255 198.20.0.0 223.255.255.255
			2606:4700:4700::1111 2a00:1450::1 2001:4860:4860::8888 ::ffff:8.8.8.8 64:ff9b::8.8.8.8 2002:808:808::1
			168.63.129.15 168.63.129.17 2a00:1450::5efe:8.8.8.8 2a00:1450::200:5efe:808:808 2a00:1450::1:5efe:10.0.0.1 2a00:1450:0:5efe::1
			2001:200::1 2002:808:808::5efe:808:808`,
		false: `0.0.0.0 0.1.2.3 10.0.0.0 10.255.255.255 100.64.0.0 100.127.255.255 127.0.0.1 127.255.255.255 169.254.169.254 172.16.0.0
			172.31.255.255 192.0.0.1 192.0.2.1 192.88.99.1 192.168.0.0 192.168.255.255 198.18.0.0 198.19.255.255 198.51.100.1 203.0.113.1 224.0.0.1
			239.255.255.255 240.0.0.1 255.255.255.255
			:: ::1 ::2 ::127.0.0.1 ::8.8.8.8 fc00::1 fd00:ec2::254 fe80::1 fe80::1%eth0 fec0::1 ff02::1 ff0e::1 100::1 2001::1 2001:db8::1 3fff::1 4000::1
			::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:169.254.169.254 64:ff9b::127.0.0.1 64:ff9b::10.1.2.3 64:ff9b:1::8.8.8.8 2002:7f00:1::1
			2002:a9fe:a9fe::1
			168.63.129.16 ::ffff:168.63.129.16 64:ff9b::168.63.129.16 2002:a83f:8110::1 100.100.100.200 192.0.0.192
			2a00:1450::5efe:10.0.0.1 2a00:1450::200:5efe:127.0.0.1 2a00:1450::5efe:169.254.169.254 2002:808:808::5efe:10.0.0.1
			fe80::5efe:8.8.8.8 fe80::200:5efe:808:808 2001:0:808:808::1 2001:1ff:ffff::1 ::ffff:0:8.8.8.8 ::ffff:0:10.0.0.1 ::10.0.0.1
			64:ff9b:0:1::1 64:ff9b:1:ffff::1 fec0::a 5f00::1 fdff::1 febf::1 198.19.0.1`,
	} {
		for a := range strings.FieldsSeq(list) {
			if got := handlers.IsPublic(netip.MustParseAddr(a)); got != want {
				t.Errorf("isPublic(%s) = %t", a, got)
			}
		}
	}
}

func TestDenyPrivate_refusesWhatIsNoAddress(t *testing.T) {
	t.Parallel()
	for _, a := range []string{"", "localhost:80", "127.0.0.1:80", "[::1]:80", "[fe80::1%lo]:80", "/run/socket"} {
		if err := handlers.DenyPrivate(a); !errors.Is(err, handlers.ErrDenied) {
			t.Errorf("%q: %v", a, err)
		}
	}
	if err := handlers.DenyPrivate("8.8.8.8:80"); err != nil {
		t.Error(err)
	}
}

func TestHTTP_deniesPrivateAddresses(t *testing.T) {
	t.Parallel()
	s := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("reached") })
	port := s.URL[strings.LastIndexByte(s.URL, ':'):]
	h := newHTTP(t, handlers.HTTPConfig{DenyPrivate: true})
	for _, host := range []string{"127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "0.0.0.0", "[::1]", "169.254.169.254", "user:secret@10.0.0.1"} {
		err := ask(t, h, "url", "http://"+host+port)
		if !errors.Is(err, handlers.ErrDenied) || !handlers.IsDead(err) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, want it denied and dead", host, err)
		}
	}
}

// Each hop is checked, as the check is made where the connection is.
func TestHTTP_deniesARedirectToAPrivateAddress(t *testing.T) {
	t.Parallel()
	inside := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("reached the inside") })
	var hops atomic.Int32
	outside := serve(t, func(w http.ResponseWriter, r *http.Request) {
		hops.Add(1)
		http.Redirect(w, r, inside.URL, http.StatusTemporaryRedirect)
	})
	h := handlers.GuardedHTTP(strings.TrimPrefix(outside.URL, "http://"))
	t.Cleanup(func() { _ = h.(io.Closer).Close() })
	err := h.Handle(t.Context(), &task.Task{Payload: payload("url", outside.URL)})
	if !errors.Is(err, handlers.ErrDenied) || !handlers.IsDead(err) || hops.Load() != 1 {
		t.Errorf("after %d hops: %v", hops.Load(), err)
	}
}

func TestHTTP_usesNoProxyWhenItDeniesPrivateAddresses(t *testing.T) {
	s := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("reached the proxy") })
	t.Setenv("HTTP_PROXY", s.URL) // net/http reads it once a process; the other tests ask 127.0.0.1, which no proxy gets
	err := ask(t, newHTTP(t, handlers.HTTPConfig{DenyPrivate: true}), "url", "http://10.255.255.1/")
	if !errors.Is(err, handlers.ErrDenied) {
		t.Error(err)
	}
}
