package btn

// Plans: the estimates that answer a query, before anything is contracted.

import (
	"slices"

	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// Plan answers a query: estimates of Z in the sequence in which they count. All of their parts are
// handed out at once. The answer takes the shortest sequence of estimates that has settled, and the remaining parts are
// cancelled. A plan of an exact method has one estimate.
type Plan struct {
	Method    query.Method `msgpack:"method"` // the method used, never auto; see MethodOf
	Estimates []Estimate   `msgpack:"-"`
	// Accuracy is in nats. A sequence has settled if its stated uncertainty is at most this. It is 0 if the plan does not grow (Grows).
	Accuracy float64  `msgpack:"accuracy"`
	Warnings []string `msgpack:"warnings,omitempty"`
}

// Rule names how the values of an estimate's parts become one value.
type Rule string

const (
	// Linear is Z̃ = Σ_i α_i Z_i (Lemma 5).
	Linear Rule = "linear"
	// LogLinear is Z̃ = Σ_s exp(ln Z_BP(s) + Σ_r α_r (ln Z_r − ln Z_BP(s)))
	// over slices s and their regions r.
	LogLinear Rule = "log-linear"
	// Pooled is Z̃ = (1/N) Σ_i w_i over the weights of all sampled components of the estimate and of those before it.
	Pooled Rule = "pooled"
	// Bounding means that the parts are bounds. There is no Z̃, and the judgement of the sequence leaves such an estimate out.
	Bounding Rule = "bounding"
)

// Estimate is B ≈ Σ_i Alpha[i] Parts[i], and the rule by which the values of the parts make a Z.
type Estimate struct {
	Rule Rule
	// Track names the parameters held fixed while a sequence of estimates grows. Level orders
	// the estimates of all tracks by the parameter that grows. Both are empty if there is
	// no estimate to compare with.
	Track string
	Level float64
	// Slices is the total number of slices of the parts, 1 if the parts are not sliced.
	Slices int64
	// Lossless reports whether the value is exact up to rounding if the parts report that nothing was truncated. That is so along
	// trees. A sweep drops directions that are null in its own norm, which in strong models can count in the end.
	Lossless bool
	Alpha    []scaled.Number // nil: ones
	Parts    []Part
	// Quality is the fit of the estimate, if it is known before contraction. nil: the estimate is judged by the sequence that it is in.
	Quality *Quality
	Cost    query.Cost // predicted, of all parts together; Bytes is the peak of one part
}

// KeepsRange reports whether the contraction of every part of an estimate keeps all terms in the range of numbers, or detects terms that it
// lost (About.KeepsRange).
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
	// Exact reports whether B = Σ α_i Q^(i) up to rounding, by construction and not only by measurement.
	Exact    bool    `msgpack:"exact,omitempty"`
	Residual float64 `msgpack:"residual"` // ρ = ‖B−B̃‖²/‖B‖², in [0, 1]; 0 when Exact
	// LnExplained is ln(1−ρ) in nats, computed without forming 1−ρ:
	// on large networks ρ prints as 1 and this does not.
	LnExplained float64 `msgpack:"ln_explained"`
	LnNormB     float64 `msgpack:"ln_norm_b"` // ln ‖B‖ in nats
	// LnNormError is ln ‖B−B̃‖ in nats, −Inf when Exact; a factor of the certificate.
	LnNormError   float64 `msgpack:"ln_norm_error"`
	ConditionGram float64 `msgpack:"condition_gram"` // condition number of G, 1 for one component
}

// Grows reports whether the plan is a sequence of estimates that are judged by each other,
// in contrast to one estimate of known quality.
func (p *Plan) Grows() bool { return len(p.Estimates) > 0 && p.Estimates[0].Quality == nil }

// MethodOf returns the method that made estimate e of the plan. An estimate whose fit to the network is known before contraction (Quality)
// was made by the plan's method. Other estimates are judged by comparison with each other, and a plan may mix those of several methods.
// Such a method is known by its rule, the formula that makes one value of the values of the parts: Pooled is a mean of random samples, and
// LogLinear combines regions in the logarithm. Pooled estimates are of the sampled method, unless the whole plan is of symmetry-CP.
func (p *Plan) MethodOf(e *Estimate) query.Method {
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

// Exact reports whether the plan has only one estimate, of the quality exact.
func (p *Plan) Exact() bool {
	return len(p.Estimates) == 1 && p.Estimates[0].Quality != nil && p.Estimates[0].Quality.Exact
}

// PartCount returns the number of parts of all estimates together.
func (p *Plan) PartCount() int {
	partCount := 0
	for k := range p.Estimates {
		partCount += len(p.Estimates[k].Parts)
	}
	return partCount
}

// Part returns part number i of the plan, and the estimate that it belongs to. Parts are counted through all estimates in sequence. It
// returns nil for both if there is no part i.
func (p *Plan) Part(i int) (Part, *Estimate) {
	if i < 0 {
		return nil, nil
	}
	position := i // in the present estimate, if that has so many parts
	for k := range p.Estimates {
		e := &p.Estimates[k]
		if position < len(e.Parts) {
			return e.Parts[position], e
		}
		position -= len(e.Parts)
	}
	return nil, nil
}

// Weights returns the weight α of every part, which is 1 if e.Alpha is nil. The caller must not change the list.
func (e *Estimate) Weights() []scaled.Number {
	if e.Alpha != nil {
		return e.Alpha
	}
	return slices.Repeat([]scaled.Number{scaled.One}, len(e.Parts))
}
