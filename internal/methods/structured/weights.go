package structured

// The weights of values under a node: a product over the statistics of factors that are computed once for every node of a statistic.

import (
	"math"

	"github.com/basetensor/basetensor/internal/base/floats"
)

const (
	// maxFactors bounds the factors of all nodes of all statistics: 64 MiB of complex ones.
	maxFactors = 1 << 22
	// maxSpread is the largest −ln of a weight that is a product of factors. Beyond it weights are computed from their exponents.
	maxSpread = 600
)

// factorTables has the factors of the weights of values: the weight of a value under a node is its base times one factor for each
// statistic. base is nil if the tables would be too large.
type factorTables struct {
	base       []plain // by value: e^field, scaled so that the largest of each variable is 1
	lnBase     float64 // ln of the product of all scales of base
	baseSpread float64 // −ln of the smallest weight above 0 in base
	byAxis     []axisFactors
}

// axisFactors has the factors of one statistic, by node from axis.first on and by value. With y = step · m they are e^{√λ y v}, scaled so
// that the largest of each variable is 1, or e^{i √|λ| y v} for λ < 0.
type axisFactors struct {
	plain   [][]plain
	phase   [][]phase // instead of plain, for λ < 0
	lnScale []float64 // by node: ln of the product of all scales
	spread  []float64 // by node: −ln of the smallest factor
}

// tabulateFactors returns the factors of all nodes. It returns empty tables if they would have more than maxFactors numbers.
func (e *evaluator) tabulateFactors() (tables factorTables) {
	values := len(e.field)
	count := 1.0
	for _, a := range e.axes {
		count += float64(a.last - a.first + 1)
	}
	if count*float64(values) > maxFactors {
		return tables
	}
	tables.base = make([]plain, values)
	tables.lnBase, tables.baseSpread = e.fillExponentials(e.field, tables.base)
	exponents := make([]float64, values)
	for k, a := range e.axes {
		var f axisFactors
		for m := a.first; m <= a.last; m++ {
			slope := a.sqrtLambda * a.step * float64(m)
			for x := range exponents {
				exponents[x] = slope * e.fit.Vectors[k*values+x]
			}
			if a.isNegative {
				row := make([]phase, values)
				for x, angle := range exponents {
					sin, cos := math.Sincos(angle)
					row[x] = phase(complex(cos, sin))
				}
				f.phase = append(f.phase, row)
				continue
			}
			row := make([]plain, values)
			lnScale, spread := e.fillExponentials(exponents, row)
			f.plain, f.lnScale, f.spread = append(f.plain, row), append(f.lnScale, lnScale), append(f.spread, spread)
		}
		tables.byAxis = append(tables.byAxis, f)
	}
	return tables
}

// fillExponentials fills to with e^exponents, by value, scaled so that the largest of each variable is 1. lnScale is the sum of the largest
// exponents of all variables, and spread the largest range of a variable's finite exponents.
func (e *evaluator) fillExponentials(exponents []float64, to []plain) (lnScale, spread float64) {
	var sum floats.Sum
	for v, d := range e.fit.Domains {
		own := exponents[e.offset[v]:][:d]
		largest, smallest := math.Inf(-1), math.Inf(1)
		for _, y := range own {
			largest = max(largest, y)
			if !math.IsInf(y, -1) {
				smallest = min(smallest, y)
			}
		}
		sum.Add(largest)
		spread = max(spread, largest-smallest)
		for x, y := range own {
			to[e.offset[v]+x] = plain(math.Exp(y - largest))
		}
	}
	return sum.Value(), spread
}

// prefix is the product of the factors of all statistics of one sign of λ but the last one. Consecutive nodes share it.
type prefix[T any] struct {
	isSet           bool
	node            node // that it belongs to; its entry for the last statistic does not matter
	weights         []T  // by value
	lnScale, spread float64
}

