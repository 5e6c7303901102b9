package workers

import (
	"runtime"

	"github.com/basetensor/basetensor/internal/bus"
	"github.com/basetensor/basetensor/internal/hop"
	"github.com/basetensor/basetensor/internal/streams"
)

// intake is a feed with what becomes of its messages.
type intake struct {
	streams.Feed
	hop.Intake
	prefetch int                         // messages of a lane, in hand or asked for, while they are quick
	parallel int                         // messages worked on at a time, unless configured; 1: always
	heavy    func(m *bus.Delivered) bool // whether a message may take long and much memory; nil: none does
	room     *bus.Room                   // before the next stage; nil: not bounded by lanes
}

// short is the prefetch where a message never takes longer than milliseconds. Where one may take longer it is less: what waits
// in this process keeps it from another one that may be free.
const short = 16

// slots returns how many messages of an intake are worked on at a time, where concurrency is what was asked for.
func (in *intake) slots(concurrency int) int {
	switch {
	case in.parallel == 1:
		return 1
	case concurrency > 0:
		return concurrency
	}
	return max(in.parallel, runtime.GOMAXPROCS(0))
}
