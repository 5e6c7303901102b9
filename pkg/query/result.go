package query

import (
	"github.com/basetensor/basetensor/pkg/fault"
)

// The stages, in the order in which a job passes them, as they are named in errors, logs, metrics, timings and progress.
const (
	StageReparam   = "reparam-worker"  // model → network
	StageLearn     = "learn-worker"    // network → plans, tasks
	StageContract  = "contract-worker" // task → values of its parts
	StageAggregate = "aggregator"      // values → the answer; also cancels, deadlines and the sweeper
)

// Values of a result's status.
const (
	StatusOK    = "ok"
	StatusError = "error"
)

// Result answers one query. Its JSON form is the output of `btn infer --json`; null where a field does not apply.
type Result struct {
	Job                string       `json:"job"`
	Query              int          `json:"query"`  // position in the request
	Status             string       `json:"status"` // StatusOK or StatusError
	Error              *ErrorInfo   `json:"error"`
	Exact              bool         `json:"exact"`
	Method             Method       `json:"method"`
	LogZ               *float64     `json:"log_z"`   // nats
	Log10Z             *float64     `json:"log10_z"` // decimal
	Zero               bool         `json:"zero"`    // Z is exactly 0; then log_z and log10_z are null
	Components         int          `json:"components"`
	Residual           *float64     `json:"residual"`     // ρ
	LnExplained        *float64     `json:"ln_explained"` // ln(1−ρ)
	ConditionGram      *float64     `json:"condition_gram"`
	Certificate        *Certificate `json:"certificate"`
	CancellationDigits *float64     `json:"cancellation_digits"`
	Marginals          [][]float64  `json:"marginals"` // P(x_i = a) per variable and value; null unless asked for
	// Targets are the variables that Marginals are of, in sequence, where the query named them; absent: of all.
	Targets []int  `json:"targets,omitempty"`
	Joint   *Joint `json:"joint"` // of the set of variables that was asked for; null without one
	// Gradients are ∂ ln Z/∂θ in nats, by factor of the model a list of its numbers in their sequence; absent unless asked for.
	Gradients [][]float64 `json:"gradients,omitempty"`
	// ScaledGradients are there in the place of Gradients where one is beyond float64.
	ScaledGradients *ScaledGradients `json:"scaled_gradients,omitempty"`
	// Likelihood sums up the cases of a query; absent without. LogZ is Likelihood.Ln then, null if that is.
	Likelihood *Likelihood `json:"likelihood,omitempty"`
	// Conflict is there where it was asked for, Z is 0, and it was found out.
	Conflict *Conflict `json:"conflict,omitempty"`
	// Information is there where it was asked for and the evidence is possible.
	Information *Information `json:"information,omitempty"`
	// Sensitivity belongs to the requested target; absent without, and where Z is 0.
	Sensitivity *SensitivityResult `json:"sensitivity,omitempty"`
	// LnRatio is ln P(event | given) in nats: ln Z of this query less ln Z of the one that it is asked over.
	LnRatio      *float64 `json:"ln_ratio"`
	EvidenceFile *string  `json:"evidence_file"`
	// MPE, Map, Samples and Seed are there where they were asked for, and Z is not 0: samples have a value per variable.
	MPE     *Explanation `json:"mpe,omitempty"`
	Map     *MarginalMap `json:"map,omitempty"`
	Samples [][]int      `json:"samples,omitempty"`
	// SampleWeights are there where samples do not have the same weight: they sum to 1, and Σ w f(x) is an estimate of the mean of f.
	// EffectiveSamples is 1/Σ w² then: the number of equally weighted samples that they are worth.
	SampleWeights    []float64 `json:"sample_weights,omitempty"`
	EffectiveSamples *float64  `json:"effective_samples,omitempty"`
	Seed             *uint64   `json:"seed,omitempty"`
	Warnings         []string  `json:"warnings"`
	Cache            string    `json:"cache"` // "hit", "miss" or "off"
	// Relearned names the parts that were learned for this evidence, where the model's own parts do not serve; else empty.
	Relearned string `json:"relearned,omitempty"`
	Plan      *Cost  `json:"plan"`
	Run       *Run   `json:"run"` // null where nothing was contracted
	// Uncertainty is the stated error of log_z in nats, from the last changes of the estimates and their spread over trees and
	// orders; null for exact answers and where nothing is known.
	Uncertainty *float64 `json:"uncertainty"`
	// Bounds are there where something bounds ln Z; absent otherwise.
	Bounds              *Bounds          `json:"bounds,omitempty"`
	MarginalUncertainty *float64         `json:"marginal_uncertainty"` // largest error of a probability, at most 1; null as Uncertainty
	Estimates           []EstimateResult `json:"estimates"`            // of an approximate answer, in sequence; null without
	Propagation         *Propagation     `json:"bp"`                   // belief propagation, where it was used
	// Named has names beside positions, where the model has names: readers of an answer make it with Name. Absent in messages.
	Named *Named `json:"named,omitempty"`
	// Ended says why an approximate answer stopped growing: settled, complete (the budget was spent), deadline; empty otherwise.
	Ended     string             `json:"ended"`
	TimingsMS map[string]float64 `json:"timings_ms"`
}

