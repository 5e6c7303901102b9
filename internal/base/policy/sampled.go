package policy

// Sampled components.
const (
	// BoundsDelta is the probability that some of the sampled bounds of a job does not hold: of all estimates of all its queries.
	// Chosen: the design's.
	BoundsDelta = 1e-3

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

	// PilotChains and PilotRungs are the chains and rungs of the pilot: the spread of its weights
	// decides the number of rungs, and the kind of steps.
	// Chosen: the variance of 64 normal numbers is known within a fifth.
	PilotChains = 64
	PilotRungs  = 128

	// PilotShare is the part of a budget that the pilot may take.
	// Chosen.
	PilotShare = 0.05

	// HastyShare reduces the budget for the pilot where the time for planning is over.
	// Chosen: some milliseconds of a second.
	HastyShare = 1.0 / 8

	// ProposalShare is the part of a budget that the pilot of independent draws may take: mini-buckets, and sweeps of growing bonds.
	// Measured: an attractive grid of 40×40 has a sweep of bond 4 within a tenth of six seconds, not within a twentieth, and a standard
	// error of 0.002 with it where chains have 0.13.
	ProposalShare = 0.1

	// PilotBond is the first bond of a sweep. FirstSearch is the share of a pilot's work that goes into each of the search for a sweep and
	// the tables of mini-buckets.
	// Chosen.
	PilotBond   = 4
	FirstSearch = 0.125

	// SlicesShare is the work of slices beside the pilot of other draws, relative to its work.
	// FirstSlice is the number of entries of the largest product in the first trial, SliceGrowth its
	// growth per trial, and SliceTries the number of trials that may be no better than mini-buckets.
	// Chosen. Measured: on independent sets of a 3-regular graph of 120 vertices the variance of a
	// slice of 64 entries is a third of a state's, at four times the work, with 512 a twelfth, at six
	// times.
	SlicesShare = 0.4
	FirstSlice  = 64
	SliceGrowth = 8
	SliceTries  = 3

	// BeliefsShare is the work of draws from beliefs beside the pilot of other draws, relative to its
	// work. BeliefsDefence is the share of mini-buckets among them, BeliefsHardDefence the same share
	// where tables forbid values together.
	// Chosen: errors of the messages have to be seen among the draws. Measured: the beliefs of a
	// parity code of 36 bits draw one word alone; with 0.01 of mini-buckets ln Z was 0.0048 too low,
	// six standard errors, because others were not among 10,000 draws.
	BeliefsShare       = 0.6
	BeliefsDefence     = 1e-2
	BeliefsHardDefence = 0.1

	// MixtureShare is the part of a budget that mixtures are learned for, half of it for the annealed draws they are learned from, of which
	// there are MixtureChains at most.
	// Chosen.
	MixtureShare  = 0.25
	MixtureChains = 4096

	// SetupShare is the largest ratio of the preparation of a part of the components to the work on
	// them.
	// Chosen.
	SetupShare = 0.25

	// WeightVariance is the variance of the logarithm of a weight that the rungs are chosen for.
	// Measured: the error at equal work does not depend on it from 1 down (complete, bipartite, three-dimensional, 3-regular models), and
	// is 1.5 to 3 times larger at 8.
	WeightVariance = 0.25

	// MetropolisGain is the ratio of variances below which Metropolis steps are taken.
	// Measured: 0.3 to 0.7 of the heat bath's on cold models, 1.7 to 2.5 on warm ones where nothing is
	// summed out; spins 0.5 to 0.9.
	MetropolisGain = 0.9

	// ForestGain is the ratio of variance times work below which forests are drawn together.
	// Chosen: MetropolisGain. Measured against the earlier choice: 0.07 and 0.08 on 3-regular graphs
	// of 300 spins, 0.2 on a 4-regular one, 0.6 on a scale-free one; above it on ±J models in three
	// dimensions and on periodic grids, decision 26.
	ForestGain = 0.9

	// OnceRungs is the minimum ratio of rung work to fixed work per chain, budget permitting.
	// Chosen: the error at equal work depends on the variance of a weight times its work alone, and
	// that is then a fifth.
	OnceRungs = 4

	// ForestThreads is the number of parallel threads for which the memory has to hold forests, which
	// take twice the memory of other chains.
	// Chosen: a worker has no more cores.
	ForestThreads = 64

	// ForestDegree is the largest average number of neighbours of a spin at which forests are tried.
	// Chosen: forests hold fewer couplings than there are spins, a third of all there, and win nothing
	// on three-dimensional ±J models.
	ForestDegree = 6

	// ProductGain is the ratio of variances below which chains begin with beliefs. ProductDeviations
	// is the number of standard errors by which their mean may be below the mean of other chains, and
	// the statement of the beliefs about their ends above, of ProductChains at most; ProductExcess is
	// the number of standard errors above the mean of others from which only they count.
	// Measured on 24 families: 0.1 of the variance or less on Bayesian networks, parity codes, in
	// fields; where there are several modes the mean falls by 0.4 to 12, or by less, and the statement
	// of the beliefs about the ends differs by 3 to 17 standard errors: a restricted Boltzmann machine
	// of 40 and 40 units lost 0.13 of ln Z with a quarter of the variance, and 512 chains saw it by 2
	// and 5 standard errors.
	// Chains of parity codes weigh 10 to 33 standard errors more than those from uniform draws, which
	// die.
	ProductGain       = 0.5
	ProductDeviations = 2
	ProductChains     = 2048
	ProductExcess     = 4

	// Where chains from uniform draws decide nothing, other starts of belief propagation do:
	// ProductStarts is their number, ProductPatience the factor by which they run longer, and
	// ProductApart the difference of a probability from which they are another mode.
	// Measured: an attractive grid of 12×12, Δ = 2, lost a quarter of Z, which 4,000 chains did not
	// see. Chosen: two modes that are reached alike are missed by one model of 128.
	ProductStarts   = 7
	ProductPatience = 4
	ProductApart    = 0.5

	// ModesShare is the largest part of a budget for the search for modes and a pilot of chains from them, ModesChains the
	// least number of chains from each start in that pilot. Chains begin from modes if they find more weight there than
	// other chains do, by ModesDeviations standard errors and by ModesLeast of the total.
	// Chosen.
	ModesShare      = 0.1
	ModesChains     = 16
	ModesDeviations = 2
	ModesLeast      = 1e-3

	// SettledBesideModes is the largest uncertainty, in nats, at which truncated legs and regions are believed beside modes
	// that chains miss.
	// Measured: where a mode was lost in part, they stated 9e-7 to 0.005 and were off by 0.0002 to 0.02.
	SettledBesideModes = 1e-9

	// LadderParts is the number of parts of β into which the pilot divides the path to place rungs,
	// EvenShare the share of rungs that are even.
	// Measured with 1,024 rungs placed by 64 chains: the variance of ln w is 0.7 to 1 times the
	// variance on an even ladder on seven kinds of large models, 0.8 in the middle.
	LadderParts = 16
	EvenShare   = 0.25

	// LeastSampled is the minimum number of chains, unless the budget does not hold them at
	// PilotRungs.
	// Chosen: a tail index needs some.
	LeastSampled = 128

	// DoubtedSamples is how far a probability from weighted samples may be off without a warning: that of 100 samples.
	// Chosen.
	DoubtedSamples = 0.1

	// LeastEffective is the effective number of sampled components from which their standard error is believed.
	// Measured: parity codes, where chains die, state 1.3 to 2 nats with 1 to 2.4 effective ones and are off by 16 to 38; their tail index
	// is then 0.4.
	LeastEffective = 10

	// SampledParts is the maximum number of parts of the chains of one job.
	// Chosen: the number of workers, and the loss if one dies.
	SampledParts = 32

	// MostSampledParts is the maximum number of parts where the memory holds only small ones.
	// Chosen: the size of a plan in a message.
	MostSampledParts = 1024
)

