package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/onbeat/onbeat/cmd/onbeat/internal/config"
	"github.com/onbeat/onbeat/internal/private"
	"github.com/onbeat/onbeat/task"
)

// devDir is the folder of onbeat dev, in the working directory of the dev.
const devDir = ".onbeat"

// devURLFile holds the Redis URL of an onbeat dev while it runs, and devNamespaceFile holds its namespace.
const (
	devURLFile       = "redis.url"
	devNamespaceFile = "namespace"
)

// maxURL is more bytes than any URL has.
const maxURL = 16 << 10

// found returns a config with the Redis and the namespace of the onbeat dev that runs in this folder. The config is empty if no
// dev runs here, or if a flag or the environment names a Redis.
func (a *app) found() (*config.File, error) {
	cfg := &config.File{}
	if a.Redis != "" || a.env("ONBEAT_REDIS_URL") != "" {
		return cfg, nil
	}
	url := urlFile(filepath.Join(devDir, devURLFile))
	if _, err := os.Lstat(string(url)); err != nil { // no dev runs here, or it is another user's
		return cfg, nil
	}
	if err := private.Entry(devDir); err != nil {
		return nil, refuseFound(url, err)
	}
	address, err := private.Read(string(url), maxURL)
	if err != nil {
		return nil, refuseFound(url, err)
	}
	namespace, err := private.Read(filepath.Join(devDir, devNamespaceFile), task.MaxNameLen+1)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, refuseFound(url, err)
	}
	cfg.Redis.URL = strings.TrimSpace(string(address))
	if a.env("ONBEAT_NAMESPACE") == "" {
		cfg.Dispatcher.Namespace = strings.TrimSpace(string(namespace))
	}
	if a.toldFound {
		return cfg, nil
	}
	a.toldFound = true
	name, _ := a.namespaceOf(cfg)
	fmt.Fprintf(a.err, "onbeat: using the Redis of onbeat dev, %s, and namespace %s\n", url.argument(), oneCell(name))
	return cfg, nil
}

// refuseFound refuses files that another user may have written: that user would get our tasks, and choose which tasks run.
func refuseFound(url urlFile, err error) error {
	reason := err.Error()
	var own *private.Refusal
	if errors.As(err, &own) {
		reason = own.Name + ": " + own.Reason
	}
	return refuse("redis.url", url.argument(), reason, "name the Redis that you mean with --redis")
}

// isFound reports whether commands in the working directory find this dev's Redis without a flag.
func (c *devCmd) isFound(a *app, file urlFile) bool {
	return string(file) == filepath.Join(devDir, devURLFile) && a.env("ONBEAT_REDIS_URL") == ""
}
