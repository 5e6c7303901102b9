package bus

// How long an answer of the server is waited for.

import (
	"time"

	"github.com/nats-io/nats.go"
)

const (
	answerWithin = 5 * time.Second // of a request whose context has no end

	// own is for how long a server in this process is waited for. It is there as long as whoever asks,
	// loses no request, and may be slow where other processes have the processors.
	own = time.Minute
)

// AnswerWithin returns for how long an answer is waited for that comes within d at most where the
// server is another process.
func AnswerWithin(nc *nats.Conn, d time.Duration) time.Duration {
	if nc.Opts.InProcessServer != nil {
		return max(d, own)
	}
	return d
}

// AnswerWithin is the function of that name, of the bus's connection.
func (b *Bus) AnswerWithin(d time.Duration) time.Duration { return AnswerWithin(b.NC, d) }
