package api

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"
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

func TestCheckQuery_namesNotEachOfVeryManyParameters(t *testing.T) {
	t.Parallel()
	var query strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&query, "x%d=&", i)
	}
	if n := len(fieldsOf(checkQuery(&huma.Operation{}, query.String()))); n != maxRefused {
		t.Errorf("%d fields", n)
	}
}
