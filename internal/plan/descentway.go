package plan

// Assignments of values: parts beside those of an exact Z.

import (
	"context"
	"fmt"
	"slices"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/families/circuits"
	"github.com/basetensor/basetensor/internal/families/counts"
	"github.com/basetensor/basetensor/internal/families/descent"
	"github.com/basetensor/basetensor/internal/families/structured"
	"github.com/basetensor/basetensor/internal/policy"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// descents assigns the exact way, and beside its parts those that find the assignments asked for. Samples have weights where that is
// more than the budget and by method sampled; there is no other way to the rest.
func (a *assigner) descents(q query.Query) (btn.Assignment, error) {
	switch m := a.settings.Method; {
	case (m == btn.MethodSampled || m == btn.MethodAuto && a.settings.NoExact) && weighs(q):
		return a.weighted(q)
	case m != btn.MethodExact && m != btn.MethodAuto && m != btn.MethodCircuit:
		return btn.Assignment{}, fault.New(fault.Unsupported,
			"plan: assignments (mpe, map, samples) are found exactly only (samples by method sampled, too), not by method %s", m)
	case a.settings.NoExact:
		return btn.Assignment{}, fault.New(fault.Unsupported,
			"plan: assignments (mpe, map) are found exactly only, and the exact way is switched off")
	}

	assignment, err := a.exactDescents(q)
	if err != nil && fault.CodeOf(err) == fault.OverBudget && a.settings.Method == btn.MethodAuto && weighs(q) && a.ctx.Err() == nil {
		return a.weighted(q)
	}
	return assignment, err
}

// exactDescents is descents by exact methods.
func (a *assigner) exactDescents(q query.Query) (btn.Assignment, error) {
	var assignment btn.Assignment
	var err error
	if len(q.Joint) > 0 || btn.Parametric(q) || a.settings.Method == btn.MethodCircuit {
		assignment, err = a.total(q)
	} else if assignment, err = a.exactInTime(a.conditioned, q.Marginals); err == nil {
		a.caution(&assignment, a.conditioned)
	}
	if err != nil {
		return btn.Assignment{}, err
	}

	plan := *assignment.Plan
	e := plan.Estimates[0]
	e.Parts = slices.Clone(e.Parts)
	var cost btn.Cost
	if assignment.Cost != nil {
		cost = *assignment.Cost
	}
	for _, ask := range asks(q) {
		parts, err := a.asked(assignment.Plan, ask)
		if err != nil {
			return btn.Assignment{}, err
		}
		if parts != nil {
			e.Parts = append(e.Parts, parts...)
			continue
		}
		found, hit, err := a.descent(ask, q)
		if err != nil {
			return btn.Assignment{}, err
		}
		own := &found.Estimates[0]
		e.Parts = append(e.Parts, own.Parts...)
		cost.Flops += own.Cost.Flops
		cost.Bytes = max(cost.Bytes, own.Cost.Bytes)
		e.Cost.Flops += own.Cost.Flops
		e.Cost.Bytes = max(e.Cost.Bytes, own.Cost.Bytes)
		if hit == btn.CacheMiss {
			assignment.Cache = hit
		}
	}
	if assignment.Cost != nil {
		assignment.Cost = &cost
	}
	if e.Alpha != nil {
		e.Alpha = slices.Clone(e.Alpha)
		for len(e.Alpha) < len(e.Parts) {
			e.Alpha = append(e.Alpha, scaled.One)
		}
	}
	plan.Estimates = []btn.Estimate{e}
	assignment.Plan = &plan
	assignment.Descents = &btn.Descents{MPE: q.MPE, Map: q.Map, Samples: q.Samples, Seed: q.Seed}
	return assignment, nil
}

// asked returns the parts that find assignments along a plan's circuit, in its cubes, or in its count space; nil where there are none.
func (a *assigner) asked(plan *btn.Plan, ask btn.Ask) ([]btn.Part, error) {
	parts := plan.Estimates[0].Parts
	switch of := parts[0].(type) {
	case *circuits.Circuit:
		if answers(ask, of.Of.Functional) {
			return []btn.Part{&circuits.Circuit{Of: of.Of, Ask: ask}}, nil
		}
	case *circuits.Cube:
		if !answers(ask, of.Of.Functional) {
			return nil, nil
		}
		list := make([]btn.Part, len(parts))
		for i := range parts {
			list[i] = &circuits.Cube{Of: of.Of, At: i, Ask: ask}
		}
		return list, nil
	case *counts.Counts:
		if len(parts) > 1 {
			return nil, nil
		}
		form, err := counts.Of(a.ctx, a.current(), of)
		if err == nil && form.Finds(ask) {
			return []btn.Part{&counts.Counts{Cores: of.Cores, Terms: of.Terms, Ask: ask}}, nil
		}
		return nil, err
	case *structured.Nodes:
		return structured.Asked(parts, ask), nil
	}
	return nil, nil
}

// answers reports whether circuits answer a question.
func answers(ask btn.Ask, functional bool) bool {
	return ask == btn.AskSamples || ask == btn.AskMPE && functional
}

// asks lists what a query asks for.
func asks(q query.Query) (list []btn.Ask) {
	if q.MPE {
		list = append(list, btn.AskMPE)
	}
	if len(q.Map) > 0 {
		list = append(list, btn.AskMap)
	}
	if q.Samples > 0 {
		list = append(list, btn.AskSamples)
	}
	return list
}

// descent makes the parts of one question. Paths are remembered by the shape of the tables.
func (a *assigner) descent(ask btn.Ask, q query.Query) (*btn.Plan, string, error) {
	p, err := descent.Of(a.ctx, a.current(), ask, q.Map)
	if err != nil {
		return nil, "", err
	}
	settings := fmt.Sprintf("descent %s seed=%d moves=%d %s", ask, a.settings.Seed, searchMoves(a.settings), p.Shape())
	return a.remember(settings, p.Hypergraph(), func(ctx context.Context) (*btn.Plan, error) {
		path, cost, err := p.Plan(ctx, descent.PlanOptions{
			Memory: a.settings.Memory,
			Seed:   a.settings.Seed,
			Moves:  searchMoves(a.settings),
			Flops:  exactLimit(a.settings),
		})
		if err != nil {
			return nil, err
		}
		chunks := int64(max(1, min(cost.Flops/policy.SliceTaskFlops, float64(path.Count), policy.MostChunks)))
		parts := make([]btn.Part, chunks)
		for k := range chunks {
			parts[k] = &descent.Descent{
				Along: path,
				From:  bound(path.Count, chunks, k),
				To:    bound(path.Count, chunks, k+1),
			}
		}
		return exactOf(cost, parts...), nil
	})
}
