// Package fair shares the processors of a process among the work on several messages: short work
// runs at once, and work that has become long runs in turns, tenant by tenant.
//
// The length of work is not known beforehand. Work begins as short; where it looks at its context
// after a while, and others are there, it gives way: while short work is there one processor is
// left to that, and long work of a tenant that has had more waits for long work of one that has had
// less. Work that has not looked for a while waits for something itself, perhaps for work that has
// given way, and has no processor. Values never depend on it: computing pauses, and goes on.
package fair

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/basetensor/basetensor/internal/base/pace"
)

const (
	// shortFor is how long work counts as short.
	shortFor = 5 * time.Millisecond

	// slice is for how long work goes on before others have their turn.
	slice = 10 * time.Millisecond

	// awayAfter is the time without a look after which work counts as having no processor.
	awayAfter = 2 * slice

	// longest is the most that work waits for its turn: it may hold resources that others need.
	longest = time.Second
)

// Processors are the processors of one process. A nil one shares nothing: all work runs at once.
type Processors struct {
	count int // of processors
	now   func() time.Time

	// pressing reports whether some work might want other work to give way: short work in progress or
	// long work that waits.
	pressing atomic.Bool

	mu      sync.Mutex
	pressed time.Time          // since when that has been so
	works   map[*work]struct{} // in progress
	waiting []*work            // long ones without a turn, the first one longest
	tenants map[string]*tenant // those with long work
}

// tenant is somebody with long work.
type tenant struct {
	works int           // long ones
	had   time.Duration // of processors; a new tenant begins with the least of the others
}

// work is the work on one message. Several goroutines may do it.
type work struct {
	of    *Processors
	name  string // of the tenant
	done  <-chan struct{}
	began time.Time

	// The rest is guarded by the lock of the processors, but for reading long.
	long   atomic.Bool
	seen   time.Time     // when it looked last, while anybody was pressing
	turn   time.Time     // when its turn began
	paused chan struct{} // is closed when its next turn begins; nil: it has its turn
	over   bool
}

// New returns the processors of this process.
func New() *Processors {
	return &Processors{
		count:   Count(),
		now:     time.Now,
		works:   map[*work]struct{}{},
		tenants: map[string]*tenant{},
	}
}

// Enter begins work for a tenant. The context it returns makes the computation that looks at it give
// way; end is to be called at its end.
func (p *Processors) Enter(ctx context.Context, tenant string) (_ context.Context, end func()) {
	if p == nil {
		return ctx, func() {}
	}
	at := p.now()
	w := &work{of: p, name: tenant, done: ctx.Done(), began: at, seen: at}
	p.mu.Lock()
	p.works[w] = struct{}{}
	p.press(at)
	p.mu.Unlock()
	return pace.Giving(ctx, w.give), w.end
}

// press notes whether some work may want other work to give way. The caller holds the lock, as for
// all methods that follow but give, wait and end.
func (p *Processors) press(at time.Time) {
	pressing := len(p.waiting) > 0
	for w := range p.works {
		pressing = pressing || !w.long.Load()
	}
	if pressing && !p.pressing.Load() {
		p.pressed = at
	}
	p.pressing.Store(pressing)
}

// shares returns the amount of long work that has a processor, and the amount that may: one is left
// to short work.
func (p *Processors) shares(at time.Time) (running, room int) {
	room = p.count
	for w := range p.works {
		switch {
		case w.paused != nil, w.away(at):
		case w.long.Load():
			running++
		default:
			room = max(1, p.count-1)
		}
	}
	return running, room
}

// away reports whether work has not looked for so long that it waits for something.
func (w *work) away(at time.Time) bool {
	return at.Sub(w.seen) > awayAfter && at.Sub(w.of.pressed) > awayAfter
}

// give is called by work now and then, from any of its goroutines. It returns when the work may go
// on.
func (w *work) give() {
	p := w.of
	if !p.pressing.Load() {
		return
	}
	at := p.now()
	if !w.long.Load() && at.Sub(w.began) < shortFor {
		return
	}

	p.mu.Lock()
	if w.over {
		p.mu.Unlock()
		return
	}
	w.seen = at
	p.lengthen(w, at)
	running, room := p.shares(at)
	if w.paused == nil && (running > room || len(p.waiting) > 0 && at.Sub(w.turn) > slice) {
		p.pause(w, at)
		p.begin(at)
	}
	paused, short := w.paused, room < p.count
	p.mu.Unlock()

	if paused != nil {
		w.wait(paused)
	} else if short {
		runtime.Gosched()
	}
}

// wait returns with the work's next turn, when its context ends, or after the longest wait.
func (w *work) wait(paused <-chan struct{}) {
	p := w.of
	look := time.NewTicker(awayAfter)
	defer look.Stop()
	since, done := p.now(), false
	for !done {
		select {
		case <-paused:
			return
		case <-w.done:
			done = true
		case <-look.C: // the holders of the processors may wait for something
		}
		p.mu.Lock()
		at := p.now()
		p.begin(at)
		if (done || at.Sub(since) > longest) && w.paused != nil && !w.over {
			p.resume(w, at)
		}
		p.mu.Unlock()
	}
}

// lengthen makes short work long.
func (p *Processors) lengthen(w *work, at time.Time) {
	if w.long.Load() {
		return
	}
	w.long.Store(true)
	w.turn = at
	t := p.tenants[w.name]
	if t == nil {
		t = &tenant{had: p.least()}
		p.tenants[w.name] = t
	}
	t.works++
	p.press(at)
}

// least is the smallest time that a tenant with long work has had.
func (p *Processors) least() time.Duration {
	least, any := time.Duration(0), false
	for _, t := range p.tenants {
		if !any || t.had < least {
			least, any = t.had, true
		}
	}
	return least
}

// pause ends the turn of long work.
func (p *Processors) pause(w *work, at time.Time) {
	p.tenants[w.name].had += at.Sub(w.turn)
	w.paused = make(chan struct{})
	p.waiting = append(p.waiting, w)
	p.press(at)
}

// resume begins the turn of work that waits.
func (p *Processors) resume(w *work, at time.Time) {
	p.drop(w, at)
	w.turn = at
	w.seen = at
	close(w.paused)
	w.paused = nil
}

// drop takes work from those that wait.
func (p *Processors) drop(w *work, at time.Time) {
	for i := range p.waiting {
		if p.waiting[i] == w {
			p.waiting = append(p.waiting[:i], p.waiting[i+1:]...)
			break
		}
	}
	p.press(at)
}

// begin gives turns to those that wait while there is room: of the tenant that had least the one
// that waits longest.
func (p *Processors) begin(at time.Time) {
	for len(p.waiting) > 0 {
		if running, room := p.shares(at); running >= room {
			return
		}
		next := p.waiting[0]
		for _, w := range p.waiting[1:] {
			if p.tenants[w.name].had < p.tenants[next.name].had {
				next = w
			}
		}
		p.resume(next, at)
	}
}

// end is the end of work, in any state.
func (w *work) end() {
	p := w.of
	p.mu.Lock()
	defer p.mu.Unlock()
	if w.over {
		return
	}
	w.over = true
	delete(p.works, w)
	at := p.now()
	if w.long.Load() {
		if w.paused != nil {
			p.drop(w, at)
			close(w.paused)
		} else {
			p.tenants[w.name].had += at.Sub(w.turn)
		}
		p.leave(w)
	}
	p.press(at)
	p.begin(at)
}

// leave forgets a tenant with its last long work.
func (p *Processors) leave(w *work) {
	t := p.tenants[w.name]
	if t.works--; t.works == 0 {
		delete(p.tenants, w.name)
	}
}
