package structured

// Histograms of sums of integers: convolutions of positive numbers, one variable after the other.

import (
	"context"
	"math"

	"github.com/basetensor/basetensor/internal/base/floats"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/scaled"
)

const (
	// mostStates bounds the values of a partial sum, mostCounted those of all partial sums.
	mostStates, mostCounted = 1 << 22, 1 << 30
	// unitBits is the exponent of the unit of a float: numbers are mant · 2^(unitBits · exp), mant within 2^±half of 1.
	unitBits = 512
	half     = unitBits / 2
	// branching is the number of parts in which a range of variables is computed again on the way back.
	branching = 4
	// block is the number of terms that are added before their sum is.
	block = 512
	// stateBytes are those of a value of a partial sum, and stateFlops the operations.
	stateBytes, stateFlops = 8 + 8 + 4, 12
)

// float is a number of any range. Zero has mant 0.
type float struct {
	mant float64
	exp  int32
}

// floatOf returns a number that is not below 0.
func floatOf(x scaled.Number) float {
	if x.IsZero() {
		return float{}
	}
	e := (x.Exp + half) >> 9 // 2^9 = unitBits
	return float{math.Ldexp(x.Mant, int(x.Exp-e*unitBits)), int32(max(math.MinInt32, min(e, math.MaxInt32)))}
}

func (x float) number() scaled.Number { return scaled.Make(x.mant, unitBits*int64(x.exp)) }

// within moves what a product or a sum has beyond the range of mant to the exponent.
func (x float) within() float {
	switch {
	case x.mant >= 0x1p256:
		return float{x.mant * 0x1p-512, x.exp + 1}
	case x.mant < 0x1p-256 && x.mant > 0:
		return float{x.mant * 0x1p512, x.exp - 1}
	}
	return x
}

func (x float) times(y float) float { return float{x.mant * y.mant, x.exp + y.exp}.within() }

func (x float) plus(y float) float {
	switch {
	case x.exp == y.exp:
		return float{x.mant + y.mant, x.exp}.within()
	case x.mant == 0:
		return y
	case y.mant == 0:
		return x
	case x.exp < y.exp:
		x, y = y, x
	}
	if x.exp-y.exp > 1 { // below 2^-512 of x
		return x
	}
	return float{x.mant + y.mant*0x1p-512, x.exp}.within()
}

// total adds positive numbers in blocks.
type total struct {
	inner, outer float
	count        int
}

func (t *total) add(x float) {
	t.inner = t.inner.plus(x)
	if t.count++; t.count == block {
		t.outer, t.inner, t.count = t.outer.plus(t.inner), float{}, 0
	}
}

func (t *total) sum() float { return t.outer.plus(t.inner) }

// states are the values of a partial sum, in increasing order of their numbers, with their weights.
type states struct {
	key  []int64
	mant []float64
	exp  []int32
}

func (s *states) at(x int) float { return float{s.mant[x], s.exp[x]} }

func (s *states) append(key int64, x float) {
	s.key, s.mant, s.exp = append(s.key, key), append(s.mant, x.mant), append(s.exp, x.exp)
}

// choice is a value of a variable that is possible: what it adds to a sum's number, and its weight.
type choice struct {
	value int
	key   int64
	w     float
}

// histogram is the convolution under weights of single variables.
type histogram struct {
	fit     *Fit
	at      []int
	choices [][]choice // by place in the sequence
	ln      floats.Pair
	most    float64 // states of a partial sum that fit the memory
}

