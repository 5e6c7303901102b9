package policy

// Thresholds of searches that are split into cubes: plans of package plan, and the split of package compiler.

// When a search is split, and into what.
const (
	// CubesAbove is what a tree costs, in flops, from which a search that found no circuit goes on in cubes: an hour of a core.
	CubesAbove = 1e13

	// Cubes is into how many parts a search is split at most: some for each of a few workers.
	// Measured on 80 variables with 160 random clauses of three literals, in counted steps: the largest of 32 cubes takes 0.10 to 0.16
	// of the work, and two workers that take the hardest first 0.503 to 0.507 each.
	Cubes = 32

	// CubeLargest is the part of the whole, by estimate, down to which the hardest cube is split: with a handful of workers the last
	// to end is then a small part of what each has done.
	CubeLargest = 1.0 / 24

	// CubesAgain is how many times the work of the whole the cubes together may take, by estimate: what does not meet the variables that are
	// split on is done in every cube. A search that every split would double stays whole.
	// Measured on planning-like and random clauses, compiled: estimates of 1.0, 1.3, 1.6, 2.4, 3.7 were 1.0 to 1.4, 1.1, 1.3, 2.5, 3.3 of
	// time.
	CubesAgain = 1.4
)

// How the work of cubes is estimated: each is searched for a while.
const (
	// CubesTried is the work, in steps, within which a formula is summed and not split, CubeTried what a cube is searched for at most.
	// Chosen: some hundredths of a second.
	CubesTried = 1 << 22
	CubeTried  = 1 << 20

	// CubesOrderWork bounds the search for the order that all cubes have in common: a tenth of a second.
	CubesOrderWork = 1 << 25

	// CubesTryShare is the part of the estimated work of the whole that the searches of all cubes may take together, CubesTryLeast what
	// each may take whatever that is, in steps.
	// Measured on the same: 0.03 to 0.07 of the steps of all cubes without circuits, half of that with them.
	CubesTryShare = 1.0 / 64
	CubesTryLeast = 1 << 14
)

// What cubes may take.
const (
	// CubesWork bounds the steps of the search of all cubes together, in equal shares: some three hours of a core, and two thirds of the
	// flops that a job may take by default.
	CubesWork = 1 << 40

	// CubesMargin is the price of cubes by their estimated steps.
	// Chosen: searches that write circuits take twice the time, and estimates were 0.8 to 7 times what was taken.
	CubesMargin = 8
)
