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

	// UnsignedBytes bounds the tables in which terms of both signs are summed for components that are sampled: clauses of some
	// sixteen literals.
	// Chosen.
	UnsignedBytes = 1 << 24

	// FirstShare is the part of the budget that the first estimate may take, if a smaller bond makes
	// it so.
	// Measured: a quarter of it makes stated errors larger on 6 of 11 models, four times of it changes
	// 2 of 26, decision 20. A deadline may cut off all but a sixteenth.
	FirstShare = 1.0 / 16

	// LadderSlack is the least ratio of the costs at twice the bond and at the bond for which growth
	// means anything.
	// Measured: 1.005 changes nothing on 26 models, 2 ends two of them too soon, decision 20.
	LadderSlack = 1.02

	// SearchBond is the bond at which plans are compared if the request names none, LeastBond the one
	// if the memory has no room for more.
	// Measured: a quarter and four times of SearchBond make the true error smaller on 3 and 2 models,
	// larger on 1 and 3, the largest from below 4e-7 to 0.06; of LeastBond they change nothing in 512
	// KiB, decision 20.
	SearchBond = 32
	LeastBond  = 4

	// MostTables is the largest network that plans of truncated legs are searched for; larger ones
	// have regions.
	// Measured: with a quarter of it grids of 100×100 have regions, errors of 1e-3 and 0.06 for stated
	// ones of 4e-6, decision 20. No model has between it and four times of it but a grid of 200×200.
	MostTables = 50_000

	// MostHasty is the largest network, in tables, that has a greedy plan of truncated legs and chains under method auto after the end of
	// the planning time: above, the greedy search itself takes a second and more, the simplification half of one.
	// Measured: 15,000 tables of a 3-regular graph take 1.3 s of processor time, 1,000 some milliseconds.
	MostHasty = 4_000

	// SearchTime is the part of the time for planning that the search for plans of larger ones takes at most: the rest is for prices.
	// Measured: a price of 18,000 tables takes 0.3 s, 0.7 s with marginals, and a ladder up to twenty of them.
	SearchTime = 3.0 / 4

	// TruncatedMoves and TruncatedLeast bound one search for plans, TruncatedSearches is their maximum
	// number.
	// Measured: a quarter of the moves makes 2 of 5 models worse, none better; one search in place of
	// three (that is three times the moves) 6 of 14 better, none worse, decision 20. At most a second,
	// and four milliseconds, which 113 of 115 models exceed.
	TruncatedMoves    int64 = 1 << 30
	TruncatedLeast    int64 = 1 << 22
	TruncatedSearches       = 3

	// Unequal is the largest ratio of the flops of a tree and a sweep, either way, at which the two
	// are compared.
	// Measured: 1 makes 1 of 4 models better, none worse; 16 makes 1 of 7 worse, decision 20. Why
	// there are two plans: decision 14.
	Unequal = 4

	// UntruncatedGain is the largest ratio of flops at which a contraction without any truncation, not
	// even of null values, is preferred.
	// A bound: none of 69 models takes more flops without truncation than with it, decision 20.
	UntruncatedGain = 4

	// Misfit is the ratio of the flops of the model's own plan to a plan for a query's evidence above
	// which the query gets its own, ResearchFlops the work of a contraction below which a plan of its
	// own is not worth the search.
	// Measured: a quarter and four times of Misfit change 1 and 3 of 24 queries, of ResearchFlops
	// none, decision 20.
	Misfit        = 8
	ResearchFlops = 2e8

	// WidestTable is the span of a table's entries, as an exponent of 2, beyond which truncations may
	// drop terms that count in the end: they keep the 53 bits of every matrix. WidestTogether is
	// the same for the tables over one index, which meet in one tensor.
	// Measured: of 84 reference models only proteins have a table beyond 35 bits (62 to 113), and
	// none 400 together (constraints: 399).
	WidestTable    = 53
	WidestTogether = 600
)

// Belief propagation: starts, and how long it may run.
const (
	// PhaseStarts is the number of starts that look for competing fixed points, on networks of at most
	// PhaseTables tables; larger ones have one.
	// Chosen: a start on 67,200 tables takes 1.7e6 updates.
	PhaseStarts = 4
	PhaseTables = 20_000

	// PhaseOverlap is the squared cosine between the components of two fixed points below which both count.
	// Chosen.
	PhaseOverlap = 0.1

	// OrderedStarts is the number of starts near maxima of the product of all tables, for OrderedShare of a budget and OrderedTime of
	// the time for planning: each takes some OrderedUpdates per incidence of factor and variable, and five times as many at most.
	// Chosen.
	OrderedStarts  = 8
	OrderedShare   = 1.0 / 8
	OrderedTime    = 1.0 / 8
	OrderedUpdates = 20

	// LeastBelief is what a belief counts for at least where states are compared by their beliefs.
	// Chosen.
	LeastBelief = 1e-9

	// MessageUpdates is the number of updates per incidence of factor and variable after which a run
	// ends, converged or not.
	// Measured: a quarter of it changes an error of 6.0e-4 to 5.9e-4, four times nothing on 15 models,
	// decision 20.
	MessageUpdates = 2000

	// LeastUpdates are granted to a run under any budget: some 100 ms.
	// Chosen; the time follows from UpdateFlops.
	LeastUpdates = 400_000

	// MostMessages is the number of message entries up to which a plan has those of several fixed points: 4 MiB, encoded.
	// Chosen.
	MostMessages = (4<<20 - 4096) / 9

	// MessageShare is the part of a budget that belief propagation may take, and of the time for planning.
	// Measured: a quarter of it makes 2 of 15 models better and 1 worse, decision 20.
	MessageShare = 1.0 / 2

	// SoonShare is the part of a budget within which the first estimate of truncated legs is certain
	// to be there: the Bethe value is not computed before it then. BetheShare is the part that it
	// may take where it is.
	// Chosen: 35 of 99 models have a first estimate within a factor of four of SoonShare, and it says
	// only whether the Bethe value comes first, decision 20.
	SoonShare  = 1.0 / 256
	BetheShare = 1.0 / 16
)

