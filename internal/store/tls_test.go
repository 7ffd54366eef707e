package store_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/internal/embedded"
	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

// authority is a private CA, made for a test.
type authority struct {
	testing.TB
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	a := &authority{TB: t, dir: t.TempDir()}
	a.key = a.newKey()
	a.cert = &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "a CA of a test"}, IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	a.write("ca.pem", "CERTIFICATE", a.sign(a.cert, a.key))
	return a
}

func (a *authority) newKey() *ecdsa.PrivateKey {
	a.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.Fatal(err)
	}
	return key
}

func (a *authority) sign(c *x509.Certificate, key *ecdsa.PrivateKey) []byte {
	a.Helper()
	der, err := x509.CreateCertificate(rand.Reader, c, a.cert, &key.PublicKey, a.key)
	if err != nil {
		a.Fatal(err)
	}
	return der
}

func (a *authority) write(name, kind string, der []byte) {
	a.Helper()
	if err := os.WriteFile(a.file(name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		a.Fatal(err)
	}
}

func (a *authority) file(name string) string { return filepath.Join(a.dir, name) }

// issue writes NAME.pem and NAME.key, for 127.0.0.1.
func (a *authority) issue(name string) {
	a.Helper()
	key := a.newKey()
	a.write(name+".pem", "CERTIFICATE", a.sign(&x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		NotBefore:   time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}, key))
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		a.Fatal(err)
	}
	a.write(name+".key", "EC PRIVATE KEY", der)
}

// query is the parameters of a URL that trusts this CA, and shows a certificate of it.
func (a *authority) query(client string) string {
	q := url.Values{"tls_ca": {a.file("ca.pem")}}
	if client != "" {
		q.Set("tls_cert", a.file(client+".pem"))
		q.Set("tls_key", a.file(client+".key"))
	}
	return q.Encode()
}

// server starts a redis-server that speaks nothing but TLS, and asks for certificates of this CA.
func (a *authority) server(program string, config ...string) (addr string) {
	a.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil {
		if os.Getenv("ONBEAT_REQUIRE_REAL") == "1" {
			a.Fatal(err)
		}
		a.Skip("there is no redis-server on PATH")
	}
	for range 5 { // another process may take the port, or that of the cluster's bus, before the server does
		if addr = a.begin(path, program, config); addr != "" {
			return addr
		}
	}
	a.Fatal("the server ends as soon as it begins")
	return ""
}

// begin starts a server on a free port. It returns "" if the server has ended.
func (a *authority) begin(path, program string, config []string) (addr string) {
	a.Helper()
	port, err := embedded.FreePort()
	if err != nil {
		a.Fatal(err)
	}
	config = append([]string{"bind 127.0.0.1", "port 0", "tls-port " + strconv.Itoa(port), "tls-cert-file " + a.file("server.pem"),
		"tls-key-file " + a.file("server.key"), "tls-ca-cert-file " + a.file("ca.pem"), "tls-replication yes", "save \"\"", "dir " + a.TempDir()}, config...)
	name := filepath.Join(a.TempDir(), "redis.conf")
	if err := os.WriteFile(name, []byte(strings.Join(config, "\n")+"\n"), 0o600); err != nil {
		a.Fatal(err)
	}
	log, err := os.Create(name + ".log")
	if err != nil {
		a.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(path, name)
	if program == "sentinel" {
		cmd.Args = append(cmd.Args, "--sentinel")
	}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		a.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	a.Cleanup(func() { _ = cmd.Process.Kill(); <-ended })
	addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	testredis.Eventually(a, time.Minute, func() error {
		select {
		case <-ended:
			addr = ""
			return nil
		default:
		}
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			_ = conn.Close()
		}
		return err
	}, "the server listens")
	if said, _ := os.ReadFile(name + ".log"); strings.Contains(string(said), "Bad directive") {
		a.Skipf("this redis-server has no TLS: %s", said)
	}
	return addr
}

func pings(t *testing.T, rawURL string) error {
	t.Helper()
	rdb, err := store.Dial(rawURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rdb.Close() }()
	return rdb.Set(t.Context(), "onbeat:{tls}:test", "1", time.Minute).Err()
}

