package onbeat

import (
	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat/archive"
	"github.com/onbeat/onbeat/handlers/notify"
	"github.com/onbeat/onbeat/internal/archiver"
)

// setArchive completes the settings of an archive, and returns its source: nil without an archive.
func (c *Config) setArchive() (*archive.Source, error) {
	if c.Archive == nil {
		return nil, nil //nolint:nilnil // there is none, which is no error
	}
	c.Caps = c.Caps.ForArchive()
	return archive.NewSource(c.Archive, c.Namespace, c.Log)
}

func (c Config) checkArchive() error {
	if c.Archive == nil {
		return nil
	}
	return c.Archive.Validate()
}

// archiver archives what happens while this instance leads. The notifier, nil if there is no target, hears how it goes.
func (d *Dispatcher) archiver(n *notify.Notifier, log zerolog.Logger) *archiver.Archiver {
	cfg := archiver.Config{Observer: archiving{d.cfg.Observer, n}, Log: log}
	if n != nil {
		cfg.Needed = n.Needed
	}
	return archiver.New(d.q, d.archive, cfg)
}

// archiving tells the observer and the notifier how archiving goes. Each may be nil.
type archiving struct {
	observer archiver.Observer
	notifier *notify.Notifier
}

// ArchiveBehind implements [archiver.Observer].
func (a archiving) ArchiveBehind(entries int64) {
	if a.observer != nil {
		a.observer.ArchiveBehind(entries)
	}
	if a.notifier != nil {
		a.notifier.ArchiveBehind(entries)
	}
}

// ArchiveLost implements [archiver.Observer]. The notifier reads of a loss in the events.
func (a archiving) ArchiveLost(entries int64) {
	if a.observer != nil {
		a.observer.ArchiveLost(entries)
	}
}

// Close closes the connections to the archive, if there is one. Call it when neither Run nor what [Dispatcher.Admin] returned
// is used any more. The caller closes the client of Redis.
func (d *Dispatcher) Close() error {
	if d.archive == nil {
		return nil
	}
	return d.archive.Close()
}
