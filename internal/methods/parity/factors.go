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
	// maxOrder bounds the variables of a factor.
	maxOrder = 14
	// maxVariables and maxFactors bound the elimination over GF(2).
	maxVariables = 1 << 13
	maxFactors   = 1 << 14
)

// set is a set of numbers as bits: number i is in the set if bit i%64 of word i/64 is set.
type set []uint64

// newSet returns an empty set of numbers below n.
func newSet(n int) set { return make(set, (n+63)/64) }

// toggle adds i to the set if it is not a member, and removes it otherwise.
func (s set) toggle(i int) { s[i/64] ^= 1 << (i % 64) }

// contains reports whether i is in the set.
func (s set) contains(i int) bool { return s[i/64]>>(i%64)&1 == 1 }

// add adds a second set modulo 2: a number that is in both is in neither afterwards.
func (s set) add(summand set) {
	for k, w := range summand {
		s[k] ^= w
	}
}

// first returns the smallest member, or −1 if the set is empty.
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

// model is a network under evidence as a product of functions of parities.
type model struct {
	variableCount int
	scale         scaled.Number
	factors       []factor // no two of one set
	roundings     float64  // of all values together, in 2^-53 of Z
}

// pairSplit is a table of two variables as a function of their parity times weights of each: φ(a, b) = first(a) second(b) parity(a ⊕ b).
type pairSplit struct {
	parity        [2]float64 // by parity of a and b
	first, second [2]float64 // by value of a, of b
	roundings     float64    // of a product of the three, in 2^-53
}

// hasParities reports whether the factors of a network can be functions of parities, as far as its domains and its tables of three
// variables and more tell. isLong is true if there is such a table. Linear time.
func hasParities(net *btn.Network) (ok, isLong bool) {
	if net.Choice != query.CoresAreFactors || len(net.Variables) > maxVariables || len(net.Cores) > maxFactors {
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
			isLong = true
		}
	}
	return true, isLong
}

// parityOf returns the values for even and for odd parity of a table over order variables that depends only on their parity. ok is false
// for other tables, and if a value is below 0 or not finite.
func parityOf(t tensor.Tensor, order int) (values [2]float64, ok bool) {
	if order == 0 || order > maxOrder {
		return values, false
	}
	dense, err := tensor.ToDense(t, 1<<maxOrder)
	if err != nil || len(dense.Data) != 1<<order {
		return values, false
	}
	values = [2]float64{dense.Data[0], dense.Data[1]} // the bits of an entry's index are the variables' values
	for index, x := range dense.Data {
		if x != values[bits.OnesCount(uint(index))&1] {
			return values, false
		}
	}
	return values, values[0] >= 0 && values[1] >= 0 && !math.IsInf(values[0]+values[1], 0)
}

// readLinks returns the variable of each leg, −1 if it has none, and the weights of the values of each variable. weights is nil if a
// variable does not have two values, or if a leg has a matrix between the variable's values and its own (vectors of the link, or a map).
func readLinks(net *btn.Network) (variable []int, weights [][2]scaled.Number) {
	variable = slices.Repeat([]int{-1}, len(net.Dims))
	weights = make([][2]scaled.Number, len(net.Variables))
	for v := range net.Variables {
		link := &net.Links[net.Variables[v].Link]
		cp, ok := link.T.(*tensor.CP)
		if !ok || len(cp.Weights) != 2 || slices.ContainsFunc(cp.Vectors, func(a []float64) bool { return a != nil }) {
			return nil, nil
		}
		for _, leg := range link.Legs {
			if net.Maps != nil && net.Maps[leg].A != nil {
				return nil, nil
			}
			variable[leg] = v
		}
		weights[v] = [2]scaled.Number{scaled.FromFloat(cp.Weights[0]), scaled.FromFloat(cp.Weights[1])}
	}
	return variable, weights
}

// readModel reads a network under evidence as a product of functions of the parities of sets of variables. Each set has one factor: all
// tables over it are multiplied. It returns nil if a table is no such function, or if a number is below 0.
func readModel(ctx context.Context, net *btn.Network) (*model, error) {
	n := len(net.Variables)
	if n > maxVariables || len(net.Cores) > maxFactors {
		return nil, nil
	}
	variable, weights := readLinks(net)
	if weights == nil {
		return nil, nil
	}

	r := &modelReader{
		model:    &model{variableCount: n, scale: net.Scale},
		variable: variable, weights: weights, factorOf: map[string]int{},
		look: pace.New(ctx),
	}
	if !r.readTables(net) || !r.readWeights() {
		return nil, r.look.Err() // nil unless the context has ended: the network is no such product
	}

	// A factor with two equal values is a number.
	r.factors = slices.DeleteFunc(r.factors, func(f factor) bool {
		if f.values[0] != f.values[1] {
			return false
		}
		r.scale = r.scale.Mul(f.values[0])
		return true
	})
	return r.model, r.look.Err()
}

