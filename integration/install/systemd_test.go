package install

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

const unit = "../../deploy/systemd/onbeat.service"

// systemd knows each setting of the unit, and finds little that the unit leaves open.
func TestUnit_isRightAndHardened(t *testing.T) {
	t.Parallel()
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		lacks(t, "systemd-analyze")
	}
	text, err := os.ReadFile(unit)
	if err != nil {
		t.Fatal(err)
	}
	program, err := exec.LookPath("true") // verify wants the program to be there
	if err != nil {
		t.Fatal(err)
	}
	here := filepath.Join(t.TempDir(), "onbeat.service")
	text = []byte(strings.Replace(string(text), "/usr/bin/onbeat", program, 1))
	if err := os.WriteFile(here, text, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), analyze, "verify", "--man=no", here).CombinedOutput()
	for line := range strings.Lines(string(out)) { // it also complains of the units of this machine
		if strings.Contains(line, "onbeat") {
			t.Errorf("verify: %s", line)
		}
	}
	if err != nil && len(out) == 0 {
		t.Errorf("verify: %v", err)
	}
	out, err = exec.CommandContext(t.Context(), analyze, "security", "--offline=true", "--no-pager", here).CombinedOutput()
	level := regexp.MustCompile(`exposure level for onbeat.service: ([0-9.]+)`).FindStringSubmatch(string(out))
	if err != nil || level == nil {
		t.Fatalf("security: %v\n%s", err, out)
	}
	if x, err := strconv.ParseFloat(level[1], 64); err != nil || x > 1.5 {
		t.Errorf("the exposure is %s, want 1.5 at most:\n%s", level[1], out)
	}
}
