// Package compiler sums the assignments of a formula by search: it decides values one after the
// other, propagates the consequences, splits the residual formula into connected components, and
// caches the sum of every component.
//
// The search is complete, its sums have no terms below 0: an answer is exact up to rounding. Conflicts teach clauses, which
// follow from the formula: they speed up propagation and are no part of components. Decisions follow a tree decomposition of
// the formula's graph together with how often literals took part in conflicts, and of variables of many values prefer few open ones.
// Components that are narrow are summed by elimination.
//
// Work is counted and never timed; the same formula gives the same bits everywhere.
//
// Sources: T. Sang et al., Combining component caching and clause learning for effective model counting (SAT 2004); M. Thurley,
// sharpSAT (SAT 2006); A. Darwiche, Recursive conditioning, Artificial Intelligence 126 (2001); T. Korhonen and M. Järvisalo,
// Integrating tree decompositions into decision heuristics of propositional model counters (CP 2021), arXiv:2308.15819.
package compiler

import (
	"context"
	"errors"

	"github.com/basetensor/basetensor/internal/methods/circuits/circuit"
	"github.com/basetensor/basetensor/internal/methods/circuits/formula"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// ErrBudget is wrapped by errors about work or memory that ran out; their code is fault.OverBudget.
var ErrBudget = errors.New("compiler: over the budget")

// defaultMemory stands in for an Options.Memory of 0.
const defaultMemory = 2 << 30

// Options of a search. The zero value works.
type Options struct {
	Work int64 // counted steps at most, a few nanoseconds each; 0: no limit
	// Rival returns the steps in the time of another way to the sum. It is asked once, when Work is spent: the search may then take half of
	// that, or of an elimination along its tree decomposition if that is less, and near its end nearEnd times as much. nil: it ends.
	Rival   func() float64
	Memory  int64           // bytes of cache, clauses and stacks together; 0: 2 GiB
	Weights []scaled.Number // by atom (formula.Literal.Atom), finite and not below 0; nil: all 1
	// Builder, over the domains of the formula, gets the sums and products of the search: a deterministic circuit for any weights.
	// Without one, values of weight 0 are excluded beforehand.
	Builder *circuit.Builder
	// CircuitOnly ends the search if Builder is full: Z is not asked for.
	CircuitOnly bool
	// Leaf returns the node of Builder for a value of a variable; nil: the builder's own leaf.
	Leaf func(v, a int) circuit.Node

	// cells bounds the entries of all tables of a component that is eliminated, at any price. 0: denseCells, at densePrice; below 0: none
	// is.
	cells int
}

// Stats are the counters of a search.
type Stats struct {
	Work       int64 // counted steps
	Variables  int   // Boolean variables left after propagation at the root
	Clauses    int   // clauses of three literals and more left, without learned ones
	Width      int   // variables in the largest bag of the tree decomposition, less one
	Decisions  int64
	Conflicts  int64
	Components int64 // components met that are not one variable
	Hits       int64 // of them, known from the cache
	Dense      int64 // of them, summed by elimination
	Learned    int64 // clauses
	Kept       int   // learned clauses of three literals and more still held at the end
	Evicted    int64 // entries dropped from the cache to make room
}

// Result is the sum of a formula.
type Result struct {
	Z      scaled.Number // with Options.Weights
	Root   circuit.Node  // of the circuit over all variables, if Traced
	Traced bool          // there was a builder, and it had room
	Stats  Stats
}

// Compile returns
//
//	Z = Scale · Σ_x Π_v w_v(x_v) · Π_clauses [c holds] · Π_tables t(x)
//
// with relative error at most 2^-53 times the number of additions and multiplications on a way through the search. If Options.Builder is
// set, it also writes the circuit of the sum to it.
//
// A component of the formula is recognised by a digest of 128 bits. The probability that two of n different components have the same digest
// is below n²·2^-129, over the choice of the digest's numbers, which a cryptographic generator draws under a key: a hash of the formula.
//
// It fails with ErrBudget (fault.OverBudget) when Options.Work is spent or Options.Memory does not hold the formula, with circuit.ErrFull
// (fault.OverBudget) if the builder is full and Options.CircuitOnly is set, and with the context's error, within some milliseconds.
func Compile(ctx context.Context, f *formula.Formula, o Options) (Result, error) {
	if o.Memory == 0 {
		o.Memory = defaultMemory
	}
	if err := checkMemory(f, o.Memory); err != nil {
		return Result{}, err
	}
	excludesZeros := o.Builder == nil // values of weight 0 are excluded, except in a circuit, which is for any weights
	p, err := encode(f, o.Weights, excludesZeros)
	if err != nil {
		return Result{}, err
	}
	s, isPossible, err := prepare(ctx, p, o)
	if err != nil {
		return Result{}, err
	}
	if !isPossible { // no assignment satisfies the formula
		return Result{Root: circuit.Zero, Traced: o.Builder != nil && !o.Builder.IsFull()}, nil
	}

	z, err := s.run(ctx)
	s.trace.stopIfFull()
	// p.factor is the product of the tables without variables and the weights of values that all assignments have.
	return Result{
		Z: z.number.Mul(f.Scale).Mul(p.factor), Root: z.node, Traced: s.trace.isWritten() && err == nil, Stats: s.stats,
	}, err
}

// bytesPerLiteral bounds the memory of a clause's literal, or of a variable's value, over all lists
// together.
const bytesPerLiteral = 96

// checkMemory returns an error, ErrBudget, if the lists of the formula would take more than half of the memory.
func checkMemory(f *formula.Formula, memory int64) error {
	cells := int64(f.Atoms())
	for _, c := range f.Clauses {
		cells += int64(len(c)) + 2 // its literals, and its length and mark
	}
	for _, t := range f.Tables {
		cells += int64(len(t.Values) + len(t.Scope))
	}
	if need := cells * bytesPerLiteral; need > memory/2 {
		return fault.New(fault.OverBudget, "%w: the formula takes some %d bytes, half of the memory is %d", ErrBudget, need, memory/2)
	}
	return nil
}
