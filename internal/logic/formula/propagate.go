package formula

// Unit propagation over clauses of literals of variables with any number of values.

// propagator knows which literals follow from those that were assumed. Two literals of every clause are watched (the first two);
// that a variable has exactly one of its values is built in.
type propagator struct {
	f        *Formula
	variable []int32 // by atom
	truth    []int8  // by atom: 1 taken, −1 not taken, 0 open
	left     []int32 // by variable: values that are not excluded
	clauses  [][]Literal
	gone     []bool
	watches  [][]int32 // by literal: clauses that watch it
	trail    []Literal // literals that hold, in the order in which that was found
	next     int       // of the trail: to be propagated
	except   int32     // a clause that is left out; −1 for none
	zero     bool      // no assignment is left
	work     int64
}

// newPropagator returns a propagator of the clauses of f. No clause may have a literal twice.
func newPropagator(f *Formula) *propagator {
	p := &propagator{
		f: f, variable: make([]int32, f.Atoms()), truth: make([]int8, f.Atoms()), left: make([]int32, len(f.Domains)),
		watches: make([][]int32, 2*f.Atoms()), except: -1,
	}
	for v, d := range f.Domains {
		p.left[v] = int32(d)
		for a := range d {
			p.variable[f.Offset(v)+a] = int32(v)
		}
	}
	for v, d := range f.Domains {
		if d == 1 {
			p.assume(f.Literal(v, 0))
		}
	}
	for _, c := range f.Clauses {
		p.add(c)
	}
	return p
}

// value is 1 where l holds, −1 where it does not, 0 where that is open.
func (p *propagator) value(l Literal) int8 {
	if l.Negative() {
		return -p.truth[l.Atom()]
	}
	return p.truth[l.Atom()]
}

// add adds a clause where nothing is assumed, and propagates it. It keeps c.
func (p *propagator) add(c []Literal) {
	at := 0
	for k, l := range c { // open and true literals come first
		if p.value(l) >= 0 {
			c[at], c[k] = c[k], c[at]
			at++
		}
	}
	switch {
	case at == 0:
		p.zero = true
	case at == 1:
		p.zero = p.zero || !p.assume(c[0]) || !p.propagate()
	}
	p.clauses = append(p.clauses, c)
	p.gone = append(p.gone, len(c) < 2)
	if len(c) >= 2 {
		n := int32(len(p.clauses) - 1)
		p.watches[c[0]] = append(p.watches[c[0]], n)
		p.watches[c[1]] = append(p.watches[c[1]], n)
	}
}

// assume makes a literal hold and excludes the variable's other values accordingly; false on a
// contradiction.
func (p *propagator) assume(l Literal) bool {
	switch p.value(l) {
	case 1:
		return true
	case -1:
		return false
	}
	v := p.variable[l.Atom()]
	from, to := p.f.Offset(int(v)), p.f.Offset(int(v)+1)
	p.trail = append(p.trail, l)
	p.work++
	if !l.Negative() {
		p.truth[l.Atom()] = 1
		for a := from; a < to; a++ {
			if p.truth[a] == 0 {
				p.truth[a] = -1
				p.left[v]--
				p.trail = append(p.trail, Literal(a)<<1|1)
				p.work++
			}
		}
		return true
	}
	p.truth[l.Atom()] = -1
	if p.left[v]--; p.left[v] == 1 {
		for a := from; a < to; a++ {
			if p.truth[a] == 0 {
				p.truth[a] = 1
				p.trail = append(p.trail, Literal(a)<<1)
			}
		}
	}
	return p.left[v] > 0
}

// propagate finds the consequences; false on a contradiction.
func (p *propagator) propagate() bool {
	for p.next < len(p.trail) {
		l := p.trail[p.next].Not() // does not hold any more
		p.next++
		if !p.visit(l) {
			p.next = len(p.trail)
			return false
		}
	}
	return true
}

// visit looks at the clauses that watch a literal that does not hold.
func (p *propagator) visit(l Literal) bool {
	list := p.watches[l]
	kept := list[:0]
	p.work += int64(len(list))
	for i, n := range list {
		c := p.clauses[n]
		if p.gone[n] {
			continue
		}
		if n == p.except {
			kept = append(kept, n)
			continue
		}
		if c[0] == l {
			c[0], c[1] = c[1], c[0]
		}
		if p.value(c[0]) > 0 || !p.rewatch(n, c) {
			kept = append(kept, n)
			if p.value(c[0]) > 0 || p.assume(c[0]) {
				continue
			}
			p.watches[l] = append(kept, list[i+1:]...)
			return false
		}
	}
	p.watches[l] = kept
	return true
}

// rewatch has a clause watch another literal in the place of its second; false where there is none.
func (p *propagator) rewatch(n int32, c []Literal) bool {
	for k := 2; k < len(c); k++ {
		p.work++
		if p.value(c[k]) >= 0 {
			c[1], c[k] = c[k], c[1]
			p.watches[c[1]] = append(p.watches[c[1]], n)
			return true
		}
	}
	return false
}

// undo forgets all but the first literals of the trail.
func (p *propagator) undo(to int) {
	for i := len(p.trail) - 1; i >= to; i-- {
		l := p.trail[i]
		if p.truth[l.Atom()] = 0; l.Negative() {
			p.left[p.variable[l.Atom()]]++
		}
	}
	p.trail = p.trail[:to]
	p.next = to
}

// try assumes a literal and propagates it; false where that is impossible.
func (p *propagator) try(l Literal) bool { return p.assume(l) && p.propagate() }

// fix makes a literal hold for good.
func (p *propagator) fix(l Literal) {
	if !p.try(l) {
		p.zero = true
	}
}

// replace puts a shorter clause in the place of one, where nothing is assumed.
func (p *propagator) replace(n int, c []Literal) {
	p.gone[n] = true
	p.add(c)
}
