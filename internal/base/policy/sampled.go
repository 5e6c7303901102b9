package policy

// Sampled components.
const (
	// BoundsShare is the part of a budget that bounds may take which follow from the model alone,
	// BoundsRuns how often mini-buckets are run for it, BoundsRounds the maximum number of rounds of
	// messages, MostBucketEntries the largest product of mini-buckets.
	// Chosen. DeterminantRounds bounds the rounds of a determinant, measured: complete, bipartite,
	// three-dimensional models and ±J grids gain nothing after 8. The rest of the share goes into
	// slices: of K40 they take 10 nats off in 0.05 s, 15 in 0.2.
	BoundsShare       = 0.05
	BoundsRuns        = 3
	BoundsRounds      = 100
	DeterminantRounds = 12
	MostBucketEntries = 1 << 24

	// FillShare is the number of operations of a search for an elimination order per flop of a budget,
	// for bounds or for the price of the exact way.
	// Chosen: a fortieth of the budget, an operation taking some 10 ns.
	FillShare = 1.0 / 1200

	// BeliefsShare is the work of draws from beliefs beside the pilot of other draws, relative to its
	// work. BeliefsDefence is the share of mini-buckets among them, BeliefsHardDefence the same share
	// where tables forbid values together.
	// Chosen: errors of the messages have to be seen among the draws. Measured: the beliefs of a
	// parity code of 36 bits draw one word alone; with 0.01 of mini-buckets ln Z was 0.0048 too low,
	// six standard errors, because others were not among 10,000 draws.
	BeliefsShare       = 0.6
	BeliefsDefence     = 1e-2
	BeliefsHardDefence = 0.1

	// LeastEffective is the effective number of sampled components from which their standard error is believed.
	// Measured: parity codes, where chains die, state 1.3 to 2 nats with 1 to 2.4 effective ones and are off by 16 to 38; their tail index
	// is then 0.4.
	LeastEffective = 10

	// SampledParts is the maximum number of parts of the chains of one job.
	// Chosen: the number of workers, and the loss if one dies.
	SampledParts = 32
)

// Which family for which model, decision 26.
const (
	// Resolved and Unresolved are shares of the weight that truncation leaves out, Unresolved at FirstBond: below the first the bond
	// resolves the model, above the second it does not.
	// Measured: 3e-11 and 4e-7 on grids of 40×40, mixed and attractive, with errors of 1e-7 and 7e-5; 1e-3 to 0.3 on complete, bipartite,
	// three-dimensional and 3-regular models, colourings and parity codes, with errors of 0.02 to 30, decision 26.
	Resolved   = 1e-5
	Unresolved = 1e-3
)

// PilotDefences are the shares of mini-buckets that a sweep is tried with: a small one loses little and bounds weights worse.
// Chosen.
var PilotDefences = []float64{1e-2, 1e-4, 1e-6}

// MixtureSizes are the numbers of components that are tried.
// Chosen.
var MixtureSizes = []int{1, 4, 16}

// BeliefsFollow are the tolerances that messages follow values with: none does, or those that change by so much.
var BeliefsFollow = []float64{0, 0.1, 0.01}
