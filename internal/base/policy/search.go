package policy

// Thresholds of the search over a formula: package compiler, and the preparation by package logic.

// The root, and the tree decomposition that guides decisions.
const (
	// ProbeRootWork bounds the steps of trying literals at the root: half a second.
	// Chosen; the work of it is counted.
	ProbeRootWork = 1 << 26

	// TreeFrom is the number of assignments of all bags of the greedy decomposition from which a
	// better one is searched for, TreeMost the number that is too large for a contraction along any
	// like it.
	TreeFrom = 1 << 20
	TreeMost = 1 << 56

	// TreeMoves bounds that search, in moves; TreeMovesPerStep of them take the time of a step of the search over the formula, TreeShare is
	// the part of the work of a search with a limit that they may take.
	// Measured: ra takes 0.8 s of CPU time, 1.6 s with twice of TreeShare; log-5, 076 and 091 as long.
	TreeMoves        = 1 << 29
	TreeMovesPerStep = 4
	TreeShare        = 1.0 / 4

	// GreedyShare is the part of the work of a search with a limit that the search for a good greedy order may take.
	// Chosen: at most one of 90 variables, a clause for every pair, is summed in 2^24 steps with it; the greedy orders alone would take
	// twice that.
	GreedyShare = 1.0 / 16

	// StepCells is the number of entries of all bags that an elimination along the decomposition sums in the time of a step of the search,
	// and of its flops. A search may take half of the time of that.
	// Measured in CPU time: ra, of 2^36 entries, is summed in 0.8 s (not in 90 s where a tree is looked for in between), weighted formula
	// 076, of 2^153, in 5 s (13.8 s); 001, of 2^32, whose tree is the better way, takes 1.11 times as long as with the least search, 1.35
	// times with half of it.
	StepCells = 32

	// NearEnd is how many times its work a search may take where what is left of it, by the fraction that is done, takes less than the
	// elimination.
	// Measured: logistics.b has 0.6 done after 0.45 of its 2.8e8 steps, where it was given up for a tree that took twice as long; weighted
	// formula 121 is summed in 4.7e9 steps, of whose decisions more than 0.99 are done in 2e9, and in cubes takes twice as long.
	NearEnd = 4

	// GuideMost bounds the weight of the decomposition's depth against occurrences and conflicts,
	// GuideFactor is its factor where the tree is wide, and GuideRatio is the number of variables by
	// the width from which the weight is largest.
	// Source: T. Korhonen and M. Järvisalo, arXiv:2308.15819, section 4, with a tenth of GuideFactor.
	GuideMost   = 1e7
	GuideFactor = 1000
	GuideRatio  = 40
)

// Decisions, and learning from conflicts.
const (
	// ActivityDecay is the number of decisions that halve the activity of literals, ActivityWeight the
	// weight of a conflict against an occurrence.
	ActivityDecay  = 128
	ActivityWeight = 10

	// LearnedFirst is the number of learned clauses at which some are forgotten for the first time; a
	// 16th more every time. LearnedLevels is the maximum number of levels of clauses that stay, while
	// there is room for them.
	LearnedFirst  = 8192
	LearnedLevels = 2
)

// SearchFlops is the number of flops of truncated legs in the time of a step of the search for the most probable assignment.
// Measured: 16 ns a step on a grid of spins and on a pedigree.
const SearchFlops = 16e-9 * Rate

// InsuredShare is the part of the budget of a job with a deadline from which the eliminations for Z and for the most probable assignment
// have a search before them, with InsuranceRatio of their work and at most InsuranceShare of the budget; Z alone has belief propagation.
// Chosen.
const (
	InsuredShare   = 1.0 / 32
	InsuranceRatio = 1.0 / 2
	InsuranceShare = 1.0 / 4

	// PilotSearch is the part of the budget that a search may take while a job is planned, where its proof saves the rest,
	// PilotTime the part of the time for planning.
	// Chosen.
	PilotSearch = 1.0 / 8
	PilotTime   = 1.0 / 2

	// PilotFlops is the work of an elimination for the most probable assignment above which a search comes before it: that for which a tree
	// is searched for, see DescentFlops. PilotRatio is what the search may take for a flop of the elimination.
	// Measured on 20 dense models of 25 variables with 8 values: eliminations for it and for Z take 6 ns a flop, a step of the search takes
	// a quarter of SearchFlops, so that the search takes a quarter of the time of what it may save.
	PilotFlops = 1e7
	PilotRatio = 16.0
)

// Components that are summed by elimination, and those that are remembered.
const (
	// DenseCells is the maximum number of entries of all tables of an eliminated component: the work
	// between two looks at the budget.
	// Chosen.
	DenseCells = 1 << 16

	// DenseEdges is the number of extra steps of an entry that is written down as a product of a
	// circuit.
	// Estimated: some 100 ns.
	DenseEdges = 8

	// DensePrice is the largest ratio of the steps of eliminating a component to a look at it, where
	// clauses are left in it.
	// Measured in counted work, 10^6 steps of weighted formulas 051, 053, 055, 059 (go test -run
	// PublishedCounts ./internal/logic/compiler -args -simplify -models …): without 35, 11, 227, 246; at 4
	// 39, 13, 263, 282; at 16 43, 1, 226, 335; at 64 54, 1, 292, 456; at 256 102, 1, 296, 456. 011, of
	// few conflicts, takes 1442 without and 739 at 256.
	DensePrice = 16

	// DenseLook is the number of steps of looking at a variable or clause of a component. Where less than one of DenseShare looks at
	// components of a size finds a narrow one, one of DenseShare is looked at.
	// Measured with SplitsShare.
	DenseLook  = 8
	DenseShare = 16

	// SplitsFrom is the number of variables from which a component is not looked at after every decision where less than one of
	// SplitsShare looks finds several parts, or a known one. OddsTried is the number of looks at a size before such shares count.
	// Measured: planning formulas log-2, log-3, log-4 take 2.5, 4.8 and 3.9 s of CPU time with a look at every component and an eighth of
	// the work on looks in vain, 2.3, 3.0 and 2.9 s with DenseShare, 2.2, 2.6 and 2.0 s with both; 2.2, 2.6 and 2.7 s where three decisions
	// go without a look.
	SplitsFrom  = 64
	SplitsShare = 8
	OddsTried   = 64

	// SmallComponent is the number of variables below which a remembered component is as good as twice as old: it is cheap to sum again.
	SmallComponent = 8
)

// The preparation of a search.
const (
	// SimplifyShare is the part of the work of a search that logical preprocessing may take before it.
	SimplifyShare = 1.0 / 4

	// UnrolledFlops is the work up to which an elimination is written down as a circuit: some seconds, and tens of megabytes.
	// UnrolledWidth is log2 of the largest table of it.
	UnrolledFlops = 1 << 22
	UnrolledWidth = 20
)
