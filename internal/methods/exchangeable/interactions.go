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

// interaction is a function u_S of a set of variables.
type interaction struct {
	scope    scope       // S
	function int32       // the number of the function: equal functions have the same number
	ln       []logarithm // values in nats, the last variable fastest
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
	termOf       map[scope]int32        // by scope: the index of its interaction in terms
	touching     [][]int32              // by variable: the indices in terms of the interactions that have it
	conditionals map[int32]*conditional // by variable: of the leaves of two neighbours
}

// conditional is a leaf's distribution given its neighbours, not normalised. A row is a combination of the neighbours' values.
type conditional struct {
	table []logarithm // ln of the product of its tables and weights, row by row, the leaf's value fastest
	sum   []logarithm // by row: ln of the sum over the leaf's values, or of the largest term
}

// maker makes interactions. It keeps each distinct function once; a function is given by its number, the index in functions.
type maker struct {
	*interactions
	functionOf      map[scope]int32 // by scope: ln of the product of all its tables and of the sums over leaves of these neighbours
	sequence        []scope         // the scopes in functionOf, in the sequence in which they came
	isMaximal       bool            // leaves are maximised over and not summed
	weights         [][]float64
	functions       [][]logarithm          // distinct ones
	functionOfTable map[int32]int32        // by table: its logarithm
	sumOf           map[[2]int32]int32     // by two functions: their sum
	summedLeaves    map[string]*summedLeaf // by tables and weights
	partsOf         map[int32]*parts       // by function
	isPrivate       map[int32]bool         // indices in terms whose function is a sum of its own
	bytes           float64                // of functions, interactions and leaves
	leafScopes      map[scope]bool         // scopes of leaves' neighbours, whose function may be 0 under some evidence alone
}

// summedLeaf is a leaf that was summed out.
type summedLeaf struct {
	function int32 // ln of the sum, of the leaf's neighbours
	*conditional
}

// interactionsOf returns the interactions of tables. Leaves of two neighbours are summed out under their weights, or maximised over with
// isMaximal; leaves of one neighbour or none are left to fieldsOf. It returns nil if a weight is below 0, or if the interactions take more
// than a quarter of memory. Cost O(entries of all tables).
func interactionsOf(ctx context.Context, f *factors, weights [][]float64, isMaximal bool, memory int64) (*interactions, error) {
	m := &maker{
		interactions: &interactions{
			factors: f, field: make([][]logarithm, len(f.domains)), termOf: make(map[scope]int32, len(f.placedTables)),
			conditionals: map[int32]*conditional{},
		},
		functionOf: make(map[scope]int32, len(f.placedTables)), isMaximal: isMaximal, weights: weights,
		functionOfTable: map[int32]int32{}, sumOf: map[[2]int32]int32{},
		summedLeaves: map[string]*summedLeaf{}, partsOf: map[int32]*parts{}, isPrivate: map[int32]bool{}, leafScopes: map[scope]bool{},
	}
	look := pace.New(ctx) // counts operations, and is over once the context has ended

	// The function of each scope.
	for _, p := range f.placedTables {
		if look.Over(16) { // about 16 operations for each scope
			return nil, look.Err()
		}
		m.multiplyInto(p.scope, m.logarithmOfTable(p.table))
	}
	if ok, err := m.sumOutLeaves(memory, look); !ok || err != nil {
		return nil, err
	}

	// Decompose them into interactions, and drop those that are roundings.
	for _, s := range m.sequence {
		if look.Over(64) { // about 64 operations for each scope
			return nil, look.Err()
		}
		if m.addParts(s, m.functionOf[s]); m.bytes > float64(memory)/4 {
			return nil, nil
		}
	}
	m.dropRoundings()
	m.indexTerms()
	return m.interactions, nil
}

