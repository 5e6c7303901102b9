package gradients

// Observations cut a case into components: hidden variables that tables join, and tables whose variables are all observed. Equal components
// of several cases are summed once.

import (
	"encoding/binary"
	"math"

	"github.com/basetensor/basetensor/internal/base/floats"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
)

const (
	// maxProducts bounds the products of entries that the components of a case may take. A cheaper tree lowers the limit.
	maxProducts = 1 << 20
	// productFlops is the number of flops along a tree that take as long as one product of entries here, forth and back.
	productFlops = 4
	// maxExponent bounds the binary exponents of products of entries, so that they stay far from the ends of float64.
	maxExponent = 900
)

// cutter cuts cases into components and sums these. It is made for tables without entries below 0, all of whose indices are variables.
type cutter struct {
	tables   []cutTable
	tablesOf [][]int // by variable: the tables that have it
	dims     []int   // by variable: its number of values
	limit    int     // products of entries that a case may take

	// Of all cases that were added since the last flush.
	counts     []float64      // by entry of the tables, one table after the other: weight of the cases that observe all variables of the table
	weight     float64        // of all these cases
	components []component    // each once
	indexOf    map[string]int // by the bytes of a component: its index in components

	// Of the present case.
	entries   []int       // by table: the index of the entry at the observed values, with value 0 for hidden variables
	cut       []component // its components
	isVisited []bool      // by variable: it is hidden and in a component
	isJoined  []bool      // by table: it is in a component
	key       []byte      // buffer
}

// cutTable is a table of the expression.
type cutTable struct {
	data      []float64
	variables []int // by axis
	strides   []int // by axis
	// firstDerivative is the index of its first entry among the derivatives; −1: none by its entries are wanted.
	firstDerivative int
	firstCount      int // index of its first entry in cutter.counts
	highExp, lowExp int // every entry but 0 is from 2^lowExp to 2^(highExp+1)
}

// component is a set of hidden variables that tables join, with the values that some cases observe of the tables' other variables.
type component struct {
	hidden  []int
	tables  []int
	entries []int   // by table of the component: the index of the entry at the observed values, with value 0 for hidden variables
	weight  float64 // of the cases that have the component
	row     int     // the first of these cases
}

// newCutter returns a cutter of cases into components, for the tables of p. flops is the price of a case along a tree, or 0 if there is no
// tree: a case whose components take more than that is not cut. It returns nil if no case can be cut: if a table has an index that is no
// variable's, if two variables have one index, if Z is known to be 0, or if numbers are below 0 or beyond float64.
func (p *Prepared) newCutter(flops float64) *cutter {
	if p.floats.Unfit != "" || p.floats.Scale.IsZero() || p.HasNegativeEntries() {
		return nil
	}
	n := len(p.floats.Variables)
	c := &cutter{
		limit: maxProducts, tablesOf: make([][]int, n), dims: make([]int, n), indexOf: map[string]int{},
		isVisited: make([]bool, n), isJoined: make([]bool, len(p.floats.Tables)), entries: make([]int, len(p.floats.Tables)),
	}
	if flops > 0 {
		c.limit = int(min(maxProducts, flops/productFlops))
	}

	variableOf := make(map[int]int, n) // by index of the expression
	for v, i := range p.floats.Variables {
		if _, isTaken := variableOf[i]; isTaken {
			return nil
		}
		variableOf[i], c.dims[v] = v, p.floats.Dims[i]
	}

	derivatives, counts := 0, 0 // entries of the tables so far, those of tables with parameters and all of them
	for t, table := range p.floats.Tables {
		cut, ok := p.newCutTable(table, variableOf)
		if !ok {
			return nil
		}
		for _, v := range cut.variables {
			c.tablesOf[v] = append(c.tablesOf[v], t)
		}
		if p.hasParameters[t] {
			cut.firstDerivative = derivatives
			derivatives += len(table.Data)
		}
		cut.firstCount = counts
		counts += len(table.Data)
		c.tables = append(c.tables, cut)
	}
	c.counts = make([]float64, counts)
	return c
}

// newCutTable returns a table over variables, without places for derivatives or counts. ok is false if one of its indices is no variable's.
func (p *Prepared) newCutTable(table sumproduct.Table, variableOf map[int]int) (cut cutTable, ok bool) {
	highExp, lowExp, _ := floats.Extent(table.Data) // not read: whether an entry is below 0; none is
	cut = cutTable{
		data: table.Data, firstDerivative: -1, highExp: highExp, lowExp: lowExp,
		variables: make([]int, len(table.Scope)), strides: make([]int, len(table.Scope)),
	}
	stride := 1
	for k := len(table.Scope) - 1; k >= 0; k-- {
		v, isVariable := variableOf[table.Scope[k]]
		if !isVariable {
			return cutTable{}, false
		}
		cut.variables[k], cut.strides[k] = v, stride
		stride *= p.floats.Dims[table.Scope[k]]
	}
	return cut, true
}