// newHistogram returns the convolution under weights, by variable of the fit; nil where a variable has no value left.
func newHistogram(f *Fit, weights [][]float64, memory int64) (*histogram, error) {
	n := f.Integers
	keys, err := n.keys(f.Domains)
	if err != nil {
		return nil, err
	}
	h := &histogram{fit: f, ln: floats.Pair{High: n.Ln[0], Low: n.Ln[1]}, choices: make([][]choice, len(f.Domains))}
	total := 0
	for _, d := range f.Domains {
		h.at = append(h.at, total)
		total += d
	}
	for place, v := range n.Sequence {
		most := floats.Pair{High: math.Inf(-1)}
		for x := h.at[v]; x < h.at[v]+f.Domains[v]; x++ {
			if n.Field[x] > most.High && weights[v][x-h.at[v]] > 0 {
				most = floats.Pair{High: n.Field[x], Low: n.FieldLow[x]}
			}
		}
		if math.IsInf(most.High, -1) {
			return nil, nil
		}
		h.ln = h.ln.Plus(most)
		for x, w := range weights[v] {
			own := floats.Pair{High: n.Field[h.at[v]+x], Low: n.FieldLow[h.at[v]+x]}
			if w == 0 || math.IsInf(own.High, -1) {
				continue
			}
			h.choices[place] = append(h.choices[place], choice{
				x, keys[h.at[v]+x], floatOf(own.Minus(most).Exp().Mul(scaled.FromFloat(w))),
			})
		}
	}
	h.most = min(mostStates, float64(memory)/stateBytes/(4+branching*n.levels()))
	return h, nil
}

// flops are those of a sum, with marginals or without.
func (n *Integers) flops(marginals bool) float64 {
	flops := stateFlops * n.States
	if marginals {
		flops *= 2 + n.levels()
	}
	return flops
}

// bytes are those of a sum with marginals, at most.
func (n *Integers) bytes() float64 { return stateBytes * (4 + branching*n.levels()) * n.Widest }

// levels is how often a partial sum is computed again on the way back, at most.
func (n *Integers) levels() float64 {
	return math.Ceil(math.Log(float64(len(n.Sequence)+1)) / math.Log(branching))
}

// begin is the sum of no variables.
func begin() *states { return &states{key: []int64{0}, mant: []float64{1}, exp: []int32{0}} }

// next adds a variable to a partial sum.
func (h *histogram) next(s *states, place int) (*states, error) {
	var out *states
	for _, c := range h.choices[place] {
		out = merged(out, s, c)
	}
	if float64(len(out.key)) > h.most {
		return nil, fault.New(fault.OverBudget, "structured: a sum of integers has more than %.3g values", h.most)
	}
	return out, nil
}

// merged adds the states of s, by a value of a variable further, to others; nil: none.
func merged(others, s *states, c choice) *states {
	size := len(s.key)
	if others != nil {
		size = min(2*size, size+len(others.key)) // often fewer
	}
	out := &states{key: make([]int64, 0, size), mant: make([]float64, 0, size), exp: make([]int32, 0, size)}
	if others == nil {
		for x, key := range s.key {
			out.append(key+c.key, s.at(x).times(c.w))
		}
		return out
	}
	o := 0
	for x, key := range s.key {
		key += c.key
		for ; o < len(others.key) && others.key[o] < key; o++ {
			out.append(others.key[o], others.at(o))
		}
		w := s.at(x).times(c.w)
		if o < len(others.key) && others.key[o] == key {
			w = w.plus(others.at(o))
			o++
		}
		out.append(key, w)
	}
	for ; o < len(others.key); o++ {
		out.append(others.key[o], others.at(o))
	}
	return out
}

