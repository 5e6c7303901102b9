package bp

// Options: schedules, limits, and the phases that a run goes through.

import (
	"context"
)

// Schedule is the sequence in which messages are updated.
type Schedule int

const (
	// Auto tries both other schedules in turn, without and with damping, as Run describes.
	Auto Schedule = iota
	// Sequential makes pairs of sweeps over the indices in breadth-first order, one backwards and one forwards. A pair computes each
	// message once.
	Sequential
	// Residual always visits the index whose incoming messages have changed most since its last visit.
	Residual
)

// Options are those of a run. The zero value works.
type Options struct {
	Updates   int64   // limit of the number of messages computed; 0: 2000 per incidence, at least 1e5 and at most 2e9
	Tolerance float64 // limit of State.Change for convergence; 0: 1e-12
	// Damping is the share of the old message, in [0, 1), that an update keeps. The run begins with it and raises it as Run describes.
	Damping  float64
	Schedule Schedule // 0: Auto
	Seed     uint64   // 0: the run starts from uniform messages; else from random ones
	// StartBeliefs has a distribution of every index, from which the messages to it start; nil: they start by Seed. Values that it excludes
	// get a small weight.
	StartBeliefs [][]float64
	// If Enough ends, the run ends after its sweep with its present messages, as if the updates were spent; nil: it never ends.
	Enough context.Context
}

// Limits and steps of the defaults.
const (
	minUpdates     = 100_000
	maxUpdates     = 2_000_000_000
	tolerance      = 1e-12
	pairsPerRound  = 16   // a round has so many pairs of sweeps, or as many updates; after it progress is judged
	maxLastStalls  = 8    // so many rounds without progress end the last phase
	progressFactor = 0.97 // a round has progress if its change is at most this share of the smallest before
)

// phase is a schedule with a damping. A run keeps to it until it makes no progress.
type phase struct {
	schedule Schedule
	damping  float64
}

// phases returns the phases of a run, in sequence. A phase is a schedule with a damping, the share of the old message that is kept. The
// run goes on to the next phase when it makes no progress. This is the sequence that converged on most of the reference models. If Options
// name a schedule, all phases have that schedule. No damping is below o.Damping.
func (o *Options) phases() []phase {
	phases := []phase{
		{Sequential, 0},
		{Residual, 0},
		{Sequential, 0.3},
		{Residual, 0.3},
		{Sequential, 0.6},
		{Sequential, 0.85},
	}
	switch o.Schedule {
	case Sequential:
		phases = []phase{{Sequential, 0}, {Sequential, 0.3}, {Sequential, 0.6}, {Sequential, 0.85}}
	case Residual:
		phases = []phase{{Residual, 0}, {Residual, 0.3}, {Residual, 0.6}, {Residual, 0.85}}
	}

	for n := range phases {
		phases[n].damping = max(phases[n].damping, o.Damping)
	}
	return phases
}

// hasEnough reports whether o.Enough has ended, so that a run shall end with its present messages.
func (o *Options) hasEnough() bool { return o.Enough != nil && o.Enough.Err() != nil }
