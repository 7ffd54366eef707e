package onbeat

import (
	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat/archive"
)

// ArchiveBuffer is how many entries Redis keeps for an archive that is away, unless [Caps].Archive says another number.
const ArchiveBuffer = 1_000_000

// setArchive completes the settings of an archive, and returns its source: nil without an archive.
func (c *Config) setArchive() (*archive.Source, error) {
	if c.Archive == nil {
		return nil, nil //nolint:nilnil // there is none, which is no error
	}
	if c.Caps.Archive == 0 {
		c.Caps.Archive = ArchiveBuffer
	}
	own := *c.Archive
	own.Namespace, own.Log = c.Namespace, c.Log
	return archive.NewSource(own)
}

func (c Config) checkArchive() error {
	if c.Archive == nil {
		return nil
	}
	return c.Archive.Validate()
}

// follower archives what happens while this instance leads.
func (d *Dispatcher) follower(log zerolog.Logger) *archive.Follower {
	cfg := archive.FollowerConfig{Log: log}
	if d.cfg.Observer != nil {
		cfg.Observer = d.cfg.Observer
	}
	return archive.NewFollower(d.q, d.archive, cfg)
}

// Close closes the connections to the archive, if there is one. Call it when neither Run nor what [Dispatcher.Admin] returned
// is used any more. The caller closes the client of Redis.
func (d *Dispatcher) Close() error {
	if d.archive == nil {
		return nil
	}
	return d.archive.Close()
}
