package wording

import "testing"

func TestSuggest(t *testing.T) {
	t.Parallel()
	known := []string{"every", "cron", "name", "max_attempts"}
	for name, want := range map[string]string{
		"evry": "did you mean every?", "EVERY": "did you mean every?", "corn": "did you mean cron?", "maxattempts": "did you mean max_attempts?",
		"naem": "did you mean name?", "wombat": "known: every, cron, name, max_attempts",
	} {
		if got := Suggest(name, known); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
