package gradients

import (
	"context"
	"errors"
	"slices"

	"github.com/basetensor/basetensor/internal/engine/einsum"
	"github.com/basetensor/basetensor/internal/engine/wide"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// Options bound a contraction and choose its results beside Z and its derivatives.
type Options struct {
	Memory    int64 // bytes for tables; 0: query.DefaultMemory
	Threads   int
	From, To  int64                    // slices, From ≤ s < To
	Marginals bool                     // of all variables
	Target    *factorgraph.Observation // Z and derivatives with this observation, too; nil: none
}

// Answer is the part of Z that some slices make up, and its derivatives by the parameters of all
// cores, as lower.ParameterSizes counts them.
type Answer struct {
	Z         scaled.Number
	By        []scaled.Number
	Marginals [][]scaled.Number // by variable and value, not normalised; nil unless asked for
	TargetZ   scaled.Number
	TargetBy  []scaled.Number // nil without a target
	Flops     float64
	Digits    float64
	Doubt     string // why the numbers are not known to be exact; empty where they are
}

// lost is the doubt that entries of a derivative leave which float64 did not hold.
const lost = "entries span more than float64 holds, and derivatives may lack terms"

// uncounted is the doubt of derivatives whose terms have both signs, where they do not fit wide numbers.
const uncounted = "terms of both signs may cancel in the derivatives, and nobody has counted them"

// Answer contracts the slices From ≤ s < To in float64. If they are all slices and float64 leaves a doubt (entries beyond its range, or
// terms of both signs), it contracts the whole in wide numbers. An entry of a derivative is then right to 1e-11 of the sum of the absolute
// values of its terms. If wide numbers are over budget, it returns the numbers of float64 with their doubt. If only some slices are asked
// for, it returns their numbers of float64 with the doubt, if there is one.
//
// Errors: fault.OverBudget; sumproduct.ErrSpan (fault.Unsupported) if float64 cannot hold the numbers of some slices, but wide numbers can
// hold the whole; sumproduct.ErrNotFinite if float64 cannot hold the numbers and wide numbers are over budget; fault.Internal for a plan
// that is another network's; the context's.
func (p *Prepared) Answer(ctx context.Context, c *AdjointPlan, o Options) (Answer, error) {
	if err := p.fits(c); err != nil {
		return Answer{}, err
	}
	isSigned := p.given.Signed()
	isWhole := o.From == 0 && o.To == c.Count
	var a Answer // in float64; By is nil if float64 was not tried or its numbers are not finite
	var err error
	if p.floats.Unfit == "" && !(isSigned && isWhole) {
		a, err = p.inFloats(ctx, c, o)
		switch {
		case errors.Is(err, sumproduct.ErrNotFinite):
			a = Answer{Doubt: err.Error()}
		case err != nil:
			return Answer{}, err
		case isSigned:
			a.Doubt = uncounted
		}
		if a.Doubt == "" || !isWhole && a.By != nil {
			return a, nil
		}
	}

	exact, err := p.inWide(ctx, o)
	switch {
	case err == nil && isWhole:
		exact.Flops += a.Flops
		return exact, nil
	case err == nil: // wide numbers have no sums of some slices
		return Answer{}, fault.New(fault.Unsupported, "%w: %s", sumproduct.ErrSpan, p.floats.Unfit)
	case fault.CodeOf(err) == fault.OverBudget && p.floats.Unfit == "":
		return p.doubtfulFloats(ctx, c, o, a)
	default:
		return Answer{}, err
	}
}

// doubtfulFloats returns the answer in float64 with its doubt, if wide numbers are over budget. It returns a if that has numbers. Otherwise
// float64 was not tried, because terms have both signs, or its numbers were not finite: it contracts in float64, with that doubt or error.
func (p *Prepared) doubtfulFloats(ctx context.Context, c *AdjointPlan, o Options, a Answer) (Answer, error) {
	if a.By != nil {
		return a, nil
	}
	a, err := p.inFloats(ctx, c, o)
	if err != nil {
		return Answer{}, err
	}
	a.Doubt = uncounted
	return a, nil
}

// inFloats sums slices.
func (p *Prepared) inFloats(ctx context.Context, c *AdjointPlan, o Options) (Answer, error) {
	a := Answer{By: make([]scaled.Number, p.entries)}
	if o.Marginals {
		a.Marginals = p.noMarginals()
	}
	if o.Target != nil {
		a.TargetBy = make([]scaled.Number, p.entries)
	}
	if p.floats.Scale.IsZero() {
		return a, nil
	}

	first := p.firsts()
	cut := p.cut(c.Slices)
	var zs, targets []scaled.Number
	for s := o.From; s < o.To; s++ {
		e, base := cut.at(s)
		d, stats, err := einsum.Differentiate(ctx, e, c.Order, p.wanted, o.Marginals,
			einsum.Options{Memory: o.Memory, Threads: o.Threads})
		if err != nil {
			return Answer{}, err
		}
		a.take(stats)
		zs = append(zs, d.Z)
		p.collect(a.By, &d, cut, base, first)
		p.addMarginals(a.Marginals, &d, cut, s)

		if o.Target == nil {
			continue
		}
		with := cut.observed(e, s, p.floats.Variables[o.Target.Var], p.valuePosition(*o.Target))
		if with == nil {
			targets = append(targets, scaled.Number{})
			continue
		}
		wanted := append(slices.Clip(p.wanted), make([]bool, len(with.Tables)-len(p.wanted))...)
		d, stats, err = einsum.Differentiate(ctx, with, c.Order, wanted, false,
			einsum.Options{Memory: o.Memory, Threads: o.Threads})
		if err != nil {
			return Answer{}, err
		}
		a.take(stats)
		targets = append(targets, d.Z)
		p.collect(a.TargetBy, &d, cut, base, first)
	}
	a.Z = scaled.Sum(zs)
	a.TargetZ = scaled.Sum(targets)
	p.singles(a.By, a.Z, first)
	if o.Target != nil {
		p.singles(a.TargetBy, a.TargetZ, first)
	}
	return a, nil
}

// take adds the cost of a contraction, and its doubt.
func (a *Answer) take(s einsum.Stats) {
	a.Flops += s.Flops
	if s.Lost {
		a.Doubt = lost
	}
}

// firsts says where the parameters of every core begin.
func (p *Prepared) firsts() []int {
	first := make([]int, len(p.given.Sizes))
	at := 0
	for c, n := range p.given.Sizes {
		first[c] = at
		at += n
	}
	return first
}

// collect adds the derivatives of a slice to the parameters'.
func (p *Prepared) collect(by []scaled.Number, d *einsum.Derivatives, cut *cutting, base []int, first []int) {
	for t, list := range d.By {
		if list == nil || t >= len(p.wanted) || !p.wanted[t] {
			continue
		}
		from := p.given.Sources[t]
		exp := d.Exp[t] - p.divided[t]
		for k, x := range list {
			if x == 0 {
				continue
			}
			at := k
			if cut.offsets[t] != nil {
				at = base[t] + cut.offsets[t][k]
			}
			if place := from.At[at]; place >= 0 {
				n := &by[first[from.Core]+place]
				*n = n.Add(scaled.Make(x, exp))
			}
		}
	}
}

// singles fills in the derivatives by parameters that are factors of the whole: Z over the parameter.
func (p *Prepared) singles(by []scaled.Number, z scaled.Number, first []int) {
	for _, s := range p.given.Single {
		if !s.Value.IsZero() {
			by[first[s.Core]+s.At] = z.Div(s.Value)
		}
	}
}

// noMarginals returns zeros for every variable and value.
func (p *Prepared) noMarginals() [][]scaled.Number {
	m := make([][]scaled.Number, len(p.net.Variables))
	for v, place := range p.net.Variables {
		m[v] = make([]scaled.Number, place.Domain)
	}
	return m
}

// addMarginals adds a slice's marginals.
func (p *Prepared) addMarginals(to [][]scaled.Number, d *einsum.Derivatives, cut *cutting, s int64) {
	if to == nil {
		return
	}
	for v, i := range p.floats.Variables {
		for k, x := range d.Marginals[i] {
			if cut.fixed[i] {
				k = cut.digit(s, i)
			}
			n := &to[v][p.valueOf(i, k)]
			*n = n.Add(x)
		}
	}
}

// valueOf is the value of a variable that the k-th value of its index i is.
func (p *Prepared) valueOf(i, k int) int {
	if support := p.floats.Support[i]; support != nil {
		return support[k]
	}
	return k
}

// valuePosition returns the position of an observed value among its index's values, −1 where evidence excludes it.
func (p *Prepared) valuePosition(o factorgraph.Observation) int {
	if support := p.floats.Support[p.floats.Variables[o.Var]]; support != nil {
		return slices.Index(support, o.Value)
	}
	return o.Value
}

// inWide contracts all slices in wide numbers.
func (p *Prepared) inWide(ctx context.Context, o Options) (Answer, error) {
	first := p.firsts()
	run := func(e *sumproduct.Expression, marginals bool) (wide.Result, []scaled.Number, error) {
		by := make([]scaled.Number, p.entries)
		r, err := wide.Contract(ctx, e, wide.Options{Memory: o.Memory, Marginals: marginals, Derivatives: true})
		if err != nil {
			return r, nil, err
		}
		for t, from := range p.given.Sources {
			for k, place := range from.At {
				if from.Core >= 0 && place >= 0 {
					by[first[from.Core]+place] = r.By[t][k]
				}
			}
		}
		p.singles(by, r.Z, first)
		return r, by, nil
	}

	r, by, err := run(p.given.Expression, o.Marginals)
	if err != nil {
		return Answer{}, err
	}
	a := Answer{Z: r.Z, By: by, Flops: r.Flops, Digits: r.Digits}
	if !r.Exact || len(p.net.Rounded) > 0 && p.given.Signed() {
		a.Doubt = uncounted
	}
	if o.Marginals {
		a.Marginals = p.noMarginals()
		for v, i := range p.given.Variables {
			for k, x := range r.Marginals[i] {
				a.Marginals[v][p.valueOf(i, k)] = x
			}
		}
	}
	if o.Target == nil {
		return a, nil
	}

	a.TargetBy = make([]scaled.Number, p.entries)
	with := (&cutting{dims: p.given.Dims}).observed(
		p.given.Expression, 0, p.given.Variables[o.Target.Var], p.valuePosition(*o.Target))
	if with == nil {
		return a, nil
	}
	if r, a.TargetBy, err = run(with, false); err != nil {
		return Answer{}, err
	}
	a.TargetZ = r.Z
	a.Flops += r.Flops
	return a, nil
}
