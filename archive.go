package onbeat

import (
	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat/archive"
	"github.com/onbeat/onbeat/archiver"
)

// ArchiveBuffer is how many bytes Redis keeps for an archive that is away, unless [Caps].Buffer says another number.
const ArchiveBuffer = 512 << 20

// setArchive completes the settings of an archive, and returns its source: nil without an archive.
func (c *Config) setArchive() (*archive.Source, error) {
	if c.Archive == nil {
		return nil, nil //nolint:nilnil // there is none, which is no error
	}
	if c.Caps.Buffer == 0 {
		c.Caps.Buffer = ArchiveBuffer
	}
	return archive.NewSource(c.Archive, c.Namespace, c.Log)
}

func (c Config) checkArchive() error {
	if c.Archive == nil {
		return nil
	}
	return c.Archive.Validate()
}

// archiver archives what happens while this instance leads.
func (d *Dispatcher) archiver(log zerolog.Logger) *archiver.Archiver {
	return archiver.New(d.q, d.archive, archiver.Config{Observer: d.cfg.Observer, Log: log})
}

// Close closes the connections to the archive, if there is one. Call it when neither Run nor what [Dispatcher.Admin] returned
// is used any more. The caller closes the client of Redis.
func (d *Dispatcher) Close() error {
	if d.archive == nil {
		return nil
	}
	return d.archive.Close()
}
