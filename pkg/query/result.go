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

// Result answers one query: what all answers share, and the answers to its questions. Its JSON form is the output of `btn infer --json`.
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
	EvidenceFile       *string      `json:"evidence_file"` // the name of the evidence in the request
	Warnings           []string     `json:"warnings"`
	Cache              string       `json:"cache"` // "hit", "miss" or "off"
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
	// Ended says why an approximate answer stopped growing: settled, complete (the budget was spent), deadline; empty otherwise.
	Ended     string             `json:"ended"`
	TimingsMS map[string]float64 `json:"timings_ms"`
	Answers
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
	LogZ       *float64 `json:"log_z"`        // nats; null where this one failed
	LogZLinear *float64 `json:"log_z_linear"` // regions: ln of the linear sum (Lemma 5); null where that is not above 0
	Discarded  *float64 `json:"discarded"`    // truncated legs: largest relative weight of one truncation; no error bar
	Truncated  bool     `json:"truncated"`    // something above rounding was dropped; always true for regions
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
	// Together is ln of the sum of the Bethe values of fixed points that hardly overlap and of those that mirror
	// them; nil where they were not looked for, or there is one.
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
