// Package policy holds the thresholds that choose a way to an answer, on one page, each with what it was measured by. Numeric
// tolerances and block sizes inside an algorithm stay with the algorithm. It imports nothing.
package policy

// Belief propagation.
const (
	// PhaseStarts is how many starts of belief propagation look for competing fixed points, on networks of at most PhaseTables
	// tables; larger ones have one.
	PhaseStarts = 4
	// PhaseTables bounds the networks whose phases are looked for.
	PhaseTables = 20_000
	// OnlyUpdates bounds the runs that look for the one fixed point of a network, per message entry: what takes longer is no
	// good start under evidence.
	OnlyUpdates = 100
)

// Regions.
const (
	// RegionMoves bounds the planning of one family: dense graphs have no small regions, and that is to be known soon.
	RegionMoves = 1 << 28
)
