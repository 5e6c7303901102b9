package search

// The search, and what it has found as a value.

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/basetensor/basetensor/internal/base/pace"
	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/methods/descent"
	"github.com/basetensor/basetensor/internal/methods/search/branching"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contraction"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// searchTimeShare is the share of the time until want.Until that a search may take. Then it ends with the best assignment so far.
const searchTimeShare = 0.8

// Contract searches for the most probable assignment, of all variables or, if p.Map is set, of some of them (marginal MAP). It implements
// contraction.Contractor; the value has no share of Z. The search ends after p.Work steps or shortly before want.Until, with the best
// assignment so far and a bound of all others. If p.Work is 0, the value is what was found while the query was planned (p.Known).
func (p *Search) Contract(ctx context.Context, instance *problem.Problem, want btn.Want) (btn.Value, error) {
	if p.Work == 0 {
		found := *p.Known.Found
		return btn.Value{Found: &found, Flops: p.Known.Flops}, nil
	}
	if err := query.CheckSet(contraction.Domains(instance.Net), want.Map); err != nil {
		return btn.Value{}, err
	}
	prepared, err := descent.PreparedOf(ctx, instance, p.About().Finds, want.Map)
	if err != nil {
		return btn.Value{}, err
	}
	if prepared.Shape() != p.Shape {
		return btn.Value{}, fault.New(fault.Internal, "search: it was planned for another network")
	}
	if prepared.Terms().Scale.IsZero() { // all weights are 0
		return btn.Value{}, nil
	}

	// The search has a share of the time until want.Until.
	searchCtx, cancel := context.WithCancel(ctx)
	if !want.Until.IsZero() {
		searchCtx, cancel = context.WithTimeout(ctx, time.Duration(searchTimeShare*float64(time.Until(want.Until))))
	}
	defer cancel()

	searchCtx = pace.KeepGiveWay(searchCtx) // the search gives way to other work as it would under ctx
	if p.Map != nil {
		return p.contractMarginal(ctx, searchCtx, prepared, instance)
	}
	return p.branchAndBound(ctx, searchCtx, prepared, instance, want.Best)
}

// branchAndBound searches for the count most probable assignments, or for the most probable one if count is 0, until searchCtx, which is
// derived from ctx, ends. It begins with the assignment that the planning has found.
func (p *Search) branchAndBound(
	ctx, searchCtx context.Context, prepared *descent.Prepared, instance *problem.Problem, count int,
) (btn.Value, error) {
	o := solveOptions(p.Work, instance.Memory, count)
	if p.Known != nil {
		o.Start = p.Known.Start
	}
	r, err := branching.Solve(searchCtx, costNetwork(prepared.Terms()), o)
	switch {
	case err != nil:
		return btn.Value{}, err
	case ctx.Err() != nil: // Solve returns what it has found when its context ends; that of searchCtx alone is no error
		return btn.Value{}, ctx.Err()
	}

	value := btn.Value{Flops: flopsSpent(r)}
	provedNone := r.Values == nil && r.Proved
	if !provedNone { // without an assignment Found has the bound: another part of the plan may have an assignment
		value.Found = weighResult(prepared, r, count)
	}
	return value, nil
}

// solveOptions returns the options of a search for the count best assignments, or for the best one if count is 0. Of several it looks for
// one more, which tells whether there are others.
func solveOptions(work, memory int64, count int) branching.Options {
	if count > 1 {
		count++
	}
	return branching.Options{Work: work, OpenBytes: memory / 4, Count: count}
}

// flopsSpent returns the work of a search in flops.
func flopsSpent(r *branching.Result) float64 { return float64(r.Stats.Work) * policy.SearchFlops }

