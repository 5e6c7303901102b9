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

	tables   [][]T // by clique: the products
	messages [][]T
	exps     []int // of the messages, and of all below them
	adjoints [][]T
	outer    []int // exponents of the adjoints

	units  []unit[T] // whose product is the total
	shares []T       // by value: the total with the variable at the value
}

// unit is a factor of the total: a variable outside of the rest, or a connected part of it.
type unit[T number[T]] struct {
	variable, clique int // one of them is −1
	value            T
	exp              int
	others           T // product of all other units
	othersExp        int
}

func newElimination[T number[T]](p *program, f *Fit, at []int, marginals bool) *elimination[T] {
	e := &elimination[T]{of: p, fit: f, at: at, g: make([]T, len(f.Field))}
	for v, c := range p.clique {
		if c < 0 {
			e.units = append(e.units, unit[T]{variable: v, clique: -1})
		}
	}
	for c := range p.cliques {
		own := &p.cliques[c]
		e.tables = append(e.tables, make([]T, own.size))
		e.messages = append(e.messages, make([]T, own.length))
		if marginals {
			e.adjoints = append(e.adjoints, make([]T, own.length))
		}
		if own.length == 1 {
			e.units = append(e.units, unit[T]{variable: -1, clique: c})
		}
	}
	e.exps = make([]int, len(p.cliques))
	e.outer = make([]int, len(p.cliques))
	if marginals {
		e.shares = make([]T, len(f.Field))
	}
	return e
}

// normalise divides a table by a power of two, so that its largest entry is in [½, 2), and returns the exponent; 0 for zeros.
func normalise[T number[T]](t []T) int {
	most := 0.0
	for _, x := range t {
		most = max(most, x.size())
	}
	if most == 0 {
		return 0
	}
	_, exp := math.Frexp(most)
	f := math.Ldexp(1, -exp)
	for i := range t {
		t[i] = t[i].times(f)
	}
	return exp
}

// total returns Σ_x Π_i g_i(x_i) · C(x) as value · 2^exp.
func (e *elimination[T]) total() (value T, exp int) {
	for c := range e.of.cliques {
		e.forward(c)
	}
	value = e.one()
	for u := range e.units {
		own := &e.units[u]
		if own.clique >= 0 {
			own.value, own.exp = e.messages[own.clique][0], e.exps[own.clique]
		} else {
			var sum T
			v := own.variable
			for _, x := range e.g[e.at[v]:][:e.fit.Domains[v]] {
				sum += x
			}
			own.value, own.exp = sum, 0
		}
		value *= own.value
		exp += own.exp
		value, exp = fraction(value, exp)
	}
	return value, exp
}

func (e *elimination[T]) one() T {
	var one T
	return one + 1
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
	for i := range table {
		table[i] = g[own.value[i]]
	}
	for _, t := range own.tables {
		values := e.fit.Rest[t.of].Values
		for i, at := range t.place {
			table[i] = table[i].times(values[at])
		}
	}
	exp := 0
	for _, m := range own.messages {
		of := e.messages[m.of]
		for i, at := range m.place {
			table[i] *= of[at]
		}
		exp += e.exps[m.of]
	}
	clear(message)
	for i, at := range own.out {
		message[at] += table[i]
	}
	e.exps[c] = exp + normalise(message)
}

// marginalUnits computes the product of all other units for each, after total.
func (e *elimination[T]) marginalUnits() {
	left, leftExp := e.one(), 0
	for u := range e.units {
		own := &e.units[u]
		own.others, own.othersExp = left, leftExp
		left, leftExp = fraction(left*own.value, leftExp+own.exp)
	}
	right, rightExp := e.one(), 0
	for u := len(e.units) - 1; u >= 0; u-- {
		own := &e.units[u]
		own.others, own.othersExp = fraction(own.others*right, own.othersExp+rightExp)
		right, rightExp = fraction(right*own.value, rightExp+own.exp)
	}
}

// marginals fills shares after total, in units of 2^exp: of a total that has the same exponent.
func (e *elimination[T]) marginals(exp int) {
	e.marginalUnits()
	for u := range e.units {
		own := &e.units[u]
		if own.clique >= 0 {
			e.adjoints[own.clique][0], e.outer[own.clique] = own.others, own.othersExp
			continue
		}
		f := math.Ldexp(1, own.othersExp-exp)
		for x := e.at[own.variable]; x < e.at[own.variable]+e.fit.Domains[own.variable]; x++ {
			e.shares[x] = (e.g[x] * own.others).times(f)
		}
	}
	for c := len(e.of.cliques) - 1; c >= 0; c-- {
		e.backward(c, exp)
	}
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
				x = x.times(e.fit.Rest[t.of].Values[t.place[i]])
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
