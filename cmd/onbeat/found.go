package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/onbeat/onbeat/internal/private"
	"github.com/onbeat/onbeat/task"
)

// devDir is the folder of onbeat dev, in the one that it is started in.
const devDir = ".onbeat"

// devURLFile holds the Redis of an onbeat dev while it runs, and devNamespaceFile its namespace.
const (
	devURLFile       = "redis.url"
	devNamespaceFile = "namespace"
)

// found is what a config would say if it named the Redis and the namespace of the onbeat dev that runs in this folder. It says
// nothing if none does, or if a flag or the environment names a Redis.
func (a *app) found() (*config, error) {
	cfg := &config{}
	if a.Redis != "" || a.env("ONBEAT_REDIS_URL") != "" {
		return cfg, nil
	}
	url := urlFile(filepath.Join(devDir, devURLFile))
	if err := private.Entry(devDir); err != nil {
		return nil, refusePrivate("redis.url", filePrefix+string(url), err, "")
	}
	address, err := private.Read(string(url), maxURL)
	if errors.Is(err, fs.ErrNotExist) {
		return cfg, nil
	}
	if err != nil {
		return nil, refusePrivate("redis.url", filePrefix+string(url), err, "name another with --redis")
	}
	cfg.Redis.URL = text(strings.TrimSpace(string(address)))
	file := filepath.Join(devDir, devNamespaceFile)
	namespace, err := private.Read(file, task.MaxNameLen+1)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, refusePrivate("namespace", file, err, "name one with --namespace")
	}
	cfg.Namespace = text(strings.TrimSpace(string(namespace)))
	if a.toldFound {
		return cfg, nil
	}
	a.toldFound = true
	name, _ := a.namespaceOf(cfg)
	fmt.Fprintf(a.err, "onbeat: using the Redis of onbeat dev, %s, and namespace %s\n", url.argument(), oneCell(name))
	return cfg, nil
}

// isFound reports whether commands in the working directory find the Redis of this dev without a flag.
func (c *devCmd) isFound(a *app, file urlFile) bool {
	return string(file) == filepath.Join(devDir, devURLFile) && a.env("ONBEAT_REDIS_URL") == ""
}
