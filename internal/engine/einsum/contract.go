// Package einsum contracts an expression exactly along an elimination order, table by table: the component C = B. The cost of
// an order is known before any table is touched, to the last flop. Small networks are compiled once for all queries: see
// Program.
package einsum

// Contract: an expression along an elimination order.

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/basetensor/basetensor/internal/base/arena"
	"github.com/basetensor/basetensor/internal/base/floats"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// Options bound a contraction. The zero value works.
type Options struct {
	Memory  int64 // bytes for tables, the expression's included; 0: btn.DefaultMemory, 2 GiB
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
	if err := errors.Join(e.Validate(), e.ValidateOrder(order)); err != nil {
		return scaled.Number{}, Stats{}, err
	}
	if err := ctx.Err(); err != nil {
		return scaled.Number{}, Stats{}, err
	}
	h := e.Hypergraph()
	plan, err := contractionorder.EvaluateOrder(ctx, h, order)
	if err != nil {
		return scaled.Number{}, Stats{}, err
	}
	if err := o.check(plan); err != nil {
		return scaled.Number{}, Stats{}, err
	}
	c := contraction{ctx: ctx, dims: e.Dims, threads: sumproduct.Threads(o.Threads), scale: e.Scale}
	c.arena.Limit = int(plan.Bytes / 8)
	for _, t := range e.Tables {
		c.arena.Held += len(t.Data)
	}
	err = c.run(e, h, order)
	got := c.meter.Plan()
	stats := Stats{Flops: got.Flops, PeakBytes: int64(got.Bytes), Lost: c.lost}
	if err != nil {
		return scaled.Number{}, stats, err
	}
	return c.scale, stats, nil
}

// check compares a plan with the budget.
func (o Options) check(plan btn.Cost) error {
	memory := o.Memory
	if memory <= 0 {
		memory = btn.DefaultMemory
	}
	if plan.Bytes > float64(memory) {
		return sumproduct.OverBudget(plan, memory)
	}
	return nil
}

// live is a table during a contraction: data·2^e, with e in scale.
type live struct {
	scope []int
	data  []float64
	owned bool // from the arena
	sumproduct.Depth
}

type contraction struct {
	ctx     context.Context
	dims    []int
	threads int
	scale   scaled.Number
	tables  []live
	meter   contractionorder.Meter
	arena   arena.Arena
	kernel  kernel
	tape    *tape // nil: tables are given up once they are consumed
	back    backKernel
	by      [][]float64 // derivatives by the tables of the expression that are wanted, times 2^byExp
	byExp   []int64
	lost    bool // a product of entries may have been too small
	signed  bool // an entry is below 0
}

func (c *contraction) run(e *sumproduct.Expression, h contractionorder.Hypergraph, order []int) error {
	c.meter.Start(h)
	for t := range e.Tables {
		if err := c.input(e, t); err != nil {
			return err
		}
	}
	used := make([]bool, len(e.Dims))
	for _, t := range e.Tables {
		for _, i := range t.Scope {
			used[i] = true
		}
	}
	for i, d := range e.Dims {
		if !used[i] {
			c.number(noTable, float64(d))
		}
	}
	if c.tape != nil {
		for _, s := range c.tape.steps {
			if err := c.step(h, s); err != nil {
				return err
			}
		}
		return nil
	}
	var err error
	over := contractionorder.Walk(c.ctx, h, order, func(s *contractionorder.Step) bool {
		if c.scale.IsZero() {
			return false
		}
		err = c.step(h, s)
		return err == nil
	})
	return cmp.Or(err, over)
}

// number multiplies the value by the only entry of a table.
func (c *contraction) number(table int, x float64) {
	n := scaled.FromFloat(x)
	c.scale = c.scale.Mul(n)
	if c.tape != nil {
		c.tape.number(table, n)
	}
}

// power multiplies the value by the power of two that a table was divided by.
func (c *contraction) power(table int, p scaled.Number) {
	c.scale = c.scale.Mul(p)
	if c.tape != nil {
		c.tape.power(table, p)
	}
}

// vanish makes the value 0. On a tape it becomes so by itself: the zeros' cofactors may still be asked for.
func (c *contraction) vanish() {
	if c.tape == nil {
		c.scale = scaled.Number{}
	}
}

// input takes a table of the expression as it is, or a rescaled copy where products of its entries could leave the
// range of float64.
func (c *contraction) input(e *sumproduct.Expression, t int) error {
	data := e.Tables[t].Data
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
		data = append([]float64(nil), data...)
		c.power(t, floats.Normalise(data))
		low -= top
		c.lost = c.lost || low < floats.Lowest && top > 0
	}
	c.tables = append(c.tables, live{scope: e.Tables[t].Scope, data: data, Depth: sumproduct.Depth{Low: min(low, 0), Measured: true}})
	return nil
}

// step executes one step: product, sum, normalisation.
func (c *contraction) step(h contractionorder.Hypergraph, s *contractionorder.Step) error {
	if err := c.ctx.Err(); err != nil {
		return err
	}
	c.meter.Begin(h, s)
	out := live{scope: s.Out, data: c.arena.Get(int(s.Size)), owned: true}
	low, loses := c.descend(s, noTable, nil)
	out.Low = low
	k := &c.kernel
	k.prepare(c.dims, s, c.tables, out.data)
	top, err := k.run(c.ctx, c.threads)
	if err != nil {
		return err
	}
	switch {
	case top >= infinity:
		return fmt.Errorf("%w: in the elimination of index %v", sumproduct.ErrNotFinite, s.Sum)
	case len(s.Out) == 0:
		c.number(len(c.tables), out.data[0])
	case top == 0:
		c.vanish()
	case outside(top):
		by, more := rescale(out.data, top, &out.Depth)
		c.power(len(c.tables), by)
		loses = loses || more
	}
	c.lost = c.lost || loses
	out.Low = min(out.Low, 0)
	if c.tape != nil {
		c.tables = append(c.tables, out)
		return nil
	}
	for _, t := range s.In {
		if c.tables[t].owned {
			c.arena.Put(c.tables[t].data)
		}
		c.tables[t] = live{}
	}
	c.meter.End(s)
	c.tables = append(c.tables, out)
	return nil
}

const (
	infinity = floats.Infinity
	margin   = 16 // largest entries stay within 2^±margin: products of maxOperands of them are harmless
)

// outside says whether a largest entry, given as bits, needs rescaling.
func outside(top uint64) bool {
	exp := int(top>>52) - 1023
	return exp < -margin || exp >= margin
}
