// Package einsum contracts an expression exactly along an elimination order, table by table: the component C = B. The cost of
// an order is known before any table is touched, to the last flop. Small networks are compiled once for all queries: see
// Program.
package einsum

// Contractions: an expression along an elimination order, for its value, its marginals and derivatives.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/basetensor/basetensor/internal/base/arena"
	"github.com/basetensor/basetensor/internal/base/floats"
	"github.com/basetensor/basetensor/internal/engine/compiled"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// Options bound a contraction. The zero value works.
type Options struct {
	Memory  int64 // bytes for tables, the expression's included; 0: query.DefaultMemory, 2 GiB
	Threads int   // goroutines on one large step; 0: GOMAXPROCS. The result does not depend on it
}

// Stats is the cost of a contraction, equal to contractionorder.EvaluateOrder's prediction.
type Stats struct {
	Flops     float64 // multiplications and additions
	PeakBytes int64   // largest total of live tables, the expression's included
	// Lost says that terms may be missing: somewhere a product of entries may have been below 2^-1020 beside others of its
	// table, where a float64 has no digits for it. A total that is not Lost has all its terms, and one of 0 has none.
	Lost bool
}

// Contract returns the value of e, summing out its indices in the given order (every index of dimension above 1 once;
// others are ignored):
//
//	Z = Scale · Σ_x Π_t Tables[t][x]
//
// Every table carries an exponent of 2, so Z may have any size; within one table, entries 2^−1000 below the largest may
// become 0, and Stats.Lost says so. Z = 0 is an answer, not an error. The result has the same bits for any number of threads.
//
// Errors: ErrOverBudget with the bytes and the width, before anything is computed; ErrExpression; ErrNotFinite; the
// context's error, looked at between steps and within large ones.
// Cost: contractionorder.EvaluateOrder(e.Hypergraph(), order), to which tables come whose largest entry is far from 1: they are
// copied. Build makes none.
func Contract(ctx context.Context, e *sumproduct.Expression, order []int, o Options) (scaled.Number, Stats, error) {
	r, stats, err := contract(ctx, e, order, goals{}, o)
	return r.Z, stats, err
}

// Result is a value with the marginals of its indices, not normalised.
type Result struct {
	Z scaled.Number // the bits of Contract's
	// Marginals[i][x] is the part of Z in which index i has the x-th of its values, Σ_x Marginals[i][x] = Z up to
	// rounding. It has Dims[i] entries; Support says which values of the network they are.
	Marginals [][]scaled.Number
}

// Marginals returns the value of e and, for every index i and value x,
//
//	M_i(x) = Scale · Σ_{y: y_i=x} Π_t Tables[t][y]
//
// all from one forward pass along order, as Contract, that keeps its tables, and one backward pass over the same steps.
// The derivative of Z by an input of a step is the derivative by its output times the other inputs, summed over the
// indices outside the input:
//
//	∂Z/∂in_k = Σ ∂Z/∂out · Π_{m≠k} in_m,   M_i(x) = Σ_{y: y_i=x} t[y] ∂Z/∂t[y]   for any table t that has i.
//
// Nothing is divided by, so zeros and entries of either sign are as good as others: Z = 0 may have marginals that are not.
// Derivatives carry an exponent of 2 per table; within one table, entries 2^−1000 below the largest may become 0. The result has the
// same bits for any number of threads.
//
// Errors: as Contract; ErrOverBudget compares PlanMarginals' figure, and refuses tables of 2^31 entries. Cost: PlanMarginals,
// about three times the flops of Contract, and the memory of all its tables together. Source: A. Darwiche, A differential approach to
// inference in Bayesian networks, J. ACM 50 (2003).
func Marginals(ctx context.Context, e *sumproduct.Expression, order []int, o Options) (Result, Stats, error) {
	r, stats, err := contract(ctx, e, order, goals{marginals: true}, o)
	return Result{Z: r.Z, Marginals: r.Marginals}, stats, err
}

// Derivatives are the derivatives of a value by tables of its expression: ∂Z/∂Tables[t][k] = By[t][k]·2^Exp[t]. By[t] is nil
// for tables whose derivative was not wanted, and where all of it is 0.
type Derivatives struct {
	Z         scaled.Number
	By        [][]float64
	Exp       []int64
	Marginals [][]scaled.Number // as of Result; nil unless asked for
}

