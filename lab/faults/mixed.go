package faults

// Workers of two versions, and with clocks that are wrong.

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"
)

// strikeEach strikes with the common classes one after the other in an order drawn from the seed, so that they overlap.
func strikeEach(ctx context.Context, b *batch) error {
	c := b.next()
	if err := c.strike(ctx, b); err != nil {
		return fmt.Errorf("%s: %w", c.name, err)
	}
	return nil
}

// next is the next class to strike with.
func (b *batch) next() *class {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.turns) == 0 {
		b.turns = slices.Clone(b.common)
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
	return blow{what: " to " + filepath.Base(to), end: without(func() { w.replace(filepath.Join(to, w.role)) })}
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
	return blow{what: " by " + rounded(by), end: without(func() { w.replace(append(slices.Clone(b.s.o.Helper), w.role, by.String())...) })}
}
