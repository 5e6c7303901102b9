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
// statistic. A list by value has all values of the first variable, then those of the second, and so on. base is nil if the tables would
// be too large.
type factorTables struct {
	base       []plain       // by value: e^field, scaled so that the largest of each variable is 1
	lnBase     float64       // ln of the product of all scales of base
	baseSpread float64       // −ln of the smallest weight above 0 in base
	byAxis     []axisFactors // by statistic
}

// axisFactors has the factors of one statistic, by node from axis.first on and by value. With y = step · m they are e^{√λ y v}, scaled so
// that the largest of each variable is 1, or e^{i √|λ| y v} for λ < 0.
type axisFactors struct {
	plain   [][]plain
	phase   [][]phase // instead of plain, for λ < 0
	lnScale []float64 // by node: ln of the product of all scales
	spread  []float64 // by node: −ln of the smallest factor
}

// tabulateFactors computes the factors of all values under all nodes of each statistic: e^{√λ y v(x)} for value x at node y, or e^{i √|λ| y
// v(x)} if λ < 0. The factors for λ > 0 are scaled so that the largest of each variable is 1: lnScale is ln of the product of the scales,
// and spread how far ln of a factor is below 0. It returns empty tables if they would have more than maxFactors numbers.
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
			slope := a.sqrtLambda * a.step * float64(m) // √|λ| y
			for x := range exponents {
				exponents[x] = slope * e.fit.Vectors[k*values+x]
			}
			if a.isNegative {
				row := make([]phase, values)
				for x, angle := range exponents { // the exponent is imaginary
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

// fillExponentials sets powers to e^exponents, divided for each variable by the largest of its values. The two lists have the values of one
// variable after the other. lnScale is ln of the product of these divisors, and spread the largest range of one variable's finite
// exponents.
func (e *evaluator) fillExponentials(exponents []float64, powers []plain) (lnScale, spread float64) {
	var sum floats.Sum
	for v, d := range e.fit.Domains {
		ofVariable := exponents[e.firstValue[v]:][:d]
		largest, smallest := math.Inf(-1), math.Inf(1)
		for _, y := range ofVariable {
			largest = max(largest, y)
			if !math.IsInf(y, -1) {
				smallest = min(smallest, y)
			}
		}
		sum.Add(largest)
		spread = max(spread, largest-smallest)
		for x, y := range ofVariable {
			powers[e.firstValue[v]+x] = plain(math.Exp(y - largest))
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

// belongsTo reports whether p is the prefix of node n. A prefix is the product of the factors of all statistics of one sign of λ but the
// last one. So p.node and n have to agree in these statistics. last is the last statistic of that sign, or −1 if there is none.
func (p *prefix[T]) belongsTo(n node, e *evaluator, last int) bool {
	if !p.isSet {
		return false
	}
	for k := range last {
		if e.axes[k].isNegative == e.axes[last].isNegative && p.node[k] != n[k] {
			return false
		}
	}
	return true
}

// lastStatistic returns the last statistic with λ < 0, if isNegative, or with λ > 0. It returns −1 if there is none.
func (e *evaluator) lastStatistic(isNegative bool) int {
	last := -1
	for k := range e.axes {
		if e.axes[k].isNegative == isNegative {
			last = k
		}
	}
	return last
}

// fillWeights sets run.weights to the weights of values under the statistics with λ > 0 at node n: the base e^field times one factor for
// each of these statistics. They are scaled so that none is above 1 and the largest of each variable is at least e^{−maxSpread}. It returns
// ln of the product of all scales. The product of all factors but the last statistic's is kept in run.prefix for the next node, which often
// differs only in the last.
func (e *evaluator) fillWeights(n node, run *elimination[plain]) (lnScale float64) {
	if e.factors.base == nil {
		return e.fillWeightsDirectly(n, run.weights)
	}

	// Multiply the base and the factors of all statistics but the last one, if the kept product is that of another node. The factors of
	// node 0 are 1. From here on m is an index in a list by node.
	const isNegative = true // of λ
	lastStatistic := e.lastStatistic(!isNegative)
	p := &run.prefix
	if !p.belongsTo(n, e, lastStatistic) {
		p.isSet, p.node, p.lnScale, p.spread = true, n, e.factors.lnBase, e.factors.baseSpread
		p.weights = append(p.weights[:0], e.factors.base...)
		for k := range lastStatistic {
			if !e.axes[k].isNegative && n[k] != 0 {
				f, m := &e.factors.byAxis[k], int(n[k])-e.axes[k].first
				multiply(p.weights, p.weights, f.plain[m])
				p.lnScale += f.lnScale[m]
				p.spread += f.spread[m]
			}
		}
	}

	// Multiply the factors of the last statistic.
	if lastStatistic < 0 {
		copy(run.weights, p.weights)
		return p.lnScale
	}
	f := &e.factors.byAxis[lastStatistic]
	m := int(n[lastStatistic]) - e.axes[lastStatistic].first
	if p.spread+f.spread[m] > maxSpread { // a product of factors may underflow
		return e.fillWeightsDirectly(n, run.weights)
	}
	multiply(run.weights, p.weights, f.plain[m])
	return p.lnScale + f.lnScale[m]
}

// multiply sets product[x] to a[x] · b[x] for each x.
func multiply[T plain | phase](product, a, b []T) {
	a, b = a[:len(product)], b[:len(product)]
	for x := range product {
		product[x] = a[x] * b[x]
	}
}

// fillWeightsDirectly sets weights, by value, to e^{field + Σ_k √λ_k y_k v_k} at node n. The sum is over the statistics k with λ_k > 0. The
// weights are scaled so that the largest one of each variable is 1. It returns ln of the product of all scales. fillWeights multiplies
// tabulated factors instead.
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

// fillPhases sets run.weights to the weights of node n under all statistics, by value: sizes, which are the weights under the statistics
// with λ > 0, times e^{i angle}. The angle is the sum of √|λ| y v over the statistics with λ < 0. There is at least one. The
// factors e^{i √|λ| y v} are tabulated unless the tables would be too large. run.prefix keeps their product over all such statistics but
// the last, because consecutive nodes often differ only in the last.
func (e *evaluator) fillPhases(n node, sizes []plain, run *elimination[phase]) {
	if e.factors.base == nil {
		e.fillPhasesDirectly(n, sizes, run.weights)
		return
	}

	// Multiply the factors of all statistics but the last one, if the kept product is that of another node.
	const isNegative = true // of λ
	lastStatistic := e.lastStatistic(isNegative)
	p := &run.prefix
	phasesOf := func(k int) []phase { return e.factors.byAxis[k].phase[int(n[k])-e.axes[k].first] } // by value, at node n
	if !p.belongsTo(n, e, lastStatistic) {
		p.isSet, p.node = true, n
		p.weights = p.weights[:0] // stays empty if there is one such statistic
		for k := range lastStatistic {
			switch {
			case !e.axes[k].isNegative:
			case len(p.weights) == 0:
				p.weights = append(p.weights, phasesOf(k)...)
			default:
				multiply(p.weights, p.weights, phasesOf(k))
			}
		}
	}

	// Multiply the sizes, the kept product and the factors of the last statistic.
	lastPhases := phasesOf(lastStatistic)
	for x, size := range sizes {
		turn := lastPhases[x]
		if len(p.weights) > 0 {
			turn *= p.weights[x]
		}
		run.weights[x] = phase(complex(float64(size)*real(turn), float64(size)*imag(turn)))
	}
}

// fillPhasesDirectly is fillPhases without tabulated factors: it adds up the angle of each value.
func (e *evaluator) fillPhasesDirectly(n node, sizes []plain, weights []phase) {
	values := len(e.field)
	for x, size := range sizes {
		angle := 0.0
		for k, a := range e.axes {
			if a.isNegative {
				angle += a.sqrtLambda * a.step * float64(n[k]) * e.fit.Vectors[k*values+x]
			}
		}
		sin, cos := math.Sincos(angle)
		weights[x] = phase(complex(float64(size)*cos, float64(size)*sin))
	}
}
