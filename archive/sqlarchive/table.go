package sqlarchive

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// table is one of the tables, with its columns apart from the namespace.
type table struct {
	name    string
	columns []string
}

func newTable(name, columns string) *table {
	return &table{name: name, columns: strings.Fields(columns)}
}

// list is the columns, as a query names them.
func (t *table) list() string { return strings.Join(t.columns, ", ") }

// row is one row of a table: pointers to its values, in the order of the table's columns. Each is a *string, an *int64, or one of
// the types below.
type row interface{ values() []any }

// weight is about how many bytes a row has.
func weight(r row) int {
	n := 0
	for _, v := range r.values() {
		n += 8
		switch v := v.(type) {
		case *string:
			n += len(*v)
		case *object:
			for k, s := range *v {
				n += len(k) + len(s)
			}
		}
	}
	return n
}

// moment is a time, which is null if it is zero.
type moment struct{ time.Time }

// lastMs is the end of the year 9999: later times cannot be written as RFC 3339.
const lastMs = 253402300799999

// at cuts a time to milliseconds, and moves it into the years 1970 to 9999, because another program may have damaged it.
func at(t time.Time) moment {
	if t.IsZero() {
		return moment{}
	}
	return ofMs(t.UnixMilli())
}

func ofMs(ms int64) moment { return moment{time.UnixMilli(max(0, min(ms, lastMs))).UTC()} }

// Scan reads a column of either database.
func (m *moment) Scan(v any) error {
	switch v := v.(type) {
	case nil:
		*m = moment{}
	case int64:
		*m = ofMs(v)
	case time.Time:
		*m = moment{v.UTC()}
	default:
		return fmt.Errorf("a %T is no time", v)
	}
	return nil
}

// number is one that is null if it is zero.
type number int64

// Scan reads a column.
func (n *number) Scan(v any) error {
	switch v := v.(type) {
	case nil:
		*n = 0
	case int64:
		*n = number(v)
	default:
		return fmt.Errorf("a %T is no number", v)
	}
	return nil
}

// object is a JSON object of texts.
type object map[string]string

func (o object) String() string {
	b, err := json.Marshal(map[string]string(o))
	if err != nil || o == nil { // texts do not fail
		return "{}"
	}
	return string(b)
}

// Scan reads a column of either database.
func (o *object) Scan(v any) error {
	*o = nil
	switch v := v.(type) {
	case string:
		return json.Unmarshal([]byte(v), (*map[string]string)(o))
	case []byte:
		return json.Unmarshal(v, (*map[string]string)(o))
	}
	return fmt.Errorf("a %T is no object", v)
}
