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

// size returns |x|.
func (x plain) size() float64 { return math.Abs(float64(x)) }

// times returns f · x.
func (x plain) times(f float64) plain { return x * plain(f) }

// phase is a complex number, for fits with a statistic of λ < 0.
type phase complex128

// size returns |x| within a factor of √2: the larger one of its two parts.
func (x phase) size() float64 { return max(math.Abs(real(x)), math.Abs(imag(x))) }

// times returns f · x.
func (x phase) times(f float64) phase { return x * phase(complex(f, 0)) }

// noFactor is the index of multiplyFactors that leaves no factor out.
const noFactor = -1

// elimination runs a program for one node after the other: it sums the product of the rest's tables over all assignments, under weights of
// the variables' values. A list by value has all values of the first variable, then those of the second, and so on.
type elimination[T number[T]] struct {
	program    *program
	fit        *Fit
	firstValue []int // by variable: the index of its first value in weights and shares
	weights    []T   // by value: those of the current node

	restEntries      [][]T // of the fit's tables
	tables           [][]T // by clique: the product of all that it multiplies
	messages         [][]T // by clique, normalised
	exponents        []int // by clique: the power of two that its message, and those below it, were divided by
	adjoints         [][]T // by clique: the derivative of the total with respect to its message, normalised
	adjointExponents []int // by clique: the power of two that its adjoint was divided by

	// The total is the product of two kinds of factors: of each free variable, which no table of the rest has, the sum of its weights, and
	// of each root, which is the last clique of a connected part of the rest, its message of one number.
	freeVariables []int
	freeSums      []T   // by free variable: the sum of its weights
	roots         []int // cliques
	shares        []T   // by value, leaves last: the total with the variable fixed to the value
	prefix        prefix[T]
}

