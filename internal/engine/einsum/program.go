package einsum

// Programs: a small network compiled once for one order, and run under any evidence.

import (
	"context"
	"sync"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/compiled"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/lower"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// Program is a network along an elimination order, ready to be contracted under any evidence: evidence changes weights of
// variables, and nothing else is recomputed. An excluded value has weight 0 and keeps its place, so no shape depends on a
// query. A Program does not change and may be used by several goroutines.
type Program struct {
	dims    []int
	leaves  []leaf
	weights []weights
	tape    *tape
	steps   *compiled.Program
	scale   scaled.Number // of the tables, without the network's own
	above   bool          // all entries are above 0
	forth   btn.Cost      // of Contract
	both    btn.Cost      // of Marginals
	places  []place       // per variable, where its marginals are

	mu   sync.Mutex
	free []*space // of runs that have ended
}

// leaf is a table of the network. Weights of variables are multiplied into one of the tables that have the variable.
type leaf struct {
	scope  []int
	data   []float64 // without weights
	low    int       // every entry but 0 is 2^low or more in size
	hosted []int     // weights multiplied in
	ready  *weighed  // with the weights that net has without evidence; nil: they need the general way
}

// weighed is a leaf with weights multiplied in: data·2^exp.
type weighed struct {
	data  []float64
	low   int
	exp   int64
	shift int64 // of exp, the table's last divisor
}

// weights are one variable's.
type weights struct {
	own    []float64 // without evidence
	link   int
	values []int // those that zeros of the network leave, nil: all
	dim    int
	leaf   int // that has them, −1 where one value is left: they are a number
	inner  int // entries of the leaf between one value and the next
}

// place is where a variable's marginals are read.
type place struct {
	offset, dim int
	values      []int // nil: all
	leaf, inner int   // leaf −1: the only value has all
}

// Compile prepares net, without evidence, for order. It says no where the general way is better or has something to say:
// where that takes more than flops multiplications and additions, where Z is 0 by the zeros of net, where entries of a table
// are further apart than a program deals with or one is below 0, and where net or the order are invalid.
//
// Cost as of Build and contractionorder.EvaluateOrder; memory about 4 bytes per flop, and as much again for every concurrent run.
func Compile(net *btn.Network, order []int, flops float64) (*Program, bool) {
	ctx := context.Background() // a program is of 2^18 flops at most: milliseconds
	apart, ok := lower.Apart(ctx, net)
	if !ok {
		return nil, false
	}
	p := &Program{dims: apart.Dims, scale: apart.Scale, above: true}
	if !p.addLeaves(apart) {
		return nil, false
	}
	p.host(apart)
	h := contractionorder.Hypergraph{Dims: p.dims, Edges: make([][]int, len(p.leaves))}
	for t := range p.leaves {
		h.Edges[t] = p.leaves[t].scope
	}
	if (&sumproduct.Expression{Dims: p.dims}).ValidateOrder(order) != nil {
		return nil, false
	}
	var err error
	if p.forth, err = contractionorder.EvaluateOrder(ctx, h, order); err != nil || p.forth.Flops > flops {
		return nil, false
	}
	if p.tape, err = newTape(ctx, h, order, goals{marginals: true}); err != nil {
		return nil, false
	}
	p.both = p.tape.plan()
	p.steps = compiled.New(h, p.tape.steps, p.tape.need[:len(p.leaves)])
	p.placeMarginals(apart, net)
	p.price()
	p.weighAll(net)
	return p, true
}

// Plan is the cost of one run: flops as for Contract or Marginals along the order, and the bytes of the program with
// all that a run of it holds.
func (p *Program) Plan(marginals bool) btn.Cost {
	if marginals {
		return p.both
	}
	return p.forth
}

// placeMarginals says where every variable's marginals are read.
func (p *Program) placeMarginals(apart *lower.Template, net *btn.Network) {
	offset := 0
	for v, at := range net.Variables {
		i := apart.Weights[v].Index
		q := place{offset: offset, values: p.weights[v].values, dim: p.dims[i], leaf: p.tape.reader[i]}
		if q.leaf != noTable {
			q.inner = inner(p.dims, p.leaves[q.leaf].scope, i)
		}
		p.places = append(p.places, q)
		offset += at.Domain
	}
}

// price puts the bytes of the program and of a run into the plans.
func (p *Program) price() {
	numbers, offsets := p.steps.Entries, int(p.steps.Flops) // an offset per operand and term, or fewer
	for _, l := range p.leaves {
		numbers += 3 * len(l.data)
	}
	p.forth.Bytes = float64(8*numbers + 4*offsets)
	p.both.Bytes = float64(16*numbers + 4*offsets)
}
