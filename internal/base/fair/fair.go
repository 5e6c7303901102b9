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
	count int // number of processors
	now   func() time.Time

	// isContended is set if some work might want other work to give way: short work in progress, or long work that waits.
	isContended atomic.Bool

	mu             sync.Mutex
	contendedSince time.Time          // when isContended was set last
	works          map[*work]struct{} // in progress
	waiting        []*work            // long works without a turn, the one that waits longest first
	tenants        map[string]*tenant // by name: those with long work
}

// tenant is somebody with long work.
type tenant struct {
	longWorks int           // their number
	used      time.Duration // processor time of its turns; a new tenant begins with the least of the others
}

// work is the work on one message. Several goroutines may do it.
type work struct {
	processors *Processors
	tenant     string // its name
	done       <-chan struct{}
	began      time.Time

	// The rest is guarded by the lock of the processors, but for reading isLong.
	isLong    atomic.Bool
	lastCheck time.Time     // when it looked at its context last, while isContended was set
	turnBegan time.Time     // when its turn began, if it is long and has one
	paused    chan struct{} // is closed when its next turn begins; nil if it has its turn
	isOver    bool
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
	now := p.now()
	w := &work{processors: p, tenant: tenant, done: ctx.Done(), began: now, lastCheck: now}
	p.mu.Lock()
	p.works[w] = struct{}{}
	p.updateContention(now)
	p.mu.Unlock()
	return pace.WithGiveWay(ctx, w.giveWay), w.end
}

// updateContention sets isContended: whether there is short work, or long work that waits. The caller holds the lock, as for all methods
// that follow but giveWay, wait and end.
func (p *Processors) updateContention(now time.Time) {
	isContended := len(p.waiting) > 0
	for w := range p.works {
		isContended = isContended || !w.isLong.Load()
	}
	if isContended && !p.isContended.Load() {
		p.contendedSince = now
	}
	p.isContended.Store(isContended)
}

// countLong returns how many long works have a processor, and how many may have one: one processor less than there are if there is short
// work. Works that wait for something have none.
func (p *Processors) countLong(now time.Time) (running, limit int) {
	limit = p.count
	for w := range p.works {
		switch {
		case w.paused != nil, w.isAway(now): // away: it has not looked at its context for a while, so it waits for something
		case w.isLong.Load():
			running++
		default:
			limit = max(1, p.count-1)
		}
	}
	return running, limit
}

// isAway reports whether work has not looked at its context for so long that it must be waiting for something, and has no processor.
func (w *work) isAway(now time.Time) bool {
	return now.Sub(w.lastCheck) > awayAfter && now.Sub(w.processors.contendedSince) > awayAfter
}

// giveWay is called whenever work looks at its context, from any of its goroutines. It returns when the work may go on: at once if the work
// is short or nobody waits, else after its next turn has begun. Work that is no longer short becomes long here. The turn of long work ends
// if too many long works are running, or if the turn has lasted longer than slice while others wait.
func (w *work) giveWay() {
	p := w.processors
	if !p.isContended.Load() {
		return
	}
	now := p.now()
	if !w.isLong.Load() && now.Sub(w.began) < shortFor {
		return
	}

	p.mu.Lock()
	if w.isOver {
		p.mu.Unlock()
		return
	}
	w.lastCheck = now
	p.makeLong(w, now)
	running, limit := p.countLong(now)
	isTurnOver := len(p.waiting) > 0 && now.Sub(w.turnBegan) > slice
	if w.paused == nil && (running > limit || isTurnOver) {
		p.pause(w, now)
		p.resumeWaiting(now)
	}
	paused, hasShortWork := w.paused, limit < p.count // paused: here, or before by another goroutine of the work
	p.mu.Unlock()

	if paused != nil {
		w.wait(paused)
	} else if hasShortWork {
		runtime.Gosched() // to a goroutine of the short work
	}
}

