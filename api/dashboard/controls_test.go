package dashboard

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/onbeat/onbeat/api"
)

// controls are what pages have in their HTML to work with, and the operation of the API that each is for; those without one change
// nothing. Modules put buttons in a place; one with a page before its name is of that page alone.
var controls = map[string]string{
	"form enqueue":         "enqueue",
	"link /enqueue":        "enqueue",
	"form definition":      "createSchedule",
	"link /new-schedule":   "createSchedule",
	"place bulk":           "bulkTasks",
	"place chosen":         "cancelTask",
	"place dead act":       "bulkTasks",
	"place tasks act":      "cancelTask",
	"place schedules act":  "triggerSchedule",
	"place schedule act":   "revertSchedule",
	"place instances act":  "drainInstance",
	"place all":            "pauseInstances",
	"form ask":             "", // of the page for audits
	"form dialog":          "", // a question of a module before it does something
	"form filters":         "",
	"form find":            "",
	"form login":           "",
	"button again":         "",
	"button all":           "triggerSchedule", // of the schedules that are chosen, as the four that follow
	"button none":          "triggerSchedule",
	"button pause":         "pauseSchedule",
	"button resume":        "resumeSchedule",
	"button trigger":       "triggerSchedule",
	"button as-table":      "",
	"button follow":        "",
	"button menu":          "",
	"button more":          "",
	"button search":        "",
	"button signout":       "",
	"button stop":          "cancelTask",
	"button zone":          "",
	"link #main":           "",
	"link /beat":           "",
	"link /docs":           "",
	"link the list itself": "", // a page of the menu but the form above
}

// controlsOf returns the names of the controls of a page. A control in a form is the form's.
func controlsOf(p *page, all []*element) []string {
	seen := map[string]bool{}
	for _, e := range all {
		name := cmp.Or(e.attr["data-act"], e.attr["id"])
		href, _, _ := strings.Cut(e.attr["href"], "?")
		act := cmp.Or(e.attr["id"], e.attr["data-field"])
		switch {
		case e.name == "form":
			seen["form "+cmp.Or(e.attr["id"], e.attr["method"])] = true
		case slices.Contains(e.above, "form"):
		case e.name == "button":
			seen["button "+name] = true
		case e.name == "a" && slices.ContainsFunc(list, func(x page) bool { return x.Path == href && x.Menu && href != "/enqueue" && href != "/beat" }):
			seen["link the list itself"] = true
		case e.name == "a" && href != "":
			seen["link "+href] = true
		case act == "all" || act == "bulk" || act == "chosen":
			seen["place "+act] = true
		case act == "act" && e.name != "p": // a paragraph of buttons is on the page of each role, and empty for those who may not
			seen["place "+p.Name+" act"] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// The API decides what a role may do. Its document says so, and a page has a control exactly if its operation is allowed.
func TestControls_areThoseThatTheServerAllows(t *testing.T) {
	t.Parallel()
	s := open(t, everyRole()...)
	roles := map[string]api.Role{"": api.Viewer}
	for _, op := range s.operations() {
		roles[op.ID] = op.Role
	}
	used := map[string]bool{}
	for i := range list {
		p := &list[i]
		if p.Name == "login" {
			used["form login"] = true
			continue
		}
		every := controlsOf(p, elements(t, s.html(p, api.Admin)))
		for _, role := range []api.Role{api.Viewer, api.Operator, api.Admin} {
			have := controlsOf(p, elements(t, s.html(p, role)))
			for _, name := range slices.Concat(have, every) {
				op, known := controls[name]
				need := roles[op]
				switch has := slices.Contains(have, name); {
				case !known:
					t.Errorf("%s has a %s: say in this test which operation it is for", p.Name, name)
				case need == "":
					t.Errorf("%s is for %s, which the API does not have", name, op)
				case has != role.May(need):
					t.Errorf("%s for the %s: there is a %s: %t, but %s needs the role %s", p.Name, role, name, has, op, need)
				}
				used[name] = true
			}
		}
	}
	for name := range controls {
		if !used[name] {
			t.Errorf("no page has a %s", name)
		}
	}
}
