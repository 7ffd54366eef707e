package foreign

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/onbeat/onbeat/schedule"
)

// cronJob is what is read of a CronJob of Kubernetes (batch/v1), or of a list of them.
type cronJob struct {
	Kind     string
	Metadata struct{ Name, Namespace string }
	Items    []cronJob
	Spec     struct {
		Schedule                string
		TimeZone                string `yaml:"timeZone"`
		ConcurrencyPolicy       string `yaml:"concurrencyPolicy"`
		Suspend                 bool
		StartingDeadlineSeconds *int64 `yaml:"startingDeadlineSeconds"`
		JobTemplate             struct {
			Spec struct {
				BackoffLimit          *int   `yaml:"backoffLimit"`
				ActiveDeadlineSeconds *int64 `yaml:"activeDeadlineSeconds"`
				Completions           *int
				Parallelism           *int
				Template              struct{ Spec pod }
			}
		} `yaml:"jobTemplate"`
	}
}

type pod struct {
	Containers     []container
	InitContainers []container    `yaml:"initContainers"`
	RestartPolicy  string         `yaml:"restartPolicy"` // a run that fails is another run either way
	Others         map[string]any `yaml:",inline"`
}

type container struct {
	Name, Image   string
	Command, Args []string
	WorkingDir    string `yaml:"workingDir"`
	Env           []struct {
		Name, Value string
		ValueFrom   any `yaml:"valueFrom"`
	}
	EnvFrom []any          `yaml:"envFrom"`
	Others  map[string]any `yaml:",inline"`
}

// CronJobs reads CronJobs of Kubernetes from a file with one or more YAML documents. Objects of other kinds are passed over. The zone is
// that of the controller, which counts for a CronJob without one.
func (j *Jobs) CronJobs(file string, data []byte, zone string) error {
	docs, err := documents(data)
	if err != nil {
		return err
	}
	for _, doc := range docs {
		at := Place{file, doc.GetToken().Position.Line}
		var one cronJob
		if err := yaml.NodeToValue(doc, &one); err != nil {
			var e yaml.Error
			if errors.As(err, &e) && e.GetToken() != nil {
				at.Line = e.GetToken().Position.Line
			}
			j.leave(at, "a value is of the wrong kind", "write it as Kubernetes takes it")
			continue
		}
		list := one.Items
		if !strings.HasSuffix(one.Kind, "List") {
			list = []cronJob{one}
		}
		for i := range list {
			if list[i].Kind == "CronJob" {
				j.cronJob(at, &list[i], zone)
			}
		}
	}
	return nil
}

// documents returns the YAML documents of a file that have a body.
func documents(data []byte) (list []ast.Node, err error) {
	defer func() {
		if recover() != nil { // a bug of the parser is a fault of the file, and not the end of the process
			list, err = nil, errors.New("invalid YAML")
		}
	}()
	f, err := parser.ParseBytes(data, 0)
	if err != nil {
		var e yaml.Error
		if errors.As(err, &e) && e.GetToken() != nil {
			return nil, fmt.Errorf("line %d: %s", e.GetToken().Position.Line, comment(e.GetMessage()))
		}
		return nil, err
	}
	for _, doc := range f.Docs {
		if doc.Body != nil && doc.Body.Type() == ast.MappingType {
			list = append(list, doc.Body)
		}
	}
	if len(list) == 0 {
		return nil, errors.New("no object in it")
	}
	return list, nil
}

