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

// Options bound a descent and choose its slices.
type Options struct {
	Memory   int64 // bytes for tables; 0: query.DefaultMemory
	Threads  int   // 0: all processors; results have the same bits for any number
	From, To int64 // slices s with From ≤ s < To
	Best     int   // assignments that Best lists; 0: one
}

// maxTies bounds the assignments of nearly the largest weight that are compared.
const maxTies = 256

// eliminateSlice eliminates one slice of p.Terms along a path. steps are those of the path: they sum or maximise over indices. Indices in
// no table are maximised over for the most probable assignment, else summed. It writes the values of the indices that the slice fixes to
// termValues, by index. The result keeps all tables, so that one can go back from the total to assignments.
func (p *Prepared) eliminateSlice(
	ctx context.Context, path *Path, steps []buckets.Step, slice int64, termValues []int, o Options,
) (*buckets.Run, error) {
	if o.Memory <= 0 {
		o.Memory = query.DefaultMemory
	}
	return buckets.Eliminate(ctx, p.sliceAt(path, slice, termValues), steps, p.ask == btn.AskMPE,
		buckets.Options{Memory: o.Memory, Threads: o.Threads})
}

// Best returns the most probable assignment of the slices o.From ≤ s < o.To, and the next ones if o.Best asks for more than one. It
// returns nil if all terms of the slices are 0.
//
// Assignments are tied if their weights are equal up to the rounding of their factors' entries. Of tied assignments it returns the smallest
// in the order of the variables. It compares the terms whose logarithms are below the largest by at most slack, the rounding of a
// logarithm. If these are more than maxTies, it compares only the first maxTies that the path meets. Unique says that all of them were
// compared, and that none is tied with the best.
func (p *Prepared) Best(ctx context.Context, path *Path, o Options) (*btn.Found, error) {
	steps, err := p.steps(ctx, path)
	if err != nil {
		return nil, err
	}
	var best *btn.Found
	sliceValues := make([]int, len(p.simplified.Dims)) // of the indices that the slice fixes
	lnNeeded := math.Inf(-1)                           // slices whose largest term is below it are of no use
	for s := o.From; s < o.To; s++ {
		r, err := p.eliminateSlice(ctx, path, steps, s, sliceValues, o)
		if err != nil {
			return nil, err
		}
		lnLargest := r.LnTotal()
		slack := p.slack(steps, lnLargest)
		if math.IsInf(lnLargest, -1) || lnLargest < lnNeeded-slack {
			continue
		}

		bestOfSlice, err := p.bestOfSlice(ctx, r, sliceValues, path.Slices, slack)
		if err != nil {
			return nil, err
		}
		if o.Best > 1 {
			if err := p.addOthers(ctx, bestOfSlice, o.Best-1, r, sliceValues, path.Slices, slack); err != nil {
				return nil, err
			}
		}

		best = best.Better(bestOfSlice) // the heavier one, with the next best ones of the two; best may be nil
		if o.Best < 2 {
			lnNeeded = max(lnNeeded, lnLargest)
		} else if best.Shorten(o.Best); !best.All { // there are more: the last one listed has to be beaten
			lnNeeded = best.Others[o.Best-2].Weight.LogAbs()
		}
	}
	return best, nil
}

// addOthers adds the count next best assignments of a slice to best, the best one of the slice. r is the run of the slice, which fixes the
// indices in sliced to their values in sliceValues. Terms whose logarithms differ by at most slack are compared by their weights, so
// Largest may return more terms than it is asked for.
func (p *Prepared) addOthers(
	ctx context.Context, best *btn.Found, count int, r *buckets.Run, sliceValues, sliced []int, slack float64,
) error {
	terms, hasAll, err := r.Largest(ctx, count+1, slack, maxTies) // best itself is among them
	if err != nil {
		return err
	}
	indexValues := make([]int, len(p.expression.Dims))
	for _, termValues := range terms {
		for _, i := range sliced {
			termValues[i] = sliceValues[i]
		}
		if values := p.assignment(termValues, indexValues); !slices.Equal(values, best.Values) {
			best.Others = append(best.Others, btn.Other{Values: values, Weight: scaledNumber(weightOf(p.expression, indexValues))})
		}
	}
	slices.SortFunc(best.Others, btn.Other.Compare)
	best.All = hasAll && len(best.Others) <= count
	best.Others = best.Others[:min(count, len(best.Others))]
	return nil
}

// slack bounds the rounding difference of two computed logarithms of the same term. ln is the logarithm, and steps are those of the
// elimination that computed it. It adds up four bounds, in which size is the sum of the magnitudes of all summands of the logarithm:
//
//	2 roundings for each table and each step, and 8 more, each at most size · 2^-53
//	the roundings of the logarithms themselves, 4 · 2^-53 each
//	2 · p.rounding · 2^-53 for the simplification
//	tieWidth for the rounding of the entries
func (p *Prepared) slack(steps []buckets.Step, ln float64) float64 {
	size := math.Abs(ln)
	if !p.expression.Scale.IsZero() {
		size += math.Abs(p.expression.Scale.LogAbs())
	}
	for t := range p.simplified.Tables { // a large entry of one table and a small one of another may cancel in ln
		size += math.Abs(largestExponent(&p.simplified.Tables[t])) * math.Ln2
	}
	roundings := float64(2*len(p.simplified.Tables) + 2*len(steps) + 8)
	return (size*roundings+2*p.rounding+4*roundings)*0x1p-53 + p.tieWidth()
}