// Run is the work of a query's contractions, summed over its components.
type Run struct {
	Flops  float64 `json:"flops"`  // multiplications and additions
	Slices float64 `json:"slices"` // slices of a contraction tree that were computed; 0 where there was no tree
}

// ErrorInfo is why a query has no number.
type ErrorInfo struct {
	Code    fault.Code `json:"code" msgpack:"code"`
	Message string     `json:"message" msgpack:"message"`
	Stage   string     `json:"stage" msgpack:"stage"`
}

// Certificate bounds |Z − Z̃| by Cauchy–Schwarz: ‖B−B̃‖ · Π_j ‖L^(j)‖ (with the network's Scale). All in nats.
type Certificate struct {
	LnBound float64  `json:"ln_bound" msgpack:"b"` // ln of the bound on |Z − Z̃|
	LnLower *float64 `json:"ln_lower" msgpack:"l"` // ln(Z̃ − bound); null where the bound exceeds Z̃
	LnUpper float64  `json:"ln_upper" msgpack:"u"` // ln(Z̃ + bound)
}

// Bounds enclose ln Z, in nats; null where there is none on that side.
type Bounds struct {
	Lower *float64 `json:"lower"`
	Upper *float64 `json:"upper"`
	// Level is the probability with which all of them hold together: 1 where they follow from the model alone.
	Level float64 `json:"level"`
	How   string  `json:"how"` // which bounds they are
}

// EstimateResult is one estimate of an approximate answer.
type EstimateResult struct {
	Family     Family   `json:"family"`
	Plan       int      `json:"plan"` // which tree or order; 0 for regions
	Bond       int      `json:"bond"` // truncated legs: most values a leg may keep; 0 for regions
	Kind       string   `json:"kind"` // of regions: bethe, windows, cycles, balls; empty for truncated legs
	Size       int      `json:"size"` // of the seeds of regions; 0 for truncated legs
	Slices     int64    `json:"slices"`
	LogZ       *float64 `json:"log_z"`               // nats; null where this one failed
	LogZLinear *float64 `json:"log_z_linear"`        // regions: ln of the linear sum (Lemma 5); null where that is not above 0
	Discarded  *float64 `json:"discarded"`           // truncated legs: largest relative weight of one truncation; no error bar
	Truncated  bool     `json:"truncated"`           // something above rounding was dropped; always true for regions
	Reused     bool     `json:"reused"`              // with projectors learned under other evidence
	Relearned  string   `json:"relearned,omitempty"` // why projectors learned without evidence were not reused, where that was tried
	Components int      `json:"components"`
	Regions    int64    `json:"regions"`
	Flops      float64  `json:"flops"`
	PeakBytes  float64  `json:"peak_bytes"`
	Failed     string   `json:"failed"` // why there is no number; empty otherwise
	// Of sampled components, absent for others: the standard error of log_z in nats, (Σw)²/Σw² of their weights, the tail index of the
	// weights (above 0.7 the standard error is not to be believed), and a bound below ln Z that holds with probability 0.999 together
	// with the bounds of the other estimates.
	StandardError    *float64 `json:"standard_error,omitempty"`
	EffectiveSamples *float64 `json:"effective_samples,omitempty"`
	TailIndex        *float64 `json:"tail_index,omitempty"`
	LnLower          *float64 `json:"ln_lower,omitempty"`
}

