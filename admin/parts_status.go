package admin

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/onbeat/onbeat/internal/queue"
)

func (a activityOfParts) Status(ctx context.Context) (Status, error) {
	all, missing, err := gatherSoon(ctx, a.parts, func(ctx context.Context, x *part) (numbered[Status], error) {
		s, err := x.activity.Status(ctx)
		return numbered[Status]{x.number, s}, err
	})
	if err != nil {
		return Status{}, err
	}
	return joinStatus(all, missing), nil
}

// joinStatus makes one status of those of partitions.
func joinStatus(all []numbered[Status], missing []Unasked) Status {
	out := Status{Trouble: []Trouble{}, CouldNotAsk: []Unasked{}}
	for i := range all {
		out.join(all[i].part, &all[i].answer)
	}
	wrong := 0
	for i := range all { // also those lines that the partitions left out
		wrong += all[i].answer.Counts.Wrong
	}
	for _, i := range out.working {
		out.Counts.Workers += i.Concurrency
	}
	held := heldIn(all)
	out.Trouble = slices.DeleteFunc(out.Trouble, func(t Trouble) bool {
		no := out.onlyThere(&t, held)
		if no {
			wrong -= len(t.Partitions)
		}
		return no
	})
	for i := range all {
		x := &all[i].answer
		c := crew{held: heldBy(x.working, held), waits: x.crew.waits}
		if t, ok := c.busy(x.working, out.Asked); ok {
			out.tell(&t, all[i].part)
		}
	}
	for i := range out.Trouble { // a figure in a line is that of its partitions
		if t := &out.Trouble[i]; len(t.Partitions) > 0 && len(t.Partitions) < len(all)+len(missing) {
			t.Text += " (partition " + strings.Trim(strings.ReplaceAll(fmt.Sprint(t.Partitions), " ", ", "), "[]") + ")"
		}
	}
	for _, u := range missing {
		number, _ := strconv.Atoi(u.Source[len("partition "):])
		out.Trouble = append(out.Trouble, Trouble{Kind: NoPartition, Name: strconv.Itoa(number), Text: "does not answer: what it has is unknown: " + u.Error, Show: "onbeat doctor", Partitions: []int{number}})
	}
	out.Counts.Instances, out.Counts.Wrong = len(out.working), 0
	slices.SortStableFunc(out.Leads, func(a, b Leads) int { return cmp.Compare(len(b.Partitions), len(a.Partitions)) })
	if len(out.Leads) > 0 {
		out.Leader, out.Release = out.Leads[0].Instance, out.Leads[0].Release
	}
	out.sort()
	more := out.More
	out.sum()
	if more > 0 {
		out.Counts.Wrong = max(out.Counts.Wrong, wrong)
	}
	return out
}

// join adds the status of a partition. A line that others have too, word for word or but for a figure that can be added up, names all of them.
func (s *Status) join(number int, other *Status) {
	if s.Asked.IsZero() || other.Asked.Before(s.Asked) {
		s.Asked = other.Asked
	}
	if other.Leader != "" {
		k := slices.IndexFunc(s.Leads, func(l Leads) bool { return l.Instance == other.Leader })
		if k < 0 {
			k, s.Leads = len(s.Leads), append(s.Leads, Leads{Instance: other.Leader, Release: other.Release})
		}
		s.Leads[k].Partitions = append(s.Leads[k].Partitions, number)
	}
	for _, t := range other.Trouble {
		if t.ofSchedule {
			s.Trouble = append(s.Trouble, t)
			continue
		}
		s.tell(&t, number)
	}
	for _, u := range other.CouldNotAsk {
		if !slices.Contains(s.CouldNotAsk, u) {
			s.CouldNotAsk = append(s.CouldNotAsk, u)
		}
	}
	s.More += other.More
	c, o := &s.Counts, &other.Counts
	c.Running, c.Schedules, c.Well, c.Bad, c.Dead = c.Running+o.Running, c.Schedules+o.Schedules, c.Well+o.Well, c.Bad+o.Bad, c.Dead+o.Dead
	for _, i := range other.working {
		if !slices.ContainsFunc(s.working, func(x Instance) bool { return x.ID == i.ID }) {
			s.working = append(s.working, i)
		}
	}
}

// tell adds a line of a partition to one that says the same of others, or else by itself.
func (s *Status) tell(t *Trouble, number int) {
	for k := range s.Trouble {
		if s.Trouble[k].takes(t, number) {
			return
		}
	}
	one := *t
	one.Partitions = []int{number}
	s.Trouble = append(s.Trouble, one)
}

// heldIn returns the runs of users in all partitions.
func heldIn(all []numbered[Status]) (held []queue.Held) {
	for i := range all {
		held = append(held, all[i].answer.crew.held...)
	}
	return held
}

// heldBy returns the runs that instances have.
func heldBy(team []Instance, held []queue.Held) []queue.Held {
	return slices.DeleteFunc(slices.Clone(held), func(h queue.Held) bool {
		return !slices.ContainsFunc(team, func(i Instance) bool { return i.ID == h.Instance })
	})
}

// onlyThere reports whether a line of partitions may not hold for the whole: an instance that is idle in one may have all its workers busy in
// others, and whether all workers are busy is judged anew.
func (s *Status) onlyThere(t *Trouble, held []queue.Held) bool {
	if t.Kind != InstanceIdle || t.Warning {
		return t.Kind == WorkersBusy
	}
	return slices.ContainsFunc(s.working, func(i Instance) bool {
		return i.ID == t.Name && i.Concurrency > 0 && len(heldBy([]Instance{i}, held)) >= i.Concurrency
	})
}
