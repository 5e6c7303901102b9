// Package logic compiles networks into circuits: it joins packages formula, compiler and circuit.
package logic

import (
	"context"
	"errors"
	"slices"

	"github.com/basetensor/basetensor/internal/methods/circuits/circuit"
	"github.com/basetensor/basetensor/internal/methods/circuits/compiler"
	"github.com/basetensor/basetensor/internal/methods/circuits/formula"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// Options bound a compilation.
type Options struct {
	Work   int64          // of the search, counted as package compiler counts; 0: no limit
	Rival  func() float64 // see compiler.Options
	Memory int64          // bytes of formula, search and circuit together; 0: query.DefaultMemory
	Bytes  int64          // of the circuit; 0: a quarter of the memory
	// NoCircuit makes Sum return only Z and no circuit, in less than half the time if the search is long.
	NoCircuit bool
	// Probes bounds the entries that the simplification before an elimination looks at when it tries values; 0: the default of preprocess.
	Probes int
}

// withDefaults returns the options with defaults in the place of zeros.
func (o Options) withDefaults() Options {
	if o.Memory <= 0 {
		o.Memory = query.DefaultMemory
	}
	if o.Bytes <= 0 {
		o.Bytes = o.Memory / 4 // of a circuit; the rest is for the search
	}
	return o
}

// ErrCircuit is wrapped by the error that a circuit is larger than allowed, with fault.OverBudget.
var ErrCircuit = errors.New("logic: the circuit is larger than allowed")

// Eliminate returns the circuit of a network along its min-fill order, or nil if that is not short. The circuit is for all
// weights of the variables, except that weights of 0 stay 0. Evidence multiplies weights, so one circuit serves all queries to the
// network. Z of the circuit times net.Scale is Z of the network. The same network gives the same circuit.
func Eliminate(ctx context.Context, net *btn.Network, o Options) (*circuit.Compiled, error) {
	return compileByElimination(ctx, net, o.withDefaults())
}

// Search returns a circuit of a network as Eliminate does, but by a search, and the work of the search.
//
// Errors: those of formula.FromNetwork and compiler.Compile; over_budget if the circuit is larger than allowed.
func Search(ctx context.Context, net *btn.Network, o Options) (compiled *circuit.Compiled, work int64, err error) {
	o = o.withDefaults()
	_, compiled, work, err = search(ctx, net, nil, o) // nil: Z is not wanted
	if err == nil && compiled == nil {
		err = fault.New(fault.OverBudget, "%w: %d bytes, with all of the search done", ErrCircuit, o.Bytes)
	}
	return compiled, work, err
}

// Sum returns Z of a network by a search, without the factor net.Scale, and the circuit of the search. The circuit is nil if it is larger
// than allowed. Errors: those of Search except for ErrCircuit.
func Sum(ctx context.Context, net *btn.Network, o Options) (z scaled.Number, compiled *circuit.Compiled, err error) {
	z, compiled, _, err = search(ctx, net, net, o.withDefaults())
	return z, compiled, err
}

// formulaOf returns the network's formula, in which the values of weight 0 are excluded.
func formulaOf(ctx context.Context, net *btn.Network, o Options) (*formula.Formula, error) {
	f, err := formula.FromNetwork(ctx, net, o.Memory/4) // a quarter of the memory for the formula
	if err != nil {
		return nil, err
	}
	return excludeZeroWeights(f, net)
}

// search simplifies the formula of net and sums it by a search, which also builds a circuit.
//
// z is the sum under the weights of the network weighted; if weighted is nil, z is not wanted and means nothing. compiled is the circuit.
// It is nil if o.NoCircuit is set. If the circuit is larger than allowed, compiled is nil when z is wanted, and otherwise there is an error
// (CircuitOnly). work is the number of steps of simplification and search.
func search(
	ctx context.Context, net, weighted *btn.Network, o Options,
) (z scaled.Number, compiled *circuit.Compiled, work int64, err error) {
	// The simplified formula.
	f, err := formulaOf(ctx, net, o)
	if err != nil {
		return scaled.Number{}, nil, 0, err
	}
	reduced, err := formula.Simplify(ctx, f, simplifyWork(o.Work))
	if err != nil {
		return scaled.Number{}, nil, 0, err
	}

	// The search over the simplified formula. The translator writes the circuit over the variables of f.
	translator := newTranslator(f, reduced, o.Bytes)
	options := translator.searchOptions(o)
	options.CircuitOnly = weighted == nil
	fixedWeight := scaled.One // of the values that all assignments have
	if weighted != nil {
		if options.Weights, fixedWeight, err = translator.weights(weighted); err != nil {
			return scaled.Number{}, nil, 0, err
		}
	}
	r, err := compiler.Compile(ctx, reduced.Formula, options)
	r.Stats.Work += reduced.Work
	if errors.Is(err, circuit.ErrFull) {
		err = fault.New(fault.OverBudget, "%w: %d bytes: %w", ErrCircuit, o.Bytes, err)
	}
	if err != nil || !r.Traced { // not traced: there is no circuit
		return r.Z.Mul(fixedWeight), nil, r.Stats.Work, err
	}

	// The circuit over the variables of the network.
	c, err := translator.finish(ctx, r.Root)
	if errors.Is(err, circuit.ErrFull) { // the circuit over more variables is larger than allowed
		return r.Z.Mul(fixedWeight), nil, r.Stats.Work, nil
	}
	if err != nil {
		return scaled.Number{}, nil, r.Stats.Work, err
	}
	isFunctional := !slices.Contains(f.Functional, false)
	return r.Z.Mul(fixedWeight), circuit.NewCompiled(c, isFunctional), r.Stats.Work, nil
}

// remainingWork returns max(work − done, 1), the rest of a limit after some work is done. A limit of 0 means no limit: the result is 0.
func remainingWork(work, done int64) int64 {
	if work <= 0 {
		return 0
	}
	return max(work-done, 1)
}

// simplifyShare is the part of the work of a search that logical preprocessing may take before it.
const simplifyShare = 1.0 / 4

// simplifyWork returns the limit on the work of simplification: simplifyShare of that of the search (0: no limit), but at most the default.
func simplifyWork(work int64) int64 {
	if work <= 0 {
		return formula.DefaultWork
	}
	return min(max(int64(simplifyShare*float64(work)), 1), formula.DefaultWork)
}

// errNoWeights is the error of a network that is not one of this version.
var errNoWeights = fault.New(fault.Internal, "logic: the link of a variable is no list of weights")

// excludeZeroWeights returns formula f with clauses that exclude all values of the network's variables whose weight is 0.
func excludeZeroWeights(f *formula.Formula, net *btn.Network) (*formula.Formula, error) {
	var excluded []formula.Literal
	for v := range net.Variables {
		cp, err := weightsOf(net, v)
		if err != nil {
			return nil, err
		}
		for a, x := range cp.Weights {
			if x == 0 {
				excluded = append(excluded, f.Literal(v, a).Not())
			}
		}
	}
	return formula.Condition(f, excluded), nil
}

// IsLogical reports whether at least the given share of a network's cores are logical, so that a search can exploit them. A core is logical
// if its table has a zero, or if it is a sum of terms of both signs, as clauses and parities are. Tables of a single leg do not count as
// cores. Linear in the cores' sizes.
func IsLogical(net *btn.Network, share float64) bool {
	logical, cores := 0, 0
	for _, core := range net.Cores {
		isLogical := false
		switch t := core.T.(type) {
		case *tensor.Dense:
			if len(t.Shape) < 2 {
				continue
			}
			isLogical = slices.Contains(t.Data, 0)
		case *tensor.CP:
			isLogical = tensor.Signed(t)
		case *tensor.Symmetric:
			for i := 0; i < t.Values.Len() && !isLogical; i++ {
				isLogical = t.Values.At(i) == (scaled.Number{})
			}
		}
		if cores++; isLogical {
			logical++
		}
	}
	return logical > 0 && float64(logical) >= share*float64(cores)
}
