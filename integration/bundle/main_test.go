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
