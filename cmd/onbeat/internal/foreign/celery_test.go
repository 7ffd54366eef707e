package foreign_test

import (
	"testing"
	"time"

	"github.com/onbeat/onbeat/cmd/onbeat/internal/foreign"
)

const module = `from celery.schedules import crontab
app = Celery("shop")
app.conf.timezone = "Europe/London"
app.conf.beat_schedule = {
    # each half minute
    "add": {"task": "tasks.add", "schedule": 30.0, "args": (16, 16)},
    'nightly': {
        'task': 'shop.reports.'
                'nightly',
        'schedule': crontab(hour=7, minute=30, day_of_week='mon,wed'),
        'kwargs': {'deep': True, 'none': None, "list": [1, -2.5, "a\tb"]},
        'options': {'queue': 'reports', 'expires': 60 * 15},
    },
    'delta': {'task': 't', 'schedule': timedelta(minutes=5, seconds=30)},
    'fifteen': {'task': 't', 'schedule': celery.schedules.crontab('*/15')},
    'first': {'task': 't', 'schedule': crontab(0, 0, day_of_month='1-7', day_of_week='sunday')},
    'product': {'task': 't', 'schedule': schedule(run_every=60 * 60 * 2.0)},
    'both': {'task': 't', 'schedule': crontab(0, 0, day_of_month='13', day_of_week='fri')},
    'solar': {'task': 't', 'schedule': solar('sunset', -37.81, 144.96)},
    'variable': {'task': 't', 'schedule': INTERVAL if X[1:2] else f(a, {1: 2})},
    'argument': {'task': 't', 'schedule': 1, 'args': (settings.X, )},
    'large': {'task': 't', 'schedule': 1, 'args': (9007199254740993, )},
    'larger': {'task': 't', 'schedule': 1, 'args': [3 * 3002399751580331, -9007199254740993]},
    'exact': {'task': 't', 'schedule': 1, 'args': [9007199254740991, -1e300, 1e-7, 1.5e-9]},
    'relative': {'task': 't', 'schedule': 1, 'relative': True},
    f'computed{1}': {'task': 't', 'schedule': 1},
}
@app.on_after_configure.connect
def setup(sender, **kwargs):
    sender.add_periodic_task(10.0, test.s('hello'))
`

func TestCelery_ofAModule(t *testing.T) {
	t.Parallel()
	var jobs foreign.Jobs
	if err := jobs.Celery("shop.py", []byte(module), "UTC"); err != nil {
		t.Fatal(err)
	}
	list := wantSame(t, &jobs)
	const london = "Europe/London"
	for i, want := range []struct {
		name, task, cron, zone string
		every                  time.Duration
		payload                string
	}{
		{"add", "tasks.add", "", "", 30 * time.Second, `{"args":[16,16],"kwargs":{}}`},
		{"nightly", "shop.reports.nightly", "30 7 * * mon,wed", london, 0, `{"args":[],"kwargs":{"deep":true,"list":[1,-2.5,"a\tb"],"none":null}}`},
		{"delta", "t", "", "", 330 * time.Second, ""},
		{"fifteen", "t", "*/15 * * * *", london, 0, ""},
		{"first", "t", "0 0 * * sun#1", london, 0, ""},
		{"product", "t", "", "", 2 * time.Hour, ""},
		{"exact", "t", "", "", time.Second, `{"args":[9007199254740991,-1e+300,1e-7,1.5e-9],"kwargs":{}}`},
		{"relative", "t", "", "", time.Second, ""},
	} {
		if i == len(list) {
			t.Fatalf("%d schedules", i)
		}
		s := list[i]
		if s.Name != want.name || s.Task != want.task || s.Cron != want.cron || s.Timezone != want.zone || s.Every != want.every ||
			want.payload != "" && asJSON(t, s.Payload) != want.payload {
			t.Errorf("%s %s %q %s %s %s", s.Name, s.Task, s.Cron, s.Timezone, s.Every, s.Payload)
		}
	}
	if q := list[1].Queue; q != "reports" || list[1].Missed != "once" || list[1].MaxAttempts != 1 {
		t.Errorf("%+v", list[1])
	}
	wantNotes(t, &jobs, [2]string{"shop.py:6", "Python"}, [2]string{"shop.py:12", "expires"}, [2]string{"-shop.py:18", "both"}, [2]string{"-shop.py:19", "solar"},
		[2]string{"-shop.py:20", "INTERVAL"}, [2]string{"-shop.py:21", "settings.X"}, [2]string{"-shop.py:22", "9007199254740993"}, [2]string{"-shop.py:23", "3002399751580331"},
		[2]string{"shop.py:25", "relative"}, [2]string{"-shop.py:26", "not written out"}, [2]string{"-shop.py:30", "add_periodic_task"})
}

