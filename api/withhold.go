package api

import "github.com/onbeat/onbeat/admin"

// withheld is a reply that may show what is secret of a payload.
type withheld interface{ withhold() }

// Each shape with a payload that a viewer may ask for has its line here; a test compares them with the document.
func (r *reply[T]) withhold() { mask(&r.Body) }

func (r *tagged[T]) withhold() { mask(&r.Body) }

// mask hides in a body what is secret of payloads.
func mask(body any) {
	switch b := body.(type) {
	case *admin.Task:
		*b = b.Masked()
	case *admin.List[admin.Task]:
		*b = admin.MaskedList(*b)
	case *ScheduleList:
		b.List = admin.MaskedList(b.List)
	case *admin.ScheduleDetail:
		*b = b.Masked()
	case *admin.List[admin.Revision]:
		*b = admin.MaskedList(*b)
	}
}
