package lower

// Chains of counters: symmetric tensors as layered automata.

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/base/floats"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

const (
	maxCounts       = 1 << 24 // count vectors times legs that a chain is derived from
	maxChainEntries = 1 << 27 // entries of the tables of one chain: 1 GiB
)

// state is a class of count vectors at one layer: all go on in the same way, up to a factor.
type state struct {
	to     []int     // per level of the leg: class at the next layer, −1 for a dead end
	weight []float64 // per level: relative to the state's gain, the largest being ±1
	final  []float64 // at the last layer: α_i S^(i) of every term, relative to the gain
	// unfit: a weight or a final value is too small for a float64, and stands here as ±least
	unfit bool
}

// least stands for values that are not 0 and too small: the pattern of zeros stays right.
const least = 0x1p-1000

// reach is the state of a count vector at a layer: a class and the factor it
// differs by; class −1 for zero.
type reach struct {
	class int
	gain  scaled.Number
}

// addChain writes Σ_i α_i S^(i) ∘ R^(i) as tables: per leg one over (counter before, leg, counter
// after), a last one over (counter, term), and a matrix (term, leg) per leg with vectors. The
// entries of S are spread over the chain as factors near 1, so that S may span any range. Hidden
// indices: a counter after every leg, and the terms.
func (l *layout) addChain(
	what string, at int, legs, dims []int, levels countspace.Levels, terms []tensor.SymmetryRankOne,
) error {
	layers, start, err := automaton(dims, levels, terms)
	if err != nil {
		return fmt.Errorf("%s %d: %w", what, at, err)
	}

	counters := make([]int, len(legs)+1)
	for k := range legs {
		counters[k+1] = l.node(len(layers[k+1]))
	}
	if len(terms) == 1 {
		l.counters = append(l.counters, counters[1:]...)
	}
	term := l.node(len(terms))

	if start.class < 0 {
		l.zero = true
		return nil
	}
	l.scale = l.scale.Mul(start.gain)

	for k, leg := range legs {
		step := l.chainStep(layers[k], len(layers[k+1]), levels.Of[k], terms, k)
		step.nodes = []int{counters[k], leg, counters[k+1]}
		if k == 0 { // the counter before the first leg has one state and no index
			step.nodes = step.nodes[1:]
			step.dims = step.dims[1:]
		}
		l.table(step.nodes, step)
		if len(terms) > 1 {
			if m := termMatrix(terms, k, dims[k]); m != nil {
				l.table([]int{term, leg}, raw{dims: []int{len(terms), dims[k]}, data: m})
			}
		}
	}

	final := raw{
		nodes:   []int{counters[len(legs)], term},
		dims:    []int{len(layers[len(legs)]), len(terms)},
		rounded: true,
	}
	for _, s := range layers[len(legs)] {
		final.data = append(final.data, s.final...)
	}
	if unfit(layers) {
		l.unfit = fmt.Sprintf("values of %s %d are further apart than float64 holds", what, at)
	}

	if len(legs) == 0 {
		final.nodes = final.nodes[1:]
		final.dims = final.dims[1:]
	}
	l.table(final.nodes, final)
	return nil
}

// unfit reports whether a state of a chain is.
func unfit(layers [][]state) bool {
	for _, layer := range layers {
		for _, s := range layer {
			if s.unfit {
				return true
			}
		}
	}
	return false
}

// chainStep is the table of leg k over (counter before, value, counter after);
// a single term's vector v is multiplied in:
//
//	data[i, x, j] = weight_i(λ(x)) · v[x]   where state i goes on to state j by level λ(x), else 0
func (l *layout) chainStep(
	layer []state, next int, of []uint8, terms []tensor.SymmetryRankOne, k int,
) raw {
	dim := len(of)
	r := raw{
		dims:    []int{len(layer), dim, next},
		data:    make([]float64, len(layer)*dim*next),
		rounded: true,
	}

	var v []float64
	if len(terms) == 1 && terms[0].R != nil {
		v = terms[0].R[k]
	}

	for i, s := range layer {
		for x, a := range of {
			j := s.to[a]
			if j < 0 {
				continue
			}
			w := s.weight[a]
			if v != nil {
				if v[x] == 0 {
					continue
				}
				w = l.weigh(w, v[x])
			}
			r.data[(i*dim+x)*next+j] = w
		}
	}
	return r
}

// weigh returns a · b for nonzero a and b; where that is beyond float64 the layout is
// unfit, and least stands for the product.
func (l *layout) weigh(a, b float64) float64 {
	p := a * b
	if top, low, _ := floats.Extent([]float64{a, b}); low+top < floats.Lowest || p-p != 0 {
		l.unfit = fmt.Sprintf("entries of a symmetric tensor are beyond float64: %g times %g", a, b)
		return math.Copysign(least, a) * math.Copysign(1, b)
	}
	return p
}

// termMatrix is the vectors of all terms on leg k, or nil when all are ones.
func termMatrix(terms []tensor.SymmetryRankOne, k, dim int) []float64 {
	m := make([]float64, 0, len(terms)*dim)
	ones := true
	for _, t := range terms {
		if t.R != nil && t.R[k] != nil {
			m = append(m, t.R[k]...)
			ones = false
			continue
		}
		for range dim {
			m = append(m, 1)
		}
	}

	if ones {
		return nil
	}
	return m
}

