package config

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"regexp"
	"strconv"
	"strings"

	"github.com/onbeat/onbeat/internal/field"
	"github.com/onbeat/onbeat/internal/private"
	"github.com/onbeat/onbeat/task"
)

// API says how an instance serves the API.
type API struct {
	// Listen is an address, "off", or "" for the default.
	Listen string
	// Tokens are those that are let in. None: without tokens only this machine is.
	Tokens []Token
	// Cert and Key are PEM files with which the API speaks TLS. ClientCA has the CAs of the clients that it lets in.
	Cert, Key, ClientCA string
	// BehindProxy says that a proxy in front decides who is let in.
	BehindProxy bool
}

// ListenOff is the address of an API that does not listen.
const ListenOff = "off"

// Token is one that the API lets in. Its secret is in the environment or in a file.
type Token struct {
	Name          string
	Role          string   // viewer, operator or admin
	Env           string   // the variable that holds the secret, or ""
	File          string   // the file that holds it, or ""
	Queues, Types []string // of the tasks that its holder may enqueue; empty: all

	field string // such as api.tokens[0]
	odd   bool   // its secret is written in the config, which has been refused
}

// LeastSecret is the least number of bytes of the secret of a token.
const LeastSecret = 16

const maxSecret = 4 << 10

type apiSettings struct {
	Listen      text            `yaml:"listen"`
	Tokens      []tokenSettings `yaml:"tokens"`
	TLS         apiTLSSettings  `yaml:"tls"`
	BehindProxy bool            `yaml:"behind_proxy"`
}

type tokenSettings struct {
	Name   text     `yaml:"name"`
	Role   text     `yaml:"role"`
	Token  text     `yaml:"token"`
	File   text     `yaml:"token_file"`
	Queues []string `yaml:"queues"`
	Types  []string `yaml:"types"`
}

type apiTLSSettings struct {
	Cert     text `yaml:"cert"`
	Key      text `yaml:"key"`
	ClientCA text `yaml:"client_ca"`
}

// takeAPI turns the settings into an [API]. Names of files are relative to the folder of the config.
func (f *File) takeAPI(s *apiSettings) {
	f.API = API{
		Listen: string(s.Listen), BehindProxy: s.BehindProxy,
		Cert: f.path(string(s.TLS.Cert)), Key: f.path(string(s.TLS.Key)), ClientCA: f.path(string(s.TLS.ClientCA)),
	}
	for i, t := range s.Tokens {
		own := Token{
			Name: string(t.Name), Role: string(t.Role), File: f.path(string(t.File)), Queues: t.Queues, Types: t.Types,
			field: fmt.Sprintf("api.tokens[%d]", i),
		}
		if name := wholeVariable.FindStringSubmatch(string(t.Token)); name != nil {
			own.Env = name[1]
		} else if t.Token != "" { // which is not quoted: it may be the secret
			own.odd = true
			f.problems = append(f.problems, f.doc.at("", refuse(own.field+".token", "", "not a variable", "write ${NAME} for an environment variable, or use token_file")))
		}
		f.API.Tokens = append(f.API.Tokens, own)
	}
}

var wholeVariable = regexp.MustCompile(`^\$\{([A-Za-z_][A-Za-z0-9_]*)\}$`)

// checkAPI refuses settings with which the API could not be served, or would be open to others.
func (f *File) checkAPI() error {
	a := &f.API
	list := []error{a.checkListen(), a.checkTLS()}
	names := map[string]bool{}
	for i := range a.Tokens {
		t := &a.Tokens[i]
		list = append(list, t.check())
		if names[t.Name] {
			list = append(list, refuse(t.field+".name", t.Name, "used twice", "give each token its own name"))
		}
		names[t.Name] = true
	}
	return errors.Join(append(list, a.CheckOpen())...)
}

func (a *API) checkListen() error {
	if a.Listen == "" || a.Listen == ListenOff {
		return nil
	}
	const hint = "host:port, such as 127.0.0.1:8080, or off"
	_, port, err := net.SplitHostPort(a.Listen)
	if err != nil {
		return refuse("api.listen", a.Listen, "not an address", hint)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return refuse("api.listen", a.Listen, "has an invalid port", hint)
	}
	return nil
}

// CheckOpen refuses an address that others reach while anybody would be let in.
func (a *API) CheckOpen() error {
	host, _, err := net.SplitHostPort(a.Listen)
	if err != nil || len(a.Tokens) > 0 || a.BehindProxy || isLoopback(host) {
		return nil
	}
	return refuse("api.listen", a.Listen, "would let in everybody who reaches it", "add api.tokens, listen on 127.0.0.1, or set api.behind_proxy if a proxy in front decides who is let in")
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback() || strings.EqualFold(host, "localhost")
}

func (a *API) checkTLS() error {
	switch {
	case a.Cert != "" && a.Key == "":
		return refuse("api.tls.key", "", "missing", "a PEM file of the key of api.tls.cert")
	case a.Cert == "" && a.Key != "":
		return refuse("api.tls.cert", "", "missing", "a PEM file of the certificate of api.tls.key")
	case a.Cert == "" && a.ClientCA != "":
		return refuse("api.tls.cert", "", "missing", "certificates of clients need TLS")
	}
	return nil
}

func (t *Token) check() error {
	list := []error{field.In(t.field, task.CheckName("name", t.Name))}
	switch t.Role {
	case "viewer", "operator", "admin":
	case "":
		list = append(list, refuse(t.field+".role", "", "missing", "viewer, operator or admin"))
	default:
		list = append(list, refuse(t.field+".role", t.Role, "unknown", "viewer, operator or admin"))
	}
	switch {
	case t.Env == "" && t.File == "" && !t.odd:
		list = append(list, refuse(t.field+".token", "", "missing", "write ${NAME} for an environment variable, or use token_file"))
	case t.Env != "" && t.File != "":
		list = append(list, refuse(t.field+".token_file", t.File, "the token has a variable too", "keep one of the two"))
	}
	for _, name := range t.Queues {
		list = append(list, field.In(t.field, task.CheckName("queues", name)))
	}
	for _, name := range t.Types {
		list = append(list, field.In(t.field, task.CheckName("types", name)))
	}
	return errors.Join(list...)
}

// Secret reads the secret of the token. The file must be private, as one with the URL of Redis must.
func (t *Token) Secret(getenv func(string) string) (string, error) {
	place, secret := t.field+".token", ""
	switch {
	case t.Env != "":
		if secret = getenv(t.Env); secret == "" {
			return "", refuse(place, "${"+t.Env+"}", "the environment variable is not set", "set "+t.Env)
		}
	case t.File != "":
		place = t.field + ".token_file"
		data, err := private.ReadLinked(t.File, maxSecret)
		if err != nil {
			return "", refuse(place, t.File, reasonOf(err), "a file for this user only that holds the secret")
		}
		secret = strings.TrimSpace(string(data))
	default:
		return "", refuse(place, "", "missing", "write ${NAME} for an environment variable, or use token_file")
	}
	if len(secret) < LeastSecret || strings.ContainsAny(secret, " \t\r\n") {
		return "", refuse(place, "", fmt.Sprintf("has a space, or fewer than %d bytes", LeastSecret), "make one with: openssl rand -hex 32")
	}
	return secret, nil
}

func reasonOf(err error) string {
	var own *private.Refusal
	if errors.As(err, &own) {
		return own.Reason
	}
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	return err.Error()
}
