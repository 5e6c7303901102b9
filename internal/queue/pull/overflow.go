package pull

// Intakes that take messages only while many wait. The consumers' own policy for that (overflow, min_pending) does not count messages that
// were delivered once: a worker that puts large ones aside for small ones has soon seen all of them, and none would wait.

import (
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// crowd is what is known of the messages of a lane to an intake with AtLeast.
type crowd struct {
	spare    int       // messages that the next request may take
	counting bool      // the server is being asked
	served   time.Time // when somebody else took messages, or none were there
	taken    uint64    // deliveries until then
	alone    bool      // nobody else does
}

// crowded reports whether messages of the lane may be requested, as of a count since the last request. The server is asked for one.
func (p *puller) crowded(l *lane, at time.Time) bool {
	if p.in.AtLeast == 0 || l.crowd.spare > 0 {
		return true
	}
	if l.crowd.counting || at.Before(l.again) {
		return false
	}
	l.crowd.counting = true
	go p.inquire(told{lane: l, count: true})
	return false
}

// count takes note of the messages of a lane. Those wait that were not delivered yet, or more than once: put aside, or left by a worker
// that died.
func (p *puller) count(l *lane, of jetstream.Consumer, err error) {
	at := time.Now()
	l.crowd.counting = false
	l.again = at.Add(overflowRetry)
	if err != nil {
		p.bus.Trouble.Warn(p.in.Log, "cannot count the waiting messages", "consumer", l.consumer, "error", err)
		return
	}

	is := of.CachedInfo()
	waiting, there := int(is.NumPending)+is.NumRedelivered, int(is.NumPending)+is.NumAckPending
	if l.crowd.served.IsZero() || there == 0 || is.NumWaiting > 0 || is.Delivered.Consumer != l.crowd.taken && !l.crowd.alone {
		l.crowd.served = at
	}
	l.crowd.taken = is.Delivered.Consumer
	l.crowd.alone = at.Sub(l.crowd.served) >= aloneAfter
	if l.crowd.spare = max(0, waiting-p.in.AtLeast+1); l.crowd.alone {
		l.crowd.spare = there
	}
	if l.crowd.spare > 0 {
		l.again = at
	}
}