// modelReader multiplies the tables of a network into a model, one after the other.
type modelReader struct {
	*model
	variable []int              // by leg: its variable, or −1
	weights  [][2]scaled.Number // by variable: the weights of its two values, with those of the tables that were read
	factorOf map[string]int     // by set of variables, as text: the index of its factor in the model
	look     *pace.Pace         // counts operations, and is over once the context has ended
}

// readTables multiplies the model by all tables. It returns false if a table is no function of parities, or if the context ended.
func (r *modelReader) readTables(net *btn.Network) bool {
	for _, core := range net.Cores {
		variables, ok := r.variablesOf(core.Legs)
		if !ok || r.look.Over(int64(1<<min(len(core.Legs), maxOrder)+r.variableCount/64)) { // the table's entries, and the words of a set
			return false
		}
		if !r.multiplyTable(core, variables) {
			return false
		}
	}
	return true
}

// readWeights multiplies the model by the weights of the variables: those of a variable are a function of the parity of it alone. It
// returns false if a weight is below 0 or not finite, or if the context ended.
func (r *modelReader) readWeights() bool {
	for v, w := range r.weights {
		if w[0].Sign() < 0 || w[1].Sign() < 0 || !w[0].IsFinite() || !w[1].IsFinite() {
			return false
		}
		if r.look.Over(int64(r.variableCount/8 + 1)) { // about the bytes of a set
			return false
		}
		variables := newSet(r.variableCount)
		variables.toggle(v)
		r.multiplyFactor(variables, w)
	}
	return true
}

// variablesOf returns the set of the variables that some legs lead to. ok is false if a leg has no variable, or if two legs have the same.
func (r *modelReader) variablesOf(legs []int) (variables set, ok bool) {
	variables = newSet(r.variableCount)
	for _, leg := range legs {
		v := r.variable[leg]
		if v < 0 || variables.contains(v) {
			return nil, false
		}
		variables.toggle(v)
	}
	return variables, true
}

// multiplyTable multiplies the model by a table over a set of variables. A table of one variable multiplies the variable's weights. A table
// of two variables may be a function of their parity times weights of each. A larger one has to be a function of the parity alone. It
// returns false if the table is none of these.
func (r *modelReader) multiplyTable(core btn.Core, variables set) bool {
	order := len(core.Legs)
	if order == 1 {
		dense, err := tensor.ToDense(core.T, 2)
		if err != nil {
			return false
		}
		r.multiplyWeights(r.variable[core.Legs[0]], [2]float64(dense.Data))
		return true
	}

	values, ok := parityOf(core.T, order)
	if !ok && order == 2 {
		var split pairSplit
		if split, ok = splitPair(core.T); ok {
			values = split.parity
			r.multiplyWeights(r.variable[core.Legs[0]], split.first)
			r.multiplyWeights(r.variable[core.Legs[1]], split.second)
			r.roundings += split.roundings
		}
	}
	if ok {
		r.multiplyFactor(variables, [2]scaled.Number{scaled.FromFloat(values[0]), scaled.FromFloat(values[1])})
	}
	return ok
}

// multiplyWeights multiplies the two weights of a variable by one factor each.
func (r *modelReader) multiplyWeights(variable int, factors [2]float64) {
	weights := &r.weights[variable]
	for x := range weights {
		weights[x] = weights[x].Mul(scaled.FromFloat(factors[x]))
	}
	r.roundings++
}

// multiplyFactor multiplies the factor of a set of variables by values for even and for odd parity. If the set has no factor yet, it adds
// one. Two equal values are a number, which needs no new factor: it multiplies the scale.
func (r *modelReader) multiplyFactor(variables set, values [2]scaled.Number) {
	var bytes []byte
	for _, w := range variables {
		bytes = binary.LittleEndian.AppendUint64(bytes, w)
	}
	key := string(bytes)
	if index, ok := r.factorOf[key]; ok {
		f := &r.factors[index]
		for parity := range values {
			f.values[parity] = values[parity].Mul(f.values[parity])
		}
		r.roundings++
		return
	}
	if values[0] == values[1] {
		r.scale = r.scale.Mul(values[0])
		r.roundings++
		return
	}
	r.factorOf[key] = len(r.factors)
	r.factors = append(r.factors, factor{variables, values})
}

// scaledFloats returns the factor's values divided by 2^exp, so that the larger one is from 1 to 2. ok is false if a value above 0 becomes
// too small.
func (f *factor) scaledFloats() (values [2]float64, exp int64, ok bool) {
	larger := f.values[0]
	if f.values[1].Cmp(larger) > 0 {
		larger = f.values[1]
	}
	ok = true
	for parity, x := range f.values {
		values[parity] = x.Mul(scaled.Make(1, -larger.Exp)).Float64()
		ok = ok && (x.IsZero() || values[parity] > smallestFloat)
	}
	return values, larger.Exp, ok
}

// mantissas returns the factor's values divided by a power of two, as scaledFloats does.
func (f *factor) mantissas() [2]float64 {
	values, _, _ := f.scaledFloats()
	return values
}

