package foreign_test

import (
	"strings"
	"testing"
	"time"

	"github.com/onbeat/onbeat/cmd/onbeat/internal/foreign"
	"github.com/onbeat/onbeat/schedule"
)

const manifests = `apiVersion: v1
kind: ConfigMap
metadata: {name: x}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly-report, namespace: shop}
spec:
  schedule: "0 2 * * *"
  timeZone: Asia/Seoul
  concurrencyPolicy: Forbid
  startingDeadlineSeconds: 200
  jobTemplate:
    spec:
      backoffLimit: 2
      activeDeadlineSeconds: 600
      parallelism: 3
      template:
        spec:
          restartPolicy: OnFailure
          serviceAccountName: reports
          initContainers: [{name: wait, image: busybox}]
          containers:
          - name: report
            image: ghcr.io/shop/report:1.2
            command: ["/report"]
            args: ["--day", "yesterday"]
            workingDir: /srv
            resources: {limits: {memory: 1Gi}}
            env:
            - {name: LEVEL, value: "2"}
            - name: PASSWORD
              valueFrom: {secretKeyRef: {name: db, key: password}}
---
apiVersion: v1
kind: List
items:
- kind: CronJob
  metadata: {name: every-minute}
  spec:
    schedule: "* * * * *"
    concurrencyPolicy: Replace
    jobTemplate: {spec: {template: {spec: {containers: [{name: a, image: b, args: [x]}]}}}}
- kind: CronJob
  metadata: {name: resting}
  spec:
    schedule: "@hourly"
    suspend: true
    jobTemplate: {spec: {template: {spec: {containers: [{name: a, image: b, command: [x]}]}}}}
- kind: CronJob
  metadata: {name: of-the-image}
  spec:
    schedule: "@hourly"
    jobTemplate: {spec: {template: {spec: {containers: [{name: a, image: b}]}}}}
- kind: CronJob
  metadata: {name: two}
  spec:
    schedule: "@hourly"
    jobTemplate: {spec: {template: {spec: {containers: [{command: [x]}, {command: [y]}]}}}}
---
kind: CronJob
metadata: {name: bad}
spec:
  schedule: [1]
`

func TestCronJobs(t *testing.T) {
	t.Parallel()
	var jobs foreign.Jobs
	if err := jobs.CronJobs("jobs", []byte(manifests), "Europe/Berlin"); err != nil {
		t.Fatal(err)
	}
	list := wantSame(t, &jobs)
	if len(list) != 2 {
		t.Fatalf("%d schedules", len(list))
	}
	s := list[0]
	want := `{"command":["/report","--day","yesterday"],"dir":"/srv","env":{"LEVEL":"2"}}`
	if s.Name != "nightly-report" || s.Cron != "0 2 * * *" || s.Timezone != "Asia/Seoul" || s.Overlap != "skip" || s.Missed != "once" ||
		s.MaxAttempts != 3 || s.Timeout != 10*time.Minute || string(s.Payload) != want {
		t.Errorf("%+v %s", s, s.Payload)
	}
	if s := list[1]; s.Name != "every-minute" || s.Timezone != "Europe/Berlin" || s.Overlap != "replace" || s.MaxAttempts != 7 {
		t.Errorf("%+v", s)
	}
	wantNotes(t, &jobs, [2]string{"jobs:5", "container of ghcr.io/shop/report:1.2"}, [2]string{"jobs:5", "PASSWORD"}, [2]string{"jobs:5", "serviceAccountName"},
		[2]string{"jobs:5", "resources"}, [2]string{"jobs:5", "init containers"}, [2]string{"jobs:5", "startingDeadlineSeconds 200"}, [2]string{"jobs:5", "parallelism 3"},
		[2]string{"jobs:35", "container of b"}, [2]string{"-jobs:35", "suspended"}, [2]string{"-jobs:35", "of the image"}, [2]string{"-jobs:35", "2 containers"},
		[2]string{"-jobs:64", "wrong kind"})
}

// A Job that runs lets one slot wait, as the controller starts the latest time that it missed.
func TestCronJobs_forbiddenSlotsWait(t *testing.T) {
	t.Parallel()
	jobs := oneCronJob(t, "schedule: '@hourly'\n  concurrencyPolicy: Forbid", "command: [x]")
	if list := wantSame(t, jobs); len(list) != 1 || list[0].Overlap != schedule.OverlapQueue {
		t.Errorf("%+v", list)
	}
}

// Kubernetes puts variables into a command and into variables. It leaves the references that it does not know to a shell.
func TestCronJobs_expandVariables(t *testing.T) {
	t.Parallel()
	const env = `, env: [{name: A, value: one}, {name: B, value: "$(A)-two $$(A) $(later)"}, {name: S, valueFrom: {secretKeyRef: {name: s, key: k}}}]`
	jobs := oneCronJob(t, "schedule: '@hourly'", `command: [sh, -c, "$(A) $(B) $(date +%F) $A $$$$(A)"], args: ["$(B)"]`+env)
	want := `{"command":["sh","-c","one one-two $(A) $(later) $(date +%F) $A $$(A)","one-two $(A) $(later)"],"env":{"A":"one","B":"one-two $(A) $(later)"}}`
	if list := wantSame(t, jobs); len(list) != 1 || asJSON(t, list[0].Payload) != want {
		t.Errorf("%s %v", list[0].Payload, jobs.Notes)
	}
	for _, container := range []string{
		`command: ["$(S)"]` + env, `command: [x, "$(SHOP_SERVICE_HOST)"]`, `command: [x], env: [{name: a, value: "$(HOME)"}]`, `command: ["$(x)"], envFrom: [{}]`,
	} {
		jobs := oneCronJob(t, "schedule: '@hourly'", container)
		wantNotes(t, jobs, [2]string{"-jobs:1", "its value is not in the file"})
	}
}

func oneCronJob(t *testing.T, spec, container string) *foreign.Jobs {
	t.Helper()
	var jobs foreign.Jobs
	text := "kind: CronJob\nmetadata: {name: x}\nspec:\n  " + spec +
		"\n  jobTemplate: {spec: {template: {spec: {containers: [{" + container + "}]}}}}\n"
	if err := jobs.CronJobs("jobs", []byte(text), "UTC"); err != nil {
		t.Fatal(err)
	}
	return &jobs
}

func TestCronJobs_ofNoYAML(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"": "no object", "a: [": "line 1", "- 1\n": "no object"} {
		var jobs foreign.Jobs
		if err := jobs.CronJobs("jobs", []byte(text), "UTC"); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func FuzzCronJobs(f *testing.F) {
	f.Add(manifests)
	f.Fuzz(func(t *testing.T, text string) {
		var jobs foreign.Jobs
		if jobs.CronJobs("jobs", []byte(text), "UTC") == nil {
			wantSame(t, &jobs)
		}
	})
}
