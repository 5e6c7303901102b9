package workers

import (
	"sync/atomic"

	"github.com/basetensor/basetensor/internal/base/fair"
	"github.com/basetensor/basetensor/internal/jobs/hop"
	"github.com/basetensor/basetensor/internal/queue/pull"
	"github.com/basetensor/basetensor/internal/queue/streams"
)

// intake is a feed of messages, with the handler and the bounds of their processing.
type intake struct {
	streams.Feed
	hop.Intake
	// pull has Prefetch, Heavy, Later, AtLeast and Room. Its Slots are at least the processors; Concurrency takes their place, except where
	// they are 1.
	pull pull.Intake

	obstacle atomic.Pointer[error] // why it has not begun; nil: it has, or nothing is known
}

// short is the prefetch of messages that take milliseconds at most. For longer ones it is smaller:
// a message that waits in this process is kept from another process that may be idle.
const short = 16

// slots returns the number of messages of an intake that are processed at a time, where concurrency
// is the configured number, 0 for none.
func (in *intake) slots(concurrency int) int {
	switch {
	case in.pull.Slots == 1:
		return 1
	case concurrency > 0:
		return concurrency
	}
	return max(in.pull.Slots, fair.Count())
}
