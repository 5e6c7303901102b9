package pipeline

// Which message of a puller begins next, and in which slots.

import (
	"slices"
	"time"

	"github.com/basetensor/basetensor/internal/bus"
)

// free is how many slots are, with the spare ones.
func (p *puller) free() int { return p.slots + p.spare - p.taken }

// may reports whether a message of the lane may begin: in a spare slot only if the lane has none in work.
func (p *puller) may(l *lane) bool {
	return p.taken < p.slots || p.spare > 0 && l.busy == 0 && p.free() > 0
}

// stuck adds a spare slot when nothing has begun or ended for a while, and lets one more dear message begin when those in work last.
func (p *puller) stuck(at time.Time) {
	if p.in.patient {
		return
	}
	if p.free() <= 0 && at.Sub(p.moved) > stuckFor && p.spare < len(p.lanes)-1 {
		p.spare++
		p.moved = at
		p.asking, p.looked = true, 0
		p.w.log.Debug("nothing moves: one more slot", "consumers", p.in.name, "spare", p.spare)
	}
	if p.dear > p.more && p.dear < min(mostDear, len(p.lanes)) && at.Sub(p.lasts) > dearFor {
		p.more = p.dear
		p.rouse()
		p.w.log.Debug("dear messages last: one more may begin", "consumers", p.in.name, "in work", p.dear)
	}
}

// rouse ends the rest of the lanes of which a dear message may begin.
func (p *puller) rouse() {
	for _, l := range p.lanes {
		l.rests = l.rests && !p.place(l)
	}
}

// place reports whether a dear message of the lane may begin if there is a slot: where others last, one of a lane that has none in work.
func (p *puller) place(l *lane) bool {
	return p.dear == 0 || p.dear <= p.more && l.dear == 0
}

// isDear reports whether a message is. With a number of messages at a time that was asked for none is.
func (p *puller) isDear(d *bus.Delivered) bool {
	return p.in.dear != nil && p.w.Concurrency == 0 && p.in.dear(d)
}

// ready reports whether a message waits in the lane that needs a slot and nothing else.
func (p *puller) ready(l *lane) bool {
	return len(l.waiting) > 0 && (p.place(l) || !p.isDear(l.waiting[0]))
}

// next is the first lane in turn with a message that may begin, or nil.
func (p *puller) next() *lane {
	for i := range p.lanes {
		if l := p.lanes[(p.turn+i)%len(p.lanes)]; p.ready(l) && p.may(l) {
			return l
		}
	}
	return nil
}

// holding reports whether a message waits here that needs a slot and nothing else.
func (p *puller) holding() bool { return slices.ContainsFunc(p.lanes, p.ready) }

// pass gives the turn to the lane after l.
func (p *puller) pass(l *lane) {
	for i := range p.lanes {
		if p.lanes[i] == l {
			p.turn = (i + 1) % len(p.lanes)
		}
	}
}