// Which family for which model, decision 26.
const (
	// TrialShare is the part of a budget that a contraction of truncated legs may take while plans are chosen.
	// Chosen: FirstShare, and some room where no smaller bond makes it so.
	TrialShare = 1.0 / 12

	// Resolved and Unresolved are shares of the weight that truncation leaves out, Unresolved at FirstBond: below the first the bond
	// resolves the model, above the second it does not.
	// Measured: 3e-11 and 4e-7 on grids of 40×40, mixed and attractive, with errors of 1e-7 and 7e-5; 1e-3 to 0.3 on complete, bipartite,
	// three-dimensional and 3-regular models, colourings and parity codes, with errors of 0.02 to 30, decision 26.
	Resolved   = 1e-5
	Unresolved = 1e-3

	// BondPower is the power of FirstBond over the bond by which Unresolved is larger at a smaller one.
	// Measured: a grid of 40×40 leaves out 0.14 at bond 2 and 3e-3 at 4, a three-dimensional model 0.2 and 0.1, decision 26.
	BondPower = 4

	// Drawable is the variance of weights, relative to their mean, up to which components alone are drawn where truncation does not resolve
	// a model.
	// Chosen: a thousand components then have a standard error of a tenth.
	Drawable = 10.0

	// LeastShare is the part of a budget that the family gets which has little to say, UnclearShare the part of samples where nothing
	// speaks for either.
	// Chosen: one estimate of the other family, to be held against.
	LeastShare   = 1.0 / 8
	UnclearShare = 1.0 / 2
)

// PilotDefences are the shares of mini-buckets that a sweep is tried with: a small one loses little and bounds weights worse.
// Chosen.
var PilotDefences = []float64{1e-2, 1e-4, 1e-6}

// MixtureSizes are the numbers of components that are tried.
// Chosen.
var MixtureSizes = []int{1, 4, 16}

// BeliefsFollow are the tolerances that messages follow values with: none does, or those that change by so much.
var BeliefsFollow = []float64{0, 0.1, 0.01}
