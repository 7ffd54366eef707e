package trial

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Stage is where instances of the program play: a namespace on a Redis, a folder for their configs and logs, and a recorder
// of the requests that their tasks make.
type Stage struct {
	URL, Namespace, Dir string
	Rec                 *Recorder

	Started []*Process // all instances
}

// NewStage prepares a stage in a folder, which the caller removes. Close it in any case.
func NewStage(url, namespace, dir string) (*Stage, error) {
	rec, err := NewRecorder()
	return &Stage{URL: url, Namespace: namespace, Dir: dir, Rec: rec}, err
}

// Close kills all instances, and stops the recorder.
func (s *Stage) Close() {
	s.KillAll()
	if s.Rec != nil {
		s.Rec.Close()
	}
}

// KillAll kills all instances that still run.
func (s *Stage) KillAll() {
	for _, p := range s.Started {
		p.Kill()
	}
}

// Env is the environment that tells the program its Redis, which other users of the machine cannot read there, and its
// namespace.
func (s *Stage) Env() []string {
	return []string{"ONBEAT_REDIS_URL=" + s.URL, "ONBEAT_NAMESPACE=" + s.Namespace}
}

// WriteConfig writes a config file: the head, and the schedules. Without any it declares that there are none.
func (s *Stage) WriteConfig(name, head string, schedules ...string) (path string, err error) {
	if len(schedules) > 0 {
		head += "schedules:\n" + strings.Join(schedules, "")
	} else {
		head += "schedules: []\n"
	}
	path = filepath.Join(s.Dir, name)
	return path, os.WriteFile(path, []byte(head), 0o600)
}

// Beat returns the entry of a schedule that calls a path of the recorder, with more lines if there are any.
func (s *Stage) Beat(path, name string, every time.Duration, more ...string) string {
	entry := fmt.Sprintf("  - name: %s\n    every: %s\n    task: http\n    payload: {url: %q}\n", name, every, s.Rec.URL(path))
	for _, line := range more {
		entry += "    " + line + "\n"
	}
	return entry
}

// Start starts an instance with a config file. More arguments and more environment come behind those of the stage.
func (s *Stage) Start(name, config string, of Program) (*Process, error) {
	of.Args = append([]string{"serve", "--config", config}, of.Args...)
	of.Env = append(s.Env(), of.Env...)
	p, err := Start(name, filepath.Join(s.Dir, fmt.Sprintf("%d.log", len(s.Started)+1)), of)
	if err == nil {
		s.Started = append(s.Started, p)
	}
	return p, err
}

// lastLines is how many lines of each log are shown of a scenario that went wrong.
const lastLines = 20

// LastWords returns the last lines of each instance's log.
func (s *Stage) LastWords() (words []string) {
	for _, p := range s.Started {
		text, err := p.Log()
		if err != nil {
			continue
		}
		lines := strings.Split(strings.TrimSpace(text), "\n")
		for _, line := range lines[max(0, len(lines)-lastLines):] {
			words = append(words, p.Name+": "+line)
		}
	}
	return words
}