// Regions: how large, and which variables to slice.
const (
	// RegionMoves bounds the planning of one family: dense graphs have no small regions, and that is
	// to be known soon.
	// Chosen: 2^32 take some ten seconds.
	RegionMoves = 1 << 28

	// RegionMoveFlops is the cost of a move of such a planning, 2.5 ns.
	// Measured with RegionMoves.
	RegionMoveFlops = 2.5e-9 * Rate

	// LeastRegionMoves are granted to all families together under any budget: some 170 ms.
	// Chosen; like LeastUpdates.
	LeastRegionMoves = 1 << 26

	// RegionWidth is log2 of the largest table of a region's contraction, RegionCount the maximum
	// number of regions of a list, RegionFlops the bound of the work of all regions of one family.
	// Measured: a quarter of the table makes 4 of 4 dense models worse, four times 1 of 2 better at
	// 3.3 times the flops. A quarter and four times of RegionCount change nothing on 15. RegionFlops
	// is a bound; no model takes a fiftieth of it. Decision 20.
	RegionWidth = 20
	RegionCount = 200_000
	RegionFlops = 1e12
)

// Trust: the uncertainty stated for an estimate, from the movement of estimates and the distance
// between plans.
// Calibrated, docs/evaluation/README.md: btnlab evaluate calibration, calibration-of-more,
// calibration-of-constraints.
const (
	// Slowest is the least factor by which the next change is taken to be smaller than the last one:
	// bonds take effect faster than any power. Steady is the same for regions, whose growth is not
	// monotone.
	Slowest = 0.003
	Steady  = 0.1

	// Second is the least such factor where a plan has two bonds, and only other plans show the speed
	// at which they take effect, and the weight of the second last change of marginals.
	// Measured: three of 15 answers on triangular grids are beyond three times the uncertainty stated
	// with it, five without.
	Second = 0.3

	// The uncertainty of an estimate of a single bond is Truncations times the largest discarded
	// share, but at most Coarsely times its root.
	// Measured: of 177 answers in 96 KiB, most of them of one bond, 98.3 % are off by at most three
	// times the uncertainty stated with it, 96.5 % with the root alone, which is 264 times too much on
	// ferromagnets by bonds of 16 (the median of 16), 24 times with it.
	Truncations = 100
	Coarsely    = 5

	// LeastOfPhases is the least uncertainty of truncated legs beside several phases: the root of 1e-12, below which singular values are
	// always dropped.
	// Measured: 4e-9 was off where 2e-12 was stated.
	LeastOfPhases = 1e-6

	// Corrected is the share of the correction by regions that may be missing where their changes fall
	// by no more than Slowly from one size to the next.
	// Measured: all of 184 answers by regions are off by at most three times the uncertainty stated
	// with it, 97.3 % without; the median of stated over true errors is 5.4 and 3.2.
	Corrected = 0.3
	Slowly    = 0.4

	// Accident is the weight of the change before the last one: the last may be small by accident.
	Accident = 0.01

	// Hopeless is the ratio of movements up to which another plan is compared with.
	Hopeless = 10

	// Apart is the factor on the distance of two plans at one bond, and the least ratio of two families' uncertainties of
	// marginals for which the surer one supplies them.
	// Chosen.
	Apart = 2

	// SettledMarginals is the uncertainty at which probabilities settle even if ln Z needs a higher accuracy.
	// Chosen: six digits are printed.
	SettledMarginals = 1e-6

	// ApartInRegions is the weight of the next change of marginals of regions.
	// Measured: with 2, and phases, 98.3 % of 196 models of 24 families were off by at most three
	// times the stated uncertainty; of 360 others, with samples beside regions, 5 of regions were off
	// by 4 to 11 times, and one by 39.
	ApartInRegions = 8

	// Alike is the ratio by which two plans at their first bond may be closer to each other than to
	// the truth.
	Alike = 10

	// Branches is the factor on the uncertainty of estimates of a model with forbidden combinations: a
	// small support loses whole branches, and the next bonds do not show them.
	Branches = 4

	// LostSign is the least uncertainty, in nats, where an estimate of the same bond or half of it
	// came out at or below 0: its error was all of Z.
	LostSign = 1

	// TrustedDigits may cancel in an exact total, in its components and between them: a sum of terms
	// carries 13. WithinDigits may cancel between components that have all the digits of an exact
	// one.
	// Chosen: an exact total then has ten digits.
	TrustedDigits = 3
	WithinDigits  = 0.3

	// LeastCertain is the largest relative error of a sum of terms of both signs, by its components' own bounds, that leaves a digit.
	LeastCertain = 0.1

	// SignDigits is the cancellation from which the sign of an exact total is put down to rounding,
	// and not to the model.
	// Measured: totals of 25 planted networks come out negative, at 3 to 36 digits. A quarter of it
	// calls none a model of both signs, four times also the totals of 11 to 36 digits, which a float64
	// does not have, decision 20.
	SignDigits = 10
)
