package api

import (
	"bytes"
	"runtime"
	"testing"
)

// A list of millions is refused before each of them has its place in memory.
func TestBatchOf_aListOfMillionsTakesLittleMemory(t *testing.T) {
	body := append([]byte(`{"tasks":[1`), bytes.Repeat([]byte(`,1`), 2<<20)...)
	body = append(body, `],"tasks":[{}]}`...)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, is, err := batchOf(body)
	runtime.ReadMemStats(&after)
	if p, _ := problemOf(err); !is || err == nil || p.Detail != "tasks: too many (1 to 10000 tasks)" || p.Errors[0].Pointer != "#/tasks" {
		t.Errorf("%v, %v", is, err)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > uint64(16*len(body)) {
		t.Errorf("a body of %d bytes took %d", len(body), took)
	}
}
