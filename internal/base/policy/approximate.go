package policy

// Thresholds of approximate ways.

// Truncated legs: bonds, plans, and when a query gets a plan of its own. Decision 14 has why
// estimates come in sequences.
const (
	// FirstBond is the first bond of a sequence, MostBond the largest, MostRungs the maximum number of
	// its estimates.
	// Chosen. docs/evaluation/README.md has the errors at bonds 2 to 128.
	FirstBond = 8
	MostBond  = 1 << 14
	MostRungs = 64

	// MostTables is the largest network that plans of truncated legs are searched for; larger ones
	// have regions.
	// Measured: with a quarter of it grids of 100×100 have regions, errors of 1e-3 and 0.06 for stated
	// ones of 4e-6, decision 20. No model has between it and four times of it but a grid of 200×200.
	MostTables = 50_000

	// MostHasty is the largest network, in tables, that has a greedy plan of truncated legs and chains under method auto after the end of
	// the planning time: above, the greedy search itself takes a second and more, the simplification half of one.
	// Measured: 15,000 tables of a 3-regular graph take 1.3 s of processor time, 1,000 some milliseconds.
	MostHasty = 4_000
)

// Belief propagation: starts, and how long it may run.
const (
	// PhaseStarts is the number of starts that look for competing fixed points, on networks of at most
	// PhaseTables tables; larger ones have one.
	// Chosen: a start on 67,200 tables takes 1.7e6 updates.
	PhaseStarts = 4
	PhaseTables = 20_000

	// MessageUpdates is the number of updates per incidence of factor and variable after which a run
	// ends, converged or not.
	// Measured: a quarter of it changes an error of 6.0e-4 to 5.9e-4, four times nothing on 15 models,
	// decision 20.
	MessageUpdates = 2000
)

// Regions.
const (
	// RegionMoves bounds the planning of one family: dense graphs have no small regions, and that is
	// to be known soon.
	// Chosen: 2^32 take some ten seconds.
	RegionMoves = 1 << 28
)

// Trust.
const (
	// LeastCertain is the largest relative error of a sum of terms of both signs, by its components' own bounds, that leaves a digit.
	LeastCertain = 0.1
)