// Differentiate returns the value of e along order and its derivatives by the entries of the tables that wanted names, entries
// of 0 included, and all marginals where they are asked for. It is the pass back of Marginals, led on to those tables. Nothing
// is divided by. Stats.Lost says that an entry of a derivative, however small beside others, may lack terms.
//
// Errors: as Marginals. Cost: PlanDerivatives, and the derivatives that are returned.
func Differentiate(
	ctx context.Context, e *sumproduct.Expression, order []int, wanted []bool, marginals bool, o Options,
) (Derivatives, Stats, error) {
	return contract(ctx, e, order, goals{marginals, wanted}, o)
}

// contraction is a run over the tables of an expression.
type contraction struct {
	run
	e      *sumproduct.Expression
	kernel kernel
	meter  contractionorder.Meter
	arena  arena.Arena
	out    Derivatives
}

// contract runs the passes that goals need.
func contract(ctx context.Context, e *sumproduct.Expression, order []int, g goals, o Options) (Derivatives, Stats, error) {
	none := Derivatives{}
	if err := cmp.Or(errors.Join(e.Validate(), e.ValidateOrder(order)), ctx.Err()); err != nil {
		return none, Stats{}, err
	}
	h := e.Hypergraph()
	t, plan, err := newTape(ctx, h, order, g, float64(o.memory()))
	if err != nil {
		return none, Stats{}, err
	}
	if t == nil { // the forward pass alone is too much
		return none, Stats{}, sumproduct.OverBudget(plan, o.memory())
	}
	if g.back() {
		plan = t.plan()
		if err := o.check(plan); err != nil {
			return none, Stats{}, err
		}
	}

	c := &contraction{e: e}
	var of *compiled.Program
	if g.back() {
		if err := t.addressable(); err != nil {
			return none, Stats{}, err
		}
		of = compiled.New(h, t.steps, t.need[:len(h.Edges)])
	}
	c.run = newRun(t, of)
	c.ctx, c.threads = ctx, sumproduct.Threads(o.Threads)
	c.arena.Limit = int(plan.Bytes / 8)
	for _, t := range e.Tables {
		c.arena.Held += len(t.Data)
	}
	err = c.forward()
	got := c.meter.Plan()
	if g.back() {
		got = plan
	}
	if err == nil && g.back() {
		err = c.backward()
	}
	stats := Stats{Flops: got.Flops, PeakBytes: int64(got.Bytes), Lost: c.lost}
	if err != nil {
		return none, stats, err
	}
	return c.out, stats, nil
}

// check compares the plan of both ways with the budget.
func (o Options) check(plan query.Cost) error {
	if memory := o.memory(); plan.Bytes > float64(memory) {
		return fault.New(fault.OverBudget, "%w: all marginals at once need %.0f bytes of tables and derivatives "+
			"(width %d, largest table 2^%.1f entries, %.3g flops), the budget is %d bytes",
			sumproduct.ErrOverBudget, plan.Bytes, plan.Width, plan.Log2Table, plan.Flops, memory)
	}
	return nil
}

// memory is the number of bytes for tables.
func (o Options) memory() int64 {
	if o.Memory <= 0 {
		return query.DefaultMemory
	}
	return o.Memory
}

// forward computes Z, and gives up every table that is consumed unless there is a way back.
func (c *contraction) forward() error {
	c.meter.Start(c.h)
	c.begin(c.e.Scale)
	for t := range c.e.Tables {
		if err := c.input(t); err != nil {
			return err
		}
	}
	for i, d := range c.e.Dims {
		if !c.used[i] {
			c.number(noTable, float64(d))
		}
	}
	for n, s := range c.steps {
		if c.zero {
			break
		}
		if err := c.ctx.Err(); err != nil {
			return err
		}
		c.meter.Begin(c.h, s)
		out := len(c.h.Edges) + n
		c.Tables[out] = c.arena.Get(int(s.Size))
		c.kernel.prepare(c.tape, s, c.Tables, c.Tables[out])
		top, err := c.kernel.run(c.ctx, c.threads)
		if err == nil {
			err = c.settle(n, top)
		}
		if err != nil {
			return err
		}
		if !c.keep {
			for _, t := range s.In {
				c.release(t)
			}
			c.meter.End(s)
		}
	}
	c.out.Z = c.total()
	return nil
}

