package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/onbeat/onbeat/internal/wording"
	"github.com/onbeat/onbeat/task"
)

// Problem is one thing that is wrong at a place in a file. Where it is about a field, [FieldOf] says which.
type Problem struct {
	File string
	Line int // from 1; 0: the file as a whole
	Err  error
}

// Error is one line for a person: "shop.yaml:12: lease \"5\": a number without a unit (…)".
func (p *Problem) Error() string {
	if p.Line == 0 {
		return p.File + ": " + p.Err.Error()
	}
	return fmt.Sprintf("%s:%d: %v", p.File, p.Line, p.Err)
}

// Unwrap returns what is wrong, without its place.
func (p *Problem) Unwrap() error { return p.Err }

// Problems are all that is wrong with a file, in the order of its lines.
type Problems []*Problem

// Error is the first of them, and how many more there are: one line, however many.
func (p Problems) Error() string {
	switch len(p) {
	case 0:
		return "no problems"
	case 1:
		return p[0].Error()
	}
	return fmt.Sprintf("%v; and %d more: onbeat check shows them", p[0], len(p)-1)
}

// Unwrap returns each of them.
func (p Problems) Unwrap() []error {
	list := make([]error, len(p))
	for i := range p {
		list[i] = p[i]
	}
	return list
}

// ProblemsOf lists the problems that an error of this package holds. It is nil for other errors.
func ProblemsOf(err error) Problems {
	var all Problems
	var one *Problem
	switch {
	case errors.As(err, &all):
		return all
	case errors.As(err, &one):
		return Problems{one}
	}
	return nil
}

// Sorted is several errors of this package as one: [Problems] in the order of their lines, or nil if nothing is wrong.
func Sorted(errs ...error) error {
	var all Problems
	for _, err := range errs {
		all = append(all, ProblemsOf(err)...)
	}
	return all.sorted()
}

// sorted is the list as an error: nil if nothing is wrong.
func (p Problems) sorted() error {
	if len(p) == 0 {
		return nil
	}
	slices.SortStableFunc(p, func(a, b *Problem) int { return cmp.Compare(a.Line, b.Line) })
	return p
}

// invalid is wrong with a file as a whole, and not with a field.
type invalid struct{ reason, hint string }

func (e *invalid) Error() string { return wording.WithHint(e.reason, e.hint) }

// Is matches [task.ErrInvalid].
func (e *invalid) Is(target error) bool { return target == task.ErrInvalid }

func refuse(field, value, reason, hint string) error {
	return &task.FieldError{Field: field, Value: value, Reason: reason, Hint: hint}
}