// add cuts a case into components and adds them to those to be summed. values has the value of each variable, −1 for a hidden one. A
// component consists of hidden variables that tables connect, and of these tables. In a table without hidden variables the case selects an
// entry, whose count grows by the weight. ok is false, and nothing is added, if the components take too many products or may leave float64.
// isImpossible is true if a table without hidden variables has the entry 0.
func (c *cutter) add(row int, values []int, weight float64) (isImpossible, ok bool) {
	// By table: the entry at the observed values, with value 0 for hidden variables.
	for t := range c.tables {
		entry := 0
		for k, v := range c.tables[t].variables {
			if x := values[v]; x > 0 {
				entry += x * c.tables[t].strides[k]
			}
		}
		c.entries[t], c.isJoined[t] = entry, false
	}

	// The components.
	clear(c.isVisited)
	c.cut = c.cut[:0]
	products := 0
	for v := range values {
		if values[v] >= 0 || c.isVisited[v] {
			continue
		}
		n, fits := c.findComponent(v, values, c.limit-products)
		if products += n; !fits {
			return false, false
		}
	}

	// Tables in no component: all their variables are observed.
	c.weight += weight
	for t := range c.tables {
		if !c.isJoined[t] {
			isImpossible = isImpossible || c.tables[t].data[c.entries[t]] == 0
			c.counts[c.tables[t].firstCount+c.entries[t]] += weight
		}
	}
	for i := range c.cut {
		c.keep(&c.cut[i], row, weight)
	}
	return isImpossible, true
}

// findComponent appends the component of hidden variable v to c.cut: all hidden variables and tables that are connected with v by tables.
// values has the value of each variable, −1 for a hidden one; observed variables connect nothing. products is the number of products of
// entries that the sum of the component takes. fits is false if they are more than limit, or if a product may leave float64; then
// products means nothing.
func (c *cutter) findComponent(v int, values []int, limit int) (products int, fits bool) {
	component := c.nextComponent()
	component.hidden = append(component.hidden, v)
	c.isVisited[v] = true
	states := 1                                  // combinations of values of the hidden variables so far
	highExp, lowExp := 0, 0                      // a product of entries is from 2^lowExp to 2^highExp
	for k := 0; k < len(component.hidden); k++ { // the list grows
		u := component.hidden[k]
		if states *= c.dims[u]; states > limit {
			return 0, false
		}
		for _, t := range c.tablesOf[u] {
			if c.isJoined[t] {
				continue
			}
			c.isJoined[t] = true
			component.tables, component.entries = append(component.tables, t), append(component.entries, c.entries[t])
			highExp, lowExp = highExp+c.tables[t].highExp+1, lowExp+c.tables[t].lowExp // its entries: from 2^lowExp to 2^(highExp+1)
			for _, w := range c.tables[t].variables {
				if values[w] < 0 && !c.isVisited[w] {
					c.isVisited[w] = true
					component.hidden = append(component.hidden, w)
				}
			}
		}
	}
	products = states * max(1, len(component.tables))
	isInRange := highExp < maxExponent && lowExp > -maxExponent
	return products, products <= limit && isInRange
}

// nextComponent appends an empty component to c.cut, in the memory of one of an earlier case if there is some.
func (c *cutter) nextComponent() *component {
	if len(c.cut) < cap(c.cut) {
		c.cut = c.cut[:len(c.cut)+1]
	} else {
		c.cut = append(c.cut, component{})
	}
	next := &c.cut[len(c.cut)-1]
	next.hidden, next.tables, next.entries = next.hidden[:0], next.tables[:0], next.entries[:0]
	return next
}

// keep adds the weight of a case to the component in c.components that is equal to f, or appends a copy of f if there is none. Components
// are equal if they have the same hidden variables, tables and entries of the observed values; c.indexOf finds them by these numbers.
func (c *cutter) keep(f *component, row int, weight float64) {
	c.key = c.key[:0]
	for _, v := range f.hidden {
		c.key = binary.AppendUvarint(c.key, uint64(v)+1)
	}
	c.key = append(c.key, 0) // ends the variables, which are from 1 on in the key
	for k, t := range f.tables {
		c.key = binary.AppendUvarint(binary.AppendUvarint(c.key, uint64(t)), uint64(f.entries[k]))
	}
	if index, isKnown := c.indexOf[string(c.key)]; isKnown {
		c.components[index].weight += weight
		return
	}
	c.indexOf[string(c.key)] = len(c.components)
	c.components = append(c.components, component{
		hidden: append([]int(nil), f.hidden...), tables: append([]int(nil), f.tables...), entries: append([]int(nil), f.entries...),
		weight: weight, row: row,
	})
}

