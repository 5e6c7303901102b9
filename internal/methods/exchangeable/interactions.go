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
	constant logarithm
	field    [][]logarithm // by variable and value; nil: 0
	list     []interaction
	places   map[scope]int32 // in list
	touching [][]int32       // by variable: places in list
	conds    map[int32]*conditional
}

// conditional is a leaf's distribution given its neighbours, in sums as they were made.
type conditional struct {
	table []logarithm // ln of its tables times its weights, the leaf's value fastest
	sum   []logarithm // over the leaf's values
}

// maker makes interactions.
type maker struct {
	*interactions
	maximal bool // leaves are maximised over and not summed
	weights [][]float64
	logs    [][]logarithm      // distinct functions
	raw     map[int32]int32    // of a table
	sums    map[[2]int32]int32 // of two functions
	leaves  map[string]*summed
	splits  map[int32]*parts
	private map[int32]bool // places in list whose function is a sum of its own
	bytes   float64        // of functions, interactions and leaves
	joined  map[scope]bool // scopes of leaves, whose function may be 0 under some evidence alone
}

// summed is a leaf that was summed out.
type summed struct {
	log int32
	*conditional
}

// interactionsOf returns those of the tables with leaves summed out with their weights. It is nil if a weight is below 0, or if they take
// more than a quarter of memory. maximal takes the largest term in place of the sum. Leaves of one neighbour or none are left to fields.
// Cost O(entries of all tables).
func interactionsOf(ctx context.Context, f *factors, weights [][]float64, maximal bool, memory int64) (*interactions, error) {
	m := &maker{
		interactions: &interactions{
			factors: f, field: make([][]logarithm, len(f.domains)), places: make(map[scope]int32, len(f.list)),
			conds: map[int32]*conditional{},
		},
		maximal: maximal, weights: weights, raw: map[int32]int32{}, sums: map[[2]int32]int32{}, leaves: map[string]*summed{},
		splits: map[int32]*parts{}, private: map[int32]bool{}, joined: map[scope]bool{},
	}
	look := pace.New(ctx)
	logs := make(map[scope]int32, len(f.list)) // of the product of a scope's tables
	var sequence []scope
	add := func(s scope, log int32) {
		if known, ok := logs[s]; ok {
			logs[s] = m.product(known, log)
			return
		}
		logs[s] = log
		sequence = append(sequence, s)
	}
	for _, p := range f.list {
		if look.Over(16) {
			return nil, look.Err()
		}
		add(p.scope, m.log(p.table))
	}
	for _, l := range f.leaf {
		if l == nil || len(l.others) != 2 {
			continue
		}
		if look.Over(int64(m.domains[l.variable] * m.domains[l.others[0]] * m.domains[l.others[1]])) {
			return nil, look.Err()
		}
		s := m.sumOut(l)
		if s == nil || m.bytes > float64(memory)/4 {
			return nil, nil
		}
		m.conds[l.variable] = s.conditional
		m.joined[scopeOf(l.others...)] = true
		add(scopeOf(l.others...), s.log)
	}
	for _, s := range sequence {
		if look.Over(64) {
			return nil, look.Err()
		}
		if m.split(s, logs[s]); m.bytes > float64(memory)/4 {
			return nil, nil
		}
	}
	m.list = slices.DeleteFunc(m.list, func(a interaction) bool {
		return !m.joined[a.scope] && !slices.ContainsFunc(a.u, func(x logarithm) bool { return math.Abs(x.High) > negligible })
	})
	clear(m.places)
	m.touching = make([][]int32, len(f.domains))
	for k := range m.list {
		m.places[m.list[k].scope] = int32(k)
		for _, v := range m.list[k].scope.variables() {
			m.touching[v] = append(m.touching[v], int32(k))
		}
	}
	return m.interactions, nil
}

// log returns the number of a table's logarithm.
func (m *maker) log(id int32) int32 {
	if known, ok := m.raw[id]; ok {
		return known
	}
	m.raw[id] = m.function(logarithms(m.tables[id].data))
	return m.raw[id]
}