// wait returns when paused is closed: resume closes it when it begins the work's next turn. Meanwhile it looks every awayAfter whether a
// processor has become free, for this work or another one that waits. It begins the work's turn itself when the work's context has ended or
// the longest wait is over.
func (w *work) wait(paused <-chan struct{}) {
	p := w.processors
	ticker := time.NewTicker(awayAfter)
	defer ticker.Stop()
	waitBegan, isCancelled := p.now(), false
	for !isCancelled {
		select {
		case <-paused:
			return
		case <-w.done:
			isCancelled = true
		case <-ticker.C: // works that have not looked at their context for awayAfter have no processor (isAway); nothing else tells of it
		}
		p.mu.Lock()
		now := p.now()
		p.resumeWaiting(now)
		if (isCancelled || now.Sub(waitBegan) > longest) && w.paused != nil && !w.isOver {
			p.resume(w, now) // it closes paused: the next round returns, unless the context has ended and this is the last one
		}
		p.mu.Unlock()
	}
}

// makeLong makes short work long: its tenant gets one more, and its turn begins. It does nothing if the work is long.
func (p *Processors) makeLong(w *work, now time.Time) {
	if w.isLong.Load() {
		return
	}
	w.isLong.Store(true)
	w.turnBegan = now
	t := p.tenants[w.tenant]
	if t == nil {
		t = &tenant{used: p.leastUsed()} // as if it had been there: with 0 it would come before all others for long
		p.tenants[w.tenant] = t
	}
	t.longWorks++
	p.updateContention(now)
}

// leastUsed returns the least processor time that a tenant with long work has used, 0 if there is none.
func (p *Processors) leastUsed() time.Duration {
	least, isFirst := time.Duration(0), true
	for _, t := range p.tenants {
		if isFirst || t.used < least {
			least, isFirst = t.used, false
		}
	}
	return least
}

// pause ends the turn of long work, which then waits.
func (p *Processors) pause(w *work, now time.Time) {
	p.tenants[w.tenant].used += now.Sub(w.turnBegan)
	w.paused = make(chan struct{})
	p.waiting = append(p.waiting, w)
	p.updateContention(now)
}

// resume begins the next turn of work that waits.
func (p *Processors) resume(w *work, now time.Time) {
	p.removeWaiting(w, now)
	w.turnBegan = now
	w.lastCheck = now
	close(w.paused)
	w.paused = nil
}

// removeWaiting takes work out of the list of those that wait.
func (p *Processors) removeWaiting(w *work, now time.Time) {
	for i := range p.waiting {
		if p.waiting[i] == w {
			p.waiting = append(p.waiting[:i], p.waiting[i+1:]...)
			break
		}
	}
	p.updateContention(now)
}

// resumeWaiting begins turns of works that wait, as long as fewer long works have a processor than may have one (countLong). The tenant
// that has used least comes first; of its works, the one that waits longest.
func (p *Processors) resumeWaiting(now time.Time) {
	for len(p.waiting) > 0 {
		if running, limit := p.countLong(now); running >= limit {
			return
		}
		next := p.waiting[0]
		for _, w := range p.waiting[1:] {
			if p.tenants[w.tenant].used < p.tenants[next.tenant].used {
				next = w
			}
		}
		p.resume(next, now)
	}
}

// end ends work in any state, and gives its processor to others. Further calls do nothing.
func (w *work) end() {
	p := w.processors
	p.mu.Lock()
	defer p.mu.Unlock()
	if w.isOver {
		return
	}
	w.isOver = true
	delete(p.works, w)
	now := p.now()
	if w.isLong.Load() {
		if w.paused != nil { // it waits for its turn: let its goroutines go on
			p.removeWaiting(w, now)
			close(w.paused)
		} else { // it has its turn, which ends here
			p.tenants[w.tenant].used += now.Sub(w.turnBegan)
		}
		p.removeLongWork(w.tenant)
	}
	p.updateContention(now)
	p.resumeWaiting(now)
}

// removeLongWork counts one long work less of a tenant, and forgets the tenant with its last one.
func (p *Processors) removeLongWork(name string) {
	t := p.tenants[name]
	if t.longWorks--; t.longWorks == 0 {
		delete(p.tenants, name)
	}
}
