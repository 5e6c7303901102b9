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
	Estimates   []*Estimate        // those that are evaluated, with a value or without, in sequence
	Propagation *query.Propagation // how belief propagation ended; nil if it was not run
	IsHard      bool               // tables of the simplified network forbid combinations of values
	IsUnsure    bool               // contractions in float64 may have lost entries; logarithms have not
	Targets     []int              // the variables whose marginals are wanted; nil: all
	Bounds      Bounds
	Accuracy    float64 // the uncertainty of ln Z at which the sequence may end, nats
	Delta       float64 // the probability with which some of the query's sampled bounds may fail
}

// Estimate is an estimate of a plan with the values of its parts.
type Estimate struct {
	query.EstimateResult // LogZ is nil if there is no value
	Plan                 *btn.Estimate
	Parts                []btn.Value   // of the parts that have a share of Z, in the sequence of the plan
	Z                    scaled.Number // Z̃
	Rounding             float64       // bounds the error of Z by rounding and on paper, relative to it; 0 if nothing is known
	Digits               float64       // decimal digits that cancelled in the sum over the parts
	IsBound              bool          // it is a bound, and has no value by itself
}

// FloorError returns the error that rounding alone leaves in ln Z, nats.
func (e *Estimate) FloorError() float64 { return max(Floor(*e.LogZ), -math.Log1p(-e.Rounding)) }

// rounding is the error of an estimate that truncated nothing, per nat of ln Z and one nat.
// Measured: singular values below 1e-12 of the largest are always dropped.
const rounding = 1e-13

// Rounding is the least error of a probability.
const Rounding = rounding

// Floor returns the error that rounding alone leaves in ln Z.
func Floor(lnZ float64) float64 { return rounding * (1 + math.Abs(lnZ)) }

// Finite returns a pointer to x, or nil if x is NaN or ±Inf.
func Finite(x float64) *float64 {
	if x-x != 0 {
		return nil
	}
	return &x
}

// HasHiddenModes reports whether a pilot of components that are drawn has found modes that chains from other starts miss.
func (s *Sequence) HasHiddenModes() bool {
	return slices.ContainsFunc(s.Estimates, func(e *Estimate) bool { return e.Plan.Parts[0].About().Sample.Modes })
}

// SumMarginals returns the marginals of all parts of an estimate together, weighted by their Z, or a warning why there are none.
func (s *Sequence) SumMarginals(e *Estimate) (p [][]float64, warning string) {
	var parts []*btn.Marginals
	for _, v := range e.Parts {
		if v.Marginals != nil {
			parts = append(parts, v.Marginals)
		} else if !v.Z.IsZero() {
			return nil, ""
		}
	}
	p, warning, err := additive.Marginals(additive.Ones(len(parts)), parts, s.Targets)
	if err != nil {
		return nil, err.Error()
	}
	return p, warning
}

// LargestDifference returns the largest difference of two probabilities.
func LargestDifference(p, q [][]float64) (largest float64) {
	for v := range p {
		for x := range p[v] {
			largest = max(largest, math.Abs(p[v][x]-q[v][x]))
		}
	}
	return largest
}
