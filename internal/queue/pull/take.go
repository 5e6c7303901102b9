package pull

// Messages from the server: kept for their turn, or returned for workers that may be free.

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/nats-io/nats.go"
)

// take receives the answer to a request.
func (p *puller) take(m *nats.Msg) error {
	if p.inbox == nil { // on its way when the request was withdrawn
		if d, err := bus.Deliver(m); err == nil && m.Reply != "" {
			p.keep(d)
		}
		return nil
	}

	got := p.inbox.Read(m)
	switch {
	case got == nil:
		return nil
	case got.Message != nil:
		p.looked = 0
		p.keep(got.Message)
		return nil
	}

	l := p.of[got.Ended]
	if l == nil {
		return nil
	}

	// Other requests of the lane may be open. If they were not counted a busy lane would have more
	// and more of them, and the server looks through all requests of a consumer for every message.
	if l.asked -= got.Left; got.Left < 0 || l.asked < 0 {
		l.asked = 0
	}

	p.looked++
	if errors.Is(got.Err, bus.ErrGone) {
		return fault.New(fault.Infrastructure, "pipeline: consume %s: %w", p.in.Name, got.Err)
	}
	if got.Err != nil {
		p.check(l)
		l.troubled = time.Now()
		l.again = l.troubled.Add(pullRetry)
		p.conn.Trouble.Warn(p.in.Log, "cannot fetch", "consumer", l.consumer, "error", got.Err)
	}
	return nil
}

// check asks the server whether a consumer that does not answer has been deleted, one at a time:
// where it has no leader nobody answers, and the messages held here have to be worked on and kept
// alive meanwhile.
func (p *puller) check(l *lane) {
	if p.checking {
		return
	}
	p.checking = true
	go func() {
		ctx, cancel := context.WithTimeout(p.in.Hard, p.conn.AnswerWithin(lookLost))
		defer cancel()
		_, err := p.conn.JS.Consumer(ctx, p.in.Stream, l.consumer)
		if bus.Missing(err) {
			p.checked <- fault.New(fault.Infrastructure, "pipeline: consume %s: %w: %s", p.in.Name, bus.ErrGone, l.consumer)
			return
		}
		p.checked <- nil
	}()
}

// keep puts a message into its lane, behind those that were delivered as often or more often. Where
// workers die, every message they held has one delivery less left, begun or not, and those with few
// left begin first. Those with none left, which failed by trouble with the servers, begin last.
func (p *puller) keep(d *bus.Delivered) {
	l := p.of[d.Consumer]
	if l == nil {
		d.Again(0)
		return
	}

	l.asked = max(0, l.asked-1)
	if p.in.Later != nil {
		if pause := p.in.Later(d); pause > 0 {
			d.Again(pause)
			return
		}
	}
	rank := func(attempt int) int {
		if p.in.Tired > 0 && attempt > p.in.Tired {
			return 0
		}
		return attempt
	}
	at := len(l.waiting)
	for at > 0 && rank(l.waiting[at-1].Attempt) < rank(d.Attempt) {
		at--
	}
	p.hold(l, at, d)
	p.passOn(l)
}

// passOn returns the lane's heavy messages while none may begin: another worker may be free. Of
// those that were returned before one waits here, the first in the stream, and the rest is put
// aside: a message that comes back before an earlier one of the stream gives way to that.
func (p *puller) passOn(l *lane) {
	next, at := p.earliest(l), time.Now()
	l.filter(func(h held) bool {
		switch {
		case p.ready(h):
			return true
		case h.Attempt <= handedBack:
			h.Again(0)
			return false
		case h.Sequence == next:
			return true
		}
		h.Again(l.pause(at))
		return false
	})
}

// earliest is the sequence of the first message in the stream that has been returned and cannot begin.
func (p *puller) earliest(l *lane) uint64 {
	next := uint64(math.MaxUint64)
	for _, h := range l.waiting {
		if h.Attempt > handedBack && !p.ready(h) {
			next = min(next, h.Sequence)
		}
	}
	return next
}

// pause is for how long the next heavy message is put aside: they come back one after the other.
func (l *lane) pause(at time.Time) time.Duration {
	if l.aside.Before(at.Add(hoardFor)) {
		l.aside = at.Add(hoardFor)
	}
	l.aside = l.aside.Add(asideEach)
	return min(l.aside.Sub(at), asideMost)
}

// release leaves messages that cannot begin soon to other workers.
func (p *puller) release() {
	if p.in.Patient {
		return
	}
	if !p.asking {
		p.withdraw()
		p.asking = true
		p.looked = 0
	}
	p.handBack(handedBack)
}

// handBack returns the messages that wait here, except those delivered more often than most; 0: all
// of them.
func (p *puller) handBack(most int) {
	for _, l := range p.lanes {
		l.filter(func(h held) bool {
			if most > 0 && h.Attempt > most {
				return true
			}
			h.Again(0)
			return false
		})
	}
}

// drain returns the messages that came after the requests were withdrawn.
func (p *puller) drain() {
	for {
		select {
		case m := <-p.into:
			if m.Reply == "" {
				continue
			}
			if d, err := bus.Deliver(m); err == nil {
				d.Again(0)
			}
		default:
			return
		}
	}
}