// upTo is the partial sum of the variables from a place on, added to one, up to another. Every partial sum looks at ctx.
func (h *histogram) upTo(ctx context.Context, s *states, from, to int) (*states, error) {
	for place := from; place < to; place++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		var err error
		if s, err = h.next(s, place); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// back calls visit for every place below to, the last first, with the partial sum of the variables before it: s is that before from.
// Partial sums are computed again, range by range, so that few are in memory.
func (h *histogram) back(ctx context.Context, s *states, from, to int, visit func(place int, before *states) error) error {
	if to-from <= 1 {
		if to > from {
			return visit(from, s)
		}
		return nil
	}
	starts, ends := []*states{s}, []int{from}
	parts := min(branching, to-from)
	for k := 1; k < parts; k++ {
		end := from + (to-from)*k/parts
		next, err := h.upTo(ctx, starts[k-1], ends[k-1], end)
		if err != nil {
			return err
		}
		starts, ends = append(starts, next), append(ends, end)
	}
	for k := parts - 1; k >= 0; k-- {
		if err := h.back(ctx, starts[k], ends[k], to, visit); err != nil {
			return err
		}
		to, starts[k] = ends[k], nil
	}
	return nil
}

// tails returns the factor e^{½ SᵀGS} of every sum of all variables, by state.
func (h *histogram) tails(s *states) []float {
	n := h.fit.Integers
	k := n.statistics(len(n.Field))
	scale := int64(1) // of S: sums of means are multiples of its inverse
	for _, d := range h.fit.Domains {
		scale = scale / gcd(scale, int64(d)) * int64(d)
	}
	form := make([]floats.Pair, k*k)
	for x := range form {
		form[x] = floats.Pair{High: n.Form[2*x], Low: n.Form[2*x+1]}.Over(2 * float64(scale) * float64(scale))
	}
	decode := n.decoder(h.fit.Domains, scale)
	out := make([]float, len(s.key))
	sum := make([]float64, k)
	for x, key := range s.key {
		decode(key, sum)
		exponent := floats.Pair{}
		for p, y := range sum {
			row := floats.Pair{}
			for q, z := range sum {
				row = row.Plus(form[p*k+q].By(z))
			}
			exponent = exponent.Plus(row.By(y))
		}
		out[x] = floatOf(exponent.Exp())
	}
	return out
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// decoder returns what fills in scale · S of the sum with a number.
func (n *Integers) decoder(domains []int, scale int64) func(key int64, to []float64) {
	values := len(n.Field)
	k := n.statistics(values)
	low, span, mean := make([]int64, k), make([]int64, k), make([]int64, k) // mean: times scale
	for c := range k {
		own, at := n.Values[c*values:][:values], 0
		span[c] = 1
		for _, d := range domains {
			least, most, sum := own[at], own[at], int64(0)
			for _, y := range own[at : at+d] {
				least, most, sum = min(least, y), max(most, y), sum+y
			}
			low[c], span[c], mean[c] = low[c]+least, span[c]+most-least, mean[c]+scale/int64(d)*sum
			at += d
		}
	}
	return func(key int64, to []float64) {
		stride := int64(1)
		for c := range k {
			key -= low[c] * stride
			stride *= span[c]
		}
		for c := range k {
			to[c] = float64(scale*(key%span[c]+low[c]) - mean[c])
			key /= span[c]
		}
	}
}

// count counts the values of all partial sums; false where they are too many.
func (n *Integers) count(ctx context.Context, domains []int, keys []int64) (bool, error) {
	place := make([]int, len(domains))
	at := 0
	for v, d := range domains {
		place[v] = at
		at += d
	}
	list := []int64{0}
	n.States, n.Widest = 1, 1
	for _, v := range n.Sequence {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		var out []int64
		for x := range domains[v] {
			out = unionOf(out, list, keys[place[v]+x])
		}
		list = out
		n.States += float64(len(list) * domains[v] / 2)
		if n.Widest = max(n.Widest, float64(len(list))); n.Widest > mostStates || n.States > mostCounted {
			return false, nil
		}
	}
	return true, nil
}

// unionOf merges numbers with others, by a difference further.
func unionOf(others, list []int64, by int64) []int64 {
	out := make([]int64, 0, min(len(others)+len(list), 2*len(list)))
	o := 0
	for _, key := range list {
		key += by
		for ; o < len(others) && others[o] < key; o++ {
			out = append(out, others[o])
		}
		if o < len(others) && others[o] == key {
			o++
		}
		out = append(out, key)
	}
	return append(out, others[o:]...)
}
