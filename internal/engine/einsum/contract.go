// Package einsum contracts an expression exactly along an elimination order, table by table: the component C = B. The cost of
// an order is known before any table is touched, to the last flop.
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

// Stats is the cost of a contraction, which equals the prediction of contractionorder.EvaluateOrder, and whether terms may be missing.
type Stats struct {
	Flops     float64 // multiplications and additions
	PeakBytes int64   // largest total of live tables, the expression's included
	// Lost reports whether terms may be missing: whether a product of entries may have been so far below others of its table (2^-1020)
	// that a float64 has no digits for it. A total that is not Lost has all its terms. If it is 0, it has no term that is not 0.
	Lost bool
}

// Contract returns the value of e, summing out its indices in the given order (every index of dimension above 1 once;
// others are ignored):
//
//	Z = Scale · Σ_x Π_t Tables[t][x]
//
// Every table carries an exponent of 2, so Z may have any size; within one table, entries 2^−1000 below the largest may
// become 0, and then Stats.Lost is set. Z = 0 is an answer, not an error. The result has the same bits for any number of threads.
//
// Errors: ErrOverBudget with the bytes and the width, before anything is computed; ErrExpression; ErrNotFinite; the
// context's error, looked at between steps and within large ones.
// Cost: contractionorder.EvaluateOrder(e.Hypergraph(), order), and in addition copies of the tables whose largest entry is far from 1. The
// expressions of lower.Build have no such tables.
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

// Derivatives are the derivatives of a value by tables of its expression: ∂Z/∂Tables[t][k] = ByTable[t][k]·2^Exp[t]. ByTable[t] is nil
// if the derivative by table t was not wanted, or if all of it is 0.
type Derivatives struct {
	Z         scaled.Number
	ByTable   [][]float64
	Exp       []int64
	Marginals [][]scaled.Number // as of Result; nil unless asked for
}

// Differentiate returns the value of e along order and its derivatives by the entries of every table t with wanted[t], entries
// of 0 included. It returns all marginals, too, if marginals is set. It is the pass back of Marginals, led on to those tables. Nothing
// is divided by. Stats.Lost is set if an entry of a derivative, however small compared with others, may lack terms.
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
	kernel kernel                 // computes one step
	meter  contractionorder.Meter // counts flops and memory
	arena  arena.Arena            // has the memory of tables and derivatives
	out    Derivatives            // the result
}

// contract contracts e along an order: forward for Z and, if g has goals beyond Z, backward for derivatives and marginals. It returns an
// error before anything is computed if e or the order is invalid, or if the tables take more memory than o allows.
func contract(ctx context.Context, e *sumproduct.Expression, order []int, g goals, o Options) (Derivatives, Stats, error) {
	if err := cmp.Or(errors.Join(e.Validate(), e.ValidateOrder(order)), ctx.Err()); err != nil {
		return Derivatives{}, Stats{}, err
	}
	t, plan, err := newTapeWithin(ctx, e.Hypergraph(), order, g, o)
	if err != nil {
		return Derivatives{}, Stats{}, err
	}

	c := newContraction(ctx, e, t, plan, o)
	err = c.forward()
	cost := plan
	if g.hasBackward() {
		if err == nil {
			err = c.backward()
		}
	} else {
		cost = c.meter.Plan() // of the steps that were done: fewer than all if a table is 0
	}
	stats := Stats{Flops: cost.Flops, PeakBytes: int64(cost.Bytes), Lost: c.isLossy}
	if err != nil {
		return Derivatives{}, stats, err
	}
	return c.out, stats, nil
}

// newTapeWithin returns the steps of a contraction, and the cost of all passes that the goals need. The error is over budget if that is
// more memory than o allows, or if a table is too large for the offsets of a backward pass.
func newTapeWithin(ctx context.Context, h contractionorder.Hypergraph, order []int, g goals, o Options) (*tape, query.Cost, error) {
	t, plan, err := newTape(ctx, h, order, g, float64(o.memory()))
	if err != nil {
		return nil, plan, err
	}
	if t == nil { // the forward pass alone is too much
		return nil, plan, sumproduct.OverBudget(plan, o.memory())
	}
	if !g.hasBackward() {
		return t, plan, nil
	}
	plan = t.planBothPasses()
	if err := o.checkMemory(plan); err != nil {
		return nil, plan, err
	}
	return t, plan, t.checkAddressable()
}

