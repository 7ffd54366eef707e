package main

import (
	"runtime"
	"runtime/debug"
	"time"
)

// version is set by the linker; see the Makefile and .goreleaser.yaml.
var version = ""

type versionCmd struct{}

// Run prints the version, the revision with its date, and the Go release and platform of the build.
func (c *versionCmd) Run(a *app) error {
	v := struct {
		Version  string    `json:"version"`
		Revision string    `json:"revision,omitempty"`
		Date     time.Time `json:"date,omitzero"`
		Go       string    `json:"go"`
		OS       string    `json:"os"`
		Arch     string    `json:"arch"`
	}{buildVersion(), buildRevision(), buildDate(), runtime.Version(), runtime.GOOS, runtime.GOARCH}
	if a.JSON {
		return a.printJSON(v)
	}
	source := ""
	if v.Revision != "" {
		source = " " + v.Revision
	}
	if !v.Date.IsZero() {
		source += " of " + v.Date.Format(time.RFC3339)
	}
	a.printf("onbeat %s%s (%s, %s/%s)", v.Version, source, v.Go, v.OS, v.Arch)
	return nil
}

func buildVersion() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "dev"
}

// stamped returns what the go command noted of the repository that the program was built from, or "".
func stamped(key string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}

// buildRevision returns the commit of the build: 12 digits, and + for uncommitted changes.
func buildRevision() string {
	revision := stamped("vcs.revision")
	if revision == "" {
		return ""
	}
	revision = revision[:min(len(revision), 12)]
	if stamped("vcs.modified") == "true" {
		revision += "+"
	}
	return revision
}

// buildDate returns when the commit was made, so that two builds of one commit are the same.
func buildDate() time.Time {
	date, err := time.Parse(time.RFC3339, stamped("vcs.time"))
	if err != nil {
		return time.Time{}
	}
	return date.UTC()
}
