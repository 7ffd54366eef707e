package store

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/onbeat/onbeat/task"
)

// tlsParams are the parameters of a URL that configure TLS. onbeat reads them itself, because go-redis knows only the last one,
// and not for a cluster.
var tlsParams = []string{"tls_ca", "tls_cert", "tls_key", "skip_verify"}

// secure returns the TLS configuration of the URL, or nil if it has none.
func (u *redisURL) secure() (*tls.Config, error) {
	for _, name := range tlsParams {
		switch {
		case !u.query.Has(name):
		case !u.tls:
			return nil, u.refuse(name + " needs TLS: begin the URL with rediss")
		case len(u.query[name]) > 1:
			return nil, badFile(name, "", "appears twice")
		case u.query.Get(name) == "" && name != "skip_verify":
			return nil, badFile(name, "", "empty")
		}
	}
	if !u.tls {
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	var err error
	if c.InsecureSkipVerify, err = strconv.ParseBool(cmp.Or(u.query.Get("skip_verify"), "false")); err != nil {
		return nil, u.refuse("skip_verify is not true or false")
	}
	if name := u.query.Get("tls_ca"); name != "" {
		if c.RootCAs, err = readCA(name); err != nil {
			return nil, err
		}
	}
	return c, u.identify(c)
}

// identify makes c show the certificate that the URL names. The file is read for each connection, so that a renewed
// certificate is shown without a restart.
func (u *redisURL) identify(c *tls.Config) error {
	cert, key := u.query.Get("tls_cert"), u.query.Get("tls_key")
	switch {
	case cert == "" && key == "":
		return nil
	case cert == "":
		return badFile("tls_cert", "", "missing")
	case key == "":
		return badFile("tls_key", "", "missing")
	}
	c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return readPair(cert, key) }
	_, err := readPair(cert, key)
	return err
}

func readCA(name string) (*x509.CertPool, error) {
	data, err := readPEM("tls_ca", name)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(data) {
		return nil, badFile("tls_ca", name, "has no certificate")
	}
	return pool, nil
}

func readPair(cert, key string) (*tls.Certificate, error) {
	certs, err := readPEM("tls_cert", cert)
	if err != nil {
		return nil, err
	}
	keys, err := readPEM("tls_key", key)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(certs, keys)
	switch {
	case err == nil:
		return &pair, nil
	case !x509.NewCertPool().AppendCertsFromPEM(certs):
		return nil, badFile("tls_cert", cert, "has no certificate")
	case strings.Contains(err.Error(), "does not match"):
		return nil, badFile("tls_key", key, "does not belong to the certificate of tls_cert")
	}
	return nil, badFile("tls_key", key, "has no usable key")
}

// mostPEM is more than any file of certificates has. Without a limit, reading from a device would not end.
const mostPEM = 4 << 20

func readPEM(field, name string) ([]byte, error) {
	data, err := readStart(name, mostPEM+1)
	var path *fs.PathError
	switch {
	case errors.As(err, &path):
		return nil, badFile(field, name, path.Err.Error())
	case err != nil:
		return nil, badFile(field, name, err.Error())
	case len(data) > mostPEM:
		return nil, badFile(field, name, "too large for a file of certificates")
	}
	return data, nil
}

func readStart(name string, most int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return io.ReadAll(io.LimitReader(f, most))
}

func badFile(field, name, reason string) error {
	hint := map[string]string{
		"tls_ca":      "a PEM file of the CAs that sign the certificate of Redis",
		"tls_cert":    "a PEM file of the certificate to show to Redis; tls_key has its key",
		"tls_key":     "a PEM file of the key of tls_cert, without a password",
		"skip_verify": "true or false",
	}
	return &task.FieldError{Field: field, Value: name, Reason: reason, Hint: hint[field]}
}

// own are the parameters that are not passed on to go-redis.
var own = slices.Concat(tlsParams, []string{"sentinel_username", "sentinel_password"})
