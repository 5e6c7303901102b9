package gradients

// Observations cut a case into components: hidden variables that tables join, and tables whose variables are all observed. Equal components
// of several cases are summed once.

import (
	"encoding/binary"
	"math"

	"github.com/basetensor/basetensor/internal/base/floats"
)

const (
	// mostProducts bounds the products of entries of a case's components where no tree takes less.
	mostProducts = 1 << 20
	// productFlops is the flops of a case along the tree that take as long as one product of entries, forth and back.
	productFlops = 4
	// span bounds the exponents of products of entries: far from the ends of float64.
	span = 900
)

// cutter cuts cases into components. It is made for tables without entries below 0, all of whose indices are variables.
type cutter struct {
	tables  []cutTable
	of      [][]int // by variable: the tables that have it
	dims    []int   // by variable
	limit   int     // products of a case
	counts  []float64
	weight  float64 // of all cases that were cut
	all     []component
	known   map[string]int
	entries []int // of a case, by table: the first one that its observations leave
	found   []component
	visited []bool // by variable, of a case
	joined  []bool // by table, of a case
	key     []byte
}

// cutTable is a table of the expression.
type cutTable struct {
	data      []float64
	variables []int
	strides   []int
	first     int // where its derivatives begin; −1: none are wanted
	counted   int // where its counts begin
	top, low  int // every entry but 0 is from 2^low to 2^(top+1)
}

// component is hidden variables that tables join, under the observations of some cases.
type component struct {
	hidden  []int
	tables  []int
	entries []int // by table of the component: the first one that the observations leave
	weight  float64
	row     int // the first case
}

// newCutter returns nil if a table has an index that is no variable's, two variables have one, Z is known to be 0, or numbers are below 0
// or beyond float64. Cases of components with more products of entries than flops are worth are left to others.
func (p *Prepared) newCutter(flops float64) *cutter {
	if p.floats.Unfit != "" || p.floats.Scale.IsZero() || p.Signed() {
		return nil
	}
	n := len(p.floats.Variables)
	c := &cutter{
		limit: mostProducts, of: make([][]int, n), dims: make([]int, n), known: map[string]int{},
		visited: make([]bool, n), joined: make([]bool, len(p.floats.Tables)), entries: make([]int, len(p.floats.Tables)),
	}
	if flops > 0 {
		c.limit = int(min(mostProducts, flops/productFlops))
	}
	variable := make(map[int]int, n)
	for v, i := range p.floats.Variables {
		if _, twice := variable[i]; twice {
			return nil
		}
		variable[i], c.dims[v] = v, p.floats.Dims[i]
	}
	first, counted := 0, 0
	for t, table := range p.floats.Tables {
		top, low, _ := floats.Extent(table.Data)
		cut := cutTable{
			data: table.Data, first: -1, counted: counted, top: top, low: low,
			variables: make([]int, len(table.Scope)), strides: make([]int, len(table.Scope)),
		}
		stride := 1
		for k := len(table.Scope) - 1; k >= 0; k-- {
			v, ok := variable[table.Scope[k]]
			if !ok {
				return nil
			}
			cut.variables[k], cut.strides[k] = v, stride
			stride *= p.floats.Dims[table.Scope[k]]
			c.of[v] = append(c.of[v], t)
		}
		if p.wanted[t] {
			cut.first = first
			first += len(table.Data)
		}
		counted += len(table.Data)
		c.tables = append(c.tables, cut)
	}
	c.counts = make([]float64, counted)
	return c
}

// add cuts a case, a value per variable and −1 for those without. It is false if the case is left to others. impossible says that an entry
// is 0 that the case needs.
func (c *cutter) add(row int, values []int, weight float64) (impossible, ok bool) {
	for t := range c.tables {
		entry := 0
		for k, v := range c.tables[t].variables {
			if x := values[v]; x > 0 {
				entry += x * c.tables[t].strides[k]
			}
		}
		c.entries[t], c.joined[t] = entry, false
	}
	clear(c.visited)
	c.found = c.found[:0]
	products := 0
	for v := range values {
		if values[v] >= 0 || c.visited[v] {
			continue
		}
		n, fits := c.join(v, values, c.limit-products)
		if products += n; !fits {
			return false, false
		}
	}
	c.weight += weight
	for t := range c.tables {
		if !c.joined[t] {
			impossible = impossible || c.tables[t].data[c.entries[t]] == 0
			c.counts[c.tables[t].counted+c.entries[t]] += weight
		}
	}
	for i := range c.found {
		c.keep(&c.found[i], row, weight)
	}
	return impossible, true
}

