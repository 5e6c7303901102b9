package pull

// Which message of a puller begins next, and in which slots.

import (
	"slices"
	"time"

	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
)

// turns are the slots of a puller, and the turns of its lanes.
type turns struct {
	in    Intake
	lanes []*lane
	turn  int // position of the lane that is first

	slots int
	taken int       // messages begun and not finished
	heavy int       // heavy ones of these
	full  time.Time // since when all slots have been taken whenever one became free

	took time.Duration // of a message, on average
}

// free returns the number of free slots, with those beyond.
func (p *turns) free() int {
	if p.in.Patient {
		return p.slots - p.taken
	}
	return p.slots + beyond - p.taken
}

// may reports whether a message of the flow may begin: where all slots are taken only if none of it
// is being processed.
func (p *turns) may(f *flow) bool {
	return p.taken < p.slots || f.busy == 0 && p.free() > 0
}

// place reports whether a heavy message of the flow may begin if there is a slot: the only one, or
// one of a flow with no message in work.
func (p *turns) place(f *flow) bool {
	return p.heavy == 0 || p.heavy < mostHeavy && f.heavy == 0
}

// isHeavy reports whether a message may take long and much memory.
func (p *turns) isHeavy(d *bus.Delivered) bool {
	return p.in.Heavy != nil && p.in.Heavy(d)
}

// ready reports whether a message waits for nothing but a slot.
func (p *turns) ready(h held) bool { return !h.heavy || p.place(h.of) }

// next returns the first lane in turn with a message that may begin, and which one: the first of
// the tenants that have fewest in work. Nil where there is none.
func (p *turns) next() (*lane, int) {
	if p.free() <= 0 {
		return nil, 0
	}
	for i := range p.lanes {
		l, best := p.lanes[(p.turn+i)%len(p.lanes)], -1
		for k, h := range l.waiting {
			if (best < 0 || h.of.busy < l.waiting[best].of.busy) && p.ready(h) && p.may(h.of) {
				if best = k; h.of.busy == 0 {
					break
				}
			}
		}
		if best >= 0 {
			return l, best
		}
	}
	return nil, 0
}

// holding reports whether a message of any lane waits for nothing but a slot.
func (p *turns) holding() bool {
	return slices.ContainsFunc(p.lanes, func(l *lane) bool { return slices.ContainsFunc(l.waiting, p.ready) })
}

// pass gives the turn to the lane after l.
func (p *turns) pass(l *lane) {
	for i := range p.lanes {
		if p.lanes[i] == l {
			p.turn = (i + 1) % len(p.lanes)
		}
	}
}

// behind reports whether messages of the lane may be asked for beyond those that are held and
// cannot begin: there may be other tenants' messages behind them. barred is the number of held
// messages that cannot begin.
func (p *turns) behind(l *lane, at time.Time) (barred int, may bool) {
	heavy, full := 0, p.taken >= p.slots
	for _, h := range l.waiting {
		switch {
		case h.heavy && !p.place(h.of):
			heavy++
		case full && h.of.busy > 0:
			barred++
		}
	}
	if barred > 0 && (p.in.Patient || p.full.IsZero() || at.Sub(p.full) < crowdedFor) {
		return heavy, true
	}
	most := deepest
	if p.took > 0 {
		most = min(most, max(deep, p.slots*int(deepFor/p.took)))
	}
	return barred + heavy, barred < most
}

// hold puts a message into the lane at a place.
func (p *turns) hold(l *lane, at int, d *bus.Delivered) {
	h := held{Delivered: d, tenant: message.WorksFor(d.Subject, d.Header), heavy: p.isHeavy(d)}
	if h.of = l.flows[h.tenant]; h.of == nil {
		h.of = &flow{}
		l.flows[h.tenant] = h.of
	}
	h.of.waiting++
	l.waiting = slices.Insert(l.waiting, at, h)
}

// filter keeps the messages for which keep says so. The others have been returned.
func (l *lane) filter(keep func(held) bool) {
	kept := l.waiting[:0]
	for _, h := range l.waiting {
		if keep(h) {
			kept = append(kept, h)
			continue
		}
		h.of.waiting--
		l.forget(h)
	}
	clear(l.waiting[len(kept):])
	l.waiting = kept
}

// forget drops the flow of a message if it was its last.
func (l *lane) forget(h held) {
	if h.of.waiting == 0 && h.of.busy == 0 {
		delete(l.flows, h.tenant)
	}
}

// busy reports whether a message of the lane is being processed.
func (l *lane) busy() bool {
	for _, f := range l.flows {
		if f.busy > 0 {
			return true
		}
	}
	return false
}
