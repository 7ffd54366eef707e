package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/onbeat/onbeat/admin"
	remote "github.com/onbeat/onbeat/client"
	"github.com/onbeat/onbeat/cmd/onbeat/internal/config"
	"github.com/onbeat/onbeat/internal/private"
	"github.com/onbeat/onbeat/task"
)

// maxToken is more bytes than any token has.
const maxToken = 4 << 10

// apiOf returns the URL of the API that a command uses, or "" if it uses Redis. A flag decides; without it the environment, which
// must not name a Redis too, and nor must the config.
func (a *app) apiOf(file *config.File) (string, error) {
	env := a.env("ONBEAT_API")
	switch {
	case a.API != "" && a.Redis != "":
		return "", &usageError{"--api and --redis exclude each other", "name the API or the Redis"}
	case a.Redis != "" || a.API == "" && env == "":
		return "", a.noAPI()
	case a.Archive != "":
		return "", &usageError{"--archive and an API exclude each other", "leave it out: the instance behind the API has its own"}
	case a.Namespace != "":
		return "", refuse("namespace", a.Namespace, "an API serves one namespace", "leave it out, or name the Redis with --redis")
	case a.API != "":
		return a.API, nil
	case a.env("ONBEAT_REDIS_URL") != "":
		return "", &usageError{"ONBEAT_API and ONBEAT_REDIS_URL are both set", "unset one of them, or decide with --api or --redis"}
	case file != nil && file.Redis.URL != "":
		return "", file.At(refuse("redis.url", shownURL(file.Redis.URL), "ONBEAT_API names an API", "unset the variable, or decide with --api or --redis"))
	}
	return env, nil
}

// noAPI refuses flags about an API for a command that uses Redis: the user expects that the API is used.
func (a *app) noAPI() error {
	const hint = "name an API with --api or ONBEAT_API, or leave the flag out"
	switch {
	case a.TokenFile != "":
		return &usageError{"--token-file is for an API, and none is named", hint}
	case a.PlainHTTP:
		return &usageError{"--plain-http is for an API, and none is named", hint}
	}
	return nil
}

// connectAPI opens the namespace that an API serves, and fails at once if the API does not answer, or not to the token.
func (a *app) connectAPI(ctx context.Context, url string) (*client, error) {
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 16, TLSHandshakeTimeout: connectTime,
		DialContext: (&net.Dialer{Timeout: connectTime}).DialContext,
	}
	o := remote.Options{HTTP: &http.Client{Transport: transport}, PlainHTTP: a.PlainHTTP}
	if a.TokenFile != "" || a.env("ONBEAT_TOKEN") != "" {
		o.Token = a.token
	}
	c, err := remote.New(url, o)
	if err != nil {
		return nil, err
	}
	if err := a.checkAPI(ctx, url, c); err != nil {
		transport.CloseIdleConnections()
		return nil, err
	}
	return &client{Admin: c, namespace: "the namespace of " + url, close: transport.CloseIdleConnections}, nil
}

// token returns the token to send. A file is read for each request, so that it may be replaced.
func (a *app) token() (string, error) {
	if a.TokenFile == "" {
		return checkToken("ONBEAT_TOKEN", a.env("ONBEAT_TOKEN"))
	}
	data, err := private.ReadLinked(a.TokenFile, maxToken)
	if err != nil {
		return "", config.RefuseFile("token-file", a.TokenFile, err, "name a file of your own that holds a token")
	}
	return checkToken("token-file", string(data))
}

// checkToken refuses what no header can hold. The error does not show it.
func checkToken(field, text string) (string, error) {
	token := strings.TrimSpace(text)
	if token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", refuse(field, "", "does not hold one token", "a token is one word of letters, digits and signs")
	}
	return token, nil
}

// checkAPI reads the time through the API.
func (a *app) checkAPI(ctx context.Context, url string, c *admin.Admin) error {
	timed, done := context.WithTimeout(ctx, 3*connectTime)
	defer done()
	_, err := c.Activity.Now(timed)
	var dial *net.OpError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &dial) && dial.Op == "dial":
		return &failure{err, "is onbeat serve running there? its api.listen says where it listens; name another with --api or ONBEAT_API"}
	case errors.Is(err, remote.ErrToken) && a.TokenFile == "" && a.env("ONBEAT_TOKEN") == "":
		return &failure{errors.New("the API needs a token"), "set ONBEAT_TOKEN, or name a file with --token-file"} // the API's own hint is for curl
	case errors.Is(err, task.ErrNotFound):
		return &failure{errors.New("the API is not at this URL"), "leave out /v1, and each path that no proxy needs"}
	case errors.Is(err, task.ErrUnreachable) && strings.Contains(err.Error(), task.ErrUnreachable.Error()):
		return &failure{err, "the API answers, but its Redis does not: run onbeat doctor with the config of that serve"}
	case errors.Is(err, remote.ErrStrange):
		return &failure{err, "is this the address of the API of onbeat?"}
	case certHint(err) != "":
		return &failure{err, certHint(err)}
	case timed.Err() != nil && ctx.Err() == nil:
		return &failure{fmt.Errorf("%w: no answer within %s", task.ErrUnreachable, 3*connectTime), "name another with --api or ONBEAT_API"}
	}
	return err
}

// certHint returns what to do about TLS with an API that fails, or "".
func certHint(err error) string {
	switch hint, ok := tlsHint(err); {
	case strings.Contains(err.Error(), "HTTP response to HTTPS client"):
		return "this port does not speak TLS: use http://"
	case !ok:
		return ""
	case strings.HasPrefix(hint, "name the CA"):
		return "this machine does not trust its CA: name the CA in SSL_CERT_FILE"
	case strings.HasPrefix(hint, "use a host name"):
		return hint
	}
	return "check the certificates of the API, and this machine's clock"
}