// join finds the component of a hidden variable, and the number of its products of entries. It is false if they are more than a limit, or
// may leave float64.
func (c *cutter) join(v int, values []int, limit int) (products int, fits bool) {
	if len(c.found) < cap(c.found) {
		c.found = c.found[:len(c.found)+1]
	} else {
		c.found = append(c.found, component{})
	}
	f := &c.found[len(c.found)-1]
	f.hidden, f.tables, f.entries = append(f.hidden[:0], v), f.tables[:0], f.entries[:0]
	c.visited[v] = true
	states, top, low := 1, 0, 0
	for k := 0; k < len(f.hidden); k++ {
		v := f.hidden[k]
		if states *= c.dims[v]; states > limit {
			return 0, false
		}
		for _, t := range c.of[v] {
			if c.joined[t] {
				continue
			}
			c.joined[t] = true
			f.tables, f.entries = append(f.tables, t), append(f.entries, c.entries[t])
			top, low = top+c.tables[t].top+1, low+c.tables[t].low
			for _, u := range c.tables[t].variables {
				if values[u] < 0 && !c.visited[u] {
					c.visited[u] = true
					f.hidden = append(f.hidden, u)
				}
			}
		}
	}
	products = states * max(1, len(f.tables))
	return products, products <= limit && top < span && low > -span
}

// keep adds a case to a component that is known, or makes it known.
func (c *cutter) keep(f *component, row int, weight float64) {
	c.key = c.key[:0]
	for _, v := range f.hidden {
		c.key = binary.AppendUvarint(c.key, uint64(v)+1)
	}
	c.key = append(c.key, 0)
	for k, t := range f.tables {
		c.key = binary.AppendUvarint(binary.AppendUvarint(c.key, uint64(t)), uint64(f.entries[k]))
	}
	if index, ok := c.known[string(c.key)]; ok {
		c.all[index].weight += weight
		return
	}
	c.known[string(c.key)] = len(c.all)
	c.all = append(c.all, component{
		hidden: append([]int(nil), f.hidden...), tables: append([]int(nil), f.tables...), entries: append([]int(nil), f.entries...),
		weight: weight, row: row,
	})
}

// flush adds all cases that were cut up: their ln-likelihood, and to by, unless it is nil, the derivatives by entries. exclude is called
// with the first case of a component that is impossible.
func (c *cutter) flush(by []float64, exclude func(row int)) (ln, flops float64) {
	for t := range c.tables {
		table := &c.tables[t]
		for k, x := range table.data {
			n := c.counts[table.counted+k]
			if n == 0 || x == 0 {
				continue
			}
			ln += n * math.Log(x)
			if by != nil && table.first >= 0 {
				by[table.first+k] += n / x
			}
		}
	}
	s := summing{cutter: c, by: by}
	for i := range c.all {
		z := s.sum(&c.all[i])
		if z == 0 {
			exclude(c.all[i].row)
			continue
		}
		ln += c.all[i].weight * math.Log(z)
	}
	clear(c.counts)
	clear(c.known)
	c.all, c.weight = c.all[:0], 0
	return ln, s.flops
}

// summing sums components over the values of their hidden variables.
type summing struct {
	*cutter
	by     []float64
	flops  float64
	steps  []int     // by hidden variable and table: entries between two values
	digits []int     // values of the hidden variables
	places []int     // by table: the entry at these
	terms  []float64 // by state: the product of all entries but 0
	zeros  []uint8   // by state: how often 0 is among them, two at most
}

// sum returns Z of a component and adds its derivatives.
func (s *summing) sum(c *component) float64 {
	s.steps = s.steps[:0]
	states := 1
	for _, v := range c.hidden {
		states *= s.dims[v]
		for _, t := range c.tables {
			step := 0
			for k, u := range s.tables[t].variables {
				if u == v {
					step = s.tables[t].strides[k]
				}
			}
			s.steps = append(s.steps, step)
		}
	}
	s.flops += float64(3 * states * len(c.tables))
	s.terms, s.zeros = s.terms[:0], s.zeros[:0]
	z := 0.0
	s.each(c, func() {
		term, zeros := 1.0, uint8(0)
		for k, t := range c.tables {
			if x := s.tables[t].data[s.places[k]]; x != 0 {
				term *= x
			} else {
				zeros = min(zeros+1, 2)
			}
		}
		s.terms, s.zeros = append(s.terms, term), append(s.zeros, zeros)
		if zeros == 0 {
			z += term
		}
	})
	if s.by == nil || z == 0 {
		return z
	}
	factor := c.weight / z
	state := 0
	s.each(c, func() {
		term, zeros := factor*s.terms[state], s.zeros[state]
		state++
		if zeros == 2 {
			return
		}
		for k, t := range c.tables {
			table := &s.tables[t]
			if table.first < 0 {
				continue
			}
			switch x := table.data[s.places[k]]; {
			case x == 0:
				s.by[table.first+s.places[k]] += term
			case zeros == 0:
				s.by[table.first+s.places[k]] += term / x
			}
		}
	})
	return z
}

// each calls visit at all values of the hidden variables of a component, the last one fastest.
func (s *summing) each(c *component, visit func()) {
	s.digits = append(s.digits[:0], make([]int, len(c.hidden))...)
	s.places = append(s.places[:0], c.entries...)
	for {
		visit()
		h := len(c.hidden) - 1
		for ; h >= 0; h-- {
			steps := s.steps[h*len(c.tables):][:len(c.tables)]
			if s.digits[h]++; s.digits[h] < s.dims[c.hidden[h]] {
				for k, step := range steps {
					s.places[k] += step
				}
				break
			}
			s.digits[h] = 0
			for k, step := range steps {
				s.places[k] -= step * (s.dims[c.hidden[h]] - 1)
			}
		}
		if h < 0 {
			return
		}
	}
}