// automaton derives the states of the chain layer by layer from the last leg to the first: count
// vectors from which the remaining legs reach the same values of S, up to a factor, are one state.
// Layer k has the states after k legs. Time and memory: count vectors × legs × levels.
func automaton(
	dims []int, levels countspace.Levels, terms []tensor.SymmetryRankOne,
) ([][]state, reach, error) {
	strides, box := countStrides(levels)
	m := len(dims)

	if box > maxCounts/(m+1) {
		return nil, reach{}, fault.New(fault.OverBudget,
			"%w: a symmetric tensor over %d legs with %d count vectors is too large for a "+
				"chain of counters", sumproduct.ErrOverBudget, m, box)
	}

	counts := reachable(levels, strides, box)
	layers := make([][]state, m+1)
	after := make([]reach, box)
	entries := 0
	for k := m; k >= 0; k-- {
		here := make([]reach, box)
		index := map[string]int{}
		for _, c := range counts[k] {
			var s state
			var gain scaled.Number
			if k == m {
				s, gain = finalState(terms, c)
			} else {
				s, gain = innerState(levels, k, strides, after, c)
			}

			// A count vector from which S is 0 however it goes on is no state.
			if gain.IsZero() {
				here[c] = reach{class: -1}
				continue
			}

			key := s.key()
			class, known := index[key]
			if known {
				layers[k][class].unfit = layers[k][class].unfit || s.unfit
			} else {
				class = len(layers[k])
				index[key] = class
				layers[k] = append(layers[k], s)
			}
			here[c] = reach{class, gain}
		}

		if k < m {
			size := len(layers[k]) * len(layers[k+1])
			if size > maxChainEntries/dims[k] || entries+size*dims[k] > maxChainEntries {
				return nil, reach{}, fault.New(fault.OverBudget,
					"%w: the chain of counters of a symmetric tensor over %d legs needs more "+
						"than %d bytes", sumproduct.ErrOverBudget, m, 8*maxChainEntries)
			}
			entries += size * dims[k]
		}

		after = here
	}
	return layers, after[0], nil
}

// countStrides returns the step in the box of counts that a leg at each level makes,
// 0 for level 0, and the box's size.
func countStrides(levels countspace.Levels) ([]int, int) {
	shape := levels.Shape()
	strides := make([]int, len(shape)+1)
	box := 1
	for a := len(shape) - 1; a >= 0; a-- {
		strides[a+1] = box
		box *= shape[a]
	}
	return strides, box
}

// reachable lists, per layer,
// the count vectors that the legs before it can have, in increasing order.
func reachable(levels countspace.Levels, strides []int, box int) [][]int {
	counts := [][]int{{0}}
	stamp := make([]int, box)
	for k, of := range levels.Of {
		var next []int
		for _, c := range counts[k] {
			for _, a := range of {
				if n := c + strides[a]; stamp[n] != k+1 {
					stamp[n] = k + 1
					next = append(next, n)
				}
			}
		}
		slices.Sort(next)
		counts = append(counts, next)
	}
	return counts
}

// finalState returns the state of count vector c after the last leg, and its gain.
func finalState(terms []tensor.SymmetryRankOne, c int) (state, scaled.Number) {
	values := make([]scaled.Number, len(terms))
	for i, t := range terms {
		values[i] = t.S.At(c).Mul(scaled.FromFloat(t.Alpha))
	}
	gain := largest(values)
	final, fits := relative(values, gain)
	return state{final: final, unfit: !fits}, gain
}

// innerState returns the state of count vector c before leg k, and its gain.
func innerState(
	levels countspace.Levels, k int, strides []int, after []reach, c int,
) (state, scaled.Number) {
	s := state{to: make([]int, levels.D)}
	values := make([]scaled.Number, levels.D)

	for a := range s.to {
		s.to[a] = -1
	}

	for _, a := range levels.Of[k] {
		r := after[c+strides[a]]
		s.to[a] = r.class
		values[a] = r.gain
	}

	gain := largest(values)
	var fits bool
	s.weight, fits = relative(values, gain)
	s.unfit = !fits
	return s, gain
}

// largest returns the first number of the largest absolute value.
func largest(values []scaled.Number) scaled.Number {
	var top scaled.Number
	for _, v := range values {
		if v.Abs().Cmp(top.Abs()) > 0 {
			top = v
		}
	}
	return top
}

// relative divides values by gain, the largest of them.
// fits is false where a quotient that is not 0 is below least, which then stands for it.
func relative(values []scaled.Number, gain scaled.Number) (out []float64, fits bool) {
	out = make([]float64, len(values))
	fits = true
	for i, v := range values {
		if v.IsZero() {
			continue
		}
		q := v.Div(gain)
		if q.Exp < -1000 {
			q = scaled.Make(math.Copysign(least, q.Mant), 0)
			fits = false
		}
		out[i] = q.Float64()
	}
	return out, fits
}

// key identifies a state: equal keys, equal futures.
func (s *state) key() string {
	b := make([]byte, 0, 12*len(s.to)+8*len(s.final))
	for _, t := range s.to {
		b = binary.LittleEndian.AppendUint32(b, uint32(int32(t)))
	}
	for _, list := range [][]float64{s.weight, s.final} {
		for _, w := range list {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(w))
		}
	}
	return string(b)
}
