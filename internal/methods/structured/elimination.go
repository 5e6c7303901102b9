package structured

// One node: the rest under the weights of its component.

import "math"

// number is the kind of a node's numbers: real ones, and complex ones where a statistic has λ < 0.
type number[T any] interface {
	~float64 | ~complex128
	size() float64 // |x| within a factor of √2
	times(float64) T
}

// plain is a real number.
type plain float64

func (x plain) size() float64         { return math.Abs(float64(x)) }
func (x plain) times(f float64) plain { return x * plain(f) }

// phase is a complex number, for fits with a statistic of λ < 0.
type phase complex128

func (x phase) size() float64 {
	return max(math.Abs(real(x)), math.Abs(imag(x)))
}
func (x phase) times(f float64) phase { return x * phase(complex(f, 0)) }

// elimination runs a program for one node after the other: it sums the rest over all assignments under weights of single values.
type elimination[T number[T]] struct {
	program *program
	fit     *Fit
	offset  []int // of the first value of each variable in weights and shares
	weights []T   // by value: those of the current node

	restEntries      [][]T // of the fit's tables
	tables           [][]T // by clique: the product of all that it multiplies
	messages         [][]T // by clique, normalised
	exponents        []int // by clique: the power of two that its message, and those below it, were divided by
	adjoints         [][]T // by clique: the derivative of the total with respect to its message, normalised
	adjointExponents []int // by clique: the power of two that its adjoint was divided by

	// The total is the product of two kinds of factors: for each single, which is a variable outside of the rest, the sum of its weights, and
	// for each root, which is the last clique of a connected part of the rest, its message of one number.
	singles    []int
	singleSums []T // by single
	roots      []int
	shares     []T // by value, leaves last: the total with the variable fixed to the value
	prefix     prefix[T]
}

// newElimination returns room for runs of a program of fit f. offset is the place of the first value of each variable. hasShares makes room
// for shares and adjoints.
func newElimination[T number[T]](p *program, f *Fit, offset []int, hasShares bool) *elimination[T] {
	e := &elimination[T]{program: p, fit: f, offset: offset, weights: make([]T, len(f.Field))}
	for v, c := range p.cliqueOf {
		if c < 0 {
			e.singles = append(e.singles, v)
		}
	}
	for k := range f.Rest {
		values := make([]T, len(f.Rest[k].Values))
		for i, x := range f.Rest[k].Values {
			values[i] = T(1).times(x)
		}
		e.restEntries = append(e.restEntries, values)
	}
	for c := range p.cliques {
		own := &p.cliques[c]
		e.tables = append(e.tables, make([]T, own.entries))
		e.messages = append(e.messages, make([]T, own.messageSize))
		if hasShares {
			e.adjoints = append(e.adjoints, make([]T, own.messageSize))
		}
		if own.messageSize == 1 {
			e.roots = append(e.roots, c)
		}
	}
	e.singleSums = make([]T, len(e.singles))
	e.exponents = make([]int, len(p.cliques))
	e.adjointExponents = make([]int, len(p.cliques))
	if hasShares {
		e.shares = make([]T, p.shareCount)
	}
	return e
}

// normalise divides a table by a power of two, so that its largest entry is in [½, 2), and returns the exponent. It returns 0 if the
// largest entry is in that range already, or 0.
func normalise[T number[T]](t []T) (exp int) {
	largest := 0.0
	if real, ok := any(t).([]plain); ok { // a method of a type parameter is an indirect call
		bits := uint64(0) // |x| has the order of its bits without the sign
		for _, x := range real {
			bits = max(bits, math.Float64bits(float64(x))&^(1<<63))
		}
		largest = math.Float64frombits(bits)
	} else {
		for _, x := range t {
			largest = max(largest, x.size())
		}
	}
	if largest == 0 || largest >= 0.5 && largest < 2 {
		return 0
	}
	exp = int(math.Float64bits(largest)>>52) - 1022 // as of math.Frexp, for numbers that are not subnormal
	if exp < -1000 || exp > 1000 {
		_, exp = math.Frexp(largest)
	}
	f := math.Ldexp(1, -exp)
	if exp >= -1000 && exp <= 1000 {
		f = math.Float64frombits(uint64(1023-exp) << 52) // 2^−exp
	}
	factor := T(1).times(f)
	for i := range t {
		t[i] *= factor
	}
	return exp
}

// computeTotal returns Σ_x Π_i weights_i(x_i) · C(x) as value · 2^exp. It fills the tables, messages and sums of singles.
func (e *elimination[T]) computeTotal() (value T, exp int) {
	for c := range e.program.cliques {
		e.sumOutClique(c)
	}
	for s, v := range e.singles {
		offset, sum := e.offset[v], T(0)
		switch d := e.fit.Domains[v]; d {
		case 2:
			sum = e.weights[offset] + e.weights[offset+1]
		default:
			for _, x := range e.weights[offset:][:d] {
				sum += x
			}
		}
		e.singleSums[s] = sum
	}
	return e.multiplyFactors(-1)
}

// multiplyFactors returns the product of the total's factors as value · 2^exp, without the factor at the place skipped. Places count the
// singles first, then the roots. It leaves no factor out if skipped is −1.
func (e *elimination[T]) multiplyFactors(skipped int) (value T, exp int) {
	value = T(1)
	for from := 0; from < len(e.singleSums); from += 8 { // eight at once, if they stay far from underflow
		sums := e.singleSums[from:min(from+8, len(e.singleSums))]
		product := value
		for _, sum := range sums {
			product *= sum
		}
		if product.size() > 0x1p-500 && uint(skipped-from) >= 8 { // skipped is not among these eight
			value, exp = moveExponent(product, exp)
			continue
		}
		for s, sum := range sums {
			if from+s != skipped {
				value, exp = moveExponent(value*sum, exp)
			}
		}
	}
	for r, c := range e.roots {
		if len(e.singleSums)+r != skipped {
			value, exp = moveExponent(value*e.messages[c][0], exp+e.exponents[c])
		}
	}
	return value, exp
}