// newContraction returns a contraction of e along a tape that has not begun. plan is the cost of all its passes.
func newContraction(ctx context.Context, e *sumproduct.Expression, t *tape, plan query.Cost, o Options) *contraction {
	var program *compiled.Program // nil: there is no backward pass
	if t.hasBackward() {
		program = compiled.New(t.h, t.steps, t.isNeeded[:len(t.h.Edges)])
	}
	c := &contraction{e: e}
	c.run = newRun(t, program)
	c.ctx, c.threads = ctx, sumproduct.Threads(o.Threads)
	c.arena.Limit = int(plan.Bytes / 8) // float64
	for _, t := range e.Tables {
		c.arena.Held += len(t.Data)
	}
	return c
}

// checkMemory returns an error if the plan of a forward and a backward pass is over the memory budget.
func (o Options) checkMemory(plan query.Cost) error {
	if memory := o.memory(); plan.Bytes > float64(memory) {
		return fault.New(fault.OverBudget, "%w: all marginals at once need %.0f bytes of tables and derivatives "+
			"(width %d, largest table 2^%.1f entries, %.3g flops), the budget is %d bytes",
			sumproduct.ErrOverBudget, plan.Bytes, plan.Width, plan.Log2Table, plan.Flops, memory)
	}
	return nil
}

// memory returns the number of bytes that tables may take: Memory, or the default if it is not set.
func (o Options) memory() int64 {
	if o.Memory <= 0 {
		return query.DefaultMemory
	}
	return o.Memory
}

// forward computes all tables and Z. Without a backward pass it releases each table that a step has consumed.
func (c *contraction) forward() error {
	// The tables of the expression, and the dimensions of indices in no table.
	c.meter.Start(c.h)
	c.reset(c.e.Scale)
	for t := range c.e.Tables {
		if err := c.load(t); err != nil {
			return err
		}
	}
	for i, d := range c.e.Dims {
		if !c.isUsed[i] {
			c.addFactor(noTable, float64(d))
		}
	}

	for n := range c.steps {
		if c.isZero { // nothing else matters
			break
		}
		if err := c.ctx.Err(); err != nil {
			return err
		}
		if err := c.doStep(n); err != nil {
			return err
		}
	}
	c.out.Z = c.computeZ()
	return nil
}

// doStep computes the output of step n, and releases its inputs if there is no backward pass.
func (c *contraction) doStep(n int) error {
	s, out := c.steps[n], len(c.h.Edges)+n
	c.meter.Begin(c.h, s)
	c.Tables[out] = c.arena.Get(int(s.Size))
	c.kernel.prepare(c.tape, s, c.Tables, c.Tables[out])
	top, err := c.kernel.run(c.ctx, c.threads) // top: the bits of the largest entry
	if err == nil {
		err = c.keepInRange(n, top)
	}
	if err != nil {
		return err
	}
	if !c.keepsTables {
		for _, t := range s.In {
			c.releaseTable(t)
		}
		c.meter.End(s)
	}
	return nil
}

// releaseTable drops table t, and gives its memory back to the arena if a step has made it.
func (c *contraction) releaseTable(t int) {
	if t >= len(c.h.Edges) {
		c.arena.Put(c.Tables[t])
	}
	c.Tables[t] = nil
}

// load sets table t of the run to that of the expression. If the largest entry is not within 2^±margin, it takes a copy instead, divided by
// a power of two, by which Z is multiplied (addPower). A table of one entry is a factor of Z. The error is ErrNotFinite.
func (c *contraction) load(t int) error {
	data := c.e.Tables[t].Data
	top, low, hasNegative := floats.Extent(data) // exponents of the largest entry and of the smallest but 0
	isFinite := top < 1024                       // Extent returns 1024 if an entry is infinite or NaN
	if !isFinite {
		return fmt.Errorf("%w: table %d", sumproduct.ErrNotFinite, t)
	}
	c.hasNegative = c.hasNegative || hasNegative
	switch {
	case len(data) == 1: // no index of dimension above 1
		c.addFactor(t, data[0])
	case floats.LargestBits(data) == 0: // all entries are 0
		c.setZero()
	case top < -margin || top >= margin:
		data = slices.Clone(data) // that of the expression stays
		c.addPower(t, floats.Normalise(data).Exp)
		low -= top
		// The smallest entry may lose digits if it falls below 2^Lowest. If top < 0, the division makes entries larger.
		c.isLossy = c.isLossy || low < floats.Lowest && top > 0
	}
	c.Tables[t] = data
	c.depth[t] = sumproduct.Depth{Low: min(low, 0), Measured: true}
	return nil
}

