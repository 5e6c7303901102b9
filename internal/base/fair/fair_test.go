package fair

import (
	"context"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/base/pace"
)

// clock is a clock that the computation advances.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time { c.mu.Lock(); defer c.mu.Unlock(); return c.at }

func (c *clock) pass(d time.Duration) { c.mu.Lock(); defer c.mu.Unlock(); c.at = c.at.Add(d) }

// with returns so many processors with a clock.
func with(count int, c *clock) *Processors {
	p := New()
	p.count, p.now = count, c.now
	return p
}

// running is the amount of long work that has a processor, and short the amount of short work.
func (p *Processors) running() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n, _ := p.countLong(p.now())
	return n
}

func (p *Processors) short() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for w := range p.works {
		if !w.isLong.Load() {
			n++
		}
	}
	return n
}

// Two tenants with long work have as much of one processor each, however many works one has; short
// work runs at once.
func TestTenantsHaveTheSame(t *testing.T) {
	c := &clock{at: time.Unix(1, 0)}
	p := with(1, c)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var mu sync.Mutex
	had := map[string]time.Duration{}
	var all sync.WaitGroup
	var looks [5]atomic.Int64
	abreast := func(i int) bool { // all others wait for the processor or have looked as often
		behind := 0
		for j := range looks {
			if looks[j].Load() < looks[i].Load() {
				behind++
			}
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		return behind <= len(p.waiting)
	}
	for i, name := range []string{"a", "b", "b", "b", "b"} {
		ctx, end := p.Enter(ctx, name)
		all.Go(func() {
			defer end()
			defer looks[i].Store(math.MaxInt64)
			for pace := pace.New(ctx); !pace.Over(1 << 20); {
				looks[i].Add(1)
				for !abreast(i) && ctx.Err() == nil {
					runtime.Gosched()
				}
				c.pass(time.Millisecond)
				mu.Lock()
				had[name] += time.Millisecond
				enough := had["a"]+had["b"] > 4*time.Second
				mu.Unlock()
				if enough {
					cancel()
				}
			}
		})
	}
	all.Wait()
	if share := float64(had["a"]) / float64(had["a"]+had["b"]); share < 0.4 || share > 0.6 {
		t.Errorf("a had %v, b %v", had["a"], had["b"])
	}
	if len(p.works) != 0 || len(p.waiting) != 0 || len(p.tenants) != 0 || p.isContended.Load() {
		t.Errorf("in the end %+v", p)
	}
}

// While short work is there, one processor is left to it.
func TestOneIsLeftToShortWork(t *testing.T) {
	c := &clock{at: time.Unix(1, 0)}
	p := with(2, c)
	first, endFirst := p.Enter(t.Context(), "a")
	second, stop := context.WithCancel(t.Context())
	second, endSecond := p.Enter(second, "b")
	defer endSecond()
	c.pass(shortFor)
	if first.Err() != nil || second.Err() != nil || p.running() != 2 {
		t.Fatalf("without others %d of two run", p.running())
	}

	_, endShort := p.Enter(t.Context(), "c")
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		second.Err() // pauses, for there is one processor for two
	}()
	paused := func() bool { p.mu.Lock(); defer p.mu.Unlock(); return len(p.waiting) == 1 }
	for !paused() {
		time.Sleep(time.Millisecond)
	}
	if first.Err() != nil || p.running() != 1 {
		t.Errorf("%d run beside short work", p.running())
	}
	endShort()
	<-gone // it has its turn again
	if p.running() != 2 {
		t.Errorf("%d run after it", p.running())
	}

	// unwanted work that waits for a turn returns at once
	_, endShort = p.Enter(t.Context(), "c")
	gone = make(chan struct{})
	go func() {
		defer close(gone)
		for second.Err() == nil {
		}
	}()
	for !paused() {
		time.Sleep(time.Millisecond)
	}
	stop()
	<-gone
	endShort()
	endFirst()
}

// Work that waits for other work, and looks at no context meanwhile, holds no processor: the other goes on.
func TestWhoWaitsHoldsNoProcessor(t *testing.T) {
	c := &clock{at: time.Unix(1, 0)}
	p := with(2, c)
	long, endLong := p.Enter(t.Context(), "a")
	other, endOther := p.Enter(t.Context(), "b")
	c.pass(shortFor)
	if long.Err() != nil || other.Err() != nil || p.running() != 2 {
		t.Fatalf("%d of two run", p.running())
	}

	// Two more begin, and wait like the other one for the result of the first.
	for range 2 {
		_, end := p.Enter(t.Context(), "c")
		defer end()
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		long.Err()
	}()
	for {
		p.mu.Lock()
		paused := len(p.waiting) == 1
		p.mu.Unlock()
		if paused {
			break
		}
		time.Sleep(time.Millisecond)
	}
	c.pass(awayAfter + 1)
	<-gone
	if p.running() != 1 {
		t.Errorf("%d run", p.running())
	}

	// It keeps its turn: there is nobody whom it could give way to.
	for range 10 {
		c.pass(slice)
		long.Err()
	}
	if p.running() != 1 {
		t.Errorf("%d run later", p.running())
	}
	endLong()
	if other.Err() != nil || p.running() != 1 { // its wait is over
		t.Errorf("%d run in the end", p.running())
	}
	endOther()
}

// Contexts that are derived give way, too; without processors nothing does.
func TestDerivedContexts(t *testing.T) {
	c := &clock{at: time.Unix(1, 0)}
	p := with(1, c)
	ctx, end := p.Enter(t.Context(), "a")
	defer end()
	c.pass(shortFor)
	derived, cancel := context.WithCancel(ctx)
	defer cancel()
	if derived.Err() != nil || p.short() != 1 {
		t.Errorf("%d short, a derived context does not know of it", p.short())
	}
	if pace.KeepGiveWay(derived).Err() != nil || p.short() != 0 || p.running() != 1 {
		t.Errorf("%d short, %d run", p.short(), p.running())
	}

	var none *Processors
	plain, end := none.Enter(t.Context(), "a")
	end()
	if plain != t.Context() || pace.KeepGiveWay(plain) != plain {
		t.Error("without processors the context is another")
	}
}
