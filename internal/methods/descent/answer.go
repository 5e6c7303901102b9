package descent

import (
	"context"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"

	"github.com/basetensor/basetensor/internal/base/floats"
	"github.com/basetensor/basetensor/internal/engine/buckets"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// Options bound a descent.
type Options struct {
	Memory   int64 // bytes for tables; 0: query.DefaultMemory
	Threads  int   // 0: all processors; results have the same bits for any number
	From, To int64 // slices, From ≤ s < To
	Best     int   // assignments that Best lists; 0: one
}

// mostTies bounds the compared assignments of nearly the largest weight.
const mostTies = 256

// run eliminates one slice along a path.
func (p *Prepared) run(
	ctx context.Context, path *Path, steps []buckets.Step, at int64, values []int, o Options,
) (*buckets.Run, error) {
	if o.Memory <= 0 {
		o.Memory = query.DefaultMemory
	}
	return buckets.Eliminate(ctx, p.slice(path, at, values), steps, p.ask == btn.AskMPE,
		buckets.Options{Memory: o.Memory, Threads: o.Threads})
}

// Best returns the most probable assignment of some slices, nil where all their terms are 0.
//
// Of assignments whose weights are equal up to the rounding of their factors' entries, the smallest in
// the order of the variables is taken, where no more than mostTies are that close to the best in
// logarithms; else the smallest of those that the path meets first. Unique says that there is no
// other, which is known in the former case alone. Where more than one is asked for, Others are the next ones by their weights.
func (p *Prepared) Best(ctx context.Context, path *Path, o Options) (*btn.Found, error) {
	steps, err := p.steps(ctx, path)
	if err != nil {
		return nil, err
	}
	var best *btn.Found
	fixed := make([]int, len(p.simple.Dims))
	most := math.Inf(-1)
	for s := o.From; s < o.To; s++ {
		r, err := p.run(ctx, path, steps, s, fixed, o)
		if err != nil {
			return nil, err
		}
		top := r.LnTotal()
		slack := p.slack(steps, top)
		if math.IsInf(top, -1) || top < most-slack {
			continue
		}
		found, err := p.among(ctx, r, fixed, path.Slices, slack)
		if err != nil {
			return nil, err
		}
		if o.Best > 1 {
			if err := o.others(ctx, p, r, fixed, path.Slices, slack, found); err != nil {
				return nil, err
			}
		}
		best = best.Or(found)
		if o.Best < 2 {
			most = max(most, top)
		} else if best.Keep(o.Best); !best.All {
			most = best.Others[o.Best-2].Weight.LogAbs()
		}
	}
	return best, nil
}

// others lists the next best ones of a run beside the best.
func (o Options) others(
	ctx context.Context, p *Prepared, r *buckets.Run, fixed, sliced []int, slack float64, best *btn.Found,
) error {
	count := o.Best - 1
	near, all, err := r.Largest(ctx, count+1, slack, mostTies)
	if err != nil {
		return err
	}
	given := make([]int, len(p.given.Dims))
	for _, at := range near {
		for _, i := range sliced {
			at[i] = fixed[i]
		}
		if values := p.assignment(at, given); !slices.Equal(values, best.Values) {
			best.Others = append(best.Others, btn.Other{Values: values, Weight: number(weight(p.given, given))})
		}
	}
	slices.SortFunc(best.Others, btn.Other.Compare)
	best.All = all && len(best.Others) <= count
	best.Others = best.Others[:min(count, len(best.Others))]
	return nil
}

// slack bounds the difference of the logarithms of two equal terms, as sums of logarithms that add
// up to ln: a rounding per step and table, relative to the sum, and the simplification's roundings.
func (p *Prepared) slack(steps []buckets.Step, ln float64) float64 {
	size := math.Abs(ln)
	if !p.given.Scale.IsZero() {
		size += math.Abs(p.given.Scale.LogAbs())
	}
	for t := range p.simple.Tables { // the largest entry of a table is taken out of it nowhere
		size += math.Abs(top(&p.simple.Tables[t])) * math.Ln2
	}
	n := float64(2*len(p.simple.Tables) + 2*len(steps) + 8)
	return (size*n+2*p.rounding+4*n)*0x1p-53 + p.rounded()
}

// top is the exponent of the largest entry of a table.
func top(t *sumproduct.Table) float64 {
	if t.Exp == nil {
		most, _, _ := floats.Extent(t.Data)
		return float64(most)
	}
	most := int64(math.MinInt64)
	for k, x := range t.Data {
		if x != 0 {
			most = max(most, scaled.Make(x, t.Exp[k]).Exp)
		}
	}
	if most == math.MinInt64 {
		return 0
	}
	return float64(most)
}

// among returns the best of the terms that a run puts on top, by their weights.
func (p *Prepared) among(
	ctx context.Context, r *buckets.Run, fixed, sliced []int, slack float64,
) (*btn.Found, error) {
	near, all, err := r.Near(ctx, slack, mostTies)
	if err != nil {
		return nil, err
	}
	given := make([]int, len(p.given.Dims))
	values := make([][]int, len(near))
	weights := make([]*big.Float, len(near))
	top := 0
	for k, at := range near {
		for _, i := range sliced {
			at[i] = fixed[i]
		}
		values[k] = p.assignment(at, given)
		weights[k] = weight(p.given, given)
		if weights[k].Cmp(weights[top]) > 0 {
			top = k
		}
	}

	best, ties := top, 0
	for k := range near {
		if !close(weights[k], weights[top], p.rounded()) {
			continue
		}
		ties++
		if slices.Compare(values[k], values[best]) < 0 {
			best = k
		}
	}
	return &btn.Found{
		Values: values[best],
		Weight: number(weights[best]),
		Unique: all && ties == 1,
		Close:  p.rounded(),
	}, nil
}

// rounded is the relative difference up to which two weights are taken to be equal: a rounding of
// every factor's entry, and one of its sum.
func (p *Prepared) rounded() float64 {
	return 2 * float64(len(p.given.Tables)+1) * 0x1p-53
}

// close reports whether |a − b| ≤ d·b.
func close(a, b *big.Float, d float64) bool {
	gap := new(big.Float).Sub(a, b)
	return gap.Abs(gap).Cmp(new(big.Float).Mul(b, big.NewFloat(d))) <= 0
}

// weight is the product of the tables of an expression, at values of their indices, to many digits.
func weight(e *sumproduct.Expression, values []int) *big.Float {
	const digits = 192
	w := new(big.Float).SetPrec(digits).SetFloat64(e.Scale.Mant)
	exp := e.Scale.Exp
	x := new(big.Float)
	for t := range e.Tables {
		table := &e.Tables[t]
		at := 0
		for _, i := range table.Scope {
			at = at*e.Dims[i] + values[i]
		}
		if table.Exp != nil {
			exp += table.Exp[at]
		}
		w.Mul(w, x.SetFloat64(table.Data[at]))
	}
	return w.SetMantExp(w, int(exp))
}

// number is a weight as one of the services.
func number(w *big.Float) scaled.Number {
	m := new(big.Float)
	exp := w.MantExp(m)
	f, _ := m.Float64()
	return scaled.Make(f, int64(exp))
}

// Draw draws n assignments of some slices, each with a stream of its own: the slice of each is drawn
// on the way, by the ratio of its Z to the running total.
func (p *Prepared) Draw(
	ctx context.Context, path *Path, n int, seed uint64, o Options,
) (*btn.Drawn, error) {
	steps, err := p.steps(ctx, path)
	if err != nil {
		return nil, err
	}
	width := len(p.net.Variables)
	out := &btn.Drawn{Values: make([]int, n*width)}
	at := make([]int, len(p.simple.Dims))
	given := make([]int, len(p.given.Dims))
	for s := o.From; s < o.To; s++ {
		r, err := p.run(ctx, path, steps, s, at, o)
		if err != nil {
			return nil, err
		}
		ln := r.LnTotal()
		if math.IsInf(ln, -1) {
			continue
		}
		z := scaled.FromLog(ln)
		out.Weight = out.Weight.Add(z)
		share := z.Div(out.Weight).Float64()
		for k := range n {
			if k&63 == 0 && ctx.Err() != nil {
				return nil, ctx.Err()
			}
			rng := rand.New(rand.NewPCG(seed, uint64(s)<<32|uint64(k)))
			if share < 1 && rng.Float64() >= share {
				continue
			}
			r.Draw(rng, at)
			copy(out.Values[k*width:], p.assignment(at, given))
		}
	}
	if out.Weight.IsZero() {
		return nil, nil
	}
	return out, nil
}
