package admin

// Result says in a word what a change did to one schedule, task or instance.
type Result struct {
	Name   string `json:"name"`
	Result string `json:"result"` // such as "paused", "already paused", "cancelled", "asked to stop"
	// Was is the state in which a task was found; empty for others.
	Was TaskState `json:"was,omitempty"`
}