// The zone of a module is read however it is written, outside of comments and of the schedule. One that only Python knows is named.
func TestCelery_findsTheZone(t *testing.T) {
	t.Parallel()
	const entry = "beat_schedule = {'a': {'task': 'x', 'schedule': crontab(0, 0), 'kwargs': {'timezone': 'Asia/Tokyo'}}}\n"
	for text, want := range map[string]string{
		"timezone = 'Asia/Seoul'\n":                                 "Asia/Seoul",
		"CELERY_TIMEZONE = 'Asia/Seoul'\n":                          "Asia/Seoul",
		"app.conf.update(enable_utc=True, timezone='Asia/Seoul')\n": "Asia/Seoul",
		"app.conf.update({\"timezone\": 'Asia/Seoul'})\n":           "Asia/Seoul",
		"app.conf[\"timezone\"] = 'Asia/Seoul'\n":                   "Asia/Seoul",
		"  # timezone = 'Asia/Seoul'\n":                             "",
		"from x import timezone\nif timezone == 'Asia/Seoul': y\n":  "",
	} {
		for _, module := range []string{text + entry, entry + text} {
			var jobs foreign.Jobs
			if err := jobs.Celery("m.py", []byte(module), "UTC"); err != nil {
				t.Fatal(err)
			}
			if list := wantSame(t, &jobs); len(list) != 1 || list[0].Timezone != want || len(jobs.Notes) != 1 {
				t.Errorf("%q: %+v %v", module, list, jobs.Notes)
			}
		}
	}
	for _, text := range []string{"CELERY_TIMEZONE = TIME_ZONE\n", "app.conf.timezone = os.environ['TZ']\n"} {
		var jobs foreign.Jobs
		if err := jobs.Celery("m.py", []byte(text+entry), "UTC"); err != nil {
			t.Fatal(err)
		}
		wantNotes(t, &jobs, [2]string{"m.py", "zone"}, [2]string{"m.py:2", "Python"})
	}
}

// Of two entries of one name, Python keeps the later: both would double the job.
func TestCelery_ofTheSameNameTwice(t *testing.T) {
	t.Parallel()
	var jobs foreign.Jobs
	if err := jobs.Celery("m.py", []byte("beat_schedule = {\n'a': {'task': 'x', 'schedule': 1},\n'a': {'task': 'y', 'schedule': 2, 'task': 'z'},\n}"), "UTC"); err != nil {
		t.Fatal(err)
	}
	if list := wantSame(t, &jobs); len(list) != 1 || list[0].Task != "z" || list[0].Every != 2*time.Second {
		t.Errorf("%+v", list)
	}
	wantNotes(t, &jobs, [2]string{"m.py:2", "line 3"}, [2]string{"m.py:3", "Python"})
}

const fixture = `[
{"model": "auth.user", "pk": 1, "fields": {}},
{"model": "django_celery_beat.intervalschedule", "pk": 1, "fields": {"every": 5, "period": "minutes"}},
{"model": "django_celery_beat.crontabschedule", "pk": 1, "fields": {"minute": "0", "hour": "4", "day_of_month": "*", "month_of_year": "*", "day_of_week": "1, 2", "timezone": "Asia/Seoul"}},
{"model": "django_celery_beat.periodictask", "pk": 1, "fields": {"name": "celery.backend_cleanup", "task": "celery.backend_cleanup", "crontab": 1}},
{"model": "django_celery_beat.periodictask", "pk": 2, "fields": {"name": "Poll the shop", "task": "shop.poll", "interval": 1, "crontab": null, "args": "[1, 1E5, 2e-30, \"1e5\"]", "kwargs": "{}", "queue": "low", "enabled": true, "priority": 3}},
{"model": "django_celery_beat.periodictask", "pk": 3, "fields": {"name": "report", "task": "shop.report", "interval": null, "crontab": 1, "args": "[]", "kwargs": "{\"day\": \"x\"}", "queue": null, "enabled": true, "start_time": "2030-01-31T09:00:00Z"}},
{"model": "django_celery_beat.periodictask", "pk": 4, "fields": {"name": "off", "task": "x", "interval": 1, "enabled": false}},
{"model": "django_celery_beat.periodictask", "pk": 5, "fields": {"name": "sun", "task": "x", "solar": 1}}
]`

func TestCelery_ofAFixture(t *testing.T) {
	t.Parallel()
	var jobs foreign.Jobs
	if err := jobs.Celery("beat.json", []byte(fixture), "UTC"); err != nil {
		t.Fatal(err)
	}
	list := wantSame(t, &jobs)
	if len(list) != 2 {
		t.Fatalf("%+v", list)
	}
	if s := list[0]; s.Name != "Poll-the-shop" || s.Task != "shop.poll" || s.Every != 5*time.Minute || s.Queue != "low" || asJSON(t, s.Payload) != `{"args":[1,100000,2e-30,"1e5"],"kwargs":{}}` {
		t.Errorf("%+v %s", s, s.Payload)
	}
	if s := list[1]; s.Cron != "0 4 * * 1,2" || s.Start != "2030-01-31T09:00:00Z" || list[0].Start != "" || s.Timezone != "Asia/Seoul" || asJSON(t, s.Payload) != `{"args":[],"kwargs":{"day":"x"}}` {
		t.Errorf("%+v %s", s, s.Payload)
	}
	wantNotes(t, &jobs, [2]string{"beat.json:6", "priority"}, [2]string{"beat.json:6", "Python"}, [2]string{"-beat.json:8", "not enabled"}, [2]string{"-beat.json:9", "no interval"})
}

func TestCelery_ofNeither(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "[", "[1]", "x = 1", "{}"} {
		if err := new(foreign.Jobs).Celery("x", []byte(text), "UTC"); err == nil {
			t.Errorf("%q has a schedule", text)
		}
	}
}

func FuzzCelery(f *testing.F) {
	f.Add(module)
	f.Add(fixture)
	f.Add("beat_schedule={'a':{'task':r'\\x' u\"y\",'schedule':1/0 - (2),**x}}")
	f.Fuzz(func(t *testing.T, text string) {
		var jobs foreign.Jobs
		if jobs.Celery("x", []byte(text), "UTC") == nil {
			wantSame(t, &jobs)
		}
	})
}
