package faults

// Workers of two versions, and with clocks that are wrong.

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"
)

var mixedClasses = []*class{
	{
		name:  "versions",
		about: "rolling upgrades and downgrades: workers end in good order and are replaced by another version",
		goal:  workerGoal, every: time.Second, two: true, strike: onWorker(changeVersion),
	},
	{
		name: "clock", about: "a worker is replaced by one whose clock is wrong by 20 ms to 25 h", goal: workerGoal,
		every: time.Second, clock: true, strike: onWorker(changeClock),
	},
}

// each strikes with the classes that one server, one version and nothing deleted for good allow, one after the other in an order
// drawn from the seed, so that they overlap.
var each = &class{
	name:  "each",
	about: "one fault of every class above that needs neither a cluster nor a stack or a version of its own, in turn, overlapping",
	every: 800 * time.Millisecond, parallel: 3, requests: true,
}

func init() { // strike looks at all classes, and this is one of them
	each.strike = func(ctx context.Context, b *batch) error {
		c := b.next()
		if err := c.strike(ctx, b); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		return nil
	}
	classes = append(classes, each)
}

// common are the classes that each strikes with.
func common(o Options) []*class {
	return slices.DeleteFunc(slices.Clone(classes), func(c *class) bool {
		return c == each || c.cluster || c.alone || c.answers || c.models || c.two && o.Old == "" || c.clock && len(o.Helper) == 0
	})
}

// next is the next class to strike with.
func (b *batch) next() *class {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.turns) == 0 {
		b.turns = common(b.s.o)
		b.r.Shuffle(len(b.turns), func(i, j int) { b.turns[i], b.turns[j] = b.turns[j], b.turns[i] })
	}
	c := b.turns[0]
	b.turns = b.turns[1:]
	return c
}

// changeVersion replaces a worker by one of the other version.
func changeVersion(b *batch, w *worker) blow {
	to := b.s.o.Old
	if filepath.Dir(w.command[0]) == filepath.Clean(to) {
		to = b.s.o.Bin
	}
	return blow{what: " to " + filepath.Base(to), end: func() { w.replace(filepath.Join(to, w.role)) }}
}

// changeClock replaces a worker by one whose clock is wrong.
func changeClock(b *batch, w *worker) blow {
	by := b.between(20*time.Millisecond, 30*time.Second)
	if b.draw(2) == 0 {
		by = b.between(30*time.Second, 25*time.Hour)
	}
	if b.draw(2) == 0 {
		by = -by
	}
	return blow{what: " by " + rounded(by), end: func() { w.replace(append(slices.Clone(b.s.o.Helper), w.role, by.String())...) }}
}
