package policy

// Thresholds of the search over a formula: package compiler, and the preparation by package logic.

// The root, and the tree decomposition that guides decisions.
const (
	// StepCells is the number of entries of all bags that an elimination along the decomposition sums in the time of a step of the search,
	// and of its flops. A search may take half of the time of that.
	// Measured in CPU time: ra, of 2^36 entries, is summed in 0.8 s (not in 90 s where a tree is looked for in between), weighted formula
	// 076, of 2^153, in 5 s (13.8 s); 001, of 2^32, whose tree is the better way, takes 1.11 times as long as with the least search, 1.35
	// times with half of it.
	StepCells = 32
)

// SearchFlops is the number of flops of truncated legs in the time of a step of the search for the most probable assignment.
// Measured: 16 ns a step on a grid of spins and on a pedigree.
const SearchFlops = 16e-9 * Rate

// Searches for the most probable assignment before an elimination.
const (
	// PilotSearch is the part of the budget that a search may take while a job is planned, where its proof saves the rest,
	// PilotTime the part of the time for planning.
	// Chosen.
	PilotSearch = 1.0 / 8
	PilotTime   = 1.0 / 2
)

// The preparation of a search.
const (
	// UnrolledFlops is the work up to which an elimination is written down as a circuit: some seconds, and tens of megabytes.
	// UnrolledWidth is log2 of the largest table of it.
	UnrolledFlops = 1 << 22
	UnrolledWidth = 20
)
