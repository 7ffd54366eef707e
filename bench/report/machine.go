package report

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/onbeat/onbeat/bench/server"
)

// machine is what the figures were measured on.
type machine struct {
	Date      string            `json:"date"`
	CPU       string            `json:"cpu"`
	Cores     int               `json:"cores"`
	Memory    string            `json:"memory"`
	Kernel    string            `json:"kernel"`
	Stolen    float64           `json:"stolen,omitempty"` // percent of the busy time since it started
	Go        string            `json:"go"`
	Redis     string            `json:"redis"`
	Allocator string            `json:"allocator,omitempty"` // of Redis: it rounds up what a task occupies
	Postgres  string            `json:"postgres,omitempty"`
	Node      string            `json:"node,omitempty"`
	Modules   map[string]string `json:"modules"`
	Skipped   map[string]string `json:"skipped,omitempty"`
}

// machinePath is the file beside the figures.
func machinePath(results string) string {
	return strings.TrimSuffix(results, filepath.Ext(results)) + ".machine.json"
}

// WriteMachine writes down the machine beside the figures, and which peers were not installed.
func WriteMachine(ctx context.Context, results string, missing map[string]error) error {
	m := machine{
		Date: time.Now().UTC().Format(time.DateOnly), Cores: runtime.NumCPU(), Go: strings.TrimPrefix(runtime.Version(), "go"),
		CPU: field("/proc/cpuinfo", "model name"), Memory: memory(), Kernel: firstLine("/proc/sys/kernel/osrelease"), Stolen: stolen(firstLine("/proc/stat")),
		Redis: server.RedisVersion(ctx), Allocator: server.RedisAllocator(ctx), Postgres: server.PostgresVersion(ctx), Node: output(ctx, "node", "--version"),
		Modules: map[string]string{}, Skipped: map[string]string{},
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, d := range info.Deps {
			switch d.Path {
			case "github.com/hibiken/asynq", "github.com/riverqueue/river", "github.com/redis/go-redis/v9", "github.com/jackc/pgx/v5":
				m.Modules[d.Path] = d.Version
			}
		}
	}
	if v := bullmqVersion(); v != "" {
		m.Modules["bullmq"] = v
	}
	for p, err := range missing {
		m.Skipped[p] = err.Error()
	}
	b, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(machinePath(results), append(b, '\n'), 0o644)
}

func readMachine(results string) (m machine, err error) {
	b, err := os.ReadFile(machinePath(results))
	if err != nil {
		return m, err
	}
	return m, json.Unmarshal(b, &m)
}

func field(path, name string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return "unknown"
	}
	for line := range strings.Lines(string(b)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

func memory() string {
	var kb float64
	if _, err := fmt.Sscan(field("/proc/meminfo", "MemTotal"), &kb); err != nil {
		return "unknown"
	}
	return fmt.Sprintf("%.0f GiB", kb/(1<<20))
}

func firstLine(path string) string {
	b, _ := os.ReadFile(path)
	line, _, _ := bytes.Cut(b, []byte("\n"))
	return string(line)
}

// stolen is the percentage of the time in which this machine wanted a processor, and its host gave it to others, of a
// line of /proc/stat: cpu, user, nice, system, idle, iowait, irq, softirq, steal.
func stolen(line string) float64 {
	var v [8]float64
	if _, err := fmt.Sscanf(line, "cpu %f %f %f %f %f %f %f %f", &v[0], &v[1], &v[2], &v[3], &v[4], &v[5], &v[6], &v[7]); err != nil {
		return 0
	}
	busy := v[0] + v[1] + v[2] + v[5] + v[6] + v[7]
	return 100 * v[7] / max(busy, 1)
}

func output(ctx context.Context, name string, args ...string) string {
	out, err := exec.CommandContext(ctx, name, args...).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

func bullmqVersion() string {
	b, err := os.ReadFile(filepath.Join("node", "node_modules", "bullmq", "package.json"))
	if err != nil {
		return ""
	}
	var p struct{ Version string }
	if json.Unmarshal(b, &p) != nil {
		return ""
	}
	return p.Version
}
