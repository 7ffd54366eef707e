package doctor

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/split"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/schedule"
)

// Schedules that were there before their type had a limit, and lie apart, are named.
func TestExamine_namesSchedulesThatLieApart(t *testing.T) {
	t.Parallel()
	rdb, ns := testredis.Client(t), testredis.Namespace(t)
	limits := func() []Check {
		t.Helper()
		report, err := Examine(t.Context(), Config{Redis: rdb, Namespace: ns, Partitions: 3})
		if err != nil {
			t.Fatal(err)
		}
		return slices.DeleteFunc(report.Checks, func(c Check) bool { return c.Name != "limits" })
	}
	before, err := onbeat.New(rdb, onbeat.Config{Namespace: ns, Partitions: 3})
	if err != nil {
		t.Fatal(err)
	}
	m := split.Map{Partitions: 3}
	var apart, beside []string
	for i := range 8 { // a check names up to five
		name := fmt.Sprintf("s%02d", i)
		if _, err := before.Admin().Schedules.Apply(t.Context(), producer.Schedule{Name: name, Rule: schedule.Every(time.Hour), Task: "few"}); err != nil {
			t.Fatal(err)
		}
		if m.Of(name) == m.Of("few") {
			beside = append(beside, name)
		} else {
			apart = append(apart, name)
		}
	}
	if checks := limits(); len(checks) > 0 {
		t.Errorf("no type has a limit: %+v", checks)
	}
	after, err := onbeat.New(rdb, onbeat.Config{Namespace: ns, Partitions: 3, Limits: map[string]int{"few": 1}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := after.Admin().Schedules.Plan(t.Context(), producer.Schedule{Name: beside[0], Rule: schedule.Every(time.Hour), Task: "few"}); err != nil { // notes the limit
		t.Fatal(err)
	}
	var named strings.Builder
	for _, c := range limits() {
		if c.State != Warn {
			t.Errorf("%+v", c)
		}
		named.WriteString(c.Detail)
	}
	for name, want := range map[string]bool{apart[0]: true, apart[len(apart)-1]: true, beside[0]: false} {
		if strings.Contains(named.String(), name+" (few)") != want {
			t.Errorf("%s: named is not %v in %q", name, want, named.String())
		}
	}
	for _, name := range apart {
		if _, err := after.Admin().Schedules.Delete(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	if checks := limits(); len(checks) != 1 || checks[0].State != OK {
		t.Errorf("all lie where their type does: %+v", checks)
	}
}

// A user who may not read the key that has the number of partitions lacks a right, and the line names the key, whether the number is known
// or not.
func TestExamine_namesTheKeyWithTheNumberOfPartitions(t *testing.T) {
	t.Parallel()
	private, ns := testredis.Private(t).Client(), testredis.Namespace(t)
	if _, err := queue.Split(t.Context(), private, ns, 2); err != nil {
		t.Fatal(err)
	}
	var rules []string
	for i := 1; i <= 2; i++ {
		rules = append(rules, strings.Fields(queue.ACL(queue.AsInstance, queue.Partition{Namespace: ns, Number: i}, false))...)
	}
	rules = slices.DeleteFunc(rules, func(r string) bool { return strings.HasPrefix(r, "~") && strings.HasSuffix(r, "{"+ns+"}:meta") })
	meta := queue.Partition{Namespace: ns}.Keys().Meta
	rights := func(rules []string, cfg Config) []Check {
		t.Helper()
		cfg.Redis, cfg.Namespace = testredis.User(t, private, rules), ns
		report, err := Examine(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		return slices.DeleteFunc(report.Checks, func(c Check) bool { return c.Name != "rights" })
	}
	for what, cfg := range map[string]Config{"known": {Partitions: 2}, "unknown": {Uncounted: true}} {
		checks := rights(rules, cfg)
		if len(checks) != 1 || checks[0].State != Fail || !strings.Contains(checks[0].Detail+checks[0].Hint, meta) {
			t.Errorf("%s: %+v", what, checks)
		}
	}
	if checks := rights(append(rules, "~"+meta), Config{Partitions: 2}); len(checks) != 1 || checks[0].State != OK {
		t.Errorf("with the right: %+v", checks)
	}
}

// In a cluster that wants to be whole, a primary without a replica takes all partitions with it: the doctor warns before it does.
func TestExamine_warnsOfAClusterThatMustBeWhole(t *testing.T) {
	t.Parallel()
	server, ns := testredis.Private(t, "--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf"), testredis.Namespace(t)
	node := server.Client()
	if err := node.ClusterAddSlotsRange(t.Context(), 0, 16383).Err(); err != nil {
		t.Fatal(err)
	}
	testredis.Eventually(t, 30*time.Second, func() bool { return strings.Contains(node.ClusterInfo(t.Context()).Val(), "cluster_state:ok") }, "the cluster is ok")
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{server.Addr()}})
	t.Cleanup(func() { _ = rdb.Close() })
	if _, err := queue.Split(t.Context(), rdb, ns, 2); err != nil {
		t.Fatal(err)
	}
	for whole, want := range map[string]string{"yes": Warn, "no": OK} {
		if err := node.ConfigSet(t.Context(), "cluster-require-full-coverage", whole).Err(); err != nil {
			t.Fatal(err)
		}
		report, err := Examine(t.Context(), Config{Redis: rdb, Namespace: ns, Partitions: 2})
		if err != nil {
			t.Fatal(err)
		}
		if i := slices.IndexFunc(report.Checks, func(c Check) bool { return c.Name == "cluster" }); i < 0 || report.Checks[i].State != want {
			t.Errorf("full coverage %s: %+v", whole, report.Checks)
		}
	}
}
