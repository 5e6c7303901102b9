package parity

// The factors of a network as functions of parities, and how their parities depend on each other.

import (
	"context"
	"encoding/binary"
	"math"
	"math/bits"
	"slices"

	"github.com/basetensor/basetensor/internal/base/pace"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

const (
	// mostOrder bounds the variables of a factor.
	mostOrder = 14
	// mostVariables and mostFactors bound the elimination over GF(2).
	mostVariables = 1 << 13
	mostFactors   = 1 << 14
)

// set is a set of numbers, 64 to a word.
type set []uint64

func newSet(n int) set            { return make(set, (n+63)/64) }
func (s set) toggle(i int)        { s[i/64] ^= 1 << (i % 64) }
func (s set) contains(i int) bool { return s[i/64]>>(i%64)&1 == 1 }

// add adds another set modulo 2.
func (s set) add(o set) {
	for k, w := range o {
		s[k] ^= w
	}
}

// first is the smallest member; −1 if there is none.
func (s set) first() int {
	for k, w := range s {
		if w != 0 {
			return 64*k + bits.TrailingZeros64(w)
		}
	}
	return -1
}

// factor is a function of the parity of a set of variables.
type factor struct {
	variables set
	values    [2]scaled.Number // of even and of odd parity
}

// model is a network as a product of functions of parities.
type model struct {
	n         int
	scale     scaled.Number
	factors   []factor
	roundings float64 // of all values together, in 2^-53 of Z
}

// splits are the values of a table of two variables as parity times weights of each: φ(a, b) = c u(a) v(b) f(a ⊕ b).
type splits struct {
	parity        [2]float64
	first, second [2]float64
	roundings     float64
}

// hasParities reports whether the factors of a network are functions of parities, as far as their tables of three variables and more say.
// long says that there is such a table. Linear time.
func hasParities(net *btn.Network) (ok, long bool) {
	if net.Choice != query.CoresAreFactors || len(net.Variables) > mostVariables || len(net.Cores) > mostFactors {
		return false, false
	}
	for _, v := range net.Variables {
		if v.Domain != 2 {
			return false, false
		}
	}
	for _, core := range net.Cores {
		if k := len(core.Legs); k > 2 {
			if _, ok := parityOf(core.T, k); !ok {
				return false, false
			}
			long = true
		}
	}
	return true, long
}

// parityOf returns the values of a table that depends on the parity of its k variables alone; false if it does not.
func parityOf(t tensor.Tensor, k int) (values [2]float64, ok bool) {
	if k == 0 || k > mostOrder {
		return values, false
	}
	dense, err := tensor.ToDense(t, 1<<mostOrder)
	if err != nil || len(dense.Data) != 1<<k {
		return values, false
	}
	values = [2]float64{dense.Data[0], dense.Data[1]}
	for at, x := range dense.Data {
		if x != values[bits.OnesCount(uint(at))&1] {
			return values, false
		}
	}
	return values, values[0] >= 0 && values[1] >= 0 && !math.IsInf(values[0]+values[1], 0)
}

// modelOf reads a network under evidence; nil if its factors are none of parities, or some number is below 0.
func modelOf(ctx context.Context, net *btn.Network) (*model, error) {
	n := len(net.Variables)
	if n > mostVariables || len(net.Cores) > mostFactors {
		return nil, nil
	}
	m := &model{n: n, scale: net.Scale}
	variable := slices.Repeat([]int{-1}, len(net.Dims))
	weights := make([][2]scaled.Number, n)
	for v, place := range net.Variables {
		cp, ok := net.Links[place.Link].T.(*tensor.CP)
		if !ok || len(cp.Weights) != 2 || slices.ContainsFunc(cp.Vectors, func(a []float64) bool { return a != nil }) {
			return nil, nil
		}
		for _, leg := range net.Links[place.Link].Legs {
			if net.Maps != nil && net.Maps[leg].A != nil {
				return nil, nil
			}
			variable[leg] = v
		}
		weights[v] = [2]scaled.Number{scaled.FromFloat(cp.Weights[0]), scaled.FromFloat(cp.Weights[1])}
	}
	known := map[string]int{} // place of a set's factor
	look := pace.New(ctx)
	for _, core := range net.Cores {
		k := len(core.Legs)
		variables := newSet(n)
		for _, leg := range core.Legs {
			if variable[leg] < 0 || variables.contains(variable[leg]) {
				return nil, nil
			}
			variables.toggle(variable[leg])
		}
		if look.Over(int64(1<<min(k, mostOrder) + n/64)) {
			return nil, look.Err()
		}
		if k == 1 {
			dense, err := tensor.ToDense(core.T, 2)
			if err != nil {
				return nil, nil
			}
			m.weigh(&weights[variable[core.Legs[0]]], [2]float64(dense.Data))
			continue
		}
		values, ok := parityOf(core.T, k)
		if !ok && k == 2 {
			var s splits
			if s, ok = splitPair(core.T); ok {
				values = s.parity
				m.weigh(&weights[variable[core.Legs[0]]], s.first)
				m.weigh(&weights[variable[core.Legs[1]]], s.second)
				m.roundings += s.roundings
			}
		}
		if !ok {
			return nil, nil
		}
		m.multiply(known, variables, [2]scaled.Number{scaled.FromFloat(values[0]), scaled.FromFloat(values[1])})
	}
	for v, w := range weights {
		if w[0].Sign() < 0 || w[1].Sign() < 0 || !w[0].IsFinite() || !w[1].IsFinite() {
			return nil, nil
		}
		if look.Over(int64(n/8 + 1)) {
			return nil, look.Err()
		}
		variables := newSet(n)
		variables.toggle(v)
		m.multiply(known, variables, w)
	}
	m.factors = slices.DeleteFunc(m.factors, func(f factor) bool {
		if f.values[0] != f.values[1] {
			return false
		}
		m.scale = m.scale.Mul(f.values[0]) // a number
		return true
	})
	return m, look.Err()
}

// weigh multiplies the weights of a variable.
func (m *model) weigh(w *[2]scaled.Number, by [2]float64) {
	for x := range w {
		w[x] = w[x].Mul(scaled.FromFloat(by[x]))
	}
	m.roundings++
}

// multiply multiplies the factor of a set. A new factor whose values are equal is a number.
func (m *model) multiply(known map[string]int, variables set, values [2]scaled.Number) {
	var bytes []byte
	for _, w := range variables {
		bytes = binary.LittleEndian.AppendUint64(bytes, w)
	}
	key := string(bytes)
	if place, ok := known[key]; ok {
		f := &m.factors[place]
		for p := range values {
			f.values[p] = values[p].Mul(f.values[p])
		}
		m.roundings++
		return
	}
	if values[0] == values[1] {
		m.scale = m.scale.Mul(values[0])
		m.roundings++
		return
	}
	known[key] = len(m.factors)
	m.factors = append(m.factors, factor{variables, values})
}

// floats returns the values over a power of 2, the larger one between 1 and 2, and the power; false if a value above 0 is too small.
func (f *factor) floats() (values [2]float64, exp int64, ok bool) {
	larger := f.values[0]
	if f.values[1].Cmp(larger) > 0 {
		larger = f.values[1]
	}
	ok = true
	for p, x := range f.values {
		values[p] = x.Mul(scaled.Make(1, -larger.Exp)).Float64()
		ok = ok && (x.IsZero() || values[p] > least)
	}
	return values, larger.Exp, ok
}

// ordinary is the values of floats.
func (f *factor) ordinary() [2]float64 {
	values, _, _ := f.floats()
	return values
}

// splitPair splits a table of two variables without zeros; false if it has one.
func splitPair(t tensor.Tensor) (s splits, ok bool) {
	dense, err := tensor.ToDense(t, 4)
	if err != nil || len(dense.Data) != 4 {
		return s, false
	}
	var ln [4]float64
	for at, x := range dense.Data {
		if !(x > 0) || math.IsInf(x, 1) {
			return s, false
		}
		ln[at] = math.Log(x)
	}
	mean := (ln[0] + ln[1] + ln[2] + ln[3]) / 4
	first, second := (ln[0]+ln[1]-ln[2]-ln[3])/4, (ln[0]-ln[1]+ln[2]-ln[3])/4
	both := (ln[0] - ln[1] - ln[2] + ln[3]) / 4
	if math.Abs(mean)+math.Abs(first)+math.Abs(second)+math.Abs(both) > 600 {
		return s, false
	}
	s.roundings = 16 + 4*(math.Abs(ln[0])+math.Abs(ln[1])+math.Abs(ln[2])+math.Abs(ln[3]))
	s.parity = [2]float64{math.Exp(mean + both), math.Exp(mean - both)}
	s.first = [2]float64{math.Exp(first), math.Exp(-first)}
	s.second = [2]float64{math.Exp(second), math.Exp(-second)}
	return s, true
}

// dependence is how the parities of a model's factors depend on each other.
type dependence struct {
	independent []int    // factors whose parities are independent
	dependent   []int    // the others, in the sequence of the bits of columns
	columns     []uint32 // by independent factor: the dependent ones whose parity it is in
	pivots      []pivot
}

// pivot is a set of variables as a sum of independent factors' sets. No two pivots have the same smallest variable.
type pivot struct {
	first     int
	variables set
	factors   set // places in independent
}

// mostDependent bounds k.
const mostDependent = 24

// depend eliminates the factors' sets over GF(2); nil if more than mostDependent depend on the others. Cost O(factors² · words).
func depend(ctx context.Context, m *model) (*dependence, error) {
	d := &dependence{}
	look := pace.New(ctx)
	row := map[int]int{} // pivot by first variable
	for j, f := range m.factors {
		if look.Over(int64(len(d.pivots) * (m.n/64 + 1) / 8)) {
			return nil, look.Err()
		}
		variables, factors := slices.Clone(f.variables), newSet(len(m.factors))
		d.reduce(row, variables, factors)
		first := variables.first()
		if first >= 0 {
			factors.toggle(len(d.independent))
			row[first] = len(d.pivots)
			d.pivots = append(d.pivots, pivot{first, variables, factors})
			d.independent = append(d.independent, j)
			d.columns = append(d.columns, 0)
			continue
		}
		if len(d.dependent) == mostDependent {
			return nil, nil
		}
		for i := range d.independent {
			if factors.contains(i) {
				d.columns[i] |= 1 << len(d.dependent)
			}
		}
		d.dependent = append(d.dependent, j)
	}
	return d, nil
}

// reduce takes the pivots' sets off a set, and notes their factors.
func (d *dependence) reduce(row map[int]int, variables, factors set) {
	for k := range variables {
		for word := variables[k]; word != 0; {
			v := 64*k + bits.TrailingZeros64(word)
			if place, ok := row[v]; ok {
				variables.add(d.pivots[place].variables)
				factors.add(d.pivots[place].factors)
				word = variables[k] &^ (2<<(v%64) - 1)
			} else {
				word &= word - 1
			}
		}
	}
}