func (j *Jobs) cronJob(at Place, one *cronJob, zone string) {
	spec, job := &one.Spec, &one.Spec.JobTemplate.Spec
	pod := &job.Template.Spec
	name := one.Metadata.Name
	say := func(text, hint string) { j.note(at, name+": "+text, hint) }
	switch {
	case len(pod.Containers) != 1:
		j.leave(at, fmt.Sprintf("%s: a pod of %d containers", name, len(pod.Containers)), "let one program do the work, or call it over HTTP")
		return
	case len(pod.Containers[0].Command)+len(pod.Containers[0].Args) == 0:
		j.leave(at, name+": the command is that of the image "+pod.Containers[0].Image, "write the command out")
		return
	case spec.Suspend:
		j.leave(at, name+": suspended", "remove suspend, and pause the schedule once it is applied: onbeat schedules pause "+name)
		return
	}
	if spec.TimeZone != "" {
		zone = spec.TimeZone
	}
	c := &pod.Containers[0]
	run, elsewhere, unknown := c.execution()
	if unknown != "" {
		j.leave(at, name+": "+unknown+": its value is not in the file", `let a shell put it in: sh -c "… $NAME"`)
		return
	}
	s := asRobfig(name, spec.Schedule, zone)
	s.Task = "exec"
	s.Missed = schedule.MissedOnce // the controller starts the latest time that it missed
	s.Overlap = map[string]schedule.Overlap{"Forbid": schedule.OverlapQueue, "Replace": schedule.OverlapReplace}[spec.ConcurrencyPolicy]
	late, hint := "the latest missed slot runs however late it is", "missed: skip runs none"
	if spec.StartingDeadlineSeconds != nil && s.Overlap == schedule.OverlapQueue { // a slot waits for the deadline at most
		s.Overlap = schedule.OverlapSkip
		late += ", and a slot during a run does not wait for its end"
		hint += ", and overlap: queue lets one wait"
	}
	s.MaxAttempts = 7 // the default of backoffLimit is 6
	if n := job.BackoffLimit; n != nil {
		s.MaxAttempts = *n + 1
	}
	s.Backoff.Base, s.Backoff.Cap = 10*time.Second, 6*time.Minute // those of the Job controller
	if seconds := job.ActiveDeadlineSeconds; seconds != nil {
		s.Timeout = time.Duration(*seconds) * time.Second
	}
	s.Payload = run.payload()
	if !j.add(at, "CronJob "+name, s) {
		return
	}
	say("ran in a container of "+c.Image+", and runs in that of the instance", "put the program into the image of the instance, or call it over HTTP")
	if len(elsewhere)+len(c.EnvFrom) > 0 {
		say(strings.TrimSpace("variables from a Secret or a ConfigMap: "+strings.Join(elsewhere, " ")), "give them to the instance, and name them in exec.pass_env")
	}
	if others := except(pod.Others, "containers", "initContainers", "restartPolicy"); len(others) > 0 {
		say("of the pod: "+strings.Join(others, ", "), "give the pod of the instance what the program needs")
	}
	if others := except(c.Others, "name", "image", "command", "args", "workingDir", "env", "envFrom"); len(others) > 0 {
		say("of the container: "+strings.Join(others, ", "), "give the container of the instance what the program needs")
	}
	if len(pod.InitContainers) > 0 {
		say("init containers do not run", "begin the command with their work")
	}
	if n := spec.StartingDeadlineSeconds; n != nil {
		say(fmt.Sprintf("startingDeadlineSeconds %d: %s", *n, late), hint)
	}
	if n := job.Completions; n != nil && *n != 1 {
		say(fmt.Sprintf("completions %d: a slot is one run", *n), "let a run enqueue the others")
	}
	if n := job.Parallelism; n != nil && *n != 1 {
		say(fmt.Sprintf("parallelism %d: a slot is one run", *n), "let a run enqueue the others")
	}
}

// execution returns the run of a container, the variables that are set elsewhere, and the first $(NAME) whose value is not in the file.
func (c *container) execution() (run execution, elsewhere []string, unknown string) {
	run.Dir = c.WorkingDir
	expand := func(text string) string {
		return reference.ReplaceAllStringFunc(text, func(ref string) string {
			name := strings.Trim(ref, "$()")
			value, known := run.Env[name]
			switch {
			case ref == "$$":
				return "$"
			case known:
				return value
			case unknown == "" && (slices.Contains(elsewhere, name) || upper.MatchString(name) || len(c.EnvFrom) > 0 && !strings.Contains(name, " ")):
				unknown = ref
			}
			return ref // Kubernetes has no such variable: it may be of a shell
		})
	}
	for _, e := range c.Env {
		if e.ValueFrom != nil {
			elsewhere = append(elsewhere, e.Name)
			delete(run.Env, e.Name)
			continue
		}
		if run.Env == nil {
			run.Env = map[string]string{}
		}
		run.Env[e.Name] = expand(e.Value)
	}
	for _, word := range slices.Concat(c.Command, c.Args) {
		run.Command = append(run.Command, expand(word))
	}
	return run, elsewhere, unknown
}

var (
	reference = regexp.MustCompile(`\$(?:\$|\([^)]*\))`) // what Kubernetes expands: $(NAME), and $$ to $
	upper     = regexp.MustCompile(`^[A-Z_][A-Z0-9_]*$`) // may be of a Service: no program has such a name
)

// except lists the keys of a mapping without those that are known.
func except(all map[string]any, known ...string) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(all)), func(key string) bool { return slices.Contains(known, key) })
}
