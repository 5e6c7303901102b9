package exchangeable

// The logarithms of tables, split into parts that no table of fewer variables has a share in.

import (
	"context"
	"encoding/binary"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/base/pace"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// negligible is the size of an interaction, nats, that is the rounding of logarithms.
const negligible = 1e-24

// interaction is a function of a set of variables, u_S: nats, the last variable fastest. Functions with the same number are the same.
type interaction struct {
	scope  scope
	number int32
	u      []logarithm
}

// interactions are a product of tables over variables that are no leaves:
//
//	Σ ln φ(x) = constant + Σ_i field_i(x_i) + Σ_S u_S(x_S),   |S| ≥ 2
//
// Of a table without zeros, u_S summed over any one variable is 0, and its parts over fewer variables count among those. A table with
// zeros is a function of its own.
type interactions struct {
	*factors
	constant     logarithm
	field        [][]logarithm // by variable and value; nil: 0
	terms        []interaction
	places       map[scope]int32 // in list
	touching     [][]int32       // by variable: places in list
	conditionals map[int32]*conditional
}

// conditional is a leaf's distribution given its neighbours, in sums as they were made.
type conditional struct {
	table []logarithm // ln of its tables times its weights, the leaf's value fastest
	sum   []logarithm // over the leaf's values
}

// maker makes interactions.
type maker struct {
	*interactions
	maximal      bool // leaves are maximised over and not summed
	weights      [][]float64
	logs         [][]logarithm      // distinct functions
	logOfTable   map[int32]int32    // of a table
	sumOf        map[[2]int32]int32 // of two functions
	summedLeaves map[string]*summedLeaf
	partsOfLog   map[int32]*parts
	isPrivate    map[int32]bool // places in list whose function is a sum of its own
	bytes        float64        // of functions, interactions and leaves
	leafScopes   map[scope]bool // scopes of leaves, whose function may be 0 under some evidence alone
}

// summed is a leaf that was summed out.
type summedLeaf struct {
	log int32
	*conditional
}

// interactionsOf returns the interactions of tables, with the leaves of two neighbours summed out under their weights, or maximised with
// isMaximal. Leaves of one neighbour or none are left to fields. It returns nil if a weight is below 0, or if the interactions take more
// than a quarter of memory. Cost O(entries of all tables).
func interactionsOf(ctx context.Context, f *factors, weights [][]float64, maximal bool, memory int64) (*interactions, error) {
	m := &maker{
		interactions: &interactions{
			factors: f, field: make([][]logarithm, len(f.domains)), places: make(map[scope]int32, len(f.placedTables)),
			conditionals: map[int32]*conditional{},
		},
		maximal: maximal, weights: weights, logOfTable: map[int32]int32{}, sumOf: map[[2]int32]int32{}, summedLeaves: map[string]*summedLeaf{},
		partsOfLog: map[int32]*parts{}, isPrivate: map[int32]bool{}, leafScopes: map[scope]bool{},
	}
	look := pace.New(ctx)
	logs := make(map[scope]int32, len(f.placedTables)) // of the product of a scope's tables
	var sequence []scope
	add := func(s scope, log int32) {
		if known, ok := logs[s]; ok {
			logs[s] = m.addLogs(known, log)
			return
		}
		logs[s] = log
		sequence = append(sequence, s)
	}
	for _, p := range f.placedTables {
		if look.Over(16) {
			return nil, look.Err()
		}
		add(p.scope, m.logOf(p.table))
	}
	for _, l := range f.leafOf {
		if l == nil || len(l.neighbours) != 2 {
			continue
		}
		if look.Over(int64(m.domains[l.variable] * m.domains[l.neighbours[0]] * m.domains[l.neighbours[1]])) {
			return nil, look.Err()
		}
		s := m.sumOutLeaf(l)
		if s == nil || m.bytes > float64(memory)/4 {
			return nil, nil
		}
		m.conditionals[l.variable] = s.conditional
		m.leafScopes[scopeOf(l.neighbours...)] = true
		add(scopeOf(l.neighbours...), s.log)
	}
	for _, s := range sequence {
		if look.Over(64) {
			return nil, look.Err()
		}
		if m.addParts(s, logs[s]); m.bytes > float64(memory)/4 {
			return nil, nil
		}
	}
	m.terms = slices.DeleteFunc(m.terms, func(a interaction) bool {
		return !m.leafScopes[a.scope] && !slices.ContainsFunc(a.u, func(x logarithm) bool { return math.Abs(x.High) > negligible })
	})
	clear(m.places)
	m.touching = make([][]int32, len(f.domains))
	for k := range m.terms {
		m.places[m.terms[k].scope] = int32(k)
		for _, v := range m.terms[k].scope.variables() {
			m.touching[v] = append(m.touching[v], int32(k))
		}
	}
	return m.interactions, nil
}

// logOf returns the number of a table's logarithm.
func (m *maker) logOf(id int32) int32 {
	if known, ok := m.logOfTable[id]; ok {
		return known
	}
	m.logOfTable[id] = m.addFunction(logarithms(m.tables[id].data))
	return m.logOfTable[id]
}

// addFunction adds a function to logs and returns its number.
func (m *maker) addFunction(u []logarithm) int32 {
	m.logs = append(m.logs, u)
	m.bytes += float64(16*len(u) + 24)
	return int32(len(m.logs) - 1)
}

// logarithms returns the logarithms of numbers.
func logarithms(data []float64) []logarithm {
	out := make([]logarithm, len(data))
	for k, x := range data {
		out[k] = logarithmOf(x)
	}
	return out
}

// addLogs returns the number of the sum of two functions of one scope: the logarithm of the product of their tables.
func (m *maker) addLogs(a, b int32) int32 {
	key := [2]int32{min(a, b), max(a, b)}
	if known, ok := m.sumOf[key]; ok {
		return known
	}
	u := slices.Clone(m.logs[a])
	for k, y := range m.logs[b] {
		u[k] = u[k].plus(y)
	}
	m.sumOf[key] = m.addFunction(u)
	return m.sumOf[key]
}

// sumOutLeaf returns the sum over a leaf of two neighbours, made once for leaves with the same tables and weights. It returns nil if a
// weight is below 0.
func (m *maker) sumOutLeaf(l *leaf) *summedLeaf {
	key := []byte{byte(m.domains[l.variable])}
	for _, w := range m.weights[l.variable] {
		key = binary.LittleEndian.AppendUint64(key, math.Float64bits(w))
	}
	for _, id := range m.unaryTables[l.variable] {
		key = binary.LittleEndian.AppendUint32(key, uint32(id))
	}
	for _, p := range l.tables {
		key = binary.LittleEndian.AppendUint32(key, uint32(p.table))
		for _, v := range p.scope.variables() {
			key = append(key, byte(slices.Index([]int32{l.variable, l.neighbours[0], l.neighbours[1]}, v)))
		}
	}
	if known, ok := m.summedLeaves[string(key)]; ok {
		return known
	}
	cond := m.conditional(l, m.weights[l.variable], m.maximal)
	if cond == nil {
		return nil
	}
	m.bytes += float64(16 * (len(cond.table) + len(cond.sum)))
	s := &summedLeaf{m.addFunction(cond.sum), cond}
	m.summedLeaves[string(key)] = s
	return s
}

// conditional returns the product of a leaf's tables and weights, by the values of its neighbours and its own, and the sum over its own, or
// the largest term if isMaximal. It returns nil if a weight is below 0.
func (f *factors) conditional(l *leaf, weights []float64, maximal bool) *conditional {
	d := f.domains[l.variable]
	dims := []int{}
	for _, v := range l.neighbours {
		dims = append(dims, f.domains[v])
	}
	rows := 1
	for _, n := range dims {
		rows *= n
	}
	c := &conditional{}
	digits := make([]int, len(dims))
	for range rows {
		sum, largest := scaled.Wide{}, impossible
		for x := range d {
			if !(weights[x] >= 0) {
				return nil
			}
			p := scaled.FromFloat(weights[x]).Wide()
			for _, id := range f.unaryTables[l.variable] {
				p = p.Mul(scaled.FromFloat(f.tables[id].data[x]).Wide())
			}
			for _, q := range l.tables {
				index := 0
				for k, v := range q.scope.variables() {
					digit := x
					if v != l.variable {
						digit = digits[slices.Index(l.neighbours, v)]
					}
					index = index*f.tables[q.table].dims[k] + digit
				}
				p = p.Mul(scaled.FromFloat(f.tables[q.table].data[index]).Wide())
			}
			sum = sum.Add(p)
			ln := logarithmOfWide(p)
			if ln.High > largest.High || ln.High == largest.High && ln.Low > largest.Low {
				largest = ln
			}
			c.table = append(c.table, ln)
		}
		if !maximal {
			largest = logarithmOfWide(sum)
		}
		c.sum = append(c.sum, largest)
		advance(digits, dims)
	}
	return c
}

// parts are a function as a sum of functions over subsets of its variables.
type parts struct {
	constant logarithm
	fields   [][]logarithm
	subsets  []uint8 // of two variables and more, the first variable the lowest bit
	numbers  []int32
}

// addParts adds the parts of a scope's function, given by its number, to the constant, the fields and the interactions.
func (m *maker) addParts(s scope, log int32) {
	p, ok := m.partsOfLog[log]
	if !ok {
		p = m.partsOf(s, log)
		m.partsOfLog[log] = p
	}
	list := s.variables()
	m.constant = m.constant.plus(p.constant)
	for k, field := range p.fields {
		v := list[k]
		if m.field[v] == nil {
			m.field[v] = make([]logarithm, len(field))
		}
		for x, y := range field {
			m.field[v][x] = m.field[v][x].plus(y)
		}
	}
	for index, members := range p.subsets {
		sub := empty
		k := 0
		for l, v := range list {
			if members>>l&1 == 1 {
				sub[k] = v
				k++
			}
		}
		m.addInteraction(sub, p.numbers[index])
	}
}

// addInteraction adds a function to the interaction of a scope.
func (m *maker) addInteraction(s scope, number int32) {
	place, ok := m.places[s]
	if !ok {
		m.places[s] = int32(len(m.terms))
		m.bytes += scopeBytes
		m.terms = append(m.terms, interaction{s, number, m.logs[number]})
		return
	}
	a := &m.terms[place]
	if !m.isPrivate[place] {
		m.isPrivate[place] = true
		a.number = m.addFunction(slices.Clone(a.u))
		a.u = m.logs[a.number]
	}
	for k, y := range m.logs[number] {
		a.u[k] = a.u[k].plus(y)
	}
}

// partsOf returns a function as a sum of parts over subsets of its variables. The part of a subset is the mean over the other variables,
// less the parts of smaller subsets. A function that is −Inf somewhere has one part, the function itself.
func (m *maker) partsOf(s scope, log int32) *parts {
	u := m.logs[log]
	k := s.order()
	everything := uint8(1)<<k - 1
	if slices.ContainsFunc(u, logarithm.isImpossible) {
		return &parts{subsets: []uint8{everything}, numbers: []int32{log}}
	}
	dims := make([]int, k) // of an array whose last entry along an axis is the mean, and the others what they differ from it
	for index, v := range s.variables() {
		dims[index] = m.domains[v]
	}
	for axis := k - 1; axis >= 0; axis-- {
		inner := 1
		for _, d := range dims[axis+1:] {
			inner *= d
		}
		d := dims[axis]
		next := make([]logarithm, 0, len(u)/d*(d+1))
		for block := range slices.Chunk(u, d*inner) {
			means := make([]logarithm, inner)
			for index, y := range block {
				means[index%inner] = means[index%inner].plus(y)
			}
			for index := range means {
				means[index] = means[index].dividedBy(float64(d))
			}
			for index, y := range block {
				next = append(next, y.minus(means[index%inner]))
			}
			next = append(next, means...)
		}
		u = next
		dims[axis]++
	}
	p := &parts{}
	functions := make([][]logarithm, everything+1)
	digits := make([]int, k)
	for _, y := range u {
		members := uint8(0)
		for axis, x := range digits {
			if x < dims[axis]-1 {
				members |= 1 << axis
			}
		}
		functions[members] = append(functions[members], y)
		advance(digits, dims)
	}
	p.constant = functions[0][0]
	for members := uint8(1); members <= everything; members++ {
		if members&(members-1) == 0 {
			p.fields = append(p.fields, functions[members])
		} else {
			p.subsets, p.numbers = append(p.subsets, members), append(p.numbers, m.addFunction(functions[members]))
		}
	}
	return p
}
