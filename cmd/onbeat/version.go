package main

import (
	"runtime"
	"runtime/debug"
)

// version is set by the linker; see the Makefile.
var version = ""

type versionCmd struct{}

// Run prints the version, the revision, and the Go release and platform of the build.
func (c *versionCmd) Run(a *app) error {
	v := struct {
		Version  string `json:"version"`
		Revision string `json:"revision,omitempty"`
		Go       string `json:"go"`
		OS       string `json:"os"`
		Arch     string `json:"arch"`
	}{buildVersion(), buildRevision(), runtime.Version(), runtime.GOOS, runtime.GOARCH}
	if a.JSON {
		return a.printJSON(v)
	}
	revision := ""
	if v.Revision != "" {
		revision = " " + v.Revision
	}
	a.printf("onbeat %s%s (%s, %s/%s)", v.Version, revision, v.Go, v.OS, v.Arch)
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

// buildRevision returns the commit of the build, if the go command stamped it: 12 digits, and + for uncommitted changes.
func buildRevision() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	revision, dirty := "", ""
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			revision = s.Value[:min(len(s.Value), 12)]
		case "vcs.modified":
			if s.Value == "true" {
				dirty = "+"
			}
		}
	}
	if revision == "" {
		return ""
	}
	return revision + dirty
}