// release gives up a table.
func (c *contraction) release(t int) {
	if t >= len(c.h.Edges) {
		c.arena.Put(c.Tables[t])
	}
	c.Tables[t] = nil
}

// input takes a table of the expression as it is, or a rescaled copy where products of its entries could leave the
// range of float64.
func (c *contraction) input(t int) error {
	data := c.e.Tables[t].Data
	top, low, signed := floats.Extent(data)
	if top >= 1024 {
		return fmt.Errorf("%w: table %d", sumproduct.ErrNotFinite, t)
	}
	c.signed = c.signed || signed
	switch {
	case len(data) == 1: // no index of dimension above 1
		c.number(t, data[0])
	case floats.LargestBits(data) == 0:
		c.vanish()
	case top < -margin || top >= margin:
		data = slices.Clone(data)
		c.power(t, floats.Normalise(data).Exp)
		low -= top
		c.lost = c.lost || low < floats.Lowest && top > 0
	}
	c.Tables[t] = data
	c.depth[t] = sumproduct.Depth{Low: min(low, 0), Measured: true}
	return nil
}

// backward computes the derivatives and marginals that are wanted after forward. The tables are given up on the way.
func (c *contraction) backward() error {
	leaves := len(c.h.Edges)
	c.out.By, c.out.Exp = make([][]float64, leaves), make([]int64, leaves)
	if c.goals.marginals {
		c.out.Marginals = c.unread()
	}
	for n, seed := range c.others() {
		switch t := c.places[n]; {
		case t < 0 || seed.IsZero():
		case t >= leaves && c.need[t]:
			c.Back[t] = c.arena.Get(1)
			c.seed(t, seed)
		case t < leaves && c.wants(t): // a table of one entry
			c.out.By[t], c.out.Exp[t] = []float64{seed.Mant}, seed.Exp
		}
	}
	for n, s := range slices.Backward(c.steps) {
		out := leaves + n
		c.release(out)
		if !c.by[out].there {
			continue
		}
		if err := c.ctx.Err(); err != nil {
			return err
		}
		for _, t := range s.In {
			if c.need[t] {
				c.Back[t] = c.arena.Get(int(c.size(t)))
			}
		}
		if err := c.stepBack(n); err != nil {
			return err
		}
		c.forget(out)
		for _, t := range s.In {
			if c.need[t] && (t < leaves || !c.by[t].there) {
				c.leaf(t)
				c.forget(t)
			}
		}
	}
	return nil
}

// forget gives up the derivative by a table.
func (c *contraction) forget(t int) {
	c.arena.Put(c.Back[t])
	c.Back[t], c.by[t].there = nil, false
}

// leaf reads what is wanted from the derivative by a table of the expression.
func (c *contraction) leaf(t int) {
	if !c.by[t].there {
		return
	}
	for _, i := range c.h.Edges[t] {
		if c.reader[i] == t {
			m := c.out.Marginals[i]
			c.check(t)
			for x := range m {
				m[x] = c.read(t, x, len(m), inner(c.h.Dims, c.h.Edges[t], i))
			}
		}
	}
	if c.wants(t) {
		c.out.By[t], c.out.Exp[t] = slices.Clone(c.Back[t]), c.by[t].exp-c.shift[t]
	}
}

// unread returns the marginals that no table tells: those of indices with one value or in no table.
func (c *contraction) unread() [][]scaled.Number {
	m := make([][]scaled.Number, len(c.e.Dims))
	for i, d := range c.e.Dims {
		m[i] = make([]scaled.Number, d)
		switch {
		case d == 1:
			m[i][0] = c.out.Z
		case !c.used[i]:
			for x := range m[i] {
				m[i][x] = c.out.Z.Div(scaled.FromFloat(float64(d)))
			}
		}
	}
	return m
}