// multiplyInto adds a function, given by its number, to the function of a scope: it is a logarithm, so this multiplies.
func (m *maker) multiplyInto(s scope, function int32) {
	if present, ok := m.functionOf[s]; ok {
		m.functionOf[s] = m.sumFunctions(present, function)
		return
	}
	m.functionOf[s] = function
	m.sequence = append(m.sequence, s)
}

// sumOutLeaves sums out the leaves with two neighbours. The sum of a leaf is a function of the two, and is multiplied into the function of
// their scope. ok is false if a weight is below 0, or if the functions (m.bytes) take more than a quarter of memory.
func (m *maker) sumOutLeaves(memory int64, look *pace.Pace) (ok bool, err error) {
	for _, l := range m.leafOf {
		if l == nil || len(l.neighbours) != 2 {
			continue
		}
		if look.Over(int64(m.domains[l.variable] * m.domains[l.neighbours[0]] * m.domains[l.neighbours[1]])) {
			return false, look.Err()
		}
		summed := m.sumOutLeaf(l) // nil: a weight is below 0
		if summed == nil || m.bytes > float64(memory)/4 {
			return false, nil
		}
		s := scopeOf(l.neighbours...)
		m.conditionals[l.variable] = summed.conditional
		m.leafScopes[s] = true
		m.multiplyInto(s, summed.function)
	}
	return true, nil
}

// dropRoundings drops the terms whose entries are all roundings, other than those of leaves.
func (m *maker) dropRoundings() {
	m.terms = slices.DeleteFunc(m.terms, func(a interaction) bool {
		return !m.leafScopes[a.scope] && !slices.ContainsFunc(a.ln, func(x logarithm) bool { return math.Abs(x.High) > negligible })
	})
}

// indexTerms lists the interactions (m.terms) by scope and by variable: termOf[scope] is the number of the one with that scope, and
// touching[v] has the numbers of those with variable v.
func (m *maker) indexTerms() {
	clear(m.termOf)
	m.touching = make([][]int32, len(m.domains))
	for k := range m.terms {
		m.termOf[m.terms[k].scope] = int32(k)
		for _, v := range m.terms[k].scope.variables() {
			m.touching[v] = append(m.touching[v], int32(k))
		}
	}
}

// logarithmOfTable returns the function that is the logarithm of a table, which is added once.
func (m *maker) logarithmOfTable(id int32) int32 {
	if function, ok := m.functionOfTable[id]; ok {
		return function
	}
	m.functionOfTable[id] = m.addFunction(logarithms(m.tables[id].data))
	return m.functionOfTable[id]
}

// addFunction adds a function to functions and returns its number.
func (m *maker) addFunction(u []logarithm) int32 {
	m.functions = append(m.functions, u)
	m.bytes += float64(16*len(u) + 24) // a logarithm has 16 bytes, and a slice 24
	return int32(len(m.functions) - 1)
}

// logarithms returns the logarithm of each number.
func logarithms(data []float64) []logarithm {
	logs := make([]logarithm, len(data))
	for k, x := range data {
		logs[k] = logarithmOf(x)
	}
	return logs
}

// sumFunctions returns the sum of two functions of one scope: the logarithm of the product of their tables. It is added once.
func (m *maker) sumFunctions(a, b int32) int32 {
	key := [2]int32{min(a, b), max(a, b)}
	if function, ok := m.sumOf[key]; ok {
		return function
	}
	u := slices.Clone(m.functions[a])
	for k, y := range m.functions[b] {
		u[k] = u[k].plus(y)
	}
	m.sumOf[key] = m.addFunction(u)
	return m.sumOf[key]
}