// splitPair writes a table of two variables as a function of their parity times weights of each, which any table without zeros is. ok is
// false if it has a zero, or if its logarithms are too large. The logarithm of entry (a, b), at 2a+b, is mean ± firstEffect ± secondEffect
// ± interaction, with a minus for a = 1, for b = 1, and for odd a + b.
func splitPair(t tensor.Tensor) (split pairSplit, ok bool) {
	dense, err := tensor.ToDense(t, 4)
	if err != nil || len(dense.Data) != 4 {
		return split, false
	}
	var ln [4]float64
	for index, x := range dense.Data {
		if !(x > 0) || math.IsInf(x, 1) {
			return split, false
		}
		ln[index] = math.Log(x)
	}
	mean := (ln[0] + ln[1] + ln[2] + ln[3]) / 4
	firstEffect, secondEffect := (ln[0]+ln[1]-ln[2]-ln[3])/4, (ln[0]-ln[1]+ln[2]-ln[3])/4
	interaction := (ln[0] - ln[1] - ln[2] + ln[3]) / 4
	if math.Abs(mean)+math.Abs(firstEffect)+math.Abs(secondEffect)+math.Abs(interaction) > 600 { // e^±600 is in the range of float64
		return split, false
	}
	// An error of a logarithm is a relative error of its exponential. A quarter of a sum of four logarithms is off by about Σ|ln|, in 2^−53:
	// by the roundings of the logarithms and of three additions. A product depends on all four such quarters. 16 covers the exponentials.
	split.roundings = 16 + 4*(math.Abs(ln[0])+math.Abs(ln[1])+math.Abs(ln[2])+math.Abs(ln[3]))
	split.parity = [2]float64{math.Exp(mean + interaction), math.Exp(mean - interaction)}
	split.first = [2]float64{math.Exp(firstEffect), math.Exp(-firstEffect)}
	split.second = [2]float64{math.Exp(secondEffect), math.Exp(-secondEffect)}
	return split, true
}

// dependence is how the parities of a model's factors depend on each other. Each dependent parity is a sum modulo 2 of independent ones.
type dependence struct {
	independent []int    // factors whose parities are independent
	dependent   []int    // all other factors
	columns     []uint32 // by index in independent: bit b is set if the parity of dependent factor b has that of the factor as a summand
	pivots      []pivot
}

// pivot is a set of variables that is the sum modulo 2 of independent factors' sets. No two pivots have the same smallest variable.
type pivot struct {
	first     int // smallest variable
	variables set
	factors   set // indices in independent
}

// maxDependent bounds the number k of dependent factors.
const maxDependent = 24

// findDependence finds which factors' parities are sums modulo 2 of the parities of factors before them, by elimination of their sets of
// variables over GF(2). It returns nil if there are more than maxDependent such factors. Cost O(factors² · words), where words is the
// number of machine words of a set of variables.
func findDependence(ctx context.Context, m *model) (*dependence, error) {
	d := &dependence{}
	look := pace.New(ctx)    // counts operations, and is over once the context has ended
	pivotOf := map[int]int{} // pivot by first variable
	for j, f := range m.factors {
		if look.Over(int64(len(d.pivots) * (m.variableCount/64 + 1) / 8)) { // an addition of words is an eighth of an operation
			return nil, look.Err()
		}

		// Reduce the set by the pivots. Then variables is what is left of it, and factors are those whose sets were added to it. If
		// something is left, the factor is independent of those before it, and what is left makes a pivot.
		variables, factors := slices.Clone(f.variables), newSet(len(m.factors))
		d.reduceSet(pivotOf, variables, factors)
		first := variables.first() // −1: nothing is left
		if first >= 0 {
			factors.toggle(len(d.independent)) // the index that the factor itself gets below
			pivotOf[first] = len(d.pivots)
			d.pivots = append(d.pivots, pivot{first, variables, factors})
			d.independent = append(d.independent, j)
			d.columns = append(d.columns, 0)
			continue
		}

		// Otherwise the factor's set is the sum of the sets of factors. Its bit is its index among the dependent factors.
		if len(d.dependent) == maxDependent {
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

// reduceSet reduces a set by the pivots, each of which is the sum modulo 2 of the sets of some factors. It adds pivots' sets to variables,
// modulo 2, until no member is the first variable of a pivot, and the pivots' factors to factors. It changes both sets. The set that was
// given is then the sum of the sets of factors and of what is left in variables. pivotOf is, by first variable, the index of its pivot.
func (d *dependence) reduceSet(pivotOf map[int]int, variables, factors set) {
	for k := range variables {
		for word := variables[k]; word != 0; {
			v := 64*k + bits.TrailingZeros64(word)
			if index, ok := pivotOf[v]; ok {
				variables.add(d.pivots[index].variables) // v leaves, members above v come or leave
				factors.add(d.pivots[index].factors)
				word = variables[k] &^ (2<<(v%64) - 1) // the members above v
			} else {
				word &= word - 1 // without v
			}
		}
	}
}