// Joint is P(x_v, v in Variables | evidence).
type Joint struct {
	Variables []int     `json:"variables"` // as they were asked for
	Shape     []int     `json:"shape"`     // their domains
	P         []float64 `json:"p"`         // Π Shape probabilities, the last variable fastest
}

// Explanation is the assignment of all variables with the largest weight.
type Explanation struct {
	Assignment []int   `json:"assignment"` // a value per variable
	LnWeight   float64 `json:"ln_weight"`  // nats: the product of the factors, and of the evidence's weights, there
	// Unique says that no other assignment is as good, up to the rounding of the factors' entries. Of a
	// search it is true where the list proves it: with Best above 1.
	Unique bool `json:"unique"`
	// LnBound, Gap and Optimal are a search's, absent where an elimination has found the best: no assignment is above LnBound, by Gap nats
	// above this one, and Optimal says that the search is complete: the gap is rounding, at most 1e-6.
	LnBound *float64 `json:"ln_bound,omitempty"`
	Gap     *float64 `json:"gap,omitempty"`
	Optimal *bool    `json:"optimal,omitempty"`
	// Others are the next best ones in sequence, where the query has Best above 1. LnBound, Gap and Optimal are of the list then: no
	// assignment that is not listed is above LnBound, by Gap nats above the last one.
	Others []Alternative `json:"others,omitempty"`
	// All says that no further assignment has a weight above 0, where fewer than Best are listed or as many as there are.
	All bool `json:"all,omitempty"`
}

// Alternative is an assignment beside the most probable one.
type Alternative struct {
	Assignment []int   `json:"assignment"`
	LnWeight   float64 `json:"ln_weight"` // nats
}

// MarginalMap is the most probable assignment of some variables.
type MarginalMap struct {
	Variables  []int   `json:"variables"`  // as they were asked for
	Assignment []int   `json:"assignment"` // a value for each
	LnWeight   float64 `json:"ln_weight"`  // nats: ln of the sum over all others
	Exact      bool    `json:"exact"`      // none is better
	// LnBound is no less than the ln_weight of any assignment; null where an elimination has found the best.
	LnBound *float64 `json:"ln_bound"`
	// Gap and Optimal are a search's: LnBound less LnWeight, nats, and whether it is complete: the gap is rounding, at most 1e-6. LnUpper
	// is there where the sum over the others does not fit: LnWeight is a bound from below then, LnUpper one from above.
	Gap     *float64 `json:"gap,omitempty"`
	Optimal *bool    `json:"optimal,omitempty"`
	LnUpper *float64 `json:"ln_upper,omitempty"`
}

// ScaledGradients are gradients of any range: number k of factor f has Mantissas[f][k]·2^Exponents[f][k].
type ScaledGradients struct {
	Mantissas [][]float64 `json:"mantissas"`
	Exponents [][]int64   `json:"exponents"`
}

// SensitivityResult says how a probability depends on the numbers of a model.
type SensitivityResult struct {
	Sensitivity
	P float64 `json:"p"` // of the target, given the evidence
	// Derivatives are ∂P/∂θ by factor, as Result.Gradients are, all other numbers held fixed. Covaried are those where the rest of a
	// number's row in a conditional probability table keeps its proportions, so that the row still sums to 1; null for other factors.
	Derivatives [][]float64 `json:"derivatives"`
	// ScaledDerivatives are there where one is beyond float64; Derivatives are empty then, and Covaried null for a factor with such.
	ScaledDerivatives *ScaledGradients `json:"scaled_derivatives,omitempty"`
	Covaried          [][]float64      `json:"covaried"`
	// Tornado ranks the numbers by the movement of P when they vary, the largest first: their rows covary where there are rows.
	Tornado []Swing `json:"tornado"`
}

