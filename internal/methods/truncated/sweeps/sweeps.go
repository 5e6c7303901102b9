// Package sweeps contracts an expression approximately by a matrix product state swept over its indices (docs/explanation/estimates.md,
// truncated legs).
//
// The state is the tensor over the frontier: the indices that are not summed yet and share a table with a summed one. It is a chain of
// three-leg tensors, one per index, with bonds of at most χ. For every index of an elimination order its tables are multiplied in, it is
// summed out, and the chain is compressed. A bond that is large enough makes the result exact up to rounding. Dense models of hopeless
// treewidth are within reach.
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
	Marginals bool    // whether Value.Marginals is computed, at less accuracy than Z: see marginals.go
}

// hugeBond and hugeCost stand for all that is larger. Products of them with each other still fit float64.
const (
	hugeBond = 1e60
	hugeCost = 1e300
)

// Contract estimates
//
//	Z = Scale · Σ_x Π_t Tables[t][x]
//
// by sweeping a matrix product state along the plan. If no bond needs more than Options.Bond, the result is exact up to rounding. Z = 0
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

// Evaluate returns an upper bound of the cost of Contract along p with bonds of at most bond. It goes through the steps and takes every
// bond to be as large as dimensions, operators and bond allow. Errors: ErrPlan, ErrOptions, the context's. Time: Σ over the steps of the
// sites they touch. A site is a tensor of the chain, which is the state of the sweep.
func Evaluate(
	ctx context.Context, h contractionorder.Hypergraph, p Plan, bond int, marginals bool,
) (legs.Cost, error) {
	if bond < 1 {
		return legs.Cost{}, fault.New(fault.BadInput, "%w: bond %d", ErrOptions, bond)
	}
	if err := p.check(h); err != nil {
		return legs.Cost{}, err
	}
	noLimit := math.Inf(1)                                              // of flops
	cost, _, err := price(ctx, h, p, float64(bond), marginals, noLimit) // not read: the sites looked at
	return cost, err
}

// sweep is one contraction. Without an expression it is a dry run: it goes through the same steps over sizes only.
type sweep struct {
	hypergraph     contractionorder.Hypergraph
	expression     *sumproduct.Expression // nil in a dry run
	plan           Plan
	steps          []step
	work           *linalg.Work // memory of decompositions; nil in a dry run
	account        account      // limits of the compression, memory and cost so far
	marginals      bool         // they are asked for, and so states are kept
	gauge          gauge        // weights of the sweep that is under way, forward or back
	forwardWeights [][]float64  // f of the forward sweep, by index and value (gauge.go)
	states         [][]*site    // if marginals: states[k] is the chain before step k, with a site for the step's index
	maxFlops       float64      // a dry run ends at that many flops; +Inf in a contraction
	visits         int64        // sites looked at: the work of a dry run
}

// isDryRun reports whether the sweep goes over sizes only, since only its cost is wanted.
func (s *sweep) isDryRun() bool { return s.expression == nil }

// newSweep checks the arguments of Contract and returns a sweep over e that is ready to run. Errors: those of Contract before anything is
// computed.
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
		if err := e.CheckFinite(t); err != nil {
			return nil, err
		}
	}
	if err := legs.CheckMemory(cost.Bytes, legs.MemoryOrDefault(o.Memory), o.Bond); err != nil {
		return nil, err
	}
	s := &sweep{
		hypergraph: h, expression: e, plan: p, steps: scheduleSteps(h, p), work: new(linalg.Work), marginals: o.Marginals, maxFlops: math.Inf(1),
	}
	s.account = account{bond: float64(o.Bond), cutoff: o.Cutoff, held: tableBytes(h)} // it begins with the tables in memory
	s.account.value.Bond, s.account.value.PeakBytes = 1, s.account.held
	s.gauge, s.forwardWeights = forwardGauge(e, s.steps)
	return s, nil
}

// price returns the cost of a sweep along p with bonds of at most bond. It goes through the steps over sizes only, and ends early once they
// cost more than maxFlops. visits is the number of sites that it looked at. The only error is the context's. A site is a tensor of the
// chain, which is the state of the sweep.
func price(
	ctx context.Context, h contractionorder.Hypergraph, p Plan, bond float64, marginals bool, maxFlops float64,
) (cost legs.Cost, visits int64, err error) {
	s := &sweep{
		hypergraph: h, plan: p, steps: scheduleSteps(h, p), marginals: marginals, maxFlops: maxFlops, visits: int64(len(h.Edges)),
	}
	s.account = account{bond: bond, held: tableBytes(h)}
	s.account.value.PeakBytes = s.account.held
	v, err := s.run(ctx)
	return legs.Cost{Flops: v.Flops, Bytes: v.PeakBytes}, s.visits, err
}

// tableBytes returns the size of all tables.
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

// run sweeps forward, which gives Z. If marginals are asked for and Z is not 0, it also sweeps back. A dry run goes over sizes only, and
// counts the cost.
func (s *sweep) run(ctx context.Context) (legs.Value, error) {
	c, isZero, err := s.sweepForward(ctx)
	if err != nil {
		return legs.Value{}, err
	}
	var marginals [][]float64
	if s.marginals && !isZero {
		if marginals, err = s.sweepBack(ctx); err != nil {
			return legs.Value{}, err
		}
	}
	v := s.account.value
	v.Marginals = marginals
	if !isZero {
		v.Z = c.scale // no site is left
	}
	return v, nil
}

