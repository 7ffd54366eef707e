package main

import (
	"os"
	"path/filepath"
	"strings"
	"time"
)

// importZone is the flag of sources whose times are those of a machine.
type importZone struct {
	Timezone string `placeholder:"TZ" help:"Zone of the machine that runs the jobs now. Default: that of this machine."`
}

// zone returns a zone that this machine knows.
func (z *importZone) zone(env func(string) string) (string, error) {
	zone := z.Timezone
	if zone == "" {
		zone = localZone(env)
	}
	if _, err := time.LoadLocation(zone); err != nil || zone == "" || zone == "Local" {
		return "", refuse("timezone", zone, "no time zone that this machine knows by its name", "name that of the jobs' machine: --timezone Europe/Berlin")
	}
	return zone, nil
}

// localZone returns the name of this machine's time zone, or "".
func localZone(env func(string) string) string {
	if zone := strings.TrimPrefix(env("TZ"), ":"); zone != "" {
		return zone
	}
	if path, err := filepath.EvalSymlinks("/etc/localtime"); err == nil {
		if _, zone, ok := strings.Cut(path, "/zoneinfo/"); ok {
			return zone
		}
	}
	if text, err := os.ReadFile("/etc/timezone"); err == nil {
		return strings.TrimSpace(string(text))
	}
	if time.Local.String() == "UTC" {
		return "UTC"
	}
	return ""
}
