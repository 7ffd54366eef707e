package dashboard

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"testing"
)

// current is the entry of the menu that a page marks.
var current = regexp.MustCompile(`<a href="([^"]*)" aria-current="(\w+)"`)

func TestMenu_marksThePageAndThatOfAThing(t *testing.T) {
	t.Parallel()
	d, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string][]string{
		"/": {"/", "page"}, "/schedules": {"/schedules", "page"}, "/schedules/a": {"/schedules", "true"}, "/schedules/a%2Fb": {"/schedules", "true"},
		"/new-schedule": {"/schedules", "true"}, "/tasks/x": {"/tasks", "true"}, "/dead": {"/dead", "page"},
	} {
		w := httptest.NewRecorder()
		d.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody))
		got := current.FindAllStringSubmatch(w.Body.String(), -1)
		if w.Code != http.StatusOK || len(got) != 1 || !slices.Equal(got[0][1:], want) {
			t.Errorf("%s: %d, it marks %q, want %q", path, w.Code, got, want)
		}
	}
}