// sumOutLeaf returns the sum over a leaf of two neighbours. It is made once for all leaves with the same tables and weights, whoever their
// neighbours are. It returns nil if a weight is below 0.
func (m *maker) sumOutLeaf(l *leaf) *summedLeaf {
	// The key has all that the sum depends on.
	key := []byte{byte(m.domains[l.variable])}
	for _, w := range m.weights[l.variable] {
		key = binary.LittleEndian.AppendUint64(key, math.Float64bits(w))
	}
	for _, id := range m.unaryTables[l.variable] {
		key = binary.LittleEndian.AppendUint32(key, uint32(id))
	}
	for _, p := range l.tables {
		key = binary.LittleEndian.AppendUint32(key, uint32(p.table))
		for _, v := range p.scope.variables() { // which of the three variables each axis belongs to
			key = append(key, byte(slices.Index([]int32{l.variable, l.neighbours[0], l.neighbours[1]}, v)))
		}
	}
	if leaf, ok := m.summedLeaves[string(key)]; ok {
		return leaf
	}

	conditional := m.conditional(l, m.weights[l.variable], m.isMaximal)
	if conditional == nil {
		return nil
	}
	m.bytes += float64(16 * (len(conditional.table) + len(conditional.sum))) // a logarithm has 16 bytes
	s := &summedLeaf{m.addFunction(conditional.sum), conditional}
	m.summedLeaves[string(key)] = s
	return s
}

// conditional returns the product of a leaf's tables and weights, for each combination of its neighbours' values and each value of its own,
// and the sum over its own values, or the largest product with isMaximal. It returns nil if a weight is below 0.
func (f *factors) conditional(l *leaf, weights []float64, isMaximal bool) *conditional {
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
	neighbourValues := make([]int, len(dims))
	for range rows {
		sum, largest := scaled.Wide{}, impossible // Wide has twice the digits of float64
		for x := range d {
			if !(weights[x] >= 0) { // below 0, or not a number
				return nil
			}
			p := f.leafProduct(l, weights, x, neighbourValues)
			sum = sum.Add(p)
			ln := logarithmOfWide(p)
			if ln.isAbove(largest) {
				largest = ln
			}
			c.table = append(c.table, ln)
		}
		if isMaximal {
			c.sum = append(c.sum, largest)
		} else {
			c.sum = append(c.sum, logarithmOfWide(sum))
		}
		advance(neighbourValues, dims) // to the next combination, the last value fastest
	}
	return c
}

// leafProduct returns the product of a leaf's weight and of the entries of its tables, if the leaf has value x and its neighbours have
// neighbourValues.
func (f *factors) leafProduct(l *leaf, weights []float64, x int, neighbourValues []int) scaled.Wide {
	p := scaled.FromFloat(weights[x]).Wide()
	for _, id := range f.unaryTables[l.variable] {
		p = p.Mul(scaled.FromFloat(f.tables[id].data[x]).Wide())
	}
	for _, placed := range l.tables {
		index := 0
		for k, v := range placed.scope.variables() {
			value := x
			if v != l.variable {
				value = neighbourValues[slices.Index(l.neighbours, v)]
			}
			index = index*f.tables[placed.table].dims[k] + value
		}
		p = p.Mul(scaled.FromFloat(f.tables[placed.table].data[index]).Wide())
	}
	return p
}

// parts are a function as a sum of functions over subsets of its variables.
type parts struct {
	constant logarithm
	fields   [][]logarithm // by variable of the function
	subsets  []uint8       // of two variables and more: bit k is set if the subset has variable k of the function
	numbers  []int32       // by subset: its function
}

