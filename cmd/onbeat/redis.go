package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/onbeat/onbeat/cmd/onbeat/internal/config"
	"github.com/onbeat/onbeat/cmd/onbeat/internal/doctor"
)

// cautions warn of settings that work but are not safe: the way to Redis, and secrets that other users can read. serve logs them,
// and doctor reports them.
func (t target) cautions() []doctor.Check {
	var list []doctor.Check
	warn := func(name, detail, hint string) {
		list = append(list, doctor.Check{Name: name, State: doctor.Warn, Detail: detail, Hint: hint})
	}
	readable := func(file, what, hint string) {
		if mode, open := openToOthers(file); open {
			warn("secrets", fmt.Sprintf("%s holds %s, and other users can read it (mode %04o)", file, what, mode), hint)
		}
	}
	params := config.ParamsOf(t.url)
	if on, _ := strconv.ParseBool(params.Get("skip_verify")); on {
		warn("tls", "skip_verify: a host between this machine and Redis can pose as Redis, and gets the password", "remove it, and name the CA with tls_ca")
	}
	for _, s := range []struct{ file, what, hint string }{
		{t.secretFile, "the password of Redis", "chmod 600, or write ${NAME} for the password"},
		{t.archive, "the password of the archive", "chmod 600, or write ${NAME} for the password"},
		{t.outboxFile, "the password of the outbox", "chmod 600, or write ${NAME} for the password"},
		{params.Get("tls_key"), "the key of tls_cert", "chmod 600"},
	} {
		readable(s.file, s.what, s.hint)
	}
	for _, name := range t.keyFiles {
		readable(name, "a key of encryption", "chmod 600")
	}
	return list
}

// openToOthers reports whether the group or others may read a file.
func openToOthers(file string) (mode os.FileMode, open bool) {
	if file == "" || runtime.GOOS == "windows" { // on Windows the mode does not tell
		return 0, false
	}
	info, err := os.Stat(file)
	if err != nil {
		return 0, false
	}
	mode = info.Mode().Perm()
	return mode, mode&0o044 != 0
}

// tlsHint returns a hint for a TLS connection that fails on either side.
func tlsHint(err error) (hint string, ok bool) {
	var (
		unknown x509.UnknownAuthorityError
		name    x509.HostnameError
		invalid x509.CertificateInvalidError
		record  tls.RecordHeaderError
		alert   tls.AlertError
	)
	switch {
	case err == nil:
		return "", false
	case errors.As(err, &unknown):
		return "name the CA that signed it with tls_ca", true
	case errors.As(err, &name):
		return "use a host name in the URL that the certificate has", true
	case errors.As(err, &invalid):
		return "check the certificate of Redis, and this machine's clock", true
	case errors.As(err, &record):
		return "this port does not speak TLS: use redis:// in place of rediss://", true
	case errors.As(err, &alert), strings.Contains(err.Error(), "remote error: tls:"):
		return "Redis refuses the connection: name a certificate that it knows with tls_cert and tls_key", true
	}
	return "", false
}
