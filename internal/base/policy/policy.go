// Package policy holds the thresholds that choose a way to an answer, on one page: which engine,
// the amount of searching, the size of a task, when an estimate is trusted. It imports nothing, so
// every package may read it.
//
// Each constant states its measurement, or that it was chosen. Numeric tolerances, sizes of caches
// and of blocks stay with the algorithm that they belong to. Defaults of a request (memory, budget,
// accuracy) are in package btn. All measurements are of the machine of docs/benchmarks: two cores
// of an AMD EPYC, 24 GiB.
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

	// TreeRate is the number of flops of a sweep in the time of one along a tree of truncated legs:
	// large tensors are permuted.
	// Measured when trees were priced; no command repeats it.
	TreeRate = 4

	// SmallBond is the bond below which a flop of a sweep takes longer, as one over the bond: small matrices.
	// Measured by CPU time on a grid of 40×40, a complete and a three-dimensional model: 5 to 7 times at bond 4, 3 to 4 at 8, 2.2 at 16,
	// 1.1 at 20, decision 26.
	SmallBond = 32

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

	// SweepMove is the number of those moves in the time of one move of the search for a matrix
	// product state.
	// Measured: a quarter and four times of it change 17 and 21 of 26 models, without a direction,
	// decision 20.
	SweepMove = 64
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

	// PartTables is the number of tables up to which a question to a directed network is answered on the part that it depends on, if
	// the network has more; of a larger part, and of a smaller network, the tree for all evidence is looked for first.
	// Measured: a part of so many tables is planned in a millisecond.
	PartTables = 128

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

	// FarOff is the largest ratio of the flops of the min-fill order to the allowed ones at which a
	// search is worth it.
	// Seen: annealing saved a factor of 2^20 on grids and random graphs, never of 2^30. No command
	// repeats it.
	FarOff = 1 << 30

	// DescentFlops is the work up to which assignments are found along the min-fill order, without a
	// search for a tree.
	// Chosen: the cost at which contractionorder.Search takes its first tree.
	DescentFlops = 1e7

	// MapSearchFlops is the work that a search for a marginal MAP assignment may take, where the best
	// one is out of reach: about a second.
	// Chosen.
	MapSearchFlops = 1e9

	// MostClosedFormTerms bounds the components of an exact decomposition in closed form.
	// Measured: a quarter and four times of it answer 15 and 36 of 48 small models in 512 B, 24 as it
	// is; none of 82 models in 2 GiB has such a form, decision 20. Why closed forms come last: decision 3.
	MostClosedFormTerms = 64

	// ClassFlops is the work, by a quick order, above which matrices whose rows are equal in part are
	// written over classes of rows.
	// Measured: four protein models take 2 to 50 times fewer flops along the trees found, 50 other
	// models have no such matrices, decision 12.
	ClassFlops = HeavyFlops

	// GroupFlops is the cost of one pass for all marginals, by a quick order, above which groups of
	// marginals are looked at.
	// Measured: a quarter and four times of it change nothing on 28 models, decision 20: memory
	// decides first.
	GroupFlops = 1e10

	// GroupGain is the factor by which the groups have to be cheaper together: searches make orders
	// better, the larger ones more.
	// Measured: a quarter and four times of it change nothing on 28 models, decision 20.
	GroupGain = 100

	// EasyGroup is the price up to which the next group of marginals has twice as many indices,
	// MostGroup their maximum number.
	// Measured: a quarter of EasyGroup takes 0.3 to 0.4 of the flops on two models and no less time; a
	// quarter of MostGroup 0.04 to 0.7, four times nothing, decision 20.
	EasyGroup = 1e6
	MostGroup = 64

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
	// LogicalShare is the share of factors with zeros among those over several variables from which a circuit is looked for.
	// Chosen: conditional tables that are functions have zeros, clauses have one each.
	LogicalShare = 0.1

	// CircuitFlops is the cost of a step of the search, in flops of truncated legs: some 20 ns.
	// Chosen on the safe side: searches of clauses took 3 to 10 ns a step, searches of tables more.
	CircuitFlops = 60

	// CircuitAgain bounds the work on the circuit of a model that was asked about before, in flops:
	// some five seconds of a core.
	// Chosen: the next thousand queries save it.
	CircuitAgain = 1.5e10

	// CircuitShare is the part of the work of a tree, and of a budget, that may go into looking for a
	// circuit first.
	// Chosen: a first query is not slower by more.
	CircuitShare = 1.0 / 4

	// CircuitLeast is the work, in steps, below which no search is begun: trees that cost little are not to be had for less.
	CircuitLeast = 1 << 22

	// WhollyLogicalShare is LogicalShare for a search before a tree is looked for: a model that is not
	// nearly all logic has tables that search does not make smaller.
	// Measured: formulas have 1, linkage 0.41, Pedigree_11 0.68, BN_69 0.63; with the search they took
	// 1.1 to 2 s of CPU time more.
	WhollyLogicalShare = 0.9

	// CircuitProbe is the work, in steps, that a first query of such a network spends on a search for a circuit before it looks for a
	// tree: half a second.
	// Measured: btn infer --method exact takes 1.7 s for mc2022_track2_101 with it, 7.8 s without; 6.7 and 6.6 s for 091, which
	// it is too short for. All of CPU time.
	CircuitProbe = 1 << 26

	// CircuitProbeCore is that work for each core of a large network, whose simplification takes long, and CircuitProbeMost the most.
	// Chosen: planning formulas of 21,000 to 29,000 clauses take 2^27 to 2^28 steps.
	CircuitProbeCore = 1 << 14
	CircuitProbeMost = 1 << 29

	// LittleProbes is the number of entries that the simplification before an elimination may look at where all factors are logic and a
	// search comes next: a tenth of a second. preprocess itself takes 16 times as many.
	// Measured: planning formulas of 1,300 to 2,300 variables (log-2, log-3, log-4) take 1.8, 2.6 and 2.0 s of CPU time with it and
	// CircuitProbeCore, 9.6, 21 and 10 s without.
	LittleProbes = 1 << 20

	// SearchShare is CircuitShare where method exact is asked for and the tree is the only other way: the search is given up when half
	// of the tree's time is spent.
	// Chosen.
	SearchShare = 1.0 / 2

	// CircuitBytes bounds the circuits that are kept.
	CircuitBytes = 256 << 20
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

	// FillMoves bounds the same for a simplified network before a tree is searched: ten seconds,
	// which takes a graph of a million indices.
	// Chosen; the times are not repeated by a command.
	FillMoves = 1 << 30

	// WorkShare is the part of a deadline that the contractions of an approximate answer are planned
	// for at most, PlanShare that after which no plan is searched for any more.
	// Chosen, not measured: their effect depends on a clock, decision 20.
	WorkShare = 0.7
	PlanShare = 0.5

	// FirstTime is the part of a deadline by which the first value is stored, or one sweep of belief propagation later: half of it
	// is for plans that are there at once, the rest for belief propagation to converge.
	// Chosen.
	FirstTime = 0.1

	// UninsuredFlops is the work of an exact plan up to which there is no first value before it.
	// Chosen: some microseconds; a plan of more takes longer than a sweep of belief propagation, as a rule.
	UninsuredFlops = 1e5

	// FirstSeconds is the time left after planning for the first estimate, per table of the network.
	// Measured: belief propagation's value and the bound by its messages take 10 µs a table of 150,000 on a quiet machine; twice that.
	FirstSeconds = 20e-6

	// ContractionTime is the part of the time for planning that contractions may take where components are sampled as well.
	// Chosen: they take two thirds of it where nothing else runs.
	ContractionTime = 0.6

	// TrialTime is the part of the remaining time that a trial of theirs may take.
	// Chosen: pilots need the rest.
	TrialTime = 1.0 / 3

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

	// BatchGain is the ratio of the flops of a task whose queries are contracted together: they take a third of the time, and two batches
	// of eight keep two cores busy.
	// Measured: docs/benchmarks/questions.md.
	BatchGain = 16

	// SliceTaskFlops is the target cost of a task of slices: about half a second of one core.
	// Measured: 4.3e9 flops in 0.59 s, docs/benchmarks/scaling.md.
	SliceTaskFlops = 4e9

	// MostChunks bounds the tasks of slices of one query.
	// A bound: auto reaches 250 at most, AutoFlops over SliceTaskFlops; only method exact has more.
	MostChunks = 1024

	// RegionTaskFlops is the target cost of a task of regions, MostRegionParts the maximum number of
	// tasks of a slice of an estimate.
	// A bound: of 34 models a grid of 200×200 has a family beyond it (1.7e10 flops), no other a fifth
	// of it, decision 20.
	RegionTaskFlops = 4e9
	MostRegionParts = 64
)