// largestExponent returns the exponent of two of the largest entry of a table, 0 if all entries are 0. Entries have exponents of their
// own if t.Exp is not nil.
func largestExponent(t *sumproduct.Table) float64 {
	if t.Exp == nil {
		largest, _, _ := floats.Extent(t.Data) // the largest exponent
		return float64(largest)
	}
	largest := int64(math.MinInt64)
	for k, x := range t.Data {
		if x != 0 {
			largest = max(largest, scaled.Make(x, t.Exp[k]).Exp)
		}
	}
	if largest == math.MinInt64 {
		return 0
	}
	return float64(largest)
}

// bestOfSlice returns the best assignment of a slice. r, the run of the slice, has computed logarithms of its terms; the terms at most
// slack below the largest logarithm, maxTies of them at most, are compared by weights that are computed more precisely. Weights that agree
// within the rounding of the entries (tieWidth) are tied: of the tied assignments it returns the smallest one. The slice fixes the indices
// in sliced to their values in sliceValues.
func (p *Prepared) bestOfSlice(
	ctx context.Context, r *buckets.Run, sliceValues, sliced []int, slack float64,
) (*btn.Found, error) {
	// The assignments and weights of the terms at most slack below the largest.
	terms, hasAll, err := r.Near(ctx, slack, maxTies)
	if err != nil {
		return nil, err
	}
	indexValues := make([]int, len(p.expression.Dims))
	values := make([][]int, len(terms))
	weights := make([]*big.Float, len(terms))
	heaviest := 0
	for k, termValues := range terms {
		for _, i := range sliced {
			termValues[i] = sliceValues[i]
		}
		values[k] = p.assignment(termValues, indexValues) // writes indexValues, too
		weights[k] = weightOf(p.expression, indexValues)
		if weights[k].Cmp(weights[heaviest]) > 0 {
			heaviest = k
		}
	}

	// The smallest assignment of the tie.
	best, ties := heaviest, 0
	for k := range terms {
		if !isClose(weights[k], weights[heaviest], p.tieWidth()) {
			continue
		}
		ties++
		if slices.Compare(values[k], values[best]) < 0 {
			best = k
		}
	}
	return &btn.Found{
		Values: values[best],
		Weight: scaledNumber(weights[best]),
		Unique: hasAll && ties == 1,
		Close:  p.tieWidth(),
	}, nil
}

// tieWidth returns the relative difference up to which two weights are taken to be equal: a rounding of
// every factor's entry, and one of its sum.
func (p *Prepared) tieWidth() float64 {
	return 2 * float64(len(p.expression.Tables)+1) * 0x1p-53
}

// isClose reports whether |a − b| ≤ width·b.
func isClose(a, b *big.Float, width float64) bool {
	gap := new(big.Float).Sub(a, b)
	return gap.Abs(gap).Cmp(new(big.Float).Mul(b, big.NewFloat(width))) <= 0
}

// weightOf returns the product of the scale and the tables of an expression, at the given values of all indices, to 192 bits.
func weightOf(e *sumproduct.Expression, values []int) *big.Float {
	const precision = 192 // chosen: far beyond the 53 bits of the entries
	w := new(big.Float).SetPrec(precision).SetFloat64(e.Scale.Mant)
	exp := e.Scale.Exp // exponents are added up apart
	x := new(big.Float)
	for t := range e.Tables {
		table := &e.Tables[t]
		entry := 0
		for _, i := range table.Scope {
			entry = entry*e.Dims[i] + values[i]
		}
		if table.Exp != nil {
			exp += table.Exp[entry]
		}
		w.Mul(w, x.SetFloat64(table.Data[entry]))
	}
	return w.SetMantExp(w, int(exp))
}

// scaledNumber returns a big.Float as a scaled.Number, rounded to float64 digits.
func scaledNumber(x *big.Float) scaled.Number {
	mantissa := new(big.Float)
	exp := x.MantExp(mantissa)
	f, _ := mantissa.Float64()
	return scaled.Make(f, int64(exp))
}

// Draw draws n assignments from the slices o.From ≤ s < o.To with their probabilities. It returns nil if all terms are 0. Each draw is
// kept or replaced slice by slice: slice s replaces it with probability Z_s / (Z of all slices up to s). So in the end the probability
// that it is of a slice is in proportion to the slice's Z. Every pair of slice and draw has a random stream of its own. drawn.Weight is
// the sum of Z.
func (p *Prepared) Draw(
	ctx context.Context, path *Path, n int, seed uint64, o Options,
) (*btn.Drawn, error) {
	steps, err := p.steps(ctx, path)
	if err != nil {
		return nil, err
	}
	variables := len(p.net.Variables)
	result := &btn.Drawn{Values: make([]int, n*variables)}
	termValues := make([]int, len(p.simplified.Dims))
	indexValues := make([]int, len(p.expression.Dims))
	for s := o.From; s < o.To; s++ {
		r, err := p.eliminateSlice(ctx, path, steps, s, termValues, o)
		if err != nil {
			return nil, err
		}
		ln := r.LnTotal()
		if math.IsInf(ln, -1) {
			continue
		}
		z := scaled.FromLog(ln)
		result.Weight = result.Weight.Add(z)

		// Replace draws of the slices before by draws of this one.
		share := z.Div(result.Weight).Float64()
		for k := range n {
			if k&63 == 0 && ctx.Err() != nil { // now and then
				return nil, ctx.Err()
			}
			rng := rand.New(rand.NewPCG(seed, uint64(s)<<32|uint64(k)))
			if share < 1 && rng.Float64() >= share {
				continue // the draw stays that of a slice before
			}
			r.Draw(rng, termValues)
			copy(result.Values[k*variables:], p.assignment(termValues, indexValues))
		}
	}
	if result.Weight.IsZero() {
		return nil, nil
	}
	return result, nil
}
