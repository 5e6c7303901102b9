// Package sweeps contracts an expression approximately by a matrix product state swept over its indices (docs/explanation/estimates.md,
// truncated legs).
//
// The state is the tensor over the frontier: the indices that are not summed yet and share a table with a summed one. It is a chain of
// three-leg tensors, one per index, with bonds of at most χ. For every index of an elimination order its tables are multiplied in, it is
// summed out, and the chain is compressed. A bond that is large enough makes the result exact up to rounding; dense models are within
// reach whose treewidth is hopeless.
//
// Source: F. Pan, P. Zhou, S. Li and P. Zhang, Contracting arbitrary tensor networks, arXiv:1912.03014.
package sweeps

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/base/linalg"
	"github.com/basetensor/basetensor/internal/methods/truncated/legs"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// ErrOptions is wrapped by the errors of bonds and cutoffs that mean nothing.
var ErrOptions = errors.New("sweeps: invalid options")

// DefaultCutoff is the cutoff of Options whose Cutoff is 0: a little above rounding. Small parts of the state may be large in the end, so
// a larger cutoff costs accuracy that no bond brings back. Measured, χ=128, 1e-12 against 1e-15: Promedus_23 3e-5 / 9e-11, Grids_11 3e-4
// / 5e-6, for at most three times the work.
const DefaultCutoff = 1e-15

// Options bound a contraction.
type Options struct {
	Bond      int     // χ ≥ 1, the largest bond that compression leaves
	Cutoff    float64 // singular values below Cutoff times the largest are dropped; 0: DefaultCutoff
	Memory    int64   // bytes for states and temporaries; 0: query.DefaultMemory, 2 GiB
	Marginals bool    // compute Value.Marginals too, at less accuracy than Z: see marginals.go
}

// hugeBond and hugeCost stand for all that is larger: products of them with each other still fit float64.
const (
	hugeBond = 1e60
	hugeCost = 1e300
)

// Contract estimates
//
//	Z = Scale · Σ_x Π_t Tables[t][x]
//
// by sweeping a matrix product state along the plan. Where no bond needs more than Options.Bond the result is exact up to rounding. Z = 0
// is an answer. The same input gives the same bits.
//
// Errors: ErrPlan, ErrOptions; sumproduct.ErrOverBudget (fault.OverBudget) with the bytes, before anything is computed;
// sumproduct.ErrExpression for tables of a wrong size; sumproduct.ErrNotFinite for entries that are not finite; linalg.ErrConvergence;
// the context's error, looked at between steps. Cost: Evaluate.
func Contract(ctx context.Context, e *sumproduct.Expression, p Plan, o Options) (legs.Value, error) {
	s, err := newSweep(ctx, e, p, o)
	if err != nil {
		return legs.Value{}, err
	}
	return s.run(ctx)
}

// Evaluate is the cost of Contract along p with bonds of at most bond, at most: bonds are as large as dimensions, operators and bond let
// them be. Errors: ErrPlan, ErrOptions, the context's. Time: Σ over the steps of the sites they touch.
func Evaluate(
	ctx context.Context, h contractionorder.Hypergraph, p Plan, bond int, marginals bool,
) (legs.Cost, error) {
	if bond < 1 {
		return legs.Cost{}, fault.New(fault.BadInput, "%w: bond %d", ErrOptions, bond)
	}
	if err := p.check(h); err != nil {
		return legs.Cost{}, err
	}
	cost, _, err := price(ctx, h, p, float64(bond), marginals, math.Inf(1))
	return cost, err
}

// sweep is one contraction, or, without an expression, the same walk over sizes alone, which is its price.
type sweep struct {
	h         contractionorder.Hypergraph
	e         *sumproduct.Expression
	p         Plan
	steps     []step
	w         *linalg.Work
	lim       limits
	marginals bool
	gauge     gauge       // of the pass that is under way
	f         [][]float64 // of the pass forward
	states    [][]*site   // states[k] is the chain before step k, with a site for its index; kept for marginals
	enough    float64     // flops at which a price is high enough
	visits    int64       // sites looked at
}

// newSweep checks the input, and that it fits the memory.
func newSweep(ctx context.Context, e *sumproduct.Expression, p Plan, o Options) (*sweep, error) {
	if o.Cutoff == 0 {
		o.Cutoff = DefaultCutoff
	}
	if o.Bond < 1 || !(o.Cutoff > 0 && o.Cutoff < 1) {
		return nil, fault.New(fault.BadInput, "%w: bond %d, cutoff %g", ErrOptions, o.Bond, o.Cutoff)
	}
	h := e.Hypergraph()
	cost, err := Evaluate(ctx, h, p, o.Bond, o.Marginals)
	if err != nil {
		return nil, err
	}
	if err := e.Validate(); err != nil {
		return nil, err
	}
	for t := range e.Tables {
		if err := e.Finite(t); err != nil {
			return nil, err
		}
	}
	if err := legs.Fits(cost.Bytes, legs.Memory(o.Memory), o.Bond); err != nil {
		return nil, err
	}
	s := &sweep{h: h, e: e, p: p, steps: schedule(h, p), w: new(linalg.Work), marginals: o.Marginals, enough: math.Inf(1)}
	s.lim = limits{bond: float64(o.Bond), cutoff: o.Cutoff, held: tableBytes(h)}
	s.lim.value.Bond, s.lim.value.PeakBytes = 1, s.lim.held
	s.gauge, s.f = forwardGauge(e, s.steps)
	return s, nil
}

