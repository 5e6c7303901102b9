package structured

// Assignments drawn from the nodes: a component by its weight, then all variables.

import (
	"math"
	"math/rand/v2"
	"slices"
	"sort"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contraction"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// drawn returns assignments, each drawn with a stream of its own: exact up to rounding.
func (p *Nodes) drawn(j contraction.Contraction, f *form, want btn.Want) (value btn.Value, err error) {
	if f.complex {
		return value, fault.New(fault.Unsupported, "structured: a component with a phase cannot be drawn")
	}
	if j.Net.Scale.Sign() < 0 {
		return value, fault.New(fault.BadInput,
			"structured: the product of the factors without variables is below 0: weights of assignments are no probabilities then")
	}
	if err := query.CheckSamples(len(j.Net.Variables), want.Samples); err != nil {
		return value, err
	}
	list, err := f.own(j.Ctx, p)
	if err != nil || len(list) == 0 {
		return value, err
	}
	e := newElimination[plain](f.program, f.fit, f.at, false)
	upTo, most, err := f.cumulated(j.Ctx, e, list)
	if err != nil || math.IsInf(most, -1) {
		return value, err
	}
	total := upTo[len(upTo)-1]
	type draw struct{ sample, node int }
	draws := make([]draw, want.Samples)
	streams := make([]*rand.Rand, want.Samples)
	for s := range draws {
		streams[s] = rand.New(rand.NewPCG(want.Seed, uint64(s)))
		u := streams[s].Float64() * total
		draws[s] = draw{s, min(sort.SearchFloat64s(upTo, u), len(list)-1)}
	}
	slices.SortStableFunc(draws, func(a, b draw) int { return a.node - b.node })
	n := len(j.Net.Variables)
	value.Drawn = &btn.Drawn{
		Weight: scaled.FromFloat(total).Mul(scaled.FromLog(most + p.Of.Ln)).Mul(j.Net.Scale),
		Values: make([]int, n*want.Samples),
	}
	value.Flops = f.flops(false) * float64(len(list))
	last := -1
	x := make([]int, len(f.fit.Domains)) // the statistics' values are behind those of the variables
	for _, d := range draws {
		if d.node != last {
			f.real(list[d.node], e)
			e.total()
			last = d.node
			value.Flops += f.flops(false)
		}
		if err := j.Ctx.Err(); err != nil {
			return value, err
		}
		e.draw(streams[d.sample], x)
		out := value.Drawn.Values[d.sample*n:][:n]
		for u, v := range f.variables {
			out[v] = x[u]
		}
		f.fit.drawLeaves(streams[d.sample], x, out)
	}
	return value, nil
}

// draw draws an assignment of all variables with its share of the total that was computed last.
func (e *elimination[T]) draw(r *rand.Rand, x []int) {
	for v, c := range e.of.clique {
		if c < 0 {
			x[v] = pick(r, e.g[e.at[v]:][:e.fit.Domains[v]])
		}
	}
	for c := len(e.of.cliques) - 1; c >= 0; c-- {
		own := &e.of.cliques[c]
		at := 0 // the entry with the first variable at 0
		for _, v := range own.scope[1:] {
			at = at*e.fit.Domains[v] + x[v]
		}
		d := e.fit.Domains[own.variable]
		row := make([]T, d)
		for a := range d {
			row[a] = e.tables[c][a*own.length+at]
		}
		x[own.variable] = pick(r, row)
	}
}

// pick draws an index by its weight.
func pick[T number[T]](r *rand.Rand, weights []T) int {
	total := 0.0
	for _, w := range weights {
		total += w.size()
	}
	u := r.Float64() * total
	last := 0
	for a, w := range weights {
		if w.size() > 0 {
			last = a
			if u -= w.size(); u < 0 {
				return a
			}
		}
	}
	return last
}
