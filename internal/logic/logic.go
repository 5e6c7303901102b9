// Package logic compiles networks into circuits: it joins packages formula, compiler and circuit.
package logic

import (
	"context"
	"errors"
	"slices"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/circuit"
	"github.com/basetensor/basetensor/internal/compiler"
	"github.com/basetensor/basetensor/internal/formula"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// Options bound a compilation.
type Options struct {
	Work   int64 // of the search, counted as package compiler counts; 0: no limit
	Memory int64 // bytes of formula, search and circuit together; 0: btn.DefaultMemory
	Bytes  int64 // of the circuit; 0: a quarter of the memory
	// NoSearch leaves it at eliminations.
	NoSearch bool
	search   bool // whatever an elimination takes: for tests
}

// Compile returns the circuit of a network, whatever the weights of its variables are but for those that are 0, and how much of the
// work it took: along an elimination order, where that is short, else by a search. The same network gives the same circuit.
// Evidence multiplies weights, so it serves all queries to the network. It is read as Circuit's are: Z of the circuit times
// net.Scale is Z of the network.
//
// Errors: those of formula.FromNetwork and compiler.Compile; over_budget where the circuit is larger than allowed.
func Compile(ctx context.Context, net *btn.Network, o Options) (*btn.Compiled, int64, error) {
	if o.Memory <= 0 {
		o.Memory = btn.DefaultMemory
	}
	if o.Bytes <= 0 {
		o.Bytes = o.Memory / 4
	}
	if !o.search {
		if of, work, err := eliminated(ctx, net, o); of != nil || err != nil {
			return of, work, err
		}
	}
	if o.NoSearch {
		return nil, 0, fault.New(fault.OverBudget, "logic: the network is too wide for a circuit by elimination")
	}
	f, err := formula.FromNetwork(ctx, net, o.Memory/4)
	if err != nil {
		return nil, 0, err
	}
	if f, err = possible(f, net); err != nil {
		return nil, 0, err
	}

	reduced, err := formula.Simplify(ctx, f, simplifyWork(o.Work))
	if err != nil {
		return nil, 0, err
	}

	back := newWayBack(f, reduced, o.Bytes)
	r, err := compiler.Compile(ctx, reduced.Formula, compiler.Options{
		Work: o.Work, Memory: o.Memory / 2, Builder: back.builder, Leaf: back.leaf,
	})
	if err != nil {
		return nil, r.Stats.Work, err
	}
	if !r.Traced {
		return nil, r.Stats.Work, fault.New(fault.OverBudget, "logic: the circuit takes more than %d bytes", o.Bytes)
	}
	c, err := back.finish(r.Root)
	if errors.Is(err, circuit.ErrFull) {
		err = fault.Wrap(fault.OverBudget, err)
	}
	if err != nil {
		return nil, r.Stats.Work, err
	}
	return btn.NewCompiled(c, !slices.Contains(f.Functional, false)), r.Stats.Work, nil
}

// simplifyShare is the part of the work of a search that simplification may take before it.
const simplifyShare = 4

// simplifyWork is what simplification may take where the search may take so much.
func simplifyWork(work int64) int64 {
	if work <= 0 {
		return formula.DefaultWork
	}
	return min(max(work/simplifyShare, 1), formula.DefaultWork)
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

// Logical reports whether a network has enough of what search finds and tables do not: zeros among the entries of its cores, or cores
// that are sums of terms of both signs, as clauses and parities are. Linear in the cores' sizes.
func Logical(net *btn.Network, share float64) bool {
	zeros, entries := 0, 0
	for _, core := range net.Cores {
		switch t := core.T.(type) {
		case *tensor.Dense:
			if len(t.Shape) < 2 {
				continue
			}
			entries += len(t.Data)
			for _, x := range t.Data {
				if x == 0 {
					zeros++
				}
			}
		case *tensor.CP:
			n := len(t.Weights) * len(t.Shape)
			if entries += n; tensor.Signed(t) {
				zeros += n
			}
		case *tensor.Symmetric:
			entries += t.Values.Len()
			for i := range t.Values.Len() {
				if t.Values.At(i) == (scaled.Number{}) {
					zeros++
				}
			}
		}
	}
	return zeros > 0 && float64(zeros) >= share*float64(entries)
}
