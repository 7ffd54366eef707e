package notify

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/onbeat/onbeat/internal/wording"
	"github.com/onbeat/onbeat/task"
)

// Type is the type of the tasks that send messages. Every instance with a target handles it.
const Type = "onbeat.notify"

// delivery is a message on its way: the payload of a task. It names the target; the URL and the key are in the config of the
// instance that sends it.
type delivery struct {
	Target  string  `json:"target"`
	Message Message `json:"message"`
}

// messageID is the ID of the task that sends a message, and its Webhook-Id. The same message has the same ID, whichever instance
// derives it, so that Redis refuses the second one. A receiver hears of many partitions and namespaces, so their place is in the ID,
// as a short hash: the longest names would not fit.
func messageID(place string, k groupKey, window time.Duration, end time.Time) string {
	hash := sha256.Sum256([]byte(place))
	return fmt.Sprintf("%s:%s:%s:%d:%d:%x", Type, k.target, k.topic, window.Milliseconds(), end.UnixMilli(), hash[:8])
}

// isOwn reports whether a task of that ID is the dispatcher's own. A schedule may have such a name, but its tasks have @ or ! behind it.
func isOwn(id string) bool { return strings.HasPrefix(id, task.Own) && !strings.ContainsAny(id, "@!") }

// parseDelivery reads a payload. It keeps no unknown field, so that a newer release may add some.
func parseDelivery(payload []byte) (*delivery, error) {
	p := &delivery{}
	if err := json.Unmarshal(payload, p); err != nil {
		return nil, &task.FieldError{Field: "payload", Reason: "not a message: " + wording.Cut(oneLine(err.Error()), 200), Hint: "onbeat makes these tasks itself"}
	}
	if p.Target == "" || p.Message.Topic == "" {
		return nil, &task.FieldError{Field: "payload.target", Value: p.Target, Reason: "no target, or no topic", Hint: "onbeat makes these tasks itself"}
	}
	return p, nil
}

// The attempts at a message: with these, the last one is made after about half an hour.
const mostAttempts = 12

var spacing = task.Backoff{Base: 5 * time.Second, Cap: 10 * time.Minute}

// taskOf is the task that sends a message. It comes before the backlog that the message may be about.
func taskOf(id, queue, text string) *task.Task {
	return &task.Task{
		ID: id, Type: Type, Payload: []byte(text), Queue: queue, Priority: task.High,
		MaxAttempts: mostAttempts, Backoff: spacing, Timeout: 2 * mostTimeout, Keep: task.DefaultKeepByID, Created: time.Now(),
	}
}