// newElimination returns an elimination with room for runs of a program. The program eliminates the variables of the rest of fit f, the
// tables that its statistics do not give. A clique is the elimination of one variable: it sums a product of tables and messages over the
// variable, and the sum is its message. Roots are cliques whose message is a number, and free variables are in no table. firstValue is, by
// variable, the index of its first value in lists by value. hasShares makes room for the way back: for shares by value, the totals with a
// variable fixed to a value, and for the derivatives by messages (adjoints).
func newElimination[T number[T]](p *program, f *Fit, firstValue []int, hasShares bool) *elimination[T] {
	e := &elimination[T]{program: p, fit: f, firstValue: firstValue, weights: make([]T, len(f.Field))}
	for v, c := range p.cliqueOf {
		if c < 0 {
			e.freeVariables = append(e.freeVariables, v)
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
		clique := &p.cliques[c]
		e.tables = append(e.tables, make([]T, clique.entries))
		e.messages = append(e.messages, make([]T, clique.messageSize))
		if hasShares {
			e.adjoints = append(e.adjoints, make([]T, clique.messageSize))
		}
		if clique.messageSize == 1 { // no later clique receives it
			e.roots = append(e.roots, c)
		}
	}
	e.freeSums = make([]T, len(e.freeVariables))
	e.exponents = make([]int, len(p.cliques))
	e.adjointExponents = make([]int, len(p.cliques))
	if hasShares {
		e.shares = make([]T, p.shareCount)
	}
	return e
}

// normalise divides a table by a power of two 2^exp, so that its largest entry is in [½, 2), and returns exp. It returns 0 and leaves the
// table as it is if the largest entry is in that range already, or is 0.
func normalise[T number[T]](t []T) (exp int) {
	// The largest size. Real numbers have a loop without size(), since a method of a type parameter is an indirect call. Without the sign
	// bit, which &^(1<<63) clears, the bits of a float64, read as an integer, grow with it.
	largest := 0.0
	if real, ok := any(t).([]plain); ok {
		bits := uint64(0)
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

	// exp is that of math.Frexp, with largest / 2^exp in [½, 1). Far from the limits of float64 it is faster to read exp from the bits of
	// largest, and to write 2^−exp as bits. The bits from the 52nd on are the exponent of a number in [1, 2) plus 1023.
	exp = int(math.Float64bits(largest)>>52) - 1022
	if exp < -1000 || exp > 1000 {
		_, exp = math.Frexp(largest)
	}
	inverse := math.Ldexp(1, -exp)
	if exp >= -1000 && exp <= 1000 {
		inverse = math.Float64frombits(uint64(1023-exp) << 52)
	}
	factor := T(1).times(inverse)
	for i := range t {
		t[i] *= factor
	}
	return exp
}

// computeTotal returns the sum over all assignments x of Π_i weights_i(x_i) · C(x), where C is the product of the tables of the rest, those
// that the fit's statistics do not give. The sum is value · 2^exp. A clique eliminates one variable of the rest, in the sequence of the
// cliques; a free variable is in no table. It fills the cliques' tables and messages, and freeSums.
func (e *elimination[T]) computeTotal() (value T, exp int) {
	for c := range e.program.cliques {
		e.sumOutClique(c)
	}

	for s, v := range e.freeVariables {
		offset, sum := e.firstValue[v], T(0)
		switch d := e.fit.Domains[v]; d {
		case 2: // the most frequent case, without a loop
			sum = e.weights[offset] + e.weights[offset+1]
		default:
			for _, x := range e.weights[offset:][:d] {
				sum += x
			}
		}
		e.freeSums[s] = sum
	}
	return e.multiplyFactors(noFactor)
}

// multiplyFactors returns the product of the total's factors, without factor number skipped, as value · 2^exp. The factors are numbered.
// The first are freeSums, one for each variable without tables. Then come the messages of the roots, one number for each connected part of
// the tables. If skipped is noFactor, all are multiplied. moveExponent moves the power of two of a number to the exponent.
func (e *elimination[T]) multiplyFactors(skipped int) (value T, exp int) {
	value = T(1)
	for start := 0; start < len(e.freeSums); start += 8 { // eight at once (chosen), if they stay far from underflow
		sums := e.freeSums[start:min(start+8, len(e.freeSums))]
		product := value
		for _, sum := range sums {
			product *= sum
		}
		hasSkipped := skipped >= start && skipped < start+8
		if product.size() > 0x1p-500 && !hasSkipped { // float64 ends at 2^−1022
			value, exp = moveExponent(product, exp)
			continue
		}
		for s, sum := range sums { // one by one
			if start+s != skipped {
				value, exp = moveExponent(value*sum, exp)
			}
		}
	}
	for r, c := range e.roots {
		if len(e.freeSums)+r != skipped {
			value, exp = moveExponent(value*e.messages[c][0], exp+e.exponents[c])
		}
	}
	return value, exp
}

// totalWithout returns the total z · 2^exp without one of its factors, in units of 2^exp. index is the factor's number (multiplyFactors).
// It divides z by the factor, or, if the factor is 0, multiplies all others.
func (e *elimination[T]) totalWithout(z T, exp, index int, factor T) T {
	if factor != 0 {
		return z / factor
	}
	value, valueExp := e.multiplyFactors(index)
	return value.times(math.Ldexp(1, valueExp-exp))
}

// moveExponent returns x · 2^exp as another number and exponent, so that the number's size is within 2^±100. If x is so already, or 0, it
// returns x and exp.
func moveExponent[T number[T]](x T, exp int) (T, int) {
	s := x.size()
	if s > 0x1p-100 && s < 0x1p100 || s == 0 {
		return x, exp
	}
	_, moved := math.Frexp(s)
	return x.times(math.Ldexp(1, -moved)), exp + moved
}

// sumOutClique eliminates the variable of clique c: it fills the clique's table and its message. Entry i of the table belongs to one
// combination of values. It is the product of the weight of the variable's value, of an entry of each table that the clique multiplies, and
// of an entry of each message that it receives from earlier cliques. The message is the sum of the table over the variable. messageEntry[i]
// is the entry of the message to which entry i of the table is added. m.entryOf[i] is the entry of a received message m for entry i.
func (e *elimination[T]) sumOutClique(c int) {
	clique := &e.program.cliques[c]
	table, message := e.tables[c], e.messages[c]
	e.multiplyRest(clique, table)

	// Multiply the messages. The pass over the last one also adds up the sum over the variable.
	exp := 0
	clear(message)
	if len(clique.messages) == 0 {
		for i, entry := range clique.messageEntry[:len(table)] {
			message[entry] += table[i]
		}
	}
	for k, m := range clique.messages {
		exp += e.exponents[m.index]
		values, entryOf := e.messages[m.index], m.entryOf[:len(table)]
		if isLast := k == len(clique.messages)-1; !isLast {
			for i, entry := range entryOf {
				table[i] *= values[entry]
			}
			continue
		}
		for i, entry := range clique.messageEntry[:len(table)] {
			table[i] *= values[entryOf[i]]
			message[entry] += table[i]
		}
	}
	e.exponents[c] = exp + normalise(message) // the message is in units of 2^exponents[c]
}

// multiplyRest begins the table of a clique: it sets the table to the product of the weights of the clique's variable and of the tables t
// in clique.tables. t.entryOf[i] is the entry of t that belongs to entry i of the clique's table.
func (e *elimination[T]) multiplyRest(clique *clique, table []T) {
	weights := e.weights[e.firstValue[clique.variable]:]
	restTables := clique.tables
	if len(restTables) > 0 { // the weights times the first table in one pass
		values, entryOf := e.restEntries[restTables[0].index], restTables[0].entryOf[:len(table)]
		for i, x := range clique.valueOf[:len(table)] {
			table[i] = weights[x] * values[entryOf[i]]
		}
		restTables = restTables[1:]
	} else {
		for i, x := range clique.valueOf[:len(table)] {
			table[i] = weights[x]
		}
	}
	for _, t := range restTables {
		values := e.restEntries[t.index]
		for i, entry := range t.entryOf[:len(table)] {
			table[i] *= values[entry]
		}
	}
}

// fillShares fills shares, in units of 2^exp: by value, the total with the variable fixed to the value. A clique eliminates one variable,
// and its message is the sum over it. A root is the last clique of a connected part of the tables, and its message is a number. The last
// total of computeTotal is z · 2^exp: the product of the sums of the free variables, which no table has, and of the messages of the roots.
// The other variables get their shares on the way back over the cliques.
func (e *elimination[T]) fillShares(z T, exp int) {
	for s, v := range e.freeVariables {
		otherFactors := e.totalWithout(z, exp, s, e.freeSums[s])
		offset, d := e.firstValue[v], e.fit.Domains[v]
		shares := e.shares[offset:][:d]
		for x, weight := range e.weights[offset:][:d] {
			shares[x] = weight * otherFactors
		}
	}

	// The adjoint of a root's message is the total without it. totalWithout divides by the message's number, which is in units of
	// 2^exponents[c], so the quotient is in units of 2^(exp − exponents[c]). From the roots, adjoints go back to the earlier cliques.
	for r, c := range e.roots {
		e.adjoints[c][0] = e.totalWithout(z, exp, len(e.freeSums)+r, e.messages[c][0])
		e.adjointExponents[c] = exp - e.exponents[c]
		if e.messages[c][0] == 0 { // totalWithout multiplied the others, without its exponent
			e.adjointExponents[c] = exp
		}
	}
	for c := len(e.program.cliques) - 1; c >= 0; c-- {
		e.propagateBack(c, exp)
	}
	e.fillIndependentLeaves(z)
}

// propagateBack computes two things from the adjoint of clique c: the shares of the clique's variable, in units of 2^exp, and the adjoints
// of the messages that the clique received. A clique has a table, the product of weights, of tables of the rest and of received messages.
// It sums one variable out of its table and sends the sum as its message. The adjoint of a message is the derivative of the total with
// respect to it. Entry i of the table is a term of the message's entry messageEntry[i], and a product of the operands' entries entryOf[i].
func (e *elimination[T]) propagateBack(c, exp int) {
	clique := &e.program.cliques[c]
	table, adjoint := e.tables[c], e.adjoints[c]
	receivedExp := 0
	for _, m := range clique.messages {
		receivedExp += e.exponents[m.index]
	}

	shares := e.shares[e.firstValue[clique.variable]:][:e.fit.Domains[clique.variable]]
	clear(shares)
	for i, entry := range clique.messageEntry {
		shares[clique.valueOf[i]] += table[i] * adjoint[entry]
	}
	unit := math.Ldexp(1, e.adjointExponents[c]+receivedExp-exp) // of table · adjoint, in units of 2^exp
	for x := range shares {
		shares[x] = shares[x].times(unit)
	}

	// The adjoint of a received message is the sum over the table's entries without that message, times the clique's adjoint.
	weights := e.weights[e.firstValue[clique.variable]:]
	for k, m := range clique.messages {
		derivative := e.adjoints[m.index]
		clear(derivative)
		for i, entry := range clique.messageEntry {
			x := weights[clique.valueOf[i]] * adjoint[entry]
			for _, t := range clique.tables {
				x *= e.restEntries[t.index][t.entryOf[i]]
			}
			for l, factor := range clique.messages {
				if l != k {
					x *= e.messages[factor.index][factor.entryOf[i]]
				}
			}
			derivative[m.entryOf[i]] += x
		}
		e.adjointExponents[m.index] = e.adjointExponents[c] + receivedExp - e.exponents[m.index] + normalise(derivative)
	}
}