// backward computes the derivatives and marginals that are wanted, after forward. It goes through the steps in reverse, and releases tables
// and derivatives on the way.
func (c *contraction) backward() error {
	leaves := len(c.h.Edges)
	c.out.ByTable, c.out.Exp = make([][]float64, leaves), make([]int64, leaves)
	if c.goals.marginals {
		c.out.Marginals = c.trivialMarginals()
	}
	c.setFactorDerivatives()
	for n := range slices.Backward(c.steps) {
		out := leaves + n
		c.releaseTable(out)
		if !c.derivatives[out].isSet { // not needed, or 0: then those by the inputs are not needed, or 0
			continue
		}
		if err := c.ctx.Err(); err != nil {
			return err
		}
		if err := c.undoStep(n); err != nil {
			return err
		}
	}
	return nil
}

// setFactorDerivatives sets the derivatives by the factors of Z that are tables of one entry: those by outputs of steps, from which the
// backward pass begins, and the wanted ones by tables of the expression.
func (c *contraction) setFactorDerivatives() {
	leaves := len(c.h.Edges)
	for n, derivative := range c.factorDerivatives() {
		switch t := c.factorTables[n]; {
		case t == noTable || derivative.IsZero():
		case t >= leaves && c.isNeeded[t]: // the output of a step
			c.Derivatives[t] = c.arena.Get(1)
			c.setScalarDerivative(t, derivative)
		case t < leaves && c.wants(t): // a table of the expression
			c.out.ByTable[t], c.out.Exp[t] = []float64{derivative.Mant}, derivative.Exp
		}
	}
}

// undoStep computes the needed derivatives by the inputs of step n, from that by its output, which it releases. It reads those by tables of
// the expression at once.
func (c *contraction) undoStep(n int) error {
	s, leaves := c.steps[n], len(c.h.Edges)
	for _, t := range s.In {
		if c.isNeeded[t] {
			c.Derivatives[t] = c.arena.Get(int(c.size(t)))
		}
	}
	if err := c.differentiateStep(n); err != nil {
		return err
	}
	c.releaseDerivative(leaves + n)
	for _, t := range s.In {
		isLeaf, isZero := t < leaves, !c.derivatives[t].isSet
		if c.isNeeded[t] && (isLeaf || isZero) {
			c.readLeaf(t) // nothing if the derivative is 0
			c.releaseDerivative(t)
		}
	}
	return nil
}

// releaseDerivative gives the memory of the derivative by a table back to the arena.
func (c *contraction) releaseDerivative(t int) {
	c.arena.Put(c.Derivatives[t])
	c.Derivatives[t], c.derivatives[t].isSet = nil, false
}

// readLeaf sets the marginals that are read from table t of the expression and, if it is wanted, the result's derivative by it. It does
// nothing if the derivative is 0.
func (c *contraction) readLeaf(t int) {
	if !c.derivatives[t].isSet {
		return
	}
	for _, i := range c.h.Edges[t] {
		if c.readFrom[i] == t {
			marginals := c.out.Marginals[i]
			c.checkMarginalLoss(t)
			for x := range marginals {
				marginals[x] = c.marginal(t, x, len(marginals), strideOf(c.h.Dims, c.h.Edges[t], i))
			}
		}
	}
	if c.wants(t) {
		c.out.ByTable[t], c.out.Exp[t] = slices.Clone(c.Derivatives[t]), c.derivatives[t].exp-c.shift[t]
	}
}

// trivialMarginals returns marginals of which those of indices with one value are Z, and those of an index of d values in no table are Z/d.
// All others are 0.
func (c *contraction) trivialMarginals() [][]scaled.Number {
	m := make([][]scaled.Number, len(c.e.Dims))
	for i, d := range c.e.Dims {
		m[i] = make([]scaled.Number, d)
		switch {
		case d == 1:
			m[i][0] = c.out.Z
		case !c.isUsed[i]:
			for x := range m[i] {
				m[i][x] = c.out.Z.Div(scaled.FromFloat(float64(d)))
			}
		}
	}
	return m
}
