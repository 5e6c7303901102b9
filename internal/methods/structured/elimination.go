package structured

// One node: the rest under the weights of its component.

import "math"

// number is the kind of a node's numbers: real ones, and complex ones where a statistic has λ < 0.
type number[T any] interface {
	~float64 | ~complex128
	size() float64 // |x| within a factor of √2
	times(float64) T
}

type plain float64

func (x plain) size() float64         { return math.Abs(float64(x)) }
func (x plain) times(f float64) plain { return x * plain(f) }

type phase complex128

func (x phase) size() float64 {
	return max(math.Abs(real(x)), math.Abs(imag(x)))
}
func (x phase) times(f float64) phase { return x * phase(complex(f, 0)) }

// elimination runs a program under weights of values.
type elimination[T number[T]] struct {
	of  *program
	fit *Fit
	at  []int // place of the first value of each variable
	g   []T   // weights, by value

	rest     [][]T // the entries of the fit's tables
	tables   [][]T // by clique: the products
	messages [][]T
	exps     []int // of the messages, and of all below them
	adjoints [][]T
	outer    []int // exponents of the adjoints

	// The total is the product over the variables outside of the rest of the sum of their weights, and over the connected parts of the rest
	// of their last message.
	singles []int // variables
	sums    []T   // by single
	roots   []int // cliques
	shares  []T   // by value, those of the leaves last: the total with the variable at the value
	prefix  prefix[T]
}

func newElimination[T number[T]](p *program, f *Fit, at []int, marginals bool) *elimination[T] {
	e := &elimination[T]{of: p, fit: f, at: at, g: make([]T, len(f.Field))}
	for v, c := range p.clique {
		if c < 0 {
			e.singles = append(e.singles, v)
		}
	}
	for k := range f.Rest {
		values := make([]T, len(f.Rest[k].Values))
		for i, x := range f.Rest[k].Values {
			values[i] = T(1).times(x)
		}
		e.rest = append(e.rest, values)
	}
	for c := range p.cliques {
		own := &p.cliques[c]
		e.tables = append(e.tables, make([]T, own.size))
		e.messages = append(e.messages, make([]T, own.length))
		if marginals {
			e.adjoints = append(e.adjoints, make([]T, own.length))
		}
		if own.length == 1 {
			e.roots = append(e.roots, c)
		}
	}
	e.sums = make([]T, len(e.singles))
	e.exps = make([]int, len(p.cliques))
	e.outer = make([]int, len(p.cliques))
	if marginals {
		e.shares = make([]T, p.shares)
	}
	return e
}

// normalise divides a table by a power of two, so that its largest entry is in [½, 2), and returns the exponent; 0 for zeros.
func normalise[T number[T]](t []T) int {
	most := 0.0
	if real, ok := any(t).([]plain); ok { // a method of a type parameter is an indirect call
		bits := uint64(0)
		for _, x := range real {
			bits = max(bits, math.Float64bits(float64(x))&^(1<<63))
		}
		most = math.Float64frombits(bits)
	} else {
		for _, x := range t {
			most = max(most, x.size())
		}
	}
	if most == 0 || most >= 0.5 && most < 2 {
		return 0
	}
	exp := int(math.Float64bits(most)>>52) - 1022
	if exp < -1000 || exp > 1000 {
		_, exp = math.Frexp(most)
	}
	f := math.Ldexp(1, -exp)
	if exp >= -1000 && exp <= 1000 {
		f = math.Float64frombits(uint64(1023-exp) << 52)
	}
	by := T(1).times(f)
	for i := range t {
		t[i] *= by
	}
	return exp
}

// total returns Σ_x Π_i g_i(x_i) · C(x) as value · 2^exp.
func (e *elimination[T]) total() (value T, exp int) {
	for c := range e.of.cliques {
		e.forward(c)
	}
	for u, v := range e.singles {
		at, sum := e.at[v], T(0)
		switch d := e.fit.Domains[v]; d {
		case 2:
			sum = e.g[at] + e.g[at+1]
		default:
			for _, x := range e.g[at:][:d] {
				sum += x
			}
		}
		e.sums[u] = sum
	}
	return e.product(-1)
}

// product is the total as value · 2^exp, without the factor at a place: the singles' first, then the roots'; −1: with all.
func (e *elimination[T]) product(without int) (value T, exp int) {
	value = T(1)
	for from := 0; from < len(e.sums); from += 8 {
		sums := e.sums[from:min(from+8, len(e.sums))]
		all := value
		for _, sum := range sums {
			all *= sum
		}
		if all.size() > 0x1p-500 && uint(without-from) >= 8 {
			value, exp = fraction(all, exp)
			continue
		}
		for u, sum := range sums {
			if from+u != without {
				value, exp = fraction(value*sum, exp)
			}
		}
	}
	for r, c := range e.roots {
		if len(e.sums)+r != without {
			value, exp = fraction(value*e.messages[c][0], exp+e.exps[c])
		}
	}
	return value, exp
}

