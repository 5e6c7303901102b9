package btn

// Plans: the estimates that answer a query, before anything is contracted.

import (
	"slices"

	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// Plan answers a query: estimates of Z in the sequence in which they count. All of their parts are
// handed out at once; the answer takes the shortest sequence of estimates that has settled and
// cancels the others. Exact ways have one estimate.
type Plan struct {
	Method    query.Method `msgpack:"method"` // the method used, never auto; see By
	Estimates []Estimate   `msgpack:"-"`
	// Accuracy is in nats: a sequence has settled when its stated uncertainty is at most this;
	// 0 where nothing grows.
	Accuracy float64  `msgpack:"accuracy"`
	Warnings []string `msgpack:"warnings,omitempty"`
}

// Rule says how the values of an estimate's parts become one.
type Rule string

const (
	// Linear is Z̃ = Σ_i α_i Z_i (Lemma 5).
	Linear Rule = "linear"
	// LogLinear is Z̃ = Σ_s exp(ln Z_BP(s) + Σ_r α_r (ln Z_r − ln Z_BP(s)))
	// over slices s and their regions r.
	LogLinear Rule = "log-linear"
	// Pooled is Z̃ = (1/N) Σ_i w_i over the weights of all sampled components of the estimate and of those before it.
	Pooled Rule = "pooled"
	// Bounding says that the parts are bounds: there is no Z̃, and the sequence goes on without it.
	Bounding Rule = "bounding"
)

// Estimate is B ≈ Σ_i Alpha[i] Parts[i], and how the values of the parts make a Z.
type Estimate struct {
	Rule Rule
	// Track names the parameters held fixed while a sequence of estimates grows; Level orders
	// the estimates of all tracks by their accuracy parameter. Both are empty where there is
	// nothing to compare with.
	Track string
	Level float64
	// Slices is the total number of slices of the parts, 1 without.
	Slices int64
	// Lossless says that the value is exact up to rounding where its parts report that nothing was
	// truncated: along trees. A sweep drops directions that are null in its own norm, which in
	// strong models can count in the end.
	Lossless bool
	Alpha    []scaled.Number // nil: ones
	Parts    []Part
	// Quality is the fit of the estimate, known before contraction; nil: it
	// is judged by the sequence that it is in.
	Quality *Quality
	Cost    query.Cost // predicted, of all parts together; Bytes is the peak of one
}

// KeepsRange reports whether all parts of an estimate keep their range.
func (e *Estimate) KeepsRange() bool {
	for _, part := range e.Parts {
		if !part.About().KeepsRange {
			return false
		}
	}
	return true
}

// Quality is how well an estimate fits the base tensor.
type Quality struct {
	// Exact says that B = Σ α_i Q^(i) up to rounding, known and not only measured.
	Exact    bool    `msgpack:"exact,omitempty"`
	Residual float64 `msgpack:"residual"` // ρ = ‖B−B̃‖²/‖B‖², in [0, 1]; 0 when Exact
	// LnExplained is ln(1−ρ) in nats, computed without forming 1−ρ:
	// on large networks ρ prints as 1 and this does not.
	LnExplained float64 `msgpack:"ln_explained"`
	LnNormB     float64 `msgpack:"ln_norm_b"` // ln ‖B‖ in nats
	// ln ‖B−B̃‖ in nats, −Inf when Exact; a factor of the certificate
	LnNormError   float64 `msgpack:"ln_norm_error"`
	ConditionGram float64 `msgpack:"condition_gram"` // condition number of G, 1 for one component
}

// Grows reports whether the plan's answer is a sequence of estimates that judge each other,
// and not one whose quality is known.
func (p *Plan) Grows() bool { return len(p.Estimates) > 0 && p.Estimates[0].Quality == nil }

// By is the method that one of the plan's estimates is by: those that judge each other may be of several.
func (p *Plan) By(e *Estimate) query.Method {
	switch {
	case e.Quality != nil || e.Rule == Pooled && p.Method == query.MethodSymmetryCP:
		return p.Method
	case e.Rule == Pooled:
		return query.MethodSampled
	case e.Rule == LogLinear:
		return query.MethodRegions
	}
	return query.MethodTruncated
}

// Exact reports whether the plan's one estimate is exact.
func (p *Plan) Exact() bool {
	return len(p.Estimates) == 1 && p.Estimates[0].Quality != nil && p.Estimates[0].Quality.Exact
}

// Len is the number of parts of all estimates together.
func (p *Plan) Len() int {
	n := 0
	for k := range p.Estimates {
		n += len(p.Estimates[k].Parts)
	}
	return n
}

// Part returns part i of all estimates, in sequence, and the estimate that it is of;
// nil where there is none.
func (p *Plan) Part(i int) (Part, *Estimate) {
	if i < 0 {
		return nil, nil
	}
	for k := range p.Estimates {
		e := &p.Estimates[k]
		if i < len(e.Parts) {
			return e.Parts[i], e
		}
		i -= len(e.Parts)
	}
	return nil, nil
}

// Weights are all α, written out. They are not to be changed.
func (e *Estimate) Weights() []scaled.Number {
	if e.Alpha != nil {
		return e.Alpha
	}
	return slices.Repeat([]scaled.Number{scaled.One}, len(e.Parts))
}
