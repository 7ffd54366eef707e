package telemetry_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/onbeat/onbeat/internal/page"
)

const (
	rulesFile     = "../deploy/prometheus/rules.yaml"
	dashboardFile = "../deploy/grafana/onbeat.json"
)

// rules is the file of alerts.
type rules struct {
	Groups []struct {
		Rules []struct {
			Alert string `yaml:"alert"`
			Expr  string `yaml:"expr"`
		} `yaml:"rules"`
	} `yaml:"groups"`
}

func readRules(t *testing.T) (alerts, exprs []string) {
	t.Helper()
	text, err := os.ReadFile(rulesFile)
	if err != nil {
		t.Fatal(err)
	}
	var all rules
	if err := yaml.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	for _, g := range all.Groups {
		for _, r := range g.Rules {
			alerts, exprs = append(alerts, r.Alert), append(exprs, r.Expr)
		}
	}
	if len(alerts) == 0 {
		t.Fatal("no alerts")
	}
	return alerts, exprs
}

func dashboardExprs(t *testing.T) (exprs []string) {
	t.Helper()
	text, err := os.ReadFile(dashboardFile)
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Panels []struct {
			Targets []struct {
				Expr string `json:"expr"`
			} `json:"targets"`
		} `json:"panels"`
	}
	if err := json.Unmarshal(text, &board); err != nil {
		t.Fatal(err)
	}
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			exprs = append(exprs, target.Expr)
		}
	}
	return exprs
}

var metricName = regexp.MustCompile(`\bonbeat_[a-z_]+`)

func TestDeploy_namesOnlyMetricsThatExist(t *testing.T) {
	t.Parallel()
	var listed []string
	for _, name := range page.Listed(t, page.Table(t, "../docs/metrics.md", "## The table")) {
		listed = append(listed, name, name+"_bucket", name+"_count", name+"_sum")
	}
	_, alerts := readRules(t)
	board := dashboardExprs(t)
	if len(board) < 20 {
		t.Errorf("the dashboard has %d queries", len(board))
	}
	shown := map[string]bool{}
	for _, expr := range slices.Concat(alerts, board) {
		names := metricName.FindAllString(expr, -1)
		if len(names) == 0 {
			t.Errorf("no metric in %q", expr)
		}
		for _, name := range names {
			shown[strings.TrimSuffix(name, "_bucket")] = true
			if !slices.Contains(listed, name) {
				t.Errorf("%q names %s, which does not exist", expr, name)
			}
		}
	}
	for _, row := range page.Table(t, "../docs/metrics.md", "## The table") {
		if !shown[row.Names[0]] {
			t.Errorf("neither dashboard nor alerts show %s", row.Names[0])
		}
	}
}

func TestDeploy_eachAlertIsTriedAndExplained(t *testing.T) {
	t.Parallel()
	alerts, _ := readRules(t)
	page.Compare(t, "docs/runbook.md, ## Alerts", page.Listed(t, page.Table(t, "../docs/runbook.md", "## Alerts")), alerts)
	text, err := os.ReadFile("../deploy/prometheus/rules_test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, alert := range alerts {
		if raised := "alertname: " + alert + "\n        exp_alerts:\n"; !strings.Contains(string(text), raised) {
			t.Errorf("no test of the rules raises %s", alert)
		}
		if quiet := "alertname: " + alert + "}"; !strings.Contains(string(text), quiet) {
			t.Errorf("no test of the rules shows where %s is quiet", alert)
		}
	}
}

func TestDeploy_alertsDoWhatTheirTestsSay(t *testing.T) {
	t.Parallel()
	tool, err := exec.LookPath("promtool")
	if err != nil {
		if os.Getenv("ONBEAT_REQUIRE_REAL") == "1" {
			t.Fatal("ONBEAT_REQUIRE_REAL=1, and there is no promtool on PATH (Debian: prometheus)")
		}
		t.Skip("there is no promtool on PATH (Debian: prometheus)")
	}
	tests, err := filepath.Glob("../deploy/prometheus/*_test.yaml")
	if err != nil || len(tests) == 0 {
		t.Fatalf("%d tests: %v", len(tests), err)
	}
	for _, args := range [][]string{{"check", "rules", rulesFile}, append([]string{"test", "rules"}, tests...)} {
		if out, err := exec.CommandContext(t.Context(), tool, args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}