// addParts decomposes a function of a scope into parts over subsets of its variables. It adds the part over no variable to the constant,
// parts over one variable to the fields, and all others to the interactions of their scopes. The function is given by its number in
// m.functions. The parts of each function are remembered, because many scopes have the same function.
func (m *maker) addParts(s scope, function int32) {
	p, ok := m.partsOf[function]
	if !ok {
		p = m.decompose(s, function)
		m.partsOf[function] = p
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
	for index, members := range p.subsets { // bit k of members is set if the subset has variable k of the scope
		subset := empty
		size := 0
		for k, v := range list {
			if members>>k&1 == 1 {
				subset[size] = v
				size++
			}
		}
		m.addInteraction(subset, p.numbers[index])
	}
}

// addInteraction adds a function, given by its number, to the interaction of a scope. An interaction of one function shares that function's
// values with other interactions. With the second one it becomes private: it gets a copy, to which functions are added in place.
func (m *maker) addInteraction(s scope, number int32) {
	term, ok := m.termOf[s]
	if !ok {
		m.termOf[s] = int32(len(m.terms))
		m.bytes += scopeBytes
		m.terms = append(m.terms, interaction{s, number, m.functions[number]})
		return
	}

	a := &m.terms[term]
	if !m.isPrivate[term] {
		m.isPrivate[term] = true
		a.function = m.addFunction(slices.Clone(a.ln))
		a.ln = m.functions[a.function]
	}
	for k, y := range m.functions[number] {
		a.ln[k] = a.ln[k].plus(y)
	}
}

// splitMeans replaces the d values of each entry along one axis by their d differences from the mean, and the mean as value d. inner is the
// number of entries per value of the axis, the product of the domains of all later axes.
func splitMeans(u []logarithm, d, inner int) []logarithm {
	split := make([]logarithm, 0, len(u)/d*(d+1))
	for block := range slices.Chunk(u, d*inner) {
		means := make([]logarithm, inner)
		for index, y := range block {
			means[index%inner] = means[index%inner].plus(y)
		}
		for index := range means {
			means[index] = means[index].dividedBy(float64(d))
		}
		for index, y := range block {
			split = append(split, y.minus(means[index%inner]))
		}
		split = append(split, means...)
	}
	return split
}

// decompose returns a function of a scope as a sum of parts over subsets S of its variables. The part of S is the mean over all other
// variables, less the parts of the subsets of S. A function that is −Inf somewhere has no such means; it has one part, the function itself.
func (m *maker) decompose(s scope, function int32) *parts {
	u := m.functions[function]    // logarithms, by combination of values
	k := s.order()                // the number of variables
	everything := uint8(1)<<k - 1 // the set of all variables, as bits
	if slices.ContainsFunc(u, logarithm.isImpossible) {
		return &parts{subsets: []uint8{everything}, numbers: []int32{function}}
	}

	// Along each axis, one after the other, replace the d values by their d differences from the mean, and the mean as the last one.
	dims := make([]int, k)
	for index, v := range s.variables() {
		dims[index] = m.domains[v]
	}
	for axis := k - 1; axis >= 0; axis-- {
		inner := 1 // entries of the later axes, which have one more value each by now
		for _, d := range dims[axis+1:] {
			inner *= d
		}
		u = splitMeans(u, dims[axis], inner)
		dims[axis]++ // the mean is one more value
	}

	return m.collectParts(u, dims)
}

// collectParts returns the parts of a function from its entries u after splitMeans along every axis: the last of the dims[axis] entries
// along an axis is a mean, the others are differences from it. An entry that is a difference along some axes, and a mean along all others,
// is one of the part over the variables of the former.
func (m *maker) collectParts(u []logarithm, dims []int) *parts {
	everything := uint8(1)<<len(dims) - 1
	functions := make([][]logarithm, everything+1) // by subset, as bits; entries come in the sequence of u, the last variable fastest
	digits := make([]int, len(dims))
	for _, y := range u {
		members := uint8(0)
		for axis, x := range digits {
			if isDifference := x < dims[axis]-1; isDifference {
				members |= 1 << axis
			}
		}
		functions[members] = append(functions[members], y)
		advance(digits, dims)
	}
	p := &parts{constant: functions[0][0]}
	for members := uint8(1); members <= everything; members++ {
		if isOneVariable := members&(members-1) == 0; isOneVariable {
			p.fields = append(p.fields, functions[members])
		} else {
			p.subsets, p.numbers = append(p.subsets, members), append(p.numbers, m.addFunction(functions[members]))
		}
	}
	return p
}
