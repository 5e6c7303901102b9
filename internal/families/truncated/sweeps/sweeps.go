// Package sweeps contracts an expression approximately:
// a matrix product state swept over its indices (docs/explanation/method.md, truncated legs).
//
// The state is the tensor over the frontier: the indices that are not summed yet and adjacent to
// what was. It is a chain of three-leg tensors, one per index, with bonds of at most χ. For every
// index of an elimination order the tables that have it are multiplied in, it is summed out, and
// the chain is compressed. A bond that is large enough makes the result exact up to rounding; dense
// models are within reach whose treewidth is hopeless.
//
// Source: F. Pan, P. Zhou, S. Li and P. Zhang,
// Contracting arbitrary tensor networks, arXiv:1912.03014.
package sweeps

import (
	"errors"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// ErrPlan is wrapped by the errors of plans that do not fit what they are used for.
var ErrPlan = errors.New("sweeps: invalid plan")

// ErrOptions is wrapped by the errors of bonds and cutoffs that mean nothing.
var ErrOptions = errors.New("sweeps: invalid options")

// DefaultCutoff is the cutoff of Options whose Cutoff is 0: a little above rounding. What is small
// in the state may be what the rest of the model asks for, so a larger cutoff costs accuracy that
// no bond brings back. Measured, χ=128, 1e-12 against 1e-15: Promedus_23 3e-5 / 9e-11, Grids_11
// 3e-4 / 5e-6, for at most three times the work.
const DefaultCutoff = 1e-15

// Options bound a contraction.
type Options struct {
	Bond int // χ ≥ 1, the largest bond that compression leaves
	// Cutoff: singular values below Cutoff times the largest are dropped; 0: DefaultCutoff.
	Cutoff    float64
	Memory    int64 // bytes for states and temporaries; 0: btn.DefaultMemory, 2 GiB
	Marginals bool  // compute Value.Marginals too
}

func (o Options) memory() float64 {
	if o.Memory == 0 {
		return float64(btn.DefaultMemory)
	}
	return float64(o.Memory)
}

// Value is an estimate of an expression's value and how it came about.
type Value struct {
	Z scaled.Number // may be negative where truncation went wrong, or the expression is
	// Marginals[i][v] is the share of Z in which index i has its v-th value; nil unless asked for,
	// and where Z is 0. The entries of an index sum to 1; for an index in no table they are equal.
	// Truncation can make them negative. They are less accurate than Z at the same bond: see
	// marginals.go.
	Marginals [][]float64
	// Discarded is the largest Σ s_dropped² / Σ s² of one truncation,
	// those of the sweep back included. It is no error bar.
	Discarded float64
	Truncated bool    // some truncation dropped singular values above the cutoff because of Bond
	Bond      int     // largest bond after a truncation
	Flops     float64 // multiplications and additions, decompositions by their usual counts
	PeakBytes float64 // of tables, states and temporaries at once, by their sizes
}
