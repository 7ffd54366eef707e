package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat/cmd/onbeat/internal/config"
	"github.com/onbeat/onbeat/internal/testredis"
)

// served is where an instance says that it serves the API.
var served = regexp.MustCompile(`"url":"(https?://[^"]+)"[^\n]*"serving the API"|"serving the API"[^\n]*"url":"(https?://[^"]+)"`)

func urlOfAPI(t *testing.T, p *program) string {
	t.Helper()
	p.logs("serving the API")
	m := served.FindStringSubmatch(p.errs.String())
	if m == nil {
		t.Fatalf("no URL: %s", p.errs.String())
	}
	return m[1] + m[2]
}

// status asks the API, and returns its status; 0 if it does not answer.
func status(t *testing.T, c *http.Client, url, token string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := c.Do(r)
	if err != nil {
		return 0
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

func put(t *testing.T, name, text string) string {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestServe_servesTheAPI(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	dir := t.TempDir()
	file := put(t, filepath.Join(dir, "token"), "the-first-secret-of-all\n")
	text := "redis: {url: '" + s.url + "'}\nnamespace: " + s.ns + "\nlease: 1s\n" +
		"api:\n  listen: 127.0.0.1:0\n  tokens:\n    - {name: ci, role: operator, token_file: token}\n    - {name: eye, role: viewer, token: '${EYE}'}\n"
	c := put(t, filepath.Join(dir, "onbeat.yaml"), text)
	p := startProgram(t, dir, []string{"EYE=the-secret-of-the-eye"}, "serve", "-c", c)
	url := urlOfAPI(t, p)
	p.logs("leads")
	client := &http.Client{Timeout: 10 * time.Second}
	testredis.Eventually(t, patience, func() bool { return status(t, client, url+"/readyz", "") == 200 }, "never ready")
	for token, want := range map[string]int{"": 401, "wrong-but-long-enough": 401, "the-first-secret-of-all": 200, "the-secret-of-the-eye": 200} {
		if got := status(t, client, url+"/v1/counts", token); got != want {
			t.Errorf("%q: %d", token, got)
		}
	}
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/v1/tasks", strings.NewReader(`{"type":"echo"}`))
	r.Header.Set("Authorization", "Bearer the-secret-of-the-eye")
	r.Header.Set("Content-Type", "application/json")
	if resp, err := client.Do(r); err != nil || resp.StatusCode != 403 {
		t.Errorf("a viewer enqueues: %v, %v", resp, err)
	} else {
		_ = resp.Body.Close()
	}
	put(t, file, "short")
	p.logs("kept the old secret of a token of the API: its file cannot be used")
	put(t, file, "the-second-secret-of-all")
	p.logs("read new tokens or certificates of the API")
	if one, two := status(t, client, url+"/v1/counts", "the-first-secret-of-all"), status(t, client, url+"/v1/counts", "the-second-secret-of-all"); one != 401 || two != 200 {
		t.Errorf("after the token was replaced: %d, %d", one, two)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	p.logs("withdrew a token of the API: its file is gone")
	if ci, eye := status(t, client, url+"/v1/counts", "the-second-secret-of-all"), status(t, client, url+"/v1/counts", "the-secret-of-the-eye"); ci != 401 || eye != 200 {
		t.Errorf("after the file of one token was removed: %d, %d", ci, eye)
	}
	put(t, file, "the-second-secret-of-all")
	testredis.Eventually(t, 30*time.Second, func() bool {
		return status(t, client, url+"/v1/counts", "the-second-secret-of-all") == 200
	}, "the token does not come back with its file")
	for _, secret := range []string{"the-first-secret-of-all", "the-second-secret", "the-secret-of-the-eye"} {
		if strings.Contains(p.errs.String()+p.out.String(), secret) {
			t.Errorf("the log shows %s", secret)
		}
	}

	// While it drains it is not ready, and answers all else.
	client.CloseIdleConnections()
	s.must("enqueue", "sleep", "--payload", `{"for":"3s"}`, "--id", "long")
	testredis.Eventually(t, patience, func() bool { return strings.Contains(s.must("tasks", "list", "--state", "running"), "long") }, "it does not run")
	p.interrupt()
	p.logs("finishing running tasks")
	if ready, counts := status(t, client, url+"/readyz", ""), status(t, client, url+"/v1/counts", "the-second-secret-of-all"); ready != 503 || counts != 200 {
		t.Errorf("while it drains: %d, %d", ready, counts)
	}
	if code := p.exit(20 * time.Second); code != exitFine {
		t.Errorf("exit %d", code)
	}
}

func TestServe_ofAPortThatIsTaken(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	s := newShell(t)
	file := s.file("onbeat.yaml", "api: {listen: '"+l.Addr().String()+"'}\n")
	s.failed(s.run("", "serve", "-c", file), exitAsked, "taken", "onbeat.yaml:1: api.listen", "address already in use (name another address, or off)")
	s.nothingWritten()
	a := newApp(&globals{}, s.env(), strings.NewReader(""), os.Stdout, os.Stderr)
	var said lockedBuffer
	first, err := a.listenAPI(&config.File{}, zerolog.New(&said)) // one of the two finds the default taken
	if err != nil {
		t.Fatal(err)
	}
	defer first.close()
	second, err := a.listenAPI(&config.File{}, zerolog.New(&said))
	if err != nil || second != nil || !strings.Contains(said.String(), "not serving the API: its default address cannot be used") {
		t.Errorf("%v, %v, %s", second, err, said.String())
	}
	if off, err := a.listenAPI(&config.File{API: config.API{Listen: config.ListenOff}}, zerolog.Nop()); off != nil || err != nil {
		t.Errorf("off: %v, %v", off, err)
	}
}

// issue makes a certificate for 127.0.0.1, signed by a CA, or by itself, and writes it and its key to a folder.
func issue(t *testing.T, dir, name string, ca *tls.Certificate) *tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	serial, _ := rand.Int(rand.Reader, big.NewInt(1<<60))
	own := &x509.Certificate{
		SerialNumber: serial, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: ca == nil, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	parent, signer := own, any(key)
	if ca != nil {
		parent, signer = ca.Leaf, ca.PrivateKey
	}
	der, err := x509.CreateCertificate(rand.Reader, own, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	cert := put(t, filepath.Join(dir, name+".pem"), string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	hidden := put(t, filepath.Join(dir, name+".key"), string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: secret})))
	pair, err := tls.LoadX509KeyPair(cert, hidden)
	if err != nil {
		t.Fatal(err)
	}
	return &pair
}

func TestServe_speaksTLSAndAsksForCertificates(t *testing.T) {
	t.Parallel()
	s, dir := newShell(t), t.TempDir()
	ca := issue(t, dir, "ca", nil)
	issue(t, dir, "server", ca)
	mine, stranger := issue(t, dir, "client", ca), issue(t, dir, "stranger", nil)
	c := put(t, filepath.Join(dir, "onbeat.yaml"), "redis: {url: '"+s.url+"'}\nnamespace: "+s.ns+"\napi: {listen: 127.0.0.1:0, tls: {cert: server.pem, key: server.key, client_ca: ca.pem}}\n")
	p := startProgram(t, dir, nil, "serve", "-c", c)
	url := urlOfAPI(t, p)
	roots := x509.NewCertPool()
	roots.AddCert(ca.Leaf)
	ask := func(conf *tls.Config) int {
		conf.RootCAs = roots
		tr := &http.Transport{TLSClientConfig: conf, DisableKeepAlives: true}
		return status(t, &http.Client{Transport: tr, Timeout: 10 * time.Second}, url+"/v1/counts", "")
	}
	if got := ask(&tls.Config{Certificates: []tls.Certificate{*mine}}); got != 200 {
		t.Errorf("with a certificate of the CA: %d", got)
	}
	if got := ask(&tls.Config{}); got != 0 {
		t.Errorf("without one: %d", got)
	}
	if got := ask(&tls.Config{Certificates: []tls.Certificate{*stranger}}); got != 0 {
		t.Errorf("with another's: %d", got)
	}
	if got := ask(&tls.Config{Certificates: []tls.Certificate{*mine}, MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10}); got != 0 { //nolint:gosec // to be refused
		t.Errorf("with TLS 1.1: %d", got)
	}
	issue(t, dir, "server", ca)
	p.logs("read new tokens or certificates of the API")
	if got := ask(&tls.Config{Certificates: []tls.Certificate{*mine}}); got != 200 {
		t.Errorf("with a new certificate of the server: %d", got)
	}
}
