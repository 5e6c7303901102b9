package pipeline

// Which message of a puller begins next, and in which slots.

import (
	"time"

	"github.com/basetensor/basetensor/pkg/internal/bus"
)

// free is how many slots are, with the spare ones.
func (p *puller) free() int { return p.slots + p.spare - p.taken }

// may reports whether a message of the lane may begin: in a spare slot only if the lane has none in work.
func (p *puller) may(l *lane) bool {
	return p.taken < p.slots || p.spare > 0 && l.busy == 0 && p.free() > 0
}

// stuck adds a spare slot when nothing has begun or ended for a while, or when a message that takes several slots lasts: others of its kind
// would wait for it, although small ones pass.
func (p *puller) stuck(at time.Time) {
	still := p.free() <= 0 && at.Sub(p.moved) > stuckFor
	lasts := p.heavy > 0 && p.spare == 0 && at.Sub(p.dear) > dearFor
	if !still && !lasts || p.spare >= len(p.lanes)-1 || p.in.patient {
		return
	}
	p.spare++
	p.moved = at
	for _, l := range p.lanes {
		l.rests = l.rests && l.busy > 0
	}
	p.asking, p.looked = true, 0
	p.w.log.Debug("nothing moves: one more slot", "consumers", p.in.name, "spare", p.spare)
}

// next is the first lane in turn with a message that waits and may begin, or nil. Lanes are passed over whose message takes several
// slots while another such message is worked on.
func (p *puller) next() *lane {
	for i := range p.lanes {
		l := p.lanes[(p.turn+i)%len(p.lanes)]
		if len(l.waiting) > 0 && p.may(l) && (p.heavy == 0 || p.weight(l, l.waiting[0]) == 1) {
			return l
		}
	}
	return nil
}

// holding reports whether a message waits here that waits for a slot, and not for the end of one of its kind.
func (p *puller) holding() bool {
	for _, l := range p.lanes {
		if len(l.waiting) > 0 && (p.heavy == 0 || p.weight(l, l.waiting[0]) == 1) {
			return true
		}
	}
	return false
}

// pass gives the turn to the lane after l.
func (p *puller) pass(l *lane) {
	for i := range p.lanes {
		if p.lanes[i] == l {
			p.turn = (i + 1) % len(p.lanes)
		}
	}
}

// weight is how many slots a message takes: one in a spare slot, which is for lanes that have nothing in work.
func (p *puller) weight(l *lane, d *bus.Delivered) int {
	if p.in.weigh == nil || p.w.Concurrency > 0 || p.spare > 0 && l.busy == 0 {
		return 1
	}
	return min(p.in.weigh(d, p.slots), p.slots)
}