// fillWeights fills to.weights with the weights of values under the statistics with λ > 0 at node n. They are scaled so that none is above
// 1 and the largest of each variable is at least e^{−maxSpread}. It returns ln of the product of all scales.
func (e *evaluator) fillWeights(n node, to *elimination[plain]) (lnScale float64) {
	if e.factors.base == nil {
		return e.fillWeightsDirectly(n, to.weights)
	}
	last := -1 // statistic with λ > 0
	p := &to.prefix
	isSame := p.isSet
	for k := range e.axes {
		if e.axes[k].isNegative {
			continue
		}
		if last >= 0 {
			isSame = isSame && p.node[last] == n[last]
		}
		last = k
	}
	if !isSame {
		p.isSet, p.node, p.lnScale, p.spread = true, n, e.factors.lnBase, e.factors.baseSpread
		p.weights = append(p.weights[:0], e.factors.base...)
		for k := range last {
			if m := int(n[k]); !e.axes[k].isNegative && m != 0 {
				f := &e.factors.byAxis[k]
				m -= e.axes[k].first
				multiply(p.weights, p.weights, f.plain[m])
				p.lnScale += f.lnScale[m]
				p.spread += f.spread[m]
			}
		}
	}
	if last < 0 {
		copy(to.weights, p.weights)
		return p.lnScale
	}
	f := &e.factors.byAxis[last]
	m := int(n[last]) - e.axes[last].first
	if p.spread+f.spread[m] > maxSpread {
		return e.fillWeightsDirectly(n, to.weights)
	}
	multiply(to.weights, p.weights, f.plain[m])
	return p.lnScale + f.lnScale[m]
}

// multiply sets to to the products of the entries of a and b.
func multiply[T plain | phase](to, a, b []T) {
	a, b = a[:len(to)], b[:len(to)]
	for x := range to {
		to[x] = a[x] * b[x]
	}
}

// fillWeightsDirectly fills weights as fillWeights does, from the sums of their exponents instead of the factors. The largest weight of
// each variable is 1.
func (e *evaluator) fillWeightsDirectly(n node, weights []plain) (lnScale float64) {
	exponents := append([]float64(nil), e.field...)
	for k, a := range e.axes {
		if slope := a.sqrtLambda * a.step * float64(n[k]); !a.isNegative && slope != 0 {
			for x, v := range e.fit.Vectors[k*len(exponents):][:len(exponents)] {
				exponents[x] += slope * v
			}
		}
	}
	lnScale, _ = e.fillExponentials(exponents, weights)
	return lnScale
}

// fillPhases fills to.weights with the weights of node n under all statistics: sizes are those of fillWeights, and the statistics with λ <
// 0 turn their phases.
func (e *evaluator) fillPhases(n node, sizes []plain, to *elimination[phase]) {
	if e.factors.base == nil {
		values := len(e.field)
		for x, size := range sizes {
			angle := 0.0
			for k, a := range e.axes {
				if a.isNegative {
					angle += a.sqrtLambda * a.step * float64(n[k]) * e.fit.Vectors[k*values+x]
				}
			}
			sin, cos := math.Sincos(angle)
			to.weights[x] = phase(complex(float64(size)*cos, float64(size)*sin))
		}
		return
	}
	last := -1 // statistic with λ < 0
	p := &to.prefix
	isSame := p.isSet
	for k := range e.axes {
		if !e.axes[k].isNegative {
			continue
		}
		if last >= 0 {
			isSame = isSame && p.node[last] == n[last]
		}
		last = k
	}
	phasesOf := func(k int) []phase { return e.factors.byAxis[k].phase[int(n[k])-e.axes[k].first] }
	if !isSame {
		p.isSet, p.node = true, n
		p.weights = p.weights[:0] // empty if there is one such statistic
		for k := range last {
			switch {
			case !e.axes[k].isNegative:
			case len(p.weights) == 0:
				p.weights = append(p.weights, phasesOf(k)...)
			default:
				multiply(p.weights, p.weights, phasesOf(k))
			}
		}
	}
	lastPhases := phasesOf(last)
	for x, size := range sizes {
		turn := lastPhases[x]
		if len(p.weights) > 0 {
			turn *= p.weights[x]
		}
		to.weights[x] = phase(complex(float64(size)*real(turn), float64(size)*imag(turn)))
	}
}
