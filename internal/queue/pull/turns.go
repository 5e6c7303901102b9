package pull

// Which message of a puller begins next, and whether it may take an extra slot.

import (
	"slices"
	"time"

	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
)

// turns has the slots of a puller, and decides in which sequence the messages of its lanes take them.
type turns struct {
	intake    Intake
	lanes     []*lane
	firstLane int // position in lanes of the lane whose turn it is

	slots       int
	inWork      int       // messages begun and not finished
	heavyInWork int       // heavy ones among those in work
	fullSince   time.Time // since when all slots have been taken whenever one became free

	averageTime time.Duration // average duration of a message
}

// freeSlots returns the number of free slots. Extra slots count unless the intake holds its messages.
func (p *turns) freeSlots() int {
	if p.intake.HoldsMessages {
		return p.slots - p.inWork
	}
	return p.slots + extraSlots - p.inWork
}

// mayBegin reports whether a slot is free for a message of a tenant with this load. An extra slot is only for a tenant
// that has no message in work.
func (p *turns) mayBegin(load *tenantLoad) bool {
	return p.inWork < p.slots || load.inWork == 0 && p.freeSlots() > 0
}

// mayBeginHeavy reports whether a heavy message of a tenant with this load may begin if there is a slot: no other heavy
// message is in work, or fewer than maxHeavy and none of this tenant and lane.
func (p *turns) mayBeginHeavy(load *tenantLoad) bool {
	return p.heavyInWork == 0 || p.heavyInWork < maxHeavy && load.heavyInWork == 0
}

// isHeavy reports whether a message may take long and much memory.
func (p *turns) isHeavy(d *bus.Delivered) bool {
	return p.intake.IsHeavy != nil && p.intake.IsHeavy(d)
}

// needsOnlySlot reports whether a message waits for nothing but a slot.
func (p *turns) needsOnlySlot(h held) bool { return !h.isHeavy || p.mayBeginHeavy(h.load) }

// nextMessage returns the message that begins next, as its lane and its position in lane.waiting. Lanes, the consumers
// among which tenants are spread, are looked at in turn; the first one with a message that may begin has the next message.
// The lane is nil if no message may begin.
func (p *turns) nextMessage() (*lane, int) {
	if p.freeSlots() <= 0 {
		return nil, 0
	}
	for i := range p.lanes {
		l := p.lanes[(p.firstLane+i)%len(p.lanes)]
		if position := p.nextOfLane(l); position >= 0 {
			return l, position
		}
	}
	return nil, 0
}

// nextOfLane returns the position of the lane's waiting message that begins next: of those that may begin, the first one
// of a tenant with fewest messages in work. It is −1 if none may begin.
func (p *turns) nextOfLane(l *lane) int {
	best := -1
	for k, h := range l.waiting {
		hasFewer := best < 0 || h.load.inWork < l.waiting[best].load.inWork
		if !hasFewer || !p.needsOnlySlot(h) || !p.mayBegin(h.load) {
			continue
		}
		if best = k; h.load.inWork == 0 { // no tenant has fewer
			break
		}
	}
	return best
}

// hasReady reports whether a message of any lane waits for nothing but a slot.
func (p *turns) hasReady() bool {
	return slices.ContainsFunc(p.lanes, func(l *lane) bool { return slices.ContainsFunc(l.waiting, p.needsOnlySlot) })
}

// passTurn gives the turn to the lane after l.
func (p *turns) passTurn(l *lane) {
	for i := range p.lanes {
		if p.lanes[i] == l {
			p.firstLane = (i + 1) % len(p.lanes)
		}
	}
}

// mayAskBehind reports whether more messages of the lane may be requested although some wait here that cannot begin.
// Behind those in the stream there may be messages of other tenants that can. blocked is the number of messages that wait
// here and count as unable to begin. These are heavy ones and, once all slots have been taken for crowdedFor, also those of
// tenants with a message in work.
func (p *turns) mayAskBehind(l *lane, now time.Time) (blocked int, mayAsk bool) {
	isFull := p.inWork >= p.slots
	heavyBlocked, tenantBlocked := 0, 0
	for _, h := range l.waiting {
		switch {
		case h.isHeavy && !p.mayBeginHeavy(h.load):
			heavyBlocked++
		case isFull && h.load.inWork > 0: // an extra slot is only for a tenant without a message in work
			tenantBlocked++
		}
	}
	isCrowded := !p.fullSince.IsZero() && now.Sub(p.fullSince) >= crowdedFor
	if tenantBlocked > 0 && (p.intake.HoldsMessages || !isCrowded) {
		return heavyBlocked, true // messages of busy tenants begin soon, or there are no extra slots
	}

	// Hold about as many messages of busy tenants as the slots can begin within heldBlockedFor.
	limit := maxHeldBlocked
	if p.averageTime > 0 {
		limit = min(limit, max(minHeldBlocked, p.slots*int(heldBlockedFor/p.averageTime)))
	}
	return tenantBlocked + heavyBlocked, tenantBlocked < limit
}

// insert puts a message into the lane's waiting messages at a position, and counts it for its tenant.
func (p *turns) insert(l *lane, position int, d *bus.Delivered) {
	h := held{Delivered: d, tenant: message.WorksFor(d.Subject, d.Header), isHeavy: p.isHeavy(d)}
	if h.load = l.loads[h.tenant]; h.load == nil {
		h.load = &tenantLoad{}
		l.loads[h.tenant] = h.load
	}
	h.load.waiting++
	l.waiting = slices.Insert(l.waiting, position, h)
}

// keepWaiting calls keep with each waiting message of the lane, and drops those for which keep returns false, because
// keep has returned them to the server.
func (l *lane) keepWaiting(keep func(held) bool) {
	remaining := l.waiting[:0]
	for _, h := range l.waiting {
		if keep(h) {
			remaining = append(remaining, h)
			continue
		}
		h.load.waiting--
		l.forgetTenant(h)
	}
	clear(l.waiting[len(remaining):]) // so that the dropped messages are not kept in memory
	l.waiting = remaining
}

// forgetTenant deletes the load of a message's tenant if it has no messages here any more.
func (l *lane) forgetTenant(h held) {
	if h.load.waiting == 0 && h.load.inWork == 0 {
		delete(l.loads, h.tenant)
	}
}

// hasInWork reports whether a message of the lane is being processed.
func (l *lane) hasInWork() bool {
	for _, load := range l.loads {
		if load.inWork > 0 {
			return true
		}
	}
	return false
}
