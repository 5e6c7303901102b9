package pull

// Which message of a puller begins next, and in which slots.

import (
	"slices"
	"time"

	"github.com/basetensor/basetensor/internal/bus"
)

// free returns the number of free slots, with the spare ones.
func (p *puller) free() int { return p.slots + p.spare - p.taken }

// may reports whether a message of the lane may begin: in a spare slot only if none of the lane is
// being processed.
func (p *puller) may(l *lane) bool {
	return p.taken < p.slots || p.spare > 0 && l.busy == 0 && p.free() > 0
}

// stuck adds a spare slot when nothing has begun or ended for stuckFor, and lets one more heavy
// message begin when those being processed take longer than heavyFor.
func (p *puller) stuck(at time.Time) {
	if p.in.Patient {
		return
	}
	if p.free() <= 0 && at.Sub(p.moved) > stuckFor && p.spare < len(p.lanes)-1 {
		p.spare++
		p.moved = at
		p.asking = true
		p.looked = 0
		p.in.Log.Debug("nothing moves: one more slot", "consumers", p.in.Name, "spare", p.spare)
	}

	if p.heavy > p.more && p.heavy < min(mostHeavy, len(p.lanes)) && at.Sub(p.lasts) > heavyFor {
		p.more = p.heavy
		p.rouse()
		p.in.Log.Debug(
			"heavy messages last: one more may begin", "consumers", p.in.Name, "in work", p.heavy,
		)
	}
}

// rouse ends the rest of the lanes of which a heavy message may begin.
func (p *puller) rouse() {
	for _, l := range p.lanes {
		l.rests = l.rests && !p.place(l)
	}
}

// place reports whether a heavy message of the lane may begin if there is a slot: the only one, or,
// where others take long, one of a lane of which none is being processed.
func (p *puller) place(l *lane) bool {
	return p.heavy == 0 || p.heavy <= p.more && l.heavy == 0
}

// isHeavy reports whether a message may take long and much memory.
func (p *puller) isHeavy(d *bus.Delivered) bool {
	return p.in.Heavy != nil && p.in.Heavy(d)
}

// ready reports whether a message of the lane waits for nothing but a slot.
func (p *puller) ready(l *lane) bool {
	return len(l.waiting) > 0 && (p.place(l) || !p.isHeavy(l.waiting[0]))
}

// next returns the first lane in turn with a message that may begin, or nil.
func (p *puller) next() *lane {
	for i := range p.lanes {
		if l := p.lanes[(p.turn+i)%len(p.lanes)]; p.ready(l) && p.may(l) {
			return l
		}
	}
	return nil
}

// holding reports whether a message of any lane waits for nothing but a slot.
func (p *puller) holding() bool { return slices.ContainsFunc(p.lanes, p.ready) }

// pass gives the turn to the lane after l.
func (p *puller) pass(l *lane) {
	for i := range p.lanes {
		if p.lanes[i] == l {
			p.turn = (i + 1) % len(p.lanes)
		}
	}
}
