package pull

// Messages from the server, which wait here for their turn, or are returned for workers that may be free.

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/nats-io/nats.go"
)

// receive handles an answer to a pull request: it puts a message into its lane, or notes that a request has ended. The
// error wraps bus.ErrGone if the consumer does not exist any more.
func (p *puller) receive(m *nats.Msg) error {
	if p.inbox == nil { // the answer was on its way when the request was withdrawn
		isMessage := m.Reply != "" // the end of a request has no reply subject
		if d, err := bus.NewDelivered(m); err == nil && isMessage {
			p.enqueue(d)
		}
		return nil
	}

	reply := p.inbox.Parse(m)
	switch {
	case reply == nil:
		return nil
	case reply.Message != nil:
		p.emptyInRow = 0
		p.enqueue(reply.Message)
		return nil
	}

	// A request has ended.
	l := p.laneOf[reply.Consumer]
	if l == nil {
		return nil
	}

	// Other requests of the lane may be open, so subtract only the messages that this request did not get. If open requests
	// were not counted, a busy lane would have more and more of them, and the server looks through all requests of a
	// consumer for every message. If the number is unknown (below 0), no request counts as open.
	if l.requested -= reply.Missing; reply.Missing < 0 || l.requested < 0 {
		l.requested = 0
	}

	p.emptyInRow++
	if errors.Is(reply.Err, bus.ErrGone) {
		return fault.New(fault.Infrastructure, "pipeline: consume %s: %w", p.intake.Name, reply.Err)
	}
	if reply.Err != nil {
		p.checkConsumer(l) // asks in the background whether it still exists
		l.troubledAt = time.Now()
		l.noRequestBefore = l.troubledAt.Add(pullRetry)
		p.conn.Trouble.Warn(p.intake.Log, "cannot fetch", "consumer", l.consumer, "error", reply.Err)
	}
	return nil
}

// checkConsumer asks the server in the background whether a consumer that does not answer has been deleted. The result
// comes in p.checked. At most one consumer is checked at a time. Meanwhile the messages held here have to be worked on
// and kept alive: if the consumer has no leader, nobody answers for a while.
func (p *puller) checkConsumer(l *lane) {
	if p.isChecking {
		return
	}
	p.isChecking = true
	go func() {
		ctx, cancel := context.WithTimeout(p.intake.RequestCtx, p.conn.AnswerWithin(noWaitLost))
		defer cancel()
		_, err := p.conn.JS.Consumer(ctx, p.intake.Stream, l.consumer)
		if bus.IsMissing(err) {
			p.checked <- fault.New(fault.Infrastructure, "pipeline: consume %s: %w: %s", p.intake.Name, bus.ErrGone, l.consumer)
			return
		}
		p.checked <- nil
	}()
}

// enqueue puts a message into its lane (the messages of one consumer, which serves some of the tenants). Messages with many
// deliveries, which have few left, begin first; among equals the earlier one begins first. (If workers die, every message
// that they held has one delivery less left.) Messages with more than MaxPriorityAttempt deliveries begin last: they failed
// by trouble with the servers.
func (p *puller) enqueue(d *bus.Delivered) {
	l := p.laneOf[d.Consumer]
	if l == nil { // of a consumer that is not asked here
		d.Redeliver(0) // at once
		return
	}

	l.requested = max(0, l.requested-1) // one of the requested messages has come
	if p.intake.StartDelay != nil {
		if pause := p.intake.StartDelay(d); pause > 0 {
			d.Redeliver(pause)
			return
		}
	}

	// Find its position by its number of deliveries.
	rank := func(attempt int) int {
		if p.intake.MaxPriorityAttempt > 0 && attempt > p.intake.MaxPriorityAttempt {
			return 0
		}
		return attempt
	}
	position := len(l.waiting)
	for position > 0 && rank(l.waiting[position-1].Attempt) < rank(d.Attempt) {
		position--
	}
	p.insert(l, position, d)
	p.returnHeavy(l)
}

// returnHeavy returns to the server those of the lane's heavy messages (which may take long and much memory) that cannot
// begin, because another worker may be free. A message that was returned maxReturns times is treated differently: the first
// such message in the stream stays here, and the others are returned with a pause, so that later messages come back after
// earlier ones.
func (p *puller) returnHeavy(l *lane) {
	firstReturned, now := p.earliestReturned(l), time.Now()
	l.keepWaiting(func(h held) bool {
		switch {
		case p.needsOnlySlot(h): // it can begin once a slot is free
			return true
		case h.Attempt <= maxReturns: // another worker may have it at once
			h.Redeliver(0)
			return false
		case h.Sequence == firstReturned:
			return true
		}
		h.Redeliver(l.nextPause(now))
		return false
	})
}

// earliestReturned returns the lowest sequence of those messages in the lane that cannot begin now and were returned to the
// server maxReturns times before. It returns the largest uint64 if there are none.
func (p *puller) earliestReturned(l *lane) uint64 {
	earliest := uint64(math.MaxUint64)
	for _, h := range l.waiting {
		if h.Attempt > maxReturns && !p.needsOnlySlot(h) {
			earliest = min(earliest, h.Sequence)
		}
	}
	return earliest
}

// nextPause returns the pause for the next heavy message that is put aside. Each comes back asideEach after the one
// before, and not before hoardFor from now.
func (l *lane) nextPause(now time.Time) time.Duration {
	if l.asideUntil.Before(now.Add(hoardFor)) {
		l.asideUntil = now.Add(hoardFor)
	}
	l.asideUntil = l.asideUntil.Add(asideEach)
	return min(l.asideUntil.Sub(now), maxAside)
}

// leaveToOthers returns to the server the messages that wait here, because they cannot begin soon, and begins to ask the
// lanes in turn. Messages that were returned maxReturns times stay. An intake with HoldsMessages keeps all its messages.
func (p *puller) leaveToOthers() {
	if p.intake.HoldsMessages {
		return
	}
	if !p.asksInTurn {
		p.withdrawRequests()
		p.asksInTurn = true
		p.emptyInRow = 0
	}
	p.returnWaiting(maxReturns)
}

// returnWaiting returns the messages that wait here to the server, except those with more than maxAttempts deliveries.
// 0 means all.
func (p *puller) returnWaiting(maxAttempts int) {
	for _, l := range p.lanes {
		l.keepWaiting(func(h held) bool {
			if maxAttempts > 0 && h.Attempt > maxAttempts {
				return true
			}
			h.Redeliver(0) // at once, to any worker
			return false
		})
	}
}

// returnLate returns the messages that came after the requests were withdrawn.
func (p *puller) returnLate() {
	for {
		select {
		case m := <-p.replies:
			if m.Reply == "" {
				continue // the end of a request
			}
			if d, err := bus.NewDelivered(m); err == nil {
				d.Redeliver(0) // at once, to another worker
			}
		default:
			return
		}
	}
}
