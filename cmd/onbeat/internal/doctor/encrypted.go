package doctor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/onbeat/onbeat/internal/seal"
)

// encrypted says which keys the payloads in Redis need, and warns of those that this process does not have. It says nothing of a
// namespace without encryption.
func (d *doctor) encrypted(ctx context.Context) {
	keys, err := seal.New(d.cfg.Encryption, d.cfg.Namespace)
	if err != nil {
		d.fail("encryption", "", "%v", err)
		return
	}
	tasks, err := d.q.CountSealed(ctx, keys)
	if err != nil {
		d.fail("encryption", "", "%v", err)
		return
	}
	schedules, err := d.schedules.KeysOf(ctx)
	if err != nil {
		d.fail("encryption", "", "%v", err)
		return
	}
	all := maps.Clone(schedules)
	maps.Copy(all, tasks.Tasks)
	if len(all) == 0 && len(d.cfg.Encryption.Keys) == 0 {
		return
	}
	var need, lack, other []string
	for _, id := range slices.Sorted(maps.Keys(all)) {
		need = append(need, fmt.Sprintf("key %q: %d tasks, %d schedules", id, tasks.Tasks[id], schedules[id]))
		if !keys.Has(id) {
			lack = append(lack, fmt.Sprintf("%q", id))
		} else if n := tasks.Closed[id]; n > 0 {
			other = append(other, fmt.Sprintf("%d tasks do not open with the key %q of this config", n, id))
		}
	}
	for _, k := range d.cfg.Encryption.Keys {
		if _, used := all[k.ID]; !used {
			need = append(need, fmt.Sprintf("key %q: nothing", k.ID))
		}
	}
	detail := strings.Join(need, "; ")
	if !tasks.Whole {
		detail += "; only the first 64 MiB of the tasks were read, so do not remove a key by this"
	}
	if len(lack) > 0 {
		d.warn("encryption", "put them into encryption.keys of the instances: their tasks stay due until one has the key", "this config lacks %s; %s", strings.Join(lack, ", "), detail)
		return
	}
	if len(other) > 0 {
		d.warn("encryption", "is it another key under the same ID? their tasks stay due until an instance has theirs; tasks that were changed in Redis have none, delete them",
			"%s; %s", strings.Join(other, ", "), detail)
		return
	}
	d.ok("encryption", "%s", detail)
}