func TestDial_showsACertificateAndTrustsAPrivateCA(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	a.issue("server")
	a.issue("client")
	addr := a.server("server")
	if err := pings(t, "rediss://"+addr+"/0?"+a.query("client")); err != nil {
		t.Errorf("with a certificate: %v", err)
	}
	if err := pings(t, "rediss://"+addr+"/0?max_retries=-1&"+a.query("")); err == nil || !strings.Contains(err.Error(), "tls") {
		t.Errorf("without a certificate: %v", err)
	}
	var untrusted x509.UnknownAuthorityError
	if err := pings(t, "rediss://"+addr+"/0?max_retries=-1"); !errors.As(err, &untrusted) {
		t.Errorf("without the CA: %v", err)
	}
	other := newAuthority(t)
	other.issue("client")
	if err := pings(t, "rediss://"+addr+"/0?max_retries=-1&"+other.query("client")); !errors.As(err, &untrusted) {
		t.Errorf("with another CA: %v", err)
	}
}

// A certificate that is renewed on disk is shown from the next connection on.
func TestDial_showsTheCertificateOfTheMoment(t *testing.T) {
	t.Parallel()
	a, other := newAuthority(t), newAuthority(t)
	a.issue("server")
	other.issue("client")
	addr := a.server("server")
	q := url.Values{"tls_ca": {a.file("ca.pem")}, "tls_cert": {other.file("client.pem")}, "tls_key": {other.file("client.key")}, "max_retries": {"-1"}}
	rdb, err := store.Dial("rediss://" + addr + "?" + q.Encode())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rdb.Close() }()
	if err := rdb.Ping(t.Context()).Err(); err == nil {
		t.Fatal("a certificate of another CA was taken")
	}
	a.issue("client")
	for _, name := range []string{"client.pem", "client.key"} {
		if err := os.Rename(a.file(name), other.file(name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := rdb.Ping(t.Context()).Err(); err != nil {
		t.Errorf("with the renewed one: %v", err)
	}
}

func TestDial_speaksTLSToACluster(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	a.issue("server")
	a.issue("client")
	addr := a.server("server", "cluster-enabled yes", "cluster-announce-ip 127.0.0.1", "tls-cluster yes", "cluster-node-timeout 2000")
	one, err := store.Dial("rediss://" + addr + "?" + a.query("client"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = one.Close() }()
	if err := one.Do(t.Context(), "cluster", "addslotsrange", 0, 16383).Err(); err != nil {
		t.Skipf("it takes Redis 7: %v", err)
	}
	testredis.Eventually(t, 20*time.Second, func() error { return pings(t, "rediss-cluster://"+addr+"?"+a.query("client")) }, "the cluster serves")
	if err := pings(t, "rediss-cluster://"+addr+"?max_retries=-1&max_redirects=-1"); err == nil {
		t.Error("without the CA it was served")
	}
	key := url.Values{"tls_cert": {a.file("client.pem")}, "tls_key": {a.file("client.key")}}
	if err := pings(t, "rediss-cluster://"+addr+"?skip_verify=true&"+key.Encode()); err != nil {
		t.Errorf("unverified: %v", err)
	}
}

func TestDial_speaksTLSToSentinels(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	a.issue("server")
	a.issue("client")
	host, port, _ := net.SplitHostPort(a.server("server"))
	sentinel := a.server("sentinel", "sentinel monitor beat "+host+" "+port+" 1")
	testredis.Eventually(t, 20*time.Second, func() error { return pings(t, "rediss-sentinel://"+sentinel+"/beat/0?"+a.query("client")) }, "the group serves")
	if err := pings(t, "rediss-sentinel://"+sentinel+"/beat/0?max_retries=-1"); err == nil {
		t.Error("without the CA it was served")
	}
}

func TestDial_refusesTLSThatCannotBe(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	a.issue("client")
	a.issue("other")
	ca, cert, key := a.file("ca.pem"), a.file("client.pem"), a.file("client.key")
	for query, want := range map[string]string{
		"tls_ca=/nowhere/ca.pem":                 `tls_ca "/nowhere/ca.pem": `,
		"tls_ca=" + key:                          `tls_ca "` + key + `": `,
		"tls_ca=/dev/zero":                       `tls_ca "/dev/zero": `,
		"tls_ca=":                                `tls_ca: `,
		"tls_cert=" + cert:                       `tls_key: `,
		"tls_key=" + key:                         `tls_cert: `,
		"tls_cert=/nowhere&tls_key=" + key:       `tls_cert "/nowhere": `,
		"tls_cert=" + cert + "&tls_key=/nowhere": `tls_key "/nowhere": `,
		"tls_cert=" + cert + "&tls_key=" + ca:    `tls_key "` + ca + `": `,
		"tls_cert=" + cert + "&tls_key=" + a.file("other.key"): `tls_key "` + a.file("other.key") + `": `,
		"skip_verify=perhaps":            `url "rediss://:…@h:1?skip_verify=perhaps": `,
		"tls_ca=" + ca + "&tls_ca=" + ca: `tls_ca: `,
	} {
		for _, scheme := range []string{"rediss", "rediss-cluster", "rediss-sentinel"} {
			path := map[string]string{"rediss-sentinel": "/m"}[scheme]
			rdb, err := store.Dial(scheme + "://:hunter2@h:1" + path + "?" + query)
			if err == nil {
				_ = rdb.Close()
			}
			var field *task.FieldError
			w := strings.NewReplacer("rediss://:…@h:1", scheme+"://:…@h:1"+path).Replace(want)
			if !errors.As(err, &field) || !strings.HasPrefix(err.Error(), w) || field.Hint == "" || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%s?%s: %v\nwant %s", scheme, query, err, w)
			}
		}
	}
	for _, raw := range []string{"redis://h?tls_ca=" + ca, "redis-cluster://h?tls_ca=" + ca, "redis-sentinel://h/m?tls_ca=" + ca, "redis://h?skip_verify=true"} {
		if rdb, err := store.Dial(raw); err == nil || !strings.Contains(err.Error(), "rediss") {
			if err == nil {
				_ = rdb.Close()
			}
			t.Errorf("%s: %v", raw, err)
		}
	}
}

func TestDial_verifiesUnlessToldNotTo(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]bool{
		"rediss://h": false, "rediss://h?skip_verify=false": false, "rediss://h?skip_verify=true": true, "rediss-cluster://h?skip_verify=1": true,
		"rediss-cluster://h": false, "rediss-sentinel://h/m?skip_verify=true": true,
	} {
		rdb, err := store.Dial(raw)
		if err != nil {
			t.Errorf("%s: %v", raw, err)
			continue
		}
		var got *tls.Config
		switch c := rdb.(type) {
		case *redis.Client:
			got = c.Options().TLSConfig
		case *redis.ClusterClient:
			got = c.Options().TLSConfig
		}
		_ = rdb.Close()
		if got == nil || got.InsecureSkipVerify != want || got.MinVersion < tls.VersionTLS12 {
			t.Errorf("%s: %+v", raw, got)
		}
	}
}

func TestDispatcher_isDurableOverTLS(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	a.issue("server")
	a.issue("client")
	addr := a.server("server")
	host, port, _ := net.SplitHostPort(addr)
	a.server("server", "replicaof "+host+" "+port)
	rdb, err := store.Dial("rediss://" + addr + "?" + a.query("client"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rdb.Close() }()
	testredis.Eventually(t, 20*time.Second, func() bool {
		return strings.Contains(rdb.Info(t.Context(), "replication").Val(), "state=online")
	}, "the replica follows")
	short := -1
	d, err := onbeat.New(rdb, onbeat.Config{Namespace: testredis.Namespace(t), Durability: onbeat.Durability{Replicas: 1, Timeout: 2 * time.Second,
		Report: func(replicas int, enough bool) {
			if !enough {
				short = replicas
			}
		}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Enqueue(t.Context(), task.New("echo", nil)); err != nil || short >= 0 {
		t.Errorf("%v; on %d replicas", err, short)
	}
}
