package pull

// What the server sent: messages kept for their turn, or handed back to workers that may be free.

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/basetensor/basetensor/internal/bus"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/nats-io/nats.go"
)

// take receives what a request was answered with.
func (p *puller) take(m *nats.Msg) error {
	if p.inbox == nil { // withdrawn, and yet on its way
		if d, err := p.bus.Deliver(m); err == nil && m.Reply != "" {
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
	// Other requests may be open: without counting them a busy lane would have more and more, and the server looks through all of a
	// consumer's requests for every message.
	if l.asked -= got.Left; got.Left < 0 || l.asked < 0 {
		l.asked = 0
	}
	p.looked++
	if errors.Is(got.Err, bus.ErrGone) {
		return fault.New(fault.Infrastructure, "pipeline: consume %s: %w", p.in.Name, got.Err)
	}
	if got.Err != nil && p.gone(l) {
		return fault.New(fault.Infrastructure, "pipeline: consume %s: %w: %s", p.in.Name, bus.ErrGone, l.consumer)
	}
	if got.Err != nil {
		l.again = time.Now().Add(pullRetry)
		p.in.Log.Warn("cannot fetch", "consumer", l.consumer, "error", got.Err)
	}
	return nil
}

// gone asks the server whether a consumer that does not answer exists.
func (p *puller) gone(l *lane) bool {
	ctx, cancel := context.WithTimeout(p.in.Hard, lookLost)
	defer cancel()
	_, err := p.bus.JS.Consumer(ctx, p.in.Stream, l.consumer)
	return bus.Missing(err)
}

// keep puts a message into its lane, behind those that were delivered as often: where workers die, every message in their hands has one
// delivery less, begun or not, and what has few left begins first.
func (p *puller) keep(d *bus.Delivered) {
	l := p.of[d.Consumer]
	if l == nil {
		d.Again(0)
		return
	}
	l.asked = max(0, l.asked-1)
	at := len(l.waiting)
	for at > 0 && l.waiting[at-1].Attempt < d.Attempt {
		at--
	}
	l.waiting = slices.Insert(l.waiting, at, d)
	p.passOn(l)
}

// passOn hands back the lane's heavy messages while none may begin: another worker may be free. The lane rests until then, so a message is
// handed back once by each worker. One that was handed back often waits here.
func (p *puller) passOn(l *lane) {
	if p.place(l) {
		return
	}
	kept := l.waiting[:0]
	for _, d := range l.waiting {
		if !p.isHeavy(d) {
			kept = append(kept, d)
			continue
		}
		l.rests = true
		if d.Attempt > handedBack+1 {
			kept = append(kept, d)
			continue
		}
		d.Again(0)
	}
	clear(l.waiting[len(kept):])
	l.waiting = kept
}

// release leaves to other workers what this one cannot begin soon.
func (p *puller) release() {
	if p.in.Patient {
		return
	}
	p.withdraw()
	p.handBack(handedBack)
	p.asking, p.looked = true, 0
}

// handBack hands back what waits here, but for messages delivered more often than most, if that is given.
func (p *puller) handBack(most int) {
	for _, l := range p.lanes {
		kept := l.waiting[:0]
		for _, d := range l.waiting {
			if most > 0 && d.Attempt > most {
				kept = append(kept, d)
				continue
			}
			d.Again(0)
		}
		clear(l.waiting[len(kept):])
		l.waiting = kept
	}
}

// drain hands back what came after the requests were withdrawn.
func (p *puller) drain() {
	for {
		select {
		case m := <-p.into:
			if m.Reply == "" {
				continue
			}
			if d, err := p.bus.Deliver(m); err == nil {
				d.Again(0)
			}
		default:
			return
		}
	}
}
