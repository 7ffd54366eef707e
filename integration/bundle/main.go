// Command bundle makes the one script of the dashboard out of its modules, and its style out of theirs:
//
//	go generate ./api/dashboard
//
// It lives here because a program that imports onbeat must not download the tools that only make the dashboard.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/evanw/esbuild/pkg/api"
)

func main() {
	if err := write("../api/dashboard"); err != nil {
		fmt.Fprintln(os.Stderr, "bundle:", err)
		os.Exit(1)
	}
}

// write bundles the dashboard in a folder, and writes the files that are served.
func write(dashboard string) error {
	files, err := bundle(dashboard)
	if err != nil {
		return err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dashboard, "built", name), text, 0o644); err != nil { //nolint:gosec // sources are for all to read
			return err
		}
	}
	return nil
}

// uPlot is the library for charts. As it comes, it is for a page that has no modules.
var uPlot = api.Plugin{Name: "uplot", Setup: func(b api.PluginBuild) {
	b.OnLoad(api.OnLoadOptions{Filter: `uPlot\.iife\.min\.js$`}, func(a api.OnLoadArgs) (api.OnLoadResult, error) {
		text, err := os.ReadFile(a.Path)
		contents := string(text) + "\nexport default uPlot;"
		return api.OnLoadResult{Contents: &contents}, err
	})
}}

// bundle returns the served files of the dashboard in a folder, by name: the same bytes for the same sources.
func bundle(dashboard string) (map[string][]byte, error) {
	r := api.Build(api.BuildOptions{
		EntryPoints: []string{filepath.Join(dashboard, "assets", "app.js"), filepath.Join(dashboard, "assets", "chart.js"), filepath.Join(dashboard, "assets", "app.css")},
		Plugins:     []api.Plugin{uPlot},
		Outdir:      filepath.Join(dashboard, "built"),
		Bundle:      true, Format: api.FormatESModule, Target: api.ES2024, Charset: api.CharsetUTF8, LegalComments: api.LegalCommentsNone,
		MinifyWhitespace: true, MinifyIdentifiers: true, MinifySyntax: true,
	})
	// A name that a module takes of a whole other module, and that is not there, is only a warning.
	if wrong := slices.Concat(r.Errors, r.Warnings); len(wrong) > 0 {
		return nil, errors.New(wrong[0].Text)
	}
	files := map[string][]byte{}
	for _, f := range r.OutputFiles {
		files[filepath.Base(f.Path)] = f.Contents
	}
	return files, nil
}