// Swing is where P is when one number of the model varies.
type Swing struct {
	Factor    int     `json:"factor"`
	Number    int     `json:"number"`              // position in the lists of the factor
	Variables []int   `json:"variables,omitempty"` // of a table: its scope, and the values at which the number stands
	Values    []int   `json:"values,omitempty"`
	Of        *int    `json:"of,omitempty"` // of a conditional probability table: the variable that its rows are over
	Theta     float64 `json:"theta"`        // the number
	From      float64 `json:"from"`         // the range of θ
	To        float64 `json:"to"`
	Low       float64 `json:"low"` // the range of P
	High      float64 `json:"high"`
}

// Likelihood is Σ weight · ln Z over the cases of a query.
type Likelihood struct {
	Ln        *float64    `json:"ln"`                  // nats; null if a case is impossible
	Gradients [][]float64 `json:"gradients,omitempty"` // as of Result, of Ln; absent unless they are asked for
	// Impossible is the first case whose Z is 0, a position among the rows; null: there is none.
	Impossible *int `json:"impossible"`
}

// Cost is the cost of a contraction. Zero where nothing has to be planned.
type Cost struct {
	Width     int     `msgpack:"w" json:"width"`                      // largest number of indices in one table of the elimination, less one
	Log2Table float64 `msgpack:"t" json:"log2_table"`                 // log2 of the entries of the largest table
	Flops     float64 `msgpack:"f" json:"flops"`                      // multiplications and additions
	Bytes     float64 `msgpack:"b" json:"peak_bytes"`                 // peak of live tables, 8 bytes an entry
	Slices    float64 `msgpack:"s,omitempty" json:"slices"`           // parts that are contracted apart and added; 0 or 1: one
	Groups    float64 `msgpack:"g,omitempty" json:"groups,omitempty"` // of marginals, each with a contraction of its own; 0: one pass
	Edges     float64 `msgpack:"e,omitempty" json:"edges,omitempty"`  // of a circuit; 0: there is none
	// Nodes are the components of a function of few linear statistics; 0: it is none.
	Nodes float64 `msgpack:"n,omitempty" json:"nodes,omitempty"`
	// Counts are the count vectors that a sum over interchangeable variables has; 0: it is none.
	Counts float64 `msgpack:"c,omitempty" json:"counts,omitempty"`
}

// Propagation is the state in which belief propagation ended.
type Propagation struct {
	LogZ      *float64 `msgpack:"z" json:"log_z"`     // Bethe value in nats; null where it is not a number
	Converged bool     `msgpack:"c" json:"converged"` // the largest change fell below the tolerance
	Updates   int64    `msgpack:"u" json:"updates"`   // message updates
	Change    float64  `msgpack:"d" json:"change"`    // largest change of a message in the last round
	// Phases are the Bethe values of the distinct fixed points that seeded starts found, largest first.
	Phases []float64 `msgpack:"p,omitempty" json:"phases"`
	Signed bool      `msgpack:"s,omitempty" json:"-"` // some entry of the network is below 0, so messages may be, too
	// Together is ln of the sum of the Bethe values of fixed points that hardly overlap and of those that mirror them; nil where they were not
	// looked for, or there is one.
	Together *float64 `msgpack:"t,omitempty" json:"-"`
	Apart    bool     `msgpack:"a,omitempty" json:"-"` // all phases hardly overlap, so that each is a term of Together
	// Impossible says that the beliefs have an entropy below 0, so that they contradict each other.
	Impossible bool `msgpack:"i,omitempty" json:"-"`
}

// Family names how truncated legs follow one another.
type Family string

const (
	FamilySweep   Family = "mps"     // a matrix product state swept over the variables
	FamilyTree    Family = "tree"    // a tree of dense tensors
	FamilyRegions Family = "regions" // B in the BP gauge, projected on the messages outside a region
	FamilySampled Family = "sampled" // components drawn at random, by annealing
)
