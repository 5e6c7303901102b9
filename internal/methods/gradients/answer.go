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
	Z                 scaled.Number
	Derivatives       []scaled.Number
	Marginals         [][]scaled.Number // by variable and value, not normalised; nil unless asked for
	TargetZ           scaled.Number
	TargetDerivatives []scaled.Number // nil without a target
	Flops             float64
	Digits            float64
	Doubt             string // why the numbers are not known to be exact; empty if they are
}

// mayLackTerms is the doubt of derivatives some of whose entries float64 did not hold.
const mayLackTerms = "entries span more than float64 holds, and derivatives may lack terms"

// mayCancel is the doubt of derivatives whose terms have both signs, if wide numbers do not fit.
const mayCancel = "terms of both signs may cancel in the derivatives, and nobody has counted them"

// Answer returns Z, its derivatives and marginals for the slices o.From ≤ s < o.To, by contraction in float64. If they are all slices and
// float64 leaves a doubt (entries beyond its range, or terms of both signs), it contracts the whole in wide numbers instead. An entry of
// a derivative is then right to 1e-11 of the sum of the absolute values of its terms. If wide numbers are over budget, or if only some
// slices are asked for, it returns the numbers of float64 with their doubt.
//
// Errors: fault.OverBudget; sumproduct.ErrSpan (fault.Unsupported) if float64 cannot hold the numbers of some slices, but wide numbers
// can hold the whole; sumproduct.ErrNotFinite if float64 cannot hold the numbers and wide numbers are over budget; fault.Internal for a
// plan that is another network's; the context's.
func (p *Prepared) Answer(ctx context.Context, c *AdjointPlan, o Options) (Answer, error) {
	if err := p.checkPlan(c); err != nil {
		return Answer{}, err
	}

	// In float64.
	isSigned := p.parametric.Signed()
	isWhole := o.From == 0 && o.To == c.Count
	var a Answer // Derivatives is nil if float64 was not tried or its numbers are not finite
	var err error
	if p.floats.Unfit == "" && !(isSigned && isWhole) {
		a, err = p.inFloats(ctx, c, o)
		switch {
		case errors.Is(err, sumproduct.ErrNotFinite):
			a = Answer{Doubt: err.Error()}
		case err != nil:
			return Answer{}, err
		case isSigned:
			a.Doubt = mayCancel
		}
		hasPartOnly := !isWhole && a.Derivatives != nil
		if a.Doubt == "" || hasPartOnly {
			return a, nil
		}
	}

	// In wide numbers, of the whole, even if only some slices are asked for: an error tells whether the whole can be had.
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

// doubtfulFloats returns the best answer in float64, for the case that wide numbers are over budget. It returns a, the answer so far, if
// that has derivatives. Otherwise it contracts in float64 and adds a doubt to the answer: terms have both signs, so they may cancel, or
// the numbers were not finite before.
func (p *Prepared) doubtfulFloats(ctx context.Context, c *AdjointPlan, o Options, a Answer) (Answer, error) {
	if a.Derivatives != nil {
		return a, nil
	}
	a, err := p.inFloats(ctx, c, o)
	if err != nil {
		return Answer{}, err
	}
	a.Doubt = mayCancel
	return a, nil
}

// inFloats contracts the slices o.From ≤ s < o.To in float64, forth and back, and adds up their Z, derivatives and marginals. If there is
// a target, it also adds up Z and the derivatives with the target observed. Parameters are numbered over all cores; those whose tables
// have no other entry left are factors of Z, and get their derivatives at the end.
func (p *Prepared) inFloats(ctx context.Context, c *AdjointPlan, o Options) (Answer, error) {
	r := sliceSum{ctx: ctx, prepared: p, plan: c, options: o, answer: Answer{Derivatives: make([]scaled.Number, p.parameterCount)}}
	a := &r.answer
	if o.Marginals {
		a.Marginals = p.zeroMarginals()
	}
	if o.Target != nil {
		a.TargetDerivatives = make([]scaled.Number, p.parameterCount)
	}
	if p.floats.Scale.IsZero() {
		return *a, nil
	}

	r.firstOfCore = p.firstParameters()
	r.slicing = p.newSlicing(c.Slices)
	for s := o.From; s < o.To; s++ {
		if err := r.addSlice(s); err != nil {
			return Answer{}, err
		}
	}
	// The sums over the slices. The derivatives have been added up slice by slice.
	a.Z = scaled.Sum(r.zs)
	a.TargetZ = scaled.Sum(r.targetZs)
	p.setSingleDerivatives(a.Derivatives, a.Z, r.firstOfCore)
	if o.Target != nil {
		p.setSingleDerivatives(a.TargetDerivatives, a.TargetZ, r.firstOfCore)
	}
	return *a, nil
}

// sliceSum is the sum over slices of inFloats.
type sliceSum struct {
	ctx          context.Context
	prepared     *Prepared
	plan         *AdjointPlan
	options      Options
	slicing      *slicing
	firstOfCore  []int           // firstParameters
	zs, targetZs []scaled.Number // Z by slice, and Z with the target observed
	answer       Answer          // so far, without Z, TargetZ and the parameters that are factors of Z
}

// addSlice adds slice number to the sum and, if there is a target, the slice with the target observed.
func (r *sliceSum) addSlice(number int64) error {
	p, o := r.prepared, r.options
	e, firstEntries := r.slicing.slice(number) // firstEntries: by table, the index of the slice's first entry in the whole table
	d, err := r.differentiate(e, firstEntries, p.hasParameters, o.Marginals, r.answer.Derivatives)
	if err != nil {
		return err
	}
	r.zs = append(r.zs, d.Z)
	p.addMarginals(r.answer.Marginals, &d, r.slicing, number)

	if o.Target == nil {
		return nil
	}
	observed := r.slicing.observed(e, number, p.floats.Variables[o.Target.Var], p.valuePosition(*o.Target))
	if observed == nil { // the slice or the evidence excludes the target
		r.targetZs = append(r.targetZs, scaled.Number{})
		return nil
	}
	// Derivatives are wanted by the tables that have parameters, and not by the table of the observation, if observed appended one.
	wanted := append(slices.Clip(p.hasParameters), make([]bool, len(observed.Tables)-len(p.hasParameters))...)
	const wantsMarginals = false
	if d, err = r.differentiate(observed, firstEntries, wanted, wantsMarginals, r.answer.TargetDerivatives); err != nil {
		return err
	}
	r.targetZs = append(r.targetZs, d.Z)
	return nil
}

// differentiate contracts e, a slice with or without the target observed, and adds its derivatives to by, which is by parameter.
// firstEntries has, by table, the index of the slice's first entry in the whole table, and wanted says by which tables derivatives are
// wanted.
func (r *sliceSum) differentiate(
	e *sumproduct.Expression, firstEntries []int, wanted []bool, marginals bool, by []scaled.Number,
) (einsum.Derivatives, error) {
	d, stats, err := einsum.Differentiate(r.ctx, e, r.plan.Order, wanted, marginals,
		einsum.Options{Memory: r.options.Memory, Threads: r.options.Threads})
	if err != nil {
		return d, err
	}
	r.answer.addStats(stats) // flops, and a doubt if the contraction may have lost terms
	r.prepared.addDerivatives(by, &d, r.slicing, firstEntries, r.firstOfCore)
	return d, nil
}

// addStats adds the flops of a contraction, and the doubt if it may have lost terms.
func (a *Answer) addStats(s einsum.Stats) {
	a.Flops += s.Flops
	if s.Lost {
		a.Doubt = mayLackTerms
	}
}

// firstParameters returns, by core, the number of its first parameter among the parameters of all cores.
func (p *Prepared) firstParameters() []int {
	first := make([]int, len(p.parametric.Sizes))
	total := 0
	for c, n := range p.parametric.Sizes {
		first[c] = total
		total += n
	}
	return first
}

// addDerivatives adds d, the derivatives of a slice by the entries of its tables, to by, the derivatives by parameters. firstEntries has,
// by table, the index of the slice's first entry in the whole table; it is nil if the slice is the whole. firstOfCore has the number of
// each core's first parameter. source.Positions has the position of an entry's parameter in its core, or −1. p.tableExponents[t] is the
// power of two that was taken out of table t.
func (p *Prepared) addDerivatives(
	by []scaled.Number, d *einsum.Derivatives, slicing *slicing, firstEntries []int, firstOfCore []int,
) {
	for t, list := range d.ByTable {
		if list == nil || t >= len(p.hasParameters) || !p.hasParameters[t] { // t ≥ len(p.hasParameters): the table of an observation
			continue
		}
		source := p.parametric.Sources[t]
		exp := d.Exp[t] - p.tableExponents[t]
		for k, x := range list {
			if x == 0 {
				continue
			}
			entry := k // in the whole table
			if slicing.offsets[t] != nil {
				entry = firstEntries[t] + slicing.offsets[t][k]
			}
			if parameter := source.Positions[entry]; parameter >= 0 {
				sum := &by[firstOfCore[source.Core]+parameter]
				*sum = sum.Add(scaled.Make(x, exp))
			}
		}
	}
}

// setSingleDerivatives sets the derivatives by parameters that are factors of Z, since their tables have no other entry left: Z /
// parameter. by has the derivatives by all parameters, firstOfCore the number of each core's first one.
func (p *Prepared) setSingleDerivatives(by []scaled.Number, z scaled.Number, firstOfCore []int) {
	for _, s := range p.parametric.ScaleParameters {
		if !s.Value.IsZero() {
			by[firstOfCore[s.Core]+s.Position] = z.Div(s.Value)
		}
	}
}

// zeroMarginals returns a 0 for every value of every variable.
func (p *Prepared) zeroMarginals() [][]scaled.Number {
	marginals := make([][]scaled.Number, len(p.net.Variables))
	for v, variable := range p.net.Variables {
		marginals[v] = make([]scaled.Number, variable.Domain)
	}
	return marginals
}

// addMarginals adds the marginals of slice number, which d has by index, to marginals, which are by variable and value. It does nothing if
// marginals is nil.
func (p *Prepared) addMarginals(marginals [][]scaled.Number, d *einsum.Derivatives, slicing *slicing, number int64) {
	if marginals == nil {
		return
	}
	for v, i := range p.floats.Variables {
		for k, x := range d.Marginals[i] {
			if slicing.isSliced[i] { // the index has one value in the slice
				k = slicing.valueIn(number, i)
			}
			sum := &marginals[v][p.valueOf(i, k)]
			*sum = sum.Add(x)
		}
	}
}

// valueOf returns the value of the variable of index i that the k-th value of the index stands for: evidence may have left some values
// only.
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

// inWide contracts the whole expression, without slices, in numbers of more digits than float64 (package wide), forth and back. If there
// is a target, it does so once more with the target observed.
func (p *Prepared) inWide(ctx context.Context, o Options) (Answer, error) {
	r, derivatives, err := p.differentiateWide(ctx, p.parametric.Expression, o.Memory, o.Marginals)
	if err != nil {
		return Answer{}, err
	}
	a := Answer{Z: r.Z, Derivatives: derivatives, Flops: r.Flops, Digits: r.Digits}
	// If terms have both signs, what was rounded before (net.Rounded: products of weights and likelihoods) may matter.
	if !r.Exact || len(p.net.Rounded) > 0 && p.parametric.Signed() {
		a.Doubt = mayCancel
	}
	if o.Marginals {
		a.Marginals = p.zeroMarginals()
		for v, i := range p.parametric.Variables {
			for k, x := range r.Marginals[i] {
				a.Marginals[v][p.valueOf(i, k)] = x
			}
		}
	}
	if o.Target == nil {
		return a, nil
	}

	a.TargetDerivatives = make([]scaled.Number, p.parameterCount)
	unsliced := &slicing{dims: p.parametric.Dims} // slice 0 is the whole expression
	observed := unsliced.observed(p.parametric.Expression, 0, p.parametric.Variables[o.Target.Var], p.valuePosition(*o.Target))
	if observed == nil { // evidence excludes the target, whose Z and derivatives are 0
		return a, nil
	}
	const wantsMarginals = false
	if r, a.TargetDerivatives, err = p.differentiateWide(ctx, observed, o.Memory, wantsMarginals); err != nil {
		return Answer{}, err
	}
	a.TargetZ = r.Z
	a.Flops += r.Flops
	return a, nil
}

// differentiateWide contracts p.parametric, or that with an observation, in wide numbers, forth and back. It returns the result, and the
// derivatives by the parameters of all cores.
func (p *Prepared) differentiateWide(
	ctx context.Context, e *sumproduct.Expression, memory int64, marginals bool,
) (wide.Result, []scaled.Number, error) {
	r, err := wide.Contract(ctx, e, wide.Options{Memory: memory, Marginals: marginals, Derivatives: true})
	if err != nil {
		return r, nil, err
	}
	firstOfCore := p.firstParameters()
	derivatives := make([]scaled.Number, p.parameterCount)
	for t, source := range p.parametric.Sources {
		for k, parameter := range source.Positions {
			if source.Core >= 0 && parameter >= 0 {
				derivatives[firstOfCore[source.Core]+parameter] = r.Derivatives[t][k]
			}
		}
	}
	p.setSingleDerivatives(derivatives, r.Z, firstOfCore)
	return r, derivatives, nil
}