// function gives a function a number.
func (m *maker) function(u []logarithm) int32 {
	m.logs = append(m.logs, u)
	m.bytes += float64(16*len(u) + 24)
	return int32(len(m.logs) - 1)
}

func logarithms(data []float64) []logarithm {
	out := make([]logarithm, len(data))
	for k, x := range data {
		out[k] = logarithmOf(x)
	}
	return out
}

// product returns the number of the sum of two functions of one scope.
func (m *maker) product(a, b int32) int32 {
	key := [2]int32{min(a, b), max(a, b)}
	if known, ok := m.sums[key]; ok {
		return known
	}
	u := slices.Clone(m.logs[a])
	for k, y := range m.logs[b] {
		u[k] = u[k].plus(y)
	}
	m.sums[key] = m.function(u)
	return m.sums[key]
}

// sumOut returns the sum over a leaf of two neighbours; nil if a weight is below 0. Leaves with the same tables and weights have one sum.
func (m *maker) sumOut(l *leaf) *summed {
	key := []byte{byte(m.domains[l.variable])}
	for _, w := range m.weights[l.variable] {
		key = binary.LittleEndian.AppendUint64(key, math.Float64bits(w))
	}
	for _, id := range m.unary[l.variable] {
		key = binary.LittleEndian.AppendUint32(key, uint32(id))
	}
	for _, p := range l.list {
		key = binary.LittleEndian.AppendUint32(key, uint32(p.table))
		for _, v := range p.scope.variables() {
			key = append(key, byte(slices.Index([]int32{l.variable, l.others[0], l.others[1]}, v)))
		}
	}
	if known, ok := m.leaves[string(key)]; ok {
		return known
	}
	cond := m.conditional(l, m.weights[l.variable], m.maximal)
	if cond == nil {
		return nil
	}
	m.bytes += float64(16 * (len(cond.table) + len(cond.sum)))
	s := &summed{m.function(cond.sum), cond}
	m.leaves[string(key)] = s
	return s
}

// conditional returns the product of a leaf's tables and weights, and its sum over the leaf, or largest term; nil if a weight is below 0.
func (f *factors) conditional(l *leaf, weights []float64, maximal bool) *conditional {
	d := f.domains[l.variable]
	dims := []int{}
	for _, v := range l.others {
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
			for _, id := range f.unary[l.variable] {
				p = p.Mul(scaled.FromFloat(f.tables[id].data[x]).Wide())
			}
			for _, q := range l.list {
				index := 0
				for k, v := range q.scope.variables() {
					digit := x
					if v != l.variable {
						digit = digits[slices.Index(l.others, v)]
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
		following(digits, dims)
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

// split adds the parts of a scope's function.
func (m *maker) split(s scope, log int32) {
	p, ok := m.splits[log]
	if !ok {
		p = m.partsOf(s, log)
		m.splits[log] = p
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
		m.add(sub, p.numbers[index])
	}
}

// add adds a function to the interaction of a scope.
func (m *maker) add(s scope, number int32) {
	place, ok := m.places[s]
	if !ok {
		m.places[s] = int32(len(m.list))
		m.bytes += scopeBytes
		m.list = append(m.list, interaction{s, number, m.logs[number]})
		return
	}
	a := &m.list[place]
	if !m.private[place] {
		m.private[place] = true
		a.number = m.function(slices.Clone(a.u))
		a.u = m.logs[a.number]
	}
	for k, y := range m.logs[number] {
		a.u[k] = a.u[k].plus(y)
	}
}

// partsOf returns the parts of a function: all of it if it is −Inf somewhere, or else for every subset what is left of its mean over the
// other variables when the parts of smaller sets are taken off.
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
		following(digits, dims)
	}
	p.constant = functions[0][0]
	for members := uint8(1); members <= everything; members++ {
		if members&(members-1) == 0 {
			p.fields = append(p.fields, functions[members])
		} else {
			p.subsets, p.numbers = append(p.subsets, members), append(p.numbers, m.function(functions[members]))
		}
	}
	return p
}
