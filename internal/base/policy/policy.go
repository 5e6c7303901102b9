// Package policy holds the thresholds that several packages share: those that divide work between methods. It imports nothing, so every
// package may read it. A threshold of one package stands beside its use.
//
// Each constant states its measurement, or that it was chosen. Defaults of a request (memory, budget, accuracy) are in package query. All
// measurements are of the machine of docs/benchmarks: two cores of an AMD EPYC, 24 GiB.
package policy

// The worth of a flop. Budgets are given in seconds and kept in flops, so that plans do not depend
// on a clock.
const (
	// Rate is the number of flops of truncated legs that one core does in a second.
	// Calibrated, when budgets were set to the rate that was measured; no command repeats it.
	Rate = 3e9

	// ExactRate is the number of flops of the exact way in the time of one of truncated legs: large
	// multiplications.
	// Chosen; measured lower, decision 20: slices of dense graphs run at 1.9 to 2.4 times Rate, other
	// contractions at 0.5 to 1.7. 2 would keep auto nearer to its budget.
	ExactRate = 6

	// FastExact is ExactRate for a part of an exact plan that has to be there by a deadline: the rate of one thread at best.
	// Measured: decision 20.
	FastExact = 2

	// MarginalRate is the ratio of the flops of a contraction along a truncated tree with marginals to
	// those without.
	// Counted: a pass back takes two products where the pass forth takes one.
	MarginalRate = 3

	// RegionRate is the number of flops of truncated legs in the time of one of regions: their tables
	// are small.
	// Calibrated with Rate.
	RegionRate = 8

	// UpdateFlops is the cost of one update of a message: some 200 ns, for a table of any size.
	// Measured: 100 ns on a grid of 150×150 (decision 15), 200 ns on one of 1000×1000
	// (docs/benchmarks/approximate.md).
	UpdateFlops = 200e-9 * Rate

	// MoveFlops is the cost of one move of a search for a plan: about a nanosecond.
	// Estimated; no command repeats it.
	MoveFlops = 1e-9 * Rate

	// MoveCost is the number of flops of a contraction, entries written counted as 16 of them, in the
	// time of one move of the search for its tree.
	// Measured: a move takes 1.0 to 1.6 ns (go test -bench 'Sweep|Search'
	// ./internal/network/contractionorder), a flop of such a price 0.4 ns before kernels were vectorised;
	// decision 25 has its effect.
	MoveCost = 8.0
)

// The exact way: which of its forms, and where it ends.
const (
	// JunctionFlops is the work for Z up to which a network has one contraction tree for all evidence, and JunctionBytes what its tables and
	// those of marginals may take; JunctionOrder is the work along a min-fill order up to which such a tree is looked for, JunctionMoves the
	// moves of the search, some 50 ms.
	// Measured: docs/benchmarks/questions.md.
	JunctionFlops = 2e8
	JunctionBytes = 256 << 20
	JunctionOrder = 1e9
	JunctionMoves = 1 << 24

	// ReplanFlops is the work above which a query's evidence is worth an elimination order of its
	// own.
	// Measured: a quarter and four times of it change all flops of 280 queries by −0.5 and
	// +2.5 %, decision 20.
	ReplanFlops = 1e6

	// HeavyFlops is the work above which simplifying the network and searching a tree pays.
	// Measured: below it simplification and search take 2.2 times the work they replace (0.9 with
	// marginals), at the median of 34 models, decision 19.
	HeavyFlops = 3e7

	// AutoFlops is the work above which method auto does not take the exact way: minutes of two
	// cores.
	// Chosen: 2.75e11 flops take 38 s of one core (docs/benchmarks/scaling.md).
	AutoFlops = 1e12

	// ExactFlops is the work above which method exact refuses: years of a core.
	// Chosen.
	ExactFlops = 1e18

	// OutOfReach ends the pricing of an order, in flops: beyond it a tree is always searched, or the
	// exact way refused.
	// Chosen: a search saves a factor of 2^20 at most, see FarOff.
	OutOfReach = 1e24

	// MostClosedFormTerms bounds the components of an exact decomposition in closed form.
	// Measured: a quarter and four times of it answer 15 and 36 of 48 small models in 512 B, 24 as it
	// is; none of 82 models in 2 GiB has such a form, decision 20. Why closed forms come last: decision 3.
	MostClosedFormTerms = 64

	// MostEnumerated bounds the flops of a joint marginal that is contracted cell by cell.
	// Chosen: AutoFlops.
	MostEnumerated = AutoFlops

	// WideFlops is the work above which nothing is contracted in wide numbers: about a quarter of a
	// minute of one core.
	// Measured: some 15 ns an operation, decision 17. WideBigFlops is the same for numbers of many
	// digits, times the 64-bit words of one squared.
	WideFlops    = 1 << 30
	WideBigFlops = 1 << 32
)

// Circuits: when a network is compiled into one.
const (
	// CircuitFlops is the cost of a step of the search, in flops of truncated legs: some 20 ns.
	// Chosen on the safe side: searches of clauses took 3 to 10 ns a step, searches of tables more.
	CircuitFlops = 60
)

// Searches for plans: their moves, and their part of the budget or of the time that a deadline
// leaves.
const (
	// PlanningShare is the part of a budget that the searches for plans may take.
	// Chosen. Decision 10 has the results of fewer and of more moves.
	PlanningShare = 1.0 / 4

	// MostMoves bounds the searches of one query under any budget: some four seconds of a core.
	// Chosen.
	MostMoves int64 = 1 << 32

	// MostFill bounds the search for an elimination order of a network that is not simplified yet,
	// in operations: a second.
	// A bound: of 269 models a regular graph of 100,000 variables reaches it, a grid of 200×200 half
	// of it, no other a quarter, decision 20.
	MostFill = 1 << 27

	// WorkShare is the part of a deadline that the contractions of an approximate answer are planned
	// for at most, PlanShare that after which no plan is searched for any more.
	// Chosen, not measured: their effect depends on a clock, decision 20.
	WorkShare = 0.7
	PlanShare = 0.5

	// FirstSeconds is the time left after planning for the first estimate, per table of the network.
	// Measured: belief propagation's value and the bound by its messages take 10 µs a table of 150,000 on a quiet machine; twice that.
	FirstSeconds = 20e-6

	// ExactShare is the part of the time for planning that method auto looks for an exact way in,
	// where there is a deadline.
	// Measured: all moves of a search take half of that on a quiet machine.
	ExactShare = 2.0 / 3

	// PrepareShare is the part of the time for planning that method auto simplifies the network for
	// truncated legs in.
	// Chosen, not measured: its effect depends on a clock, decision 20.
	PrepareShare = 1.0 / 2
)

// Sizes of tasks. A task is the work of one worker between two acknowledgements.
const (
	// ChunkFlops is the usual cost of one task: about 100 ms of one core.
	// Chosen, not measured: it changes the cut of the work, and no answer.
	ChunkFlops = 1e8

	// SliceTaskFlops is the target cost of a task of slices: about half a second of one core.
	// Measured: 4.3e9 flops in 0.59 s, docs/benchmarks/scaling.md.
	SliceTaskFlops = 4e9

	// MostChunks bounds the tasks of slices of one query.
	// A bound: auto reaches 250 at most, AutoFlops over SliceTaskFlops; only method exact has more.
	MostChunks = 1024
)