// others is the total, z · 2^exp, without the factor own at a place, in units of 2^exp.
func (e *elimination[T]) others(z T, exp, place int, own T) T {
	if own != 0 {
		return z / own
	}
	value, valueExp := e.product(place)
	return value.times(math.Ldexp(1, valueExp-exp))
}

// fraction moves a number's exponent out of it where it is beyond 2^±100.
func fraction[T number[T]](x T, exp int) (T, int) {
	s := x.size()
	if s > 0x1p-100 && s < 0x1p100 || s == 0 {
		return x, exp
	}
	_, own := math.Frexp(s)
	return x.times(math.Ldexp(1, -own)), exp + own
}

// forward computes the table and the message of a clique.
func (e *elimination[T]) forward(c int) {
	own := &e.of.cliques[c]
	table, message := e.tables[c], e.messages[c]
	g := e.g[e.at[own.variable]:]
	tables, messages := own.tables, own.messages
	if len(tables) > 0 {
		values, place := e.rest[tables[0].of], tables[0].place[:len(table)]
		for i, x := range own.value[:len(table)] {
			table[i] = g[x] * values[place[i]]
		}
		tables = tables[1:]
	} else {
		for i, x := range own.value[:len(table)] {
			table[i] = g[x]
		}
	}
	for _, t := range tables {
		values := e.rest[t.of]
		for i, at := range t.place[:len(table)] {
			table[i] *= values[at]
		}
	}
	exp := 0
	for _, m := range messages {
		exp += e.exps[m.of]
	}
	clear(message)
	if len(messages) == 0 {
		for i, at := range own.out[:len(table)] {
			message[at] += table[i]
		}
	}
	for k, m := range messages {
		of := e.messages[m.of]
		if k < len(messages)-1 {
			for i, at := range m.place[:len(table)] {
				table[i] *= of[at]
			}
			continue
		}
		place := m.place[:len(table)]
		for i, at := range own.out[:len(table)] {
			table[i] *= of[place[i]]
			message[at] += table[i]
		}
	}
	e.exps[c] = exp + normalise(message)
}

// marginals fills shares after total, z · 2^exp, in units of 2^exp.
func (e *elimination[T]) marginals(z T, exp int) {
	for u, v := range e.singles {
		others := e.others(z, exp, u, e.sums[u])
		at, d := e.at[v], e.fit.Domains[v]
		shares := e.shares[at:][:d]
		for x, g := range e.g[at:][:d] {
			shares[x] = g * others
		}
	}
	for r, c := range e.roots {
		e.adjoints[c][0] = e.others(z, exp, len(e.sums)+r, e.messages[c][0])
		e.outer[c] = exp - e.exps[c]
		if e.messages[c][0] == 0 {
			e.outer[c] = exp
		}
	}
	for c := len(e.of.cliques) - 1; c >= 0; c-- {
		e.backward(c, exp)
	}
	e.leafShares(z)
}

// backward computes the shares of a clique's variable and the adjoints of the messages to it.
func (e *elimination[T]) backward(c, exp int) {
	own := &e.of.cliques[c]
	table, adjoint := e.tables[c], e.adjoints[c]
	below := 0
	for _, m := range own.messages {
		below += e.exps[m.of]
	}
	shares := e.shares[e.at[own.variable]:][:e.fit.Domains[own.variable]]
	clear(shares)
	for i, at := range own.out {
		shares[own.value[i]] += table[i] * adjoint[at]
	}
	f := math.Ldexp(1, e.outer[c]+below-exp)
	for x := range shares {
		shares[x] = shares[x].times(f)
	}
	g := e.g[e.at[own.variable]:]
	for k, m := range own.messages {
		to := e.adjoints[m.of]
		clear(to)
		for i, at := range own.out {
			x := g[own.value[i]] * adjoint[at]
			for _, t := range own.tables {
				x *= e.rest[t.of][t.place[i]]
			}
			for l, other := range own.messages {
				if l != k {
					x *= e.messages[other.of][other.place[i]]
				}
			}
			to[m.place[i]] += x
		}
		e.outer[m.of] = e.outer[c] + below - e.exps[m.of] + normalise(to)
	}
}
