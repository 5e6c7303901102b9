package judge

// What is known of a query: its estimates so far, belief propagation, and bounds.

import (
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/network/additive"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// Sequence is what the judges of one query have in common.
type Sequence struct {
	// all estimates evaluated so far, of all rules, with a value or an error, in the sequence of the plan
	Estimates          []*Estimate
	Propagation        *query.Propagation // how belief propagation ended; nil if it was not run
	IsHard             bool               // tables of the simplified network forbid combinations of values
	IsUnsure           bool               // contractions in float64 may have lost entries; computations in logarithms have not
	Targets            []int              // the variables whose marginals are wanted; nil: all
	Bounds             Bounds             // on ln Z
	Accuracy           float64            // the uncertainty of ln Z at which the sequence may end, nats
	FailureProbability float64            // the probability with which any of the query's sampled bounds may fail
}

// Estimate is an estimate of a plan with the values of its parts.
type Estimate struct {
	query.EstimateResult // LogZ is nil if there is no value
	Plan                 *btn.Estimate
	Parts                []btn.Value   // the values of the parts that have a share of Z, in the sequence of the plan
	Z                    scaled.Number // Z̃, the value of the estimate
	Rounding             float64       // a bound on the relative error of Z by rounding and by what parts are off on paper; 0 if not known
	Digits               float64       // the decimal digits that cancelled in the sum over the parts
	IsBound              bool          // the estimate is a bound, and has no Z
}

// FloorError returns the smallest error of ln Z that the estimate can have, in nats: that of rounding in general (LeastError), or the one
// that follows from the relative error Rounding of Z, −ln(1 − Rounding), if that is larger. The estimate must have a value.
func (e *Estimate) FloorError() float64 { return max(LeastError(*e.LogZ), -math.Log1p(-e.Rounding)) }

// rounding is the error of an estimate that truncated nothing, per nat of ln Z and one nat.
// Measured: singular values below 1e-12 of the largest are always dropped.
const rounding = 1e-13

// Rounding is the least error of a probability.
const Rounding = rounding

// LeastError returns the smallest error in nats that a computed ln Z can have, since it is rounded.
func LeastError(lnZ float64) float64 { return rounding * (1 + math.Abs(lnZ)) }

// Finite returns a pointer to x, or nil if x is NaN or ±Inf.
func Finite(x float64) *float64 {
	if x-x != 0 {
		return nil
	}
	return &x
}

// HasHiddenModes reports whether the pilot of an estimate by drawn components has found modes that chains from other starts miss.
func (s *Sequence) HasHiddenModes() bool {
	return slices.ContainsFunc(s.Estimates, func(e *Estimate) bool { return e.Plan.Parts[0].About().Sample.Modes })
}

// SumMarginals returns the marginals of an estimate: the sum of the unnormalised marginals of its parts, normalised. p is nil if a part
// with a Z other than 0 has no marginals. It is also nil if they cannot be computed, and then warning is the reason. A warning may also
// come with marginals.
func (s *Sequence) SumMarginals(e *Estimate) (p [][]float64, warning string) {
	var marginals []*btn.Marginals
	for _, v := range e.Parts {
		if v.Marginals != nil {
			marginals = append(marginals, v.Marginals)
		} else if !v.Z.IsZero() {
			return nil, ""
		}
	}
	p, warning, err := additive.Marginals(additive.Ones(len(marginals)), marginals, s.Targets)
	if err != nil {
		return nil, err.Error()
	}
	return p, warning
}

// LargestDifference returns the largest |p[v][x] − q[v][x]| over all variables v and values x.
func LargestDifference(p, q [][]float64) (largest float64) {
	for v := range p {
		for x := range p[v] {
			largest = max(largest, math.Abs(p[v][x]-q[v][x]))
		}
	}
	return largest
}
