// Package fair shares the processors of a process among the work on several messages: what is short
// runs at once, what has become long runs in turns, tenant by tenant.
//
// Nobody is told beforehand what is long. Work begins as short; where it looks at its context after
// a while, and others are there, it gives way: while short work is there one processor is left to
// that, and long work of a tenant that has had more waits for that of one that has had less. Values
// never depend on it: computing pauses, and goes on.
package fair

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/basetensor/basetensor/internal/pace"
)

const (
	// shortFor is how long work counts as short.
	shortFor = 5 * time.Millisecond

	// slice is for how long work goes on before others have their turn.
	slice = 10 * time.Millisecond

	// longest is the most that work waits for its turn: it may hold what others need.
	longest = time.Second
)

// Processors are those of one process. A nil one shares nothing: all work runs at once.
type Processors struct {
	count int // of processors
	now   func() time.Time

	// pressing is above 0 while anybody is there who might want somebody to give way: short work in
	// progress and long work that waits.
	pressing atomic.Int64

	mu      sync.Mutex
	short   int // short work in progress
	running int // long work that has its turn
	waiting []*work
	tenants map[string]*tenant // those with long work
}

// tenant is somebody with long work.
type tenant struct {
	works int           // long ones
	had   time.Duration // of processors, beginning with what the one had that had least
}

// work is what is done for one message. Several goroutines may do it.
type work struct {
	of    *Processors
	name  string // of the tenant
	done  <-chan struct{}
	began time.Time

	// The rest is guarded by the lock of the processors, but for reading long.
	long   atomic.Bool
	turn   time.Time     // when its turn began
	paused chan struct{} // is closed when its next turn begins; nil: it has its turn
	over   bool
}

// New returns the processors of this process.
func New() *Processors {
	return &Processors{
		count:   Count(),
		now:     time.Now,
		tenants: map[string]*tenant{},
	}
}

// Enter begins work for a tenant. The context it returns makes the computation that looks at it give
// way; end is to be called at its end.
func (p *Processors) Enter(ctx context.Context, tenant string) (_ context.Context, end func()) {
	if p == nil {
		return ctx, func() {}
	}
	w := &work{of: p, name: tenant, done: ctx.Done(), began: p.now()}
	p.mu.Lock()
	p.short++
	p.press()
	p.mu.Unlock()
	return pace.Giving(ctx, w.give), w.end
}

// press says whether anybody may want others to give way. The caller holds the lock, as those of all
// methods that follow but give and end.
func (p *Processors) press() { p.pressing.Store(int64(p.short + len(p.waiting))) }

// room is how much long work may have its turn at a time: one processor is left to short work.
func (p *Processors) room() int {
	if p.short > 0 {
		return max(1, p.count-1)
	}
	return p.count
}

// give is called by work now and then, from any of its goroutines. It returns when the work may go
// on.
func (w *work) give() {
	p := w.of
	if p.pressing.Load() == 0 {
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
	p.lengthen(w, at)
	if w.paused == nil && (p.running > p.room() || len(p.waiting) > 0 && at.Sub(w.turn) > slice) {
		p.pause(w, at)
		p.begin(at)
	}
	paused, short := w.paused, p.short > 0
	p.mu.Unlock()

	if paused != nil {
		w.wait(paused)
	} else if short {
		runtime.Gosched()
	}
}

// wait returns with the work's next turn, when its context ends, or after the longest wait.
func (w *work) wait(paused <-chan struct{}) {
	timer := time.NewTimer(longest)
	defer timer.Stop()
	select {
	case <-paused:
		return
	case <-w.done:
	case <-timer.C:
	}
	w.of.mu.Lock()
	defer w.of.mu.Unlock()
	if w.paused != nil && !w.over {
		w.of.resume(w, w.of.now())
	}
}

// lengthen makes short work long.
func (p *Processors) lengthen(w *work, at time.Time) {
	if w.long.Load() {
		return
	}
	w.long.Store(true)
	p.short--
	p.running++
	w.turn = at
	t := p.tenants[w.name]
	if t == nil {
		t = &tenant{had: p.least()}
		p.tenants[w.name] = t
	}
	t.works++
	p.press()
}

// least is what the tenant with long work had that had least.
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
	p.running--
	w.paused = make(chan struct{})
	p.waiting = append(p.waiting, w)
	p.press()
}

// resume begins the turn of work that waits.
func (p *Processors) resume(w *work, at time.Time) {
	p.drop(w)
	w.turn = at
	close(w.paused)
	w.paused = nil
	p.running++
}

// drop takes work from those that wait.
func (p *Processors) drop(w *work) {
	for i := range p.waiting {
		if p.waiting[i] == w {
			p.waiting = append(p.waiting[:i], p.waiting[i+1:]...)
			break
		}
	}
	p.press()
}

// begin gives turns to those that wait while there is room: of the tenant that had least the one
// that waits longest.
func (p *Processors) begin(at time.Time) {
	for len(p.waiting) > 0 && p.running < p.room() {
		next := p.waiting[0]
		for _, w := range p.waiting[1:] {
			if p.tenants[w.name].had < p.tenants[next.name].had {
				next = w
			}
		}
		p.resume(next, at)
	}
}

// end is the end of work, in whatever state it is.
func (w *work) end() {
	p := w.of
	p.mu.Lock()
	defer p.mu.Unlock()
	if w.over {
		return
	}
	w.over = true
	at := p.now()
	switch {
	case !w.long.Load():
		p.short--
	case w.paused != nil:
		p.drop(w)
		close(w.paused)
		p.leave(w)
	default:
		p.tenants[w.name].had += at.Sub(w.turn)
		p.running--
		p.leave(w)
	}
	p.press()
	p.begin(at)
}

// leave forgets a tenant with its last long work.
func (p *Processors) leave(w *work) {
	t := p.tenants[w.name]
	if t.works--; t.works == 0 {
		delete(p.tenants, w.name)
	}
}
