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
	// NoCircuit has Sum return Z alone, in less than half the time where the search is long.
	NoCircuit bool
	// Probes bounds the entries that the simplification before an elimination looks at when it tries values; 0: its own bound.
	Probes int
}

func (o Options) withDefaults() Options {
	if o.Memory <= 0 {
		o.Memory = query.DefaultMemory
	}
	if o.Bytes <= 0 {
		o.Bytes = o.Memory / 4
	}
	return o
}

// ErrCircuit is wrapped where a circuit is larger than allowed, with fault.OverBudget.
var ErrCircuit = errors.New("logic: the circuit is larger than allowed")

// Eliminate returns the circuit of a network, for all weights of its variables except the zero ones, along an elimination order; nil where
// that is not short. The same network gives the same circuit. Evidence multiplies weights, so it serves all queries to the network. It is
// read as Circuit's are: Z of the circuit times net.Scale is Z of the network.
func Eliminate(ctx context.Context, net *btn.Network, o Options) (*circuit.Compiled, error) {
	return eliminated(ctx, net, o.withDefaults())
}

// Search is Eliminate by a search, whose work it returns.
//
// Errors: those of formula.FromNetwork and compiler.Compile; over_budget where the circuit is larger than allowed.
func Search(ctx context.Context, net *btn.Network, o Options) (*circuit.Compiled, int64, error) {
	o = o.withDefaults()
	_, of, work, err := search(ctx, net, nil, o)
	if err == nil && of == nil {
		err = fault.New(fault.OverBudget, "%w: %d bytes, with all of the search done", ErrCircuit, o.Bytes)
	}
	return of, work, err
}

// Sum returns Z of a network but for net.Scale by a search, and the circuit of that: nil where it is larger than allowed. Errors: those of
// Search but for ErrCircuit.
func Sum(ctx context.Context, net *btn.Network, o Options) (scaled.Number, *circuit.Compiled, error) {
	z, of, _, err := search(ctx, net, net, o.withDefaults())
	return z, of, err
}

// formulaOf is the network's formula without the values of weight 0.
func formulaOf(ctx context.Context, net *btn.Network, o Options) (*formula.Formula, error) {
	f, err := formula.FromNetwork(ctx, net, o.Memory/4)
	if err != nil {
		return nil, err
	}
	return possible(f, net)
}

// search sums the formula of a network with the weights of another one, nil for 1, and returns its circuit where that has room.
func search(ctx context.Context, net, weighted *btn.Network, o Options) (scaled.Number, *circuit.Compiled, int64, error) {
	none := scaled.Number{}
	f, err := formulaOf(ctx, net, o)
	if err != nil {
		return none, nil, 0, err
	}
	reduced, err := formula.Simplify(ctx, f, simplifyWork(o.Work))
	if err != nil {
		return none, nil, 0, err
	}

	back := newWayBack(f, reduced, o.Bytes)
	with := compiler.Options{
		Work: remainingWork(o.Work, reduced.Work), Rival: o.Rival, Memory: o.Memory / 2,
		Builder: back.builder, CircuitOnly: weighted == nil, Leaf: back.leaf,
	}
	if o.NoCircuit {
		with.Builder, with.Leaf = nil, nil
	}
	fixed := scaled.One
	if weighted != nil {
		if with.Weights, fixed, err = back.weights(weighted); err != nil {
			return none, nil, 0, err
		}
	}
	r, err := compiler.Compile(ctx, reduced.Formula, with)
	r.Stats.Work += reduced.Work
	if errors.Is(err, circuit.ErrFull) {
		err = fault.New(fault.OverBudget, "%w: %d bytes: %w", ErrCircuit, o.Bytes, err)
	}
	if err != nil || !r.Traced {
		return r.Z.Mul(fixed), nil, r.Stats.Work, err
	}
	c, err := back.finish(ctx, r.Root)
	if errors.Is(err, circuit.ErrFull) {
		return r.Z.Mul(fixed), nil, r.Stats.Work, nil
	}
	if err != nil {
		return none, nil, r.Stats.Work, err
	}
	return r.Z.Mul(fixed), circuit.NewCompiled(c, !slices.Contains(f.Functional, false)), r.Stats.Work, nil
}

// remainingWork returns the work left of a search; 0, no limit, where there was no limit.
func remainingWork(work, done int64) int64 {
	if work <= 0 {
		return 0
	}
	return max(work-done, 1)
}

// simplifyShare is the part of the work of a search that logical preprocessing may take before it.
const simplifyShare = 1.0 / 4

// simplifyWork is the work limit of simplification, given the search's.
func simplifyWork(work int64) int64 {
	if work <= 0 {
		return formula.DefaultWork
	}
	return min(max(int64(simplifyShare*float64(work)), 1), formula.DefaultWork)
}

// errNoWeights says that a network is none of this version.
var errNoWeights = fault.New(fault.Internal, "logic: the link of a variable is no list of weights")

// possible excludes the values of weight 0.
func possible(f *formula.Formula, net *btn.Network) (*formula.Formula, error) {
	var none []formula.Literal
	for v := range net.Variables {
		cp, err := weights(net, v)
		if err != nil {
			return nil, err
		}
		for a, x := range cp.Weights {
			if x == 0 {
				none = append(none, f.Literal(v, a).Not())
			}
		}
	}
	return formula.Condition(f, none), nil
}

// Logical reports whether a network has enough structure for search to exploit: at least such a share of the cores over several
// legs have zeros, or are sums of terms of both signs, as clauses and parities are. A clause counts as one however long it is,
// though a table of it has one zero among all its entries. Linear in the cores' sizes.
func Logical(net *btn.Network, share float64) bool {
	logical, cores := 0, 0
	for _, core := range net.Cores {
		has := false
		switch t := core.T.(type) {
		case *tensor.Dense:
			if len(t.Shape) < 2 {
				continue
			}
			has = slices.Contains(t.Data, 0)
		case *tensor.CP:
			has = tensor.Signed(t)
		case *tensor.Symmetric:
			for i := 0; i < t.Values.Len() && !has; i++ {
				has = t.Values.At(i) == (scaled.Number{})
			}
		}
		if cores++; has {
			logical++
		}
	}
	return logical > 0 && float64(logical) >= share*float64(cores)
}
