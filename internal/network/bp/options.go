package bp

// Options: schedules, limits, and the phases that a run goes through.

import (
	"context"
)

// Schedule is the sequence in which messages are updated.
type Schedule int

const (
	// Auto takes turns: sequential, residual, each again with damping, as Run says.
	Auto Schedule = iota
	// Sequential sweeps backwards and forwards over the indices in breadth-first order, each message
	// once per pair.
	Sequential
	// Residual visits the index next whose incoming messages have changed most since its last visit.
	Residual
)

// Options steer a run. The zero value works.
type Options struct {
	Updates   int64   // most messages computed; 0: 2000 per incidence, at least 1e5 and at most 2e9
	Tolerance float64 // of Change; 0: 1e-12
	// part of the old message in [0, 1) that is kept; 0: none at first, raised as Run says; else the
	// least
	Damping  float64
	Schedule Schedule // 0: Auto
	Seed     uint64   // 0: uniform messages; else random ones
	// Given is a distribution of every index, which its messages begin with; Seed is then ignored. A value that it excludes is let in again.
	Given [][]float64
	// Enough ends a run as spent updates do, with the messages there are: every one of them was
	// computed once. Nil: never.
	Enough context.Context
}

// Limits and steps of the defaults.
const (
	leastUpdate = 100_000
	mostUpdates = 2_000_000_000
	tolerance   = 1e-12
	patience    = 16   // pairs of sweeps, or as many updates, of a round, after which progress is judged
	lastStalls  = 8    // rounds without progress that end the last phase
	progress    = 0.97 // the change must have fallen to this part of the smallest before
)

// phase is a schedule with a damping, kept until it stalls.
type phase struct {
	schedule Schedule
	damping  float64
}

// phases lists the schedules to try, in the sequence that converged on most of the reference models.
func (o *Options) phases() []phase {
	all := []phase{
		{Sequential, 0},
		{Residual, 0},
		{Sequential, 0.3},
		{Residual, 0.3},
		{Sequential, 0.6},
		{Sequential, 0.85},
	}
	switch o.Schedule {
	case Sequential:
		all = []phase{{Sequential, 0}, {Sequential, 0.3}, {Sequential, 0.6}, {Sequential, 0.85}}
	case Residual:
		all = []phase{{Residual, 0}, {Residual, 0.3}, {Residual, 0.6}, {Residual, 0.85}}
	}

	for n := range all {
		all[n].damping = max(all[n].damping, o.Damping)
	}
	return all
}

// enough reports whether a run shall end with its present messages.
func (o *Options) enough() bool { return o.Enough != nil && o.Enough.Err() != nil }
