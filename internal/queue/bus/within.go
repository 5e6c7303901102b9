package bus

// Time limits of waits for the server.

import (
	"time"

	"github.com/nats-io/nats.go"
)

const (
	defaultTimeout = 5 * time.Second // of a request without a deadline

	// inProcessTimeout is the least time limit for a server in this process. Such a server lives as long as the process, loses
	// no request, and may be slow while other processes have the processors.
	inProcessTimeout = time.Minute
)

// AnswerWithin returns the time limit for an answer of the server: d if it runs in another process, at least
// inProcessTimeout if it runs in this one.
func AnswerWithin(nc *nats.Conn, d time.Duration) time.Duration {
	if nc.Opts.InProcessServer != nil {
		return max(d, inProcessTimeout)
	}
	return d
}

// AnswerWithin is the function AnswerWithin for the server of c.
func (c *Conn) AnswerWithin(d time.Duration) time.Duration { return AnswerWithin(c.NC, d) }