// sweepForward applies all steps to a chain that begins without sites. Each index enters as a site and is summed out by its last step. So
// the returned chain has no sites again, and its scale is Z. If the state becomes 0, isZero is true and further steps are left out. A dry
// run goes through the same steps over sizes only, counts their cost and ends early at s.maxFlops. The scale of its chain means nothing.
func (s *sweep) sweepForward(ctx context.Context) (c *chain, isZero bool, err error) {
	// With marginals earlier chains are kept, so that the sites that they share with c must not be changed.
	c = &chain{scale: scaled.One, position: s.plan.Position, work: s.work, isShared: s.marginals}
	if !s.isDryRun() {
		c.scale = s.expression.Scale
		for _, t := range s.expression.Tables {
			if len(t.Data) == 1 { // a number, which no step multiplies in
				c.scale = c.scale.Mul(scaled.FromFloat(t.Data[0]))
			}
		}
	}
	isZero = c.scale.IsZero()
	for k := 0; k < len(s.steps) && !isZero && s.account.value.Flops <= s.maxFlops; k++ {
		if err := ctx.Err(); err != nil {
			return nil, false, err
		}
		isNonzero, err := s.stepForward(c, &s.steps[k])
		if err != nil {
			return nil, false, fmt.Errorf("sweeps: index %d: %w", s.steps[k].index, err)
		}
		isZero = !isNonzero
	}
	return c, isZero, nil
}

// stepForward multiplies the tables of a step into the chain, and sums the step's index out if this is its last step. The chain is a tensor
// written as a product of sites, one for each of its indices. New indices of the tables enter it before. If marginals are asked for, it
// keeps the chain before the tables, with a site for the step's index, in s.states. isNonzero is false if the state becomes 0.
func (s *sweep) stepForward(c *chain, st *step) (isNonzero bool, err error) {
	var sitesBefore []*site
	if s.marginals {
		sitesBefore = slices.Clone(c.sites)
	}
	if slices.Contains(st.enter, st.index) {
		c.insert(st.index, s.hypergraph.Dims[st.index])
	}
	if s.marginals {
		s.states = append(s.states, slices.Clone(c.sites))
	}
	for _, j := range st.enter {
		if j != st.index {
			c.insert(j, s.hypergraph.Dims[j])
		}
	}

	isNonzero, err = s.applyTables(c, st, func(j int) bool { return st.isLast && j == st.index })
	if s.marginals { // the new sites are kept until the sweep back
		s.account.held = min(s.account.held+8*newEntries(c.sites, sitesBefore), hugeCost)
	}
	return isNonzero, err
}

// newEntries returns the number of entries of those sites that are not among oldSites. A site is a tensor of a chain.
func newEntries(sites, oldSites []*site) (entries float64) {
	isOld := make(map[*site]bool, len(oldSites))
	for _, a := range oldSites {
		isOld[a] = true
	}
	for _, a := range sites {
		if !isOld[a] {
			entries += a.entries()
		}
	}
	return entries
}

// applyTables multiplies the tables of a step into the chain, sums out the indices for which isSummed is true, and compresses the chain.
// The chain is a product of sites, tensors that have one index each. Only the span changes: the sites from the first to the last index of
// the tables. isNonzero is false if the state becomes 0.
func (s *sweep) applyTables(c *chain, st *step, isSummed func(index int) bool) (isNonzero bool, err error) {
	first, last := s.tableSpan(c, st)
	// The work of a dry run: the sites of the span, and a quarter for each site of the chain.
	s.visits += int64(last-first+1) + int64(len(c.sites)/4)
	span, summed := make([]int, last-first+1), make([]bool, last-first+1) // by site: its index, and whether that is summed out
	for k, a := range c.sites[first : last+1] {
		span[k], summed[k] = a.index, isSummed(a.index)
	}
	if s.isDryRun() {
		return c.applyOperator(first, operatorSizes(s.hypergraph, s.plan, st, span), summed, &s.account)
	}
	tables, exp, err := newOperator(s.work, s.expression, s.plan, st, span, s.gauge)
	if err != nil {
		return false, err
	}
	c.scale = c.scale.Mul(scaled.Make(1, exp))
	return c.applyOperator(first, tables, summed, &s.account)
}

// tableSpan returns the places in the chain of the first and the last index of a step's tables. The chain has a site for each index, and a
// place is the number of the site.
func (s *sweep) tableSpan(c *chain, st *step) (first, last int) {
	low := s.plan.Position[st.index]
	high := low
	for _, t := range st.tables {
		for _, j := range s.hypergraph.Edges[t] {
			if s.hypergraph.Dims[j] > 1 {
				low, high = min(low, s.plan.Position[j]), max(high, s.plan.Position[j])
			}
		}
	}
	first, _ = c.find(low) // not read: whether the chain has the index; the step's indices have entered
	last, _ = c.find(high)
	return first, last
}