// price walks the steps of p over sizes until they cost more than enough flops. It returns the sites looked at too.
func price(
	ctx context.Context, h contractionorder.Hypergraph, p Plan, bond float64, marginals bool, enough float64,
) (cost legs.Cost, visits int64, err error) {
	s := &sweep{h: h, p: p, steps: schedule(h, p), marginals: marginals, enough: enough, visits: int64(len(h.Edges))}
	s.lim = limits{bond: bond, held: tableBytes(h)}
	s.lim.value.PeakBytes = s.lim.held
	v, err := s.run(ctx) // without entries its errors are the context's
	return legs.Cost{Flops: v.Flops, Bytes: v.PeakBytes}, s.visits, err
}

// tableBytes is the size of the tables.
func tableBytes(h contractionorder.Hypergraph) (bytes float64) {
	for _, e := range h.Edges {
		size := 8.0
		for _, i := range e {
			size *= float64(h.Dims[i])
		}
		bytes += size
	}
	return bytes
}

// run sweeps forward, and back where marginals are asked for.
func (s *sweep) run(ctx context.Context) (legs.Value, error) {
	c, zero, err := s.ahead(ctx)
	if err != nil {
		return legs.Value{}, err
	}
	var rows [][]float64
	if s.marginals && !zero {
		if rows, err = s.back(ctx); err != nil {
			return legs.Value{}, err
		}
	}
	v := s.lim.value
	v.Marginals = rows
	if !zero {
		v.Z = c.scale
	}
	return v, nil
}

// ahead sweeps forward; zero says that the state has become 0.
func (s *sweep) ahead(ctx context.Context) (c *chain, zero bool, err error) {
	c = &chain{scale: scaled.One, place: s.p.Position, w: s.w, shared: s.marginals}
	if s.e != nil {
		c.scale = s.e.Scale
		for _, t := range s.e.Tables {
			if len(t.Data) == 1 {
				c.scale = c.scale.Mul(scaled.FromFloat(t.Data[0]))
			}
		}
	}
	zero = c.scale.IsZero()
	for k := 0; k < len(s.steps) && !zero && s.lim.value.Flops <= s.enough; k++ {
		if err := ctx.Err(); err != nil {
			return nil, false, err
		}
		alive, err := s.forward(c, &s.steps[k])
		if err != nil {
			return nil, false, fmt.Errorf("sweeps: index %d: %w", s.steps[k].index, err)
		}
		zero = !alive
	}
	return c, zero, nil
}

// forward multiplies the tables of a step in, and sums its index out if it is the last of its steps.
func (s *sweep) forward(c *chain, st *step) (bool, error) {
	var before []*site
	if s.marginals {
		before = slices.Clone(c.sites)
	}
	if slices.Contains(st.enter, st.index) {
		c.insert(st.index, s.h.Dims[st.index])
	}
	if s.marginals {
		s.states = append(s.states, slices.Clone(c.sites))
	}
	for _, j := range st.enter {
		if j != st.index {
			c.insert(j, s.h.Dims[j])
		}
	}
	alive, err := s.multiply(c, st, func(j int) bool { return st.last && j == st.index })
	if s.marginals {
		s.lim.held = min(s.lim.held+8*fresh(c.sites, before), hugeCost)
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
			n += a.entries()
		}
	}
	return n
}

// multiply applies the tables of a step to the chain and sums the indices out that gone names.
func (s *sweep) multiply(c *chain, st *step, gone func(int) bool) (bool, error) {
	first, last := s.span(c, st)
	s.visits += int64(last-first+1) + int64(len(c.sites)/4)
	span, leave := make([]int, last-first+1), make([]bool, last-first+1)
	for k, a := range c.sites[first : last+1] {
		span[k], leave[k] = a.index, gone(a.index)
	}
	if s.e == nil {
		return c.apply(first, sizes(s.h, s.p, st, span), leave, &s.lim)
	}
	o, exp, err := newOperator(s.w, s.e, s.p, st, span, s.gauge)
	if err != nil {
		return false, err
	}
	c.scale = c.scale.Mul(scaled.Make(1, exp))
	return c.apply(first, o, leave, &s.lim)
}

// span returns the first and the last site of the chain that a step's tables touch.
func (s *sweep) span(c *chain, st *step) (first, last int) {
	low := s.p.Position[st.index]
	high := low
	for _, t := range st.tables {
		for _, j := range s.h.Edges[t] {
			if s.h.Dims[j] > 1 {
				low, high = min(low, s.p.Position[j]), max(high, s.p.Position[j])
			}
		}
	}
	first, _ = c.find(low)
	last, _ = c.find(high)
	return first, last
}
