package sweeps

// The sweep.

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/linalg"
	"github.com/basetensor/basetensor/internal/sumproduct"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// Contract estimates
//
//	Z = Scale · Σ_x Π_t Tables[t][x]
//
// by sweeping a matrix product state along the plan. Where no bond needs more than Options.Bond
// the result is exact up to rounding. Z = 0 is an answer. The same input gives the same bits.
//
// Errors: ErrPlan, ErrOptions; sumproduct.ErrOverBudget (fault.OverBudget) with the bytes, before
// anything is computed; sumproduct.ErrExpression for tables of a wrong size;
// sumproduct.ErrNotFinite for entries that are not finite; linalg.ErrConvergence; the context's
// error, looked at between steps. Cost: Evaluate.
func Contract(ctx context.Context, e *sumproduct.Expression, p Plan, o Options) (Value, error) {
	s, err := newSweep(e, p, o)
	if err != nil {
		return Value{}, err
	}
	return s.run(ctx)
}

// newSweep checks what is to be swept, and that it fits the memory.
func newSweep(e *sumproduct.Expression, p Plan, o Options) (*sweep, error) {
	h := e.Hypergraph()
	if o.Cutoff == 0 {
		o.Cutoff = DefaultCutoff
	}
	if o.Bond < 1 || !(o.Cutoff > 0 && o.Cutoff < 1) {
		return nil, fault.New(fault.BadInput, "%w: bond %d, cutoff %g",
			ErrOptions, o.Bond, o.Cutoff)
	}

	if err := p.check(h); err != nil {
		return nil, err
	}
	if err := checkTables(e); err != nil {
		return nil, err
	}

	s := &sweep{e: e, p: p, o: o, steps: schedule(h, p), w: new(linalg.Work)}
	s.lim = limits{bond: o.Bond, cutoff: o.Cutoff, largest: 1}
	for _, t := range e.Tables {
		s.lim.held += 8 * float64(len(t.Data))
	}
	s.lim.peak = s.lim.held

	price := newPricer(h, float64(o.Bond)).price(p, math.Inf(1))
	if o.Marginals {
		price = newPricer(h, float64(o.Bond)).priceMarginals(p)
	}

	if need := price.PeakBytes; need > o.memory() {
		return nil, fault.New(fault.OverBudget,
			"%w: a sweep with bonds of %d needs %.0f bytes, the budget is %.0f",
			sumproduct.ErrOverBudget, o.Bond, need, o.memory())
	}

	s.gauge, s.f = forwardGauge(e, s.steps)
	return s, nil
}

// checkTables checks sizes and entries.
func checkTables(e *sumproduct.Expression) error {
	if err := e.Validate(); err != nil {
		return err
	}
	for t := range e.Tables {
		if err := e.Finite(t); err != nil {
			return err
		}
	}
	return nil
}

// sweep carries one Contract.
type sweep struct {
	e     *sumproduct.Expression
	p     Plan
	o     Options
	steps []step
	lim   limits
	w     *linalg.Work
	gauge gauge       // of the sweep that is under way
	f     [][]float64 // of the sweep forward
	// states[k] is the chain before step k, with a site for its index; kept for marginals
	states [][]*site
}

// run sweeps forward, and back where marginals are asked for.
func (s *sweep) run(ctx context.Context) (Value, error) {
	c, zero, err := s.ahead(ctx)
	if err != nil {
		return Value{}, err
	}

	v := Value{
		Z:         c.scale,
		Discarded: s.lim.discarded,
		Truncated: s.lim.truncated,
		Bond:      s.lim.largest,
	}

	if zero {
		v.Z = scaled.Number{}
	}

	if s.o.Marginals && !zero {
		if v.Marginals, err = s.marginals(ctx); err != nil {
			return Value{}, err
		}
		v.Discarded = s.lim.discarded
		v.Truncated = s.lim.truncated
		v.Bond = s.lim.largest
	}

	v.Flops = s.lim.flops
	v.PeakBytes = s.lim.peak
	return v, nil
}

// ahead sweeps forward; zero says that the state has become 0.
func (s *sweep) ahead(ctx context.Context) (c *chain, zero bool, err error) {
	c = newChain(s.p.Position, s.constant(), s.w)
	zero = c.scale.IsZero()
	for i := range s.steps {
		if zero {
			break
		}
		if err := ctx.Err(); err != nil {
			return nil, false, err
		}
		alive, err := s.forward(c, &s.steps[i])
		if err != nil {
			return nil, false, fmt.Errorf("sweeps: index %d: %w", s.steps[i].index, err)
		}
		zero = !alive
	}
	return c, zero, nil
}

// constant is the product of the scale and the tables without indices.
func (s *sweep) constant() scaled.Number {
	z := s.e.Scale
	for _, t := range s.e.Tables {
		if len(t.Data) == 1 {
			z = z.Mul(scaled.FromFloat(t.Data[0]))
		}
	}
	return z
}

// forward multiplies the tables of a step in,
// and sums its index out if it is the last of its steps.
func (s *sweep) forward(c *chain, st *step) (bool, error) {
	before := slices.Clone(c.sites)
	if slices.Contains(st.enter, st.index) {
		c.insert(st.index, s.e.Dims[st.index])
	}

	if s.o.Marginals {
		s.states = append(s.states, slices.Clone(c.sites))
	}

	for _, j := range st.enter {
		if j != st.index {
			c.insert(j, s.e.Dims[j])
		}
	}

	alive, err := s.multiply(c, st, func(j int) bool { return st.last && j == st.index })
	if s.o.Marginals {
		s.lim.held += 8 * fresh(c.sites, before)
	}
	return alive, err
}

// fresh counts the entries of sites that are not among those before.
func fresh(sites, before []*site) (n float64) {
	old := make(map[*site]bool, len(before))
	for _, a := range before {
		old[a] = true
	}
	for _, a := range sites {
		if !old[a] {
			n += float64(len(a.data))
		}
	}
	return n
}

// multiply applies the tables of a step to the chain and sums the indices out that gone names.
func (s *sweep) multiply(c *chain, st *step, gone func(int) bool) (bool, error) {
	first, span := s.span(c, st)
	cores, exp, err := operator(s.w, s.e, s.p, st, span, s.gauge)
	if err != nil {
		return false, err
	}
	c.scale = c.scale.Mul(scaled.Make(1, exp))

	leave := make([]bool, len(span))
	for k, j := range span {
		leave[k] = gone(j)
	}
	return c.apply(first, cores, leave, &s.lim)
}

// span lists the indices of the chain from the first to the last that a step's tables touch.
func (s *sweep) span(c *chain, st *step) (first int, span []int) {
	low := s.p.Position[st.index]
	high := s.p.Position[st.index]
	for _, t := range st.tables {
		for _, j := range s.e.Tables[t].Scope {
			if s.e.Dims[j] > 1 {
				low = min(low, s.p.Position[j])
				high = max(high, s.p.Position[j])
			}
		}
	}

	first, _ = c.find(low)
	last, _ := c.find(high)
	for _, a := range c.sites[first : last+1] {
		span = append(span, a.index)
	}
	return first, span
}
