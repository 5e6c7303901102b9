// Package streams defines the streams and consumers of basetensor: it sets them up, makes those
// again that somebody deleted, and makes room in them.
package streams

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/basetensor/basetensor/pkg/fault"
)

// Config are the options of streams and consumers. The zero value has every default.
type Config struct {
	API string // prefix of the subjects of JetStream's API, default $JS.API
	// Streams in the server's memory instead of files.
	InMemory bool
	// One consumer over all lanes of a kind instead of one per lane.
	OneConsumer bool
	// Bytes for all streams together; 0: the limit of the server, or the total of existing streams.
	MaxBytes int64
	// Number of jobs of one lane that may wait before the first stage; 0: as set up before, or
	// 4096.
	Backlog int
	// For how long models and answers are kept at most; 0: as set up before, or 24 hours.
	Keep time.Duration
	// For how long answers are kept at least; 0: as set up before, or a minute.
	KeepAtLeast time.Duration
	// Replicas of every stream; 0: as set up before, or 1.
	Replicas int
	// The silence after which a message is delivered to another worker, default 2 seconds.
	AckWait time.Duration
	// Log is told of each obstacle that setup waits for; nil: nobody is.
	Log *slog.Logger
}

// check returns an error if a setting is below 0.
func (c Config) check() error {
	for what, value := range map[string]int64{
		"room":                 c.MaxBytes,
		"backlog":              int64(c.Backlog),
		"time to keep":         int64(c.Keep),
		"least time to keep":   int64(c.KeepAtLeast),
		"replicas":             int64(c.Replicas),
		"acknowledgement wait": int64(c.AckWait),
	} {
		if value < 0 {
			return fault.New(fault.BadInput, "pipeline: %s is negative", what)
		}
	}
	return nil
}

// WithDefaults returns c with the defaults of Keep, Replicas and AckWait in the place of 0. The others keep their 0,
// because their defaults depend on the earlier setup.
func (c Config) WithDefaults() Config {
	c.Keep = cmp.Or(c.Keep, 24*time.Hour)
	c.Replicas = cmp.Or(c.Replicas, 1)
	c.AckWait = cmp.Or(c.AckWait, 2*time.Second)
	return c
}