// flush returns ln, the sum of weight · ln-likelihood of all cases that were added since the last flush, without the scale of the
// expression. Then it forgets these cases. If by is not nil, it adds to by the derivatives of ln by the entries of tables. It calls exclude
// with the first case of each component of probability 0.
func (c *cutter) flush(by []float64, exclude func(row int)) (ln, flops float64) {
	// Entries x that cases of weight n select, since they observe all variables of the table: n·ln x, with the derivative n / x.
	for t := range c.tables {
		table := &c.tables[t]
		for k, x := range table.data {
			n := c.counts[table.firstCount+k]
			if n == 0 || x == 0 {
				continue
			}
			ln += n * math.Log(x)
			if by != nil && table.firstDerivative >= 0 {
				by[table.firstDerivative+k] += n / x
			}
		}
	}

	// Components: weight · ln Z.
	s := summer{cutter: c, by: by}
	for i := range c.components {
		z := s.sum(&c.components[i])
		if z == 0 {
			exclude(c.components[i].row)
			continue
		}
		ln += c.components[i].weight * math.Log(z)
	}
	clear(c.counts)
	clear(c.indexOf)
	c.components, c.weight = c.components[:0], 0
	return ln, s.flops
}

// summer sums components over the values of their hidden variables.
type summer struct {
	*cutter
	by    []float64 // derivatives by the entries of tables; nil: not wanted
	flops float64

	// Of the present component. A state is a combination of values of its hidden variables.
	strides  []int     // of hidden variable h in table k of the component: strides[h·tables + k]
	digits   []int     // by hidden variable: its value
	current  []int     // by table of the component: the index of the entry at these values
	products []float64 // by state: the product of all entries that are not 0
	zeros    []uint8   // by state: how many entries are 0, at most 2
}

// sum returns Z of a component: the sum, over the states (combinations of values of its hidden variables), of the product of its tables'
// entries. If derivatives are wanted (s.by), it adds those of weight · ln Z.
func (s *summer) sum(c *component) float64 {
	states := s.setStrides(c)
	s.flops += float64(3 * states * len(c.tables)) // forth once, and back twice
	z := s.multiplyStates(c)
	if s.by != nil && z != 0 {
		s.addDerivatives(c, c.weight/z)
	}
	return z
}

// setStrides sets s.strides for a component: strides[h·tables + k] is the stride of hidden variable h in table k of the component. It
// returns the number of the component's states, combinations of values of its hidden variables.
func (s *summer) setStrides(c *component) (states int) {
	s.strides = s.strides[:0]
	states = 1
	for _, v := range c.hidden {
		states *= s.dims[v]
		for _, t := range c.tables {
			stride := 0 // stays 0 if the table does not have the variable
			for k, u := range s.tables[t].variables {
				if u == v {
					stride = s.tables[t].strides[k]
				}
			}
			s.strides = append(s.strides, stride)
		}
	}
	return states
}

// multiplyStates returns Z of a component, and sets s.products and s.zeros by state: the product of the entries that are not 0, and the
// number of entries that are 0, where 2 stands for two and more.
func (s *summer) multiplyStates(c *component) (z float64) {
	s.products, s.zeros = s.products[:0], s.zeros[:0]
	s.forEachState(c, func() {
		product, zeros := 1.0, uint8(0)
		for k, t := range c.tables {
			if x := s.tables[t].data[s.current[k]]; x != 0 {
				product *= x
			} else {
				zeros = min(zeros+1, 2)
			}
		}
		s.products, s.zeros = append(s.products, product), append(s.zeros, zeros)
		if zeros == 0 {
			z += product
		}
	})
	return z
}

// addDerivatives adds the derivatives of factor · Z of a component to s.by, after multiplyStates. For a state with the product P, the
// derivative by an entry x of P is factor · P/x. If x is 0, that is factor times the product of the other entries. If two entries of P are
// 0, all derivatives are 0.
func (s *summer) addDerivatives(c *component, factor float64) {
	state := 0
	s.forEachState(c, func() {
		product, zeros := factor*s.products[state], s.zeros[state]
		state++
		if zeros == 2 {
			return
		}
		for k, t := range c.tables {
			table := &s.tables[t]
			if table.firstDerivative < 0 { // no derivatives by this table are wanted
				continue
			}
			switch x := table.data[s.current[k]]; {
			case x == 0: // the only entry of the state that is 0: product has all others
				s.by[table.firstDerivative+s.current[k]] += product
			case zeros == 0:
				s.by[table.firstDerivative+s.current[k]] += product / x
			}
		}
	})
}

// forEachState calls visit at each state of a component, a combination of values of its hidden variables, the last one fastest. During the
// call s.current[k] is the index of the entry of the component's k-th table. s.strides has, for each hidden variable, its stride in each of
// these tables; c.entries are the indices at value 0 of all hidden variables.
func (s *summer) forEachState(c *component, visit func()) {
	s.digits = append(s.digits[:0], make([]int, len(c.hidden))...)
	s.current = append(s.current[:0], c.entries...)
	for {
		visit()
		h := len(c.hidden) - 1 // the variable that moves on; those behind it go back to value 0
		for ; h >= 0; h-- {
			strides := s.strides[h*len(c.tables):][:len(c.tables)]
			if s.digits[h]++; s.digits[h] < s.dims[c.hidden[h]] {
				for k, stride := range strides {
					s.current[k] += stride
				}
				break
			}
			s.digits[h] = 0
			for k, stride := range strides {
				s.current[k] -= stride * (s.dims[c.hidden[h]] - 1)
			}
		}
		if h < 0 {
			return
		}
	}
}
