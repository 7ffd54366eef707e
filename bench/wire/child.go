package wire

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
)

// Child is the child's end.
type Child struct {
	Job Job

	mu      sync.Mutex
	out     *json.Encoder
	answers chan string
	stopped chan struct{}
}

// NewChild reads the job, and from then on answers. When in ends the parent is gone: gone is called.
func NewChild(in io.Reader, out io.Writer, gone func()) (*Child, error) {
	c := &Child{out: json.NewEncoder(out), answers: make(chan string, 1), stopped: make(chan struct{})}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	if !lines.Scan() {
		return nil, errors.New("no job on standard input")
	}
	if err := json.Unmarshal(lines.Bytes(), &c.Job); err != nil {
		return nil, fmt.Errorf("job: %w", err)
	}
	go func() {
		var once sync.Once
		for lines.Scan() {
			if lines.Text() == Stop {
				once.Do(func() { close(c.stopped) })
				continue
			}
			c.answers <- lines.Text()
		}
		gone()
	}()
	return c, nil
}

// Stopped is closed when all tasks of several processes are handled.
func (c *Child) Stopped() <-chan struct{} { return c.stopped }

// Say writes an event.
func (c *Child) Say(e Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.out.Encode(e) // a parent that is gone ends the process
}

// Ask writes an event and waits for the answer.
func (c *Child) Ask(e Event) {
	c.Say(e)
	<-c.answers
}
