package main

import (
	"path/filepath"
	"strings"

	"github.com/onbeat/onbeat/cmd/onbeat/internal/config"
	"github.com/onbeat/onbeat/internal/private"
)

// urlFile names a file that holds the URL of a Redis or an archive, so that the password is on no command line and in no log.
type urlFile string

// inFile returns the file that a URL such as file:PATH names.
func inFile(url string) (urlFile, bool) {
	name, in := strings.CutPrefix(url, config.FilePrefix)
	return urlFile(name), in
}

// redisURL returns the URL itself, read from its file if it names one.
func redisURL(url string) (string, error) {
	return config.ReadURL("redis.url", url, "name a file of your own that holds a Redis URL; onbeat dev has one at .onbeat/redis.url while it runs")
}

func (f urlFile) write(url string) error {
	return private.Replace(string(f), []byte(url+"\n"))
}

// argument returns the value to pass as --redis in a shell.
func (f urlFile) argument() string {
	if strings.Trim(string(f), safeInShell) == "" {
		return config.FilePrefix + string(f)
	}
	return quote(config.FilePrefix + string(f))
}

const safeInShell = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./"

// absolute returns the value of --redis for a program, which works from any folder.
func (f urlFile) absolute() string { return config.FilePrefix + string(f.anywhere()) }

// anywhere returns the file by a name that is good in any folder.
func (f urlFile) anywhere() urlFile {
	if name, err := filepath.Abs(string(f)); err == nil {
		return urlFile(name)
	}
	return f
}