// totalWithout returns the total z · 2^exp without one of its factors, in units of 2^exp. place is that of multiplyFactors. It divides by
// the factor unless that is 0.
func (e *elimination[T]) totalWithout(z T, exp, place int, factor T) T {
	if factor != 0 {
		return z / factor
	}
	value, valueExp := e.multiplyFactors(place)
	return value.times(math.Ldexp(1, valueExp-exp))
}

// moveExponent moves the exponent of x to exp if the size of x is outside of 2^±100: x · 2^exp stays the same.
func moveExponent[T number[T]](x T, exp int) (T, int) {
	s := x.size()
	if s > 0x1p-100 && s < 0x1p100 || s == 0 {
		return x, exp
	}
	_, moved := math.Frexp(s)
	return x.times(math.Ldexp(1, -moved)), exp + moved
}

// sumOutClique fills the table of clique c and its message, which is the sum of the table over the clique's variable.
func (e *elimination[T]) sumOutClique(c int) {
	own := &e.program.cliques[c]
	table, message := e.tables[c], e.messages[c]
	weights := e.weights[e.offset[own.variable]:]
	restTables, received := own.tables, own.messages
	// The variable's weights, times the first table of the rest in the same pass.
	if len(restTables) > 0 {
		values, places := e.restEntries[restTables[0].index], restTables[0].places[:len(table)]
		for i, x := range own.valueOf[:len(table)] {
			table[i] = weights[x] * values[places[i]]
		}
		restTables = restTables[1:]
	} else {
		for i, x := range own.valueOf[:len(table)] {
			table[i] = weights[x]
		}
	}
	for _, t := range restTables {
		values := e.restEntries[t.index]
		for i, place := range t.places[:len(table)] {
			table[i] *= values[place]
		}
	}
	exp := 0
	for _, m := range received {
		exp += e.exponents[m.index]
	}
	// The messages. The sum over the variable is in the pass of the last one.
	clear(message)
	if len(received) == 0 {
		for i, place := range own.messagePlace[:len(table)] {
			message[place] += table[i]
		}
	}
	for k, m := range received {
		values := e.messages[m.index]
		if k < len(received)-1 {
			for i, place := range m.places[:len(table)] {
				table[i] *= values[place]
			}
			continue
		}
		places := m.places[:len(table)]
		for i, place := range own.messagePlace[:len(table)] {
			table[i] *= values[places[i]]
			message[place] += table[i]
		}
	}
	e.exponents[c] = exp + normalise(message)
}

// fillShares fills shares in units of 2^exp. The total that computeTotal returned last is z · 2^exp.
func (e *elimination[T]) fillShares(z T, exp int) {
	for s, v := range e.singles {
		others := e.totalWithout(z, exp, s, e.singleSums[s])
		offset, d := e.offset[v], e.fit.Domains[v]
		shares := e.shares[offset:][:d]
		for x, g := range e.weights[offset:][:d] {
			shares[x] = g * others
		}
	}
	for r, c := range e.roots {
		e.adjoints[c][0] = e.totalWithout(z, exp, len(e.singleSums)+r, e.messages[c][0])
		e.adjointExponents[c] = exp - e.exponents[c]
		if e.messages[c][0] == 0 {
			e.adjointExponents[c] = exp
		}
	}
	for c := len(e.program.cliques) - 1; c >= 0; c-- {
		e.propagateBack(c, exp)
	}
	e.fillIndependentLeaves(z)
}

// propagateBack computes two things from the adjoint of clique c: the shares of the clique's variable, in units of 2^exp, and the adjoints
// of the messages that the clique received. The adjoint of a message is the derivative of the total with respect to the message.
func (e *elimination[T]) propagateBack(c, exp int) {
	own := &e.program.cliques[c]
	table, adjoint := e.tables[c], e.adjoints[c]
	receivedExp := 0
	for _, m := range own.messages {
		receivedExp += e.exponents[m.index]
	}
	shares := e.shares[e.offset[own.variable]:][:e.fit.Domains[own.variable]]
	clear(shares)
	for i, place := range own.messagePlace {
		shares[own.valueOf[i]] += table[i] * adjoint[place]
	}
	unit := math.Ldexp(1, e.adjointExponents[c]+receivedExp-exp)
	for x := range shares {
		shares[x] = shares[x].times(unit)
	}
	// The adjoint of a message is the sum over the table's entries without that message, times the clique's adjoint.
	weights := e.weights[e.offset[own.variable]:]
	for k, m := range own.messages {
		derivative := e.adjoints[m.index]
		clear(derivative)
		for i, place := range own.messagePlace {
			x := weights[own.valueOf[i]] * adjoint[place]
			for _, t := range own.tables {
				x *= e.restEntries[t.index][t.places[i]]
			}
			for l, other := range own.messages {
				if l != k {
					x *= e.messages[other.index][other.places[i]]
				}
			}
			derivative[m.places[i]] += x
		}
		e.adjointExponents[m.index] = e.adjointExponents[c] + receivedExp - e.exponents[m.index] + normalise(derivative)
	}
}
