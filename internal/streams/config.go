// Package streams knows which streams and consumers there are: it sets them up, makes those again that somebody deleted, and keeps room in
// them.
package streams

import (
	"time"
)

// Config says what streams and consumers are like. The zero value has every default.
type Config struct {
	InMemory    bool          // streams in the server's memory instead of files
	OneConsumer bool          // one consumer over all lanes of a kind instead of one per lane
	MaxBytes    int64         // the room for all streams together; 0: what the server allows, or what they have
	Backlog     int           // how many jobs of one lane may wait before the first stage; 0: what was set up before, or 4096
	Keep        time.Duration // how long models and answers are kept at most, default 24 hours
	KeepAtLeast time.Duration // how long answers are kept at least; 0: what was set up before, or a minute
	Replicas    int           // of every stream, default 1
	AckWait     time.Duration // after what silence a message goes to another worker, default 4 seconds
}

// WithDefaults returns c with every zero field at its default.
func (c Config) WithDefaults() Config {
	if c.Keep == 0 {
		c.Keep = 24 * time.Hour
	}
	if c.Replicas == 0 {
		c.Replicas = 1
	}
	if c.AckWait == 0 {
		c.AckWait = 4 * time.Second
	}
	return c
}
