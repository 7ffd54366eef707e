package testredis

import (
	"testing"
)

func TestNamespace_leavesNothingBehind(t *testing.T) {
	t.Parallel()
	rdb := Client(t)
	other := Namespace(t)
	if err := rdb.Set(t.Context(), "onbeat:{"+other+"}:due:default", 1, 0).Err(); err != nil {
		t.Fatal(err)
	}
	var ns string
	t.Run("inner", func(t *testing.T) {
		ns = Namespace(t)
		for _, key := range []string{"onbeat:{" + ns + "}:tasks", "onbeat:{" + ns + "#3}:tasks", ns} {
			if err := rdb.Set(t.Context(), key, 1, 0).Err(); err != nil {
				t.Fatal(err)
			}
		}
	})
	if keys, err := rdb.Keys(t.Context(), "*"+ns+"*").Result(); len(keys) != 0 || err != nil {
		t.Errorf("left behind: %v, %v", keys, err)
	}
	if keys, err := rdb.Keys(t.Context(), "*"+other+"*").Result(); len(keys) != 1 || err != nil {
		t.Errorf("of another namespace: %v, %v; want its one key", keys, err)
	}
}
