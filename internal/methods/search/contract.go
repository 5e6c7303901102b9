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

// inTime is the part of its time after which the search ends with what it has.
const inTime = 0.8

// Contract implements contraction.Contractor: it searches, within its work and until shortly before the end of its time. Z is 0.
func (p *Search) Contract(ctx context.Context, of *problem.Problem, want btn.Want) (btn.Value, error) {
	if p.Work == 0 {
		found := *p.Known.Found
		return btn.Value{Found: &found, Flops: p.Known.Flops}, nil
	}
	if err := query.CheckSet(contraction.Domains(of.Net), want.Map); err != nil {
		return btn.Value{}, err
	}
	prepared, err := descent.Of(ctx, of, p.About().Finds, want.Map)
	if err != nil {
		return btn.Value{}, err
	}
	if prepared.Shape() != p.Shape {
		return btn.Value{}, fault.New(fault.Internal, "search: it was planned for another network")
	}
	within, end := context.WithCancel(ctx)
	if !want.Until.IsZero() {
		within, end = context.WithTimeout(ctx, time.Duration(inTime*float64(time.Until(want.Until))))
	}
	defer end()
	if prepared.Terms().Scale.IsZero() {
		return btn.Value{}, nil
	}
	if p.Map != nil {
		return p.marginal(ctx, pace.Still(within), prepared, of)
	}
	o := options(p.Work, of.Memory, want.Best)
	if p.Known != nil {
		o.Start = p.Known.Start
	}
	r, err := branching.Solve(pace.Still(within), network(prepared.Terms()), o)
	switch {
	case err != nil:
		return btn.Value{}, err
	case ctx.Err() != nil:
		return btn.Value{}, ctx.Err()
	}
	value := btn.Value{Flops: spent(r)}
	if r.Values != nil || !r.Proved { // without values: other parts may have an assignment
		value.Found = foundBy(prepared, r, want.Best)
	}
	return value, nil
}

// options are those of a search for the best assignments, at least one.
func options(work, memory int64, best int) branching.Options {
	if best > 1 {
		best++ // which says whether there is another
	}
	return branching.Options{Work: work, Open: memory / 4, Best: best}
}

func spent(r *branching.Result) float64 { return float64(r.Stats.Work) * policy.SearchFlops }

// foundBy weighs what a search for so many assignments has found. Without an assignment there is its bound alone.
func foundBy(prepared *descent.Prepared, r *branching.Result, best int) *btn.Found {
	bound := math.Inf(-1)
	if !math.IsInf(r.Bound, 1) {
		bound = prepared.Terms().Scale.LogAbs() - r.Bound + prepared.Slack(r.Bound)
	}
	if r.Values == nil {
		return &btn.Found{Values: []int{}, Bounded: true, Relaxed: true, Bound: bound}
	}
	found := prepared.Weigh(r.Values)
	if best > 1 {
		beside(prepared, r, found)
		found.Keep(best)
	}
	last := found.Last().LogAbs()
	if found.Bounded, found.Bound = true, last; !found.All {
		found.Bound = max(last, bound)
	}
	proved := r.Proved || best > 1 && 1+len(found.Others) == best // by the bound, where all that are asked for are there
	found.Relaxed = !proved || found.Bound-last > btn.Tolerance
	found.Unique = (found.All || found.Bound < found.Weight.LogAbs()) && (found.Others == nil || !found.Tied(found.Others[0].Weight))
	return found
}

// marginal searches for a marginal MAP assignment until within ends.
func (p *Search) marginal(ctx, within context.Context, prepared *descent.Prepared, of *problem.Problem) (btn.Value, error) {
	flops := float64(p.Work) * policy.SearchFlops
	s, err := newMarginal(within, prepared, p.Map, of.Memory, of.Threads, flops)
	var bound float64
	if err == nil {
		bound, err = s.run()
	}
	switch {
	case ctx.Err() != nil:
		return btn.Value{}, ctx.Err()
	case err != nil && within.Err() != nil:
		return btn.Value{}, fault.New(fault.OverBudget, "search: no assignment was weighed in time")
	case err != nil:
		return btn.Value{}, err
	}
	value := btn.Value{Flops: flops - s.left}
	switch {
	case s.best == nil && math.IsInf(bound, -1):
		return value, nil
	case s.best == nil:
		value.Found = &btn.Found{Values: []int{}, Bounded: true, Relaxed: true, Bound: bound + prepared.Slack(bound)}
		return value, nil
	}
	weight := scaled.FromLog(s.lower)
	bound = max(bound+prepared.Slack(bound), weight.LogAbs())
	value.Found = &btn.Found{
		Values: prepared.ValuesOf(s.best), Weight: weight, Close: btn.Tolerance, Bounded: true, Bound: bound,
		Relaxed: bound-weight.LogAbs() > btn.Tolerance,
	}
	if s.inner == nil {
		value.Found.Upper = cmp.Or(s.upper, math.SmallestNonzeroFloat64) // 0 stands for none
	}
	return value, nil
}

// beside adds the others of a list to the best one.
func beside(prepared *descent.Prepared, r *branching.Result, best *btn.Found) {
	list := []btn.Other{{Values: best.Values, Weight: best.Weight}}
	for _, values := range r.Others {
		other := prepared.Weigh(values)
		list = append(list, btn.Other{Values: other.Values, Weight: other.Weight})
	}
	slices.SortFunc(list, btn.Other.Compare)
	best.Values, best.Weight = list[0].Values, list[0].Weight
	if len(list) > 1 {
		best.Others = list[1:]
	}
	best.All = math.IsInf(r.Bound, 1)
}

// network is the sum of the tables' −ln. Entries of 0 are forbidden.
func network(e *sumproduct.Expression) *branching.Network {
	n := &branching.Network{Domains: e.Dims, Factors: make([]branching.Factor, len(e.Tables))}
	for k := range e.Tables {
		t := &e.Tables[k]
		costs := make([]float64, len(t.Data))
		for at, x := range t.Data {
			costs[at] = -math.Log(x)
			if t.Exp != nil {
				costs[at] -= float64(t.Exp[at]) * math.Ln2
			}
		}
		n.Factors[k] = branching.Factor{Scope: t.Scope, Costs: costs}
	}
	return n
}
