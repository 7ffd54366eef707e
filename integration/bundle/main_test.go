package main

import (
	"bytes"
	"os"
	"testing"
)

// The program serves files that were made from the sources in the repository.
func TestBundle_isOfTheSources(t *testing.T) {
	t.Parallel()
	files, err := bundle("../../api/dashboard")
	if err != nil || len(files) != 3 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for name, text := range files {
		built, err := os.ReadFile("../../api/dashboard/built/" + name)
		if err != nil || !bytes.Equal(built, text) {
			t.Errorf("built/%s is not of the sources (%v): run go generate ./api/dashboard", name, err)
		}
	}
}

// A module that takes a name that is not there breaks the page, whichever way it takes it.
func TestBundle_refusesAnImportThatIsNotThere(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"import { there } from './other.js'; there()":        true,
		"import * as other from './other.js'; other.there()": true,
		"import { gone } from './other.js'; gone()":          false,
		"import * as other from './other.js'; other.gone()":  false,
	} {
		dashboard := t.TempDir()
		if err := os.Mkdir(dashboard+"/assets", 0o700); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{"app.js": text, "other.js": "export function there() {}", "chart.js": "", "app.css": ""} {
			if err := os.WriteFile(dashboard+"/assets/"+name, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := bundle(dashboard); (err == nil) != want {
			t.Errorf("%s: %v", text, err)
		}
	}
}