// weighResult returns the assignments of a search for the count best ones, with their weights and an upper bound of ln of all weights that
// are not listed. r.Bound is a lower bound of the costs, −ln of the weights without the scale, so that
//
//	ln weight ≤ ln scale − r.Bound + slack for rounding
//
// If the search has found no assignment, the result has the bound alone.
func weighResult(prepared *descent.Prepared, r *branching.Result, count int) *btn.Found {
	bound := math.Inf(-1)
	if !math.IsInf(r.Bound, 1) {
		bound = prepared.Terms().Scale.LogAbs() - r.Bound + prepared.RoundingSlack(r.Bound)
	}
	if r.Values == nil {
		return &btn.Found{Values: []int{}, Bounded: true, Relaxed: true, Bound: bound}
	}
	found := prepared.Weigh(r.Values)
	if count > 1 {
		addOthers(prepared, r, found)
		found.Shorten(count) // the search has looked for one more
	}

	// The bound holds for all assignments that are not listed.
	lnLast := found.LastWeight().LogAbs()
	if found.Bounded, found.Bound = true, lnLast; !found.All {
		found.Bound = max(lnLast, bound)
	}

	// Relaxed: there may be a better assignment. Unique: no other one is as good.
	isListFull := count > 1 && 1+len(found.Others) == count
	isProved := r.Proved || isListFull // of a full list, Bound decides whether the assignments are the best ones
	found.Relaxed = !isProved || found.Bound-lnLast > btn.Tolerance
	isAboveUnlisted := found.All || found.Bound < found.Weight.LogAbs()
	isTied := found.Others != nil && found.Tied(found.Others[0].Weight)
	found.Unique = isAboveUnlisted && !isTied
	return found
}

// contractMarginal searches for a marginal MAP assignment until searchCtx, which is derived from ctx, ends. If it finds none, the value
// has only the search's upper bound of the weights; or nothing, if that bound is 0, so that all weights are 0.
func (p *Search) contractMarginal(
	ctx, searchCtx context.Context, prepared *descent.Prepared, instance *problem.Problem,
) (btn.Value, error) {
	flops := float64(p.Work) * policy.SearchFlops
	s, err := newMarginalSearch(searchCtx, prepared, p.Map, instance.Memory, instance.Threads, flops)
	var bound float64 // ln
	if err == nil {
		bound, err = s.run()
	}
	switch {
	case ctx.Err() != nil:
		return btn.Value{}, ctx.Err()
	case err != nil && searchCtx.Err() != nil:
		return btn.Value{}, fault.New(fault.OverBudget, "search: no assignment was weighed in time")
	case err != nil:
		return btn.Value{}, err
	}

	value := btn.Value{Flops: flops - s.flopsLeft}
	switch {
	case s.best == nil && math.IsInf(bound, -1): // all weights are 0
		return value, nil
	case s.best == nil:
		value.Found = &btn.Found{Values: []int{}, Bounded: true, Relaxed: true, Bound: bound + prepared.RoundingSlack(bound)}
		return value, nil
	}
	weight := scaled.FromLog(s.bestLower) // ln of a lower bound of the best assignment's weight
	bound = max(bound+prepared.RoundingSlack(bound), weight.LogAbs())
	value.Found = &btn.Found{
		Values: prepared.ValuesOf(s.best), Weight: weight, Close: btn.Tolerance, Bounded: true, Bound: bound,
		Relaxed: bound-weight.LogAbs() > btn.Tolerance,
	}
	if s.inner == nil { // the weight has bounds only
		value.Found.Upper = cmp.Or(s.bestUpper, math.SmallestNonzeroFloat64) // 0 stands for none
	}
	return value, nil
}

// addOthers adds r.Others, the next best assignments, to best and orders all by their weights. The search ranks assignments by rounded
// costs, so that another one may become the best. best.All is set if r has all assignments of weight above 0.
func addOthers(prepared *descent.Prepared, r *branching.Result, best *btn.Found) {
	list := []btn.Other{{Values: best.Values, Weight: best.Weight}}
	for _, values := range r.Others {
		weighed := prepared.Weigh(values)
		list = append(list, btn.Other{Values: weighed.Values, Weight: weighed.Weight})
	}
	slices.SortFunc(list, btn.Other.Compare)
	best.Values, best.Weight = list[0].Values, list[0].Weight
	if len(list) > 1 {
		best.Others = list[1:]
	}
	best.All = math.IsInf(r.Bound, 1) // of the cost of any other assignment
}

// costNetwork returns the network whose factors are −ln of the tables of e. The cost of an entry x·2^exponent is −ln x − exponent·ln 2;
// that of an entry 0 is +Inf, which forbids it.
func costNetwork(e *sumproduct.Expression) *branching.Network {
	n := &branching.Network{Domains: e.Dims, Factors: make([]branching.Factor, len(e.Tables))}
	for k := range e.Tables {
		t := &e.Tables[k]
		costs := make([]float64, len(t.Data))
		for entry, x := range t.Data {
			costs[entry] = -math.Log(x)
			if t.Exp != nil {
				costs[entry] -= float64(t.Exp[entry]) * math.Ln2
			}
		}
		n.Factors[k] = branching.Factor{Scope: t.Scope, Costs: costs}
	}
	return n
}
