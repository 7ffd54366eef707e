package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

type probeCmd struct {
	Ready bool `help:"Ask whether the instance is ready, and not only whether its process is alive."`
}

// Help is shown by onbeat probe --help.
func (c *probeCmd) Help() string {
	return "Asks the API of an instance, at " + probeURL + " or --api, for /healthz, or with --ready for /readyz. Exits with 1 if the answer " +
		"is no, or none comes within " + probeTime.String() + ". It needs no token. Of an API on this machine it does not verify the certificate, because it tells " +
		"the API nothing.\n\n" +
		"An outage of Redis makes an instance unready, and does not make it unhealthy: a restart would not help."
}

const (
	probeURL  = "http://" + defaultListen
	probeTime = 5 * time.Second
)

// Run asks the instance.
func (c *probeCmd) Run(ctx context.Context, a *app) error {
	u, err := url.Parse(cmp.Or(a.API, a.env("ONBEAT_API"), probeURL))
	if err != nil || u.Host == "" {
		return &usageError{"the URL of the API is invalid", "for example " + probeURL} // the URL may hold a password
	}
	path := "/healthz"
	if c.Ready {
		path = "/readyz"
	}
	ctx, done := context.WithTimeoutCause(ctx, probeTime, errTimeUp)
	defer done()
	body, err := askHealth(ctx, u, path)
	if err != nil {
		return err
	}
	a.printf("%s", strings.TrimSpace(body))
	return nil
}

// askHealth asks an API how its process is. It fails if the answer is no.
func askHealth(ctx context.Context, u *url.URL, path string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.JoinPath(path).String(), http.NoBody)
	if err != nil {
		return "", err
	}
	ip := net.ParseIP(u.Hostname())
	own := u.Hostname() == "localhost" || ip != nil && (ip.IsLoopback() || ip.IsUnspecified())
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: own}, //nolint:gosec // it hears of this machine whether it is well, and sends nothing
	}}
	resp, err := client.Do(r)
	if err != nil {
		return "", &failure{errors.Unwrap(err), "is an instance running there? its api.listen says where it listens; name another with --api or ONBEAT_API"}
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
	if err != nil {
		return "", err
	}
	if resp.StatusCode != http.StatusOK {
		var problem struct {
			Detail string `json:"detail"`
		}
		_ = json.Unmarshal(body, &problem)
		return "", errors.New(cmp.Or(problem.Detail, resp.Status))
	}
	return string(body), nil
}
