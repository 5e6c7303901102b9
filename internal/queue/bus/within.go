package bus

// Time limits of waits for the server.

import (
	"time"

	"github.com/nats-io/nats.go"
)

const (
	answerWithin = 5 * time.Second // of a request without a deadline

	// own is the least time limit for a server in this process. It lives as long as the process, loses
	// no request, and may be slow while other processes have the processors.
	own = time.Minute
)

// AnswerWithin returns the time limit for an answer: d for a server in another process, at least own
// for one in this process.
func AnswerWithin(nc *nats.Conn, d time.Duration) time.Duration {
	if nc.Opts.InProcessServer != nil {
		return max(d, own)
	}
	return d
}

// AnswerWithin is the function of that name, for the bus's connection.
func (c *Conn) AnswerWithin(d time.Duration) time.Duration { return AnswerWithin(c.NC, d) }
