package policy

// Thresholds of searches that are split into cubes: plans of package plan, and the split of package compiler.

// The split of a search into cubes.
const (
	// CubesAbove is the cost of a tree, in flops, from which a search that found no circuit goes on in
	// cubes: an hour of a core.
	CubesAbove = 1e13

	// Cubes is the maximum number of parts of a split search: some for each of a few workers.
	// Measured on 80 variables with 160 random clauses of three literals, in counted steps: the
	// largest of 32 cubes takes 0.10 to 0.16 of the work, and two workers that take the hardest first
	// 0.503 to 0.507 each.
	Cubes = 32

	// CubeLargest is the part of the whole, by estimate, down to which the hardest cube is split: with
	// a handful of workers the last to end is then a small part of each worker's work.
	CubeLargest = 1.0 / 24

	// CubesAgain is the largest ratio of the work of all cubes to the work of the whole, by estimate:
	// every cube repeats the work that does not meet the variables split on. A search that every split
	// would double stays whole.
	// Measured on planning-like and random clauses, compiled: estimates of 1.0, 1.3, 1.6, 2.4, 3.7
	// were 1.0 to 1.4, 1.1, 1.3, 2.5, 3.3 of time.
	CubesAgain = 1.4
)

// How the work of cubes is estimated: each is searched for a while.
const (
	// CubesTried is the work, in steps, within which a formula is summed and not split, CubeTried the
	// bound of the search of a cube.
	// Chosen: some hundredths of a second.
	CubesTried = 1 << 22
	CubeTried  = 1 << 20

	// CubesOrderWork bounds the search for the order that all cubes have in common: a tenth of a second.
	CubesOrderWork = 1 << 25

	// CubesTryShare is the part of the estimated work of the whole that the searches of all cubes may
	// take together, CubesTryLeast the share granted to each in any case, in steps.
	// Measured on the same: 0.03 to 0.07 of the steps of all cubes without circuits, half of that with
	// them.
	CubesTryShare = 1.0 / 64
	CubesTryLeast = 1 << 14
)

// Bounds of the work of cubes.
const (
	// CubesWork bounds the steps of the search of all cubes together, in equal shares: some three hours of a core, and two thirds of the
	// flops that a job may take by default.
	CubesWork = 1 << 40

	// WholeWork is the work, in steps, of a search for Z alone before one is split: some 20 s of a core.
	// Measured: log-5 is summed in 1.9e9 steps; in 32 cubes, which each are simplified and ordered anew, it takes three times as long.
	WholeWork = 1 << 31

	// CubesMargin is the price of cubes by their estimated steps.
	// Chosen: searches that write circuits take twice the time, and estimates were 0.8 to 7 times the
	// true work.
	CubesMargin = 8
)
