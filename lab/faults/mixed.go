package faults

// Workers of two versions, and with clocks that are wrong.

import (
	"context"
	"path/filepath"
	"slices"
	"time"
)

var mixedClasses = []*class{
	{
		name: "versions", about: "rolling upgrades and downgrades under load: one worker after the other ends in good order and is replaced by one of " +
			"another version", goal: workerGoal, every: time.Second, two: true, strike: changeVersion,
	},
	{
		name: "clock", about: "a worker is replaced by one whose clock is up to 25 h ahead or behind, or 20 ms to 30 s", goal: workerGoal,
		every: time.Second, clock: true, strike: changeClock,
	},
}

// changeVersion replaces a worker by one of the other version.
func changeVersion(ctx context.Context, b *batch) error {
	w, over := b.victim()
	defer over()
	to := b.s.o.Old
	if filepath.Dir(w.command[0]) == filepath.Clean(to) {
		to = b.s.o.Bin
	}
	s := b.begin("%s to %s", w, filepath.Base(to))
	b.l.holds(s, w.nats.holds(false))
	w.replace(filepath.Join(to, w.role))
	return nil
}

// changeClock replaces a worker by one whose clock is wrong.
func changeClock(ctx context.Context, b *batch) error {
	w, over := b.victim()
	defer over()
	by := b.between(20*time.Millisecond, 30*time.Second)
	if b.draw(2) == 0 {
		by = b.between(30*time.Second, 25*time.Hour)
	}
	if b.draw(2) == 0 {
		by = -by
	}
	s := b.begin("%s by %v", w, by.Round(time.Millisecond))
	b.l.holds(s, w.nats.holds(false))
	w.replace(append(slices.Clone(b.s.o.Helper), w.role, by.String())...)
	return nil
}
