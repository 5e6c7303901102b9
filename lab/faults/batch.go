package faults

// A batch: jobs at a steady rate, and faults of one class meanwhile.

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// batch is one of a run.
type batch struct {
	s     *stack
	class *class
	l     *ledger
	log   func(format string, args ...any)

	mu      sync.Mutex
	r       *rand.Rand
	strikes []*strike
	failed  []error
	roles   map[string]bool // a worker of the role is at fault
	free    *sync.Cond
	common  []*class // of class each
	turns   []*class // of them, still to come
}

// run asks jobs and strikes faults, and judges.
func (b *batch) run(ctx context.Context, seed uint64, faults, jobs int, rate float64) (*verdict, error) {
	q := &questions{seed: seed}
	asking := rand.New(rand.NewPCG(seed, 1))
	b.r = rand.New(rand.NewPCG(seed, 2))
	b.roles = map[string]bool{}
	b.free = sync.NewCond(&b.mu)

	open, give := context.WithCancel(ctx)
	defer give()
	var err error
	if b.l, err = newLedger(open, b.s, fmt.Sprintf("%s-%d", b.class.name, seed)); err != nil {
		return nil, err
	}
	b.l.may = b.class.rules.may

	struck := make(chan struct{})
	go func() {
		defer close(struck)
		pause(ctx, time.Second) // jobs are under way
		b.strike(ctx, faults)
	}()

	over := false
	for number := 0; ctx.Err() == nil && !(over && number >= jobs); number++ {
		one, err := q.draw(asking)
		if err != nil {
			return nil, err
		}
		b.l.ask(number, one, asking)
		wait := time.Duration(asking.ExpFloat64() / rate * float64(time.Second))
		select {
		case <-struck:
			over = true
			pause(ctx, wait)
		case <-time.After(wait):
		}
	}
	<-struck

	late := time.AfterFunc(answerWithin, give)
	v := b.l.judge(ctx)
	late.Stop()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if len(b.failed) > 0 {
		return v, fmt.Errorf("faults: a fault could not be made: %w", errors.Join(b.failed...))
	}
	if left := b.s.drained(ctx, drainWithin); len(left) > 0 {
		for _, what := range left {
			v.problem("not drained: %s", what)
		}
	}
	return v, nil
}

// strike makes faults, as many at a time as the class allows.
func (b *batch) strike(ctx context.Context, faults int) {
	var run sync.WaitGroup
	slots := make(chan struct{}, b.class.parallel)
	for range faults {
		slots <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		run.Go(func() {
			defer func() { <-slots }()
			if err := b.class.strike(ctx, b); err != nil {
				b.mu.Lock()
				b.failed = append(b.failed, err)
				b.mu.Unlock()
			}
		})
		pause(ctx, b.between(b.class.every/2, b.class.every*3/2))
	}
	run.Wait()
}

// between draws a time.
func (b *batch) between(least, most time.Duration) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return least + time.Duration(b.r.Int64N(int64(max(1, most-least))))
}

// draw draws a number below n.
func (b *batch) draw(n int) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.r.IntN(n)
}

// victim is a worker for a fault. Its role has no other one until the fault is over, so that somebody does its work.
func (b *batch) victim() (w *worker, over func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for {
		first := b.r.IntN(len(roles))
		for i := range roles {
			role := roles[(first+i)%len(roles)]
			if b.roles[role] {
				continue
			}
			b.roles[role] = true
			all := b.s.workersOf(role)
			return all[b.r.IntN(len(all))], func() {
				b.mu.Lock()
				defer b.mu.Unlock()
				delete(b.roles, role)
				b.free.Broadcast()
			}
		}
		b.free.Wait()
	}
}

// begin notes a fault that happens now.
func (b *batch) begin(format string, args ...any) *strike {
	s := &strike{what: fmt.Sprintf(format, args...), at: time.Now()}
	b.mu.Lock()
	b.strikes = append(b.strikes, s)
	b.mu.Unlock()
	b.log("%s: %s", b.class.name, s.what)
	return s
}
