package workers

import (
	"time"

	"github.com/basetensor/basetensor/internal/base/fair"
	"github.com/basetensor/basetensor/internal/jobs/hop"
	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/streams"
)

// intake is a feed of messages, with the handler and the bounds of their processing.
type intake struct {
	streams.Feed
	hop.Intake
	// messages per consumer that are held or asked for at a time
	prefetch int
	// messages that are processed at a time; Concurrency takes its place, except where it is 1
	parallel int
	// whether a message may take long and much memory; nil: none does
	heavy func(m *bus.Delivered) bool
	// how long a message is not to be begun yet; nil: every one may begin
	later func(m *bus.Delivered) time.Duration
	// messages of a lane that have to wait for some to be taken; 0: all are taken
	atLeast int
	// of the stream of the next stage; nil: it is not bounded by lanes
	room *bus.Room
}

// short is the prefetch of messages that take milliseconds at most. For longer ones it is smaller:
// a message that waits in this process is kept from another process that may be idle.
const short = 16

// slots returns the number of messages of an intake that are processed at a time, where concurrency
// is the configured number, 0 for none.
func (in *intake) slots(concurrency int) int {
	switch {
	case in.parallel == 1:
		return 1
	case concurrency > 0:
		return concurrency
	}
	return max(in.parallel, fair.Count())
}
