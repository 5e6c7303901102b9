package exchangeable

// The tables of a network, each distinct one once, and the variables that are summed out first.

import (
	"context"
	"encoding/binary"
	"hash/maphash"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/base/pace"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
)

const (
	// maxOrder bounds the variables of a table, maxEntries its entries, maxDomain the values of a variable.
	maxOrder   = 6
	maxEntries = 1 << 14
	maxDomain  = 64
	// scopeBytes is what a table's place takes beside its entries: in a list, a map, and the lists of its variables.
	scopeBytes = 160
)

// scope is an increasing set of variables, then −1.
type scope [maxOrder]int32

// empty is the scope without variables.
var empty = scope{-1, -1, -1, -1, -1, -1}

// order is the number of variables.
func (s *scope) order() int {
	for k, v := range s {
		if v < 0 {
			return k
		}
	}
	return maxOrder
}

// variables lists the variables.
func (s *scope) variables() []int32 { return s[:s.order()] }

// scopeOf returns the scope of a set in any sequence.
func scopeOf(variables ...int32) scope {
	s := empty
	copy(s[:], variables)
	slices.Sort(s[:len(variables)])
	return s
}

// placed is a table of the network: the number of one of the distinct tables, whose axes are in the sequence of the scope.
type placed struct {
	scope scope
	table int32
}

// table is one of the distinct tables, the last axis fastest.
type table struct {
	dims []int
	data []float64
}

// factors are the tables of a network without evidence. Weights of links are not among them.
type factors struct {
	domains      []int
	tables       []table
	placedTables []placed // over two variables and more, and no leaf among them
	unaryTables  [][]int32
	leafOf       []*leaf // by variable; nil: it is none

	sequences []scope // of the cores' legs, while they are read
}

// leaf is a variable that is summed out: all its tables are over it and at most two others, which are no leaves.
type leaf struct {
	variable   int32
	neighbours []int32  // increasing
	tables     []placed // its tables over more than itself
}

// scopesOf returns the sets of variables that a network has cores over, with the numbers of the cores in the place of their tables. It
// returns nil if the network has other factors, maps or domains than this method reads, or more cores than memory has room for. Linear
// time.
func scopesOf(net *btn.Network, memory int64) *factors {
	if net.Choice != query.CoresAreFactors || float64(len(net.Cores))*scopeBytes > float64(memory)/4 {
		return nil
	}
	variable := slices.Repeat([]int32{-1}, len(net.Dims))
	f := &factors{
		unaryTables: make([][]int32, len(net.Variables)), leafOf: make([]*leaf, len(net.Variables)), domains: make([]int, 0, len(net.Variables)),
		sequences: make([]scope, 0, len(net.Cores)), placedTables: make([]placed, 0, len(net.Cores)),
	}
	for v, place := range net.Variables {
		link := net.Links[place.Link]
		cp, ok := link.T.(*tensor.CP)
		if !ok || place.Domain > maxDomain || slices.ContainsFunc(cp.Vectors, func(a []float64) bool { return a != nil }) {
			return nil
		}
		for _, leg := range link.Legs {
			if net.Maps != nil && net.Maps[leg].A != nil {
				return nil
			}
			variable[leg] = int32(v)
		}
		f.domains = append(f.domains, place.Domain)
	}
	for c, core := range net.Cores {
		k := len(core.Legs)
		if k == 0 || k > maxOrder {
			return nil
		}
		sequence := empty
		for at, leg := range core.Legs {
			if sequence[at] = variable[leg]; sequence[at] < 0 || slices.Contains(sequence[:at], sequence[at]) {
				return nil
			}
		}
		f.sequences = append(f.sequences, sequence)
		if k == 1 {
			f.unaryTables[sequence[0]] = append(f.unaryTables[sequence[0]], int32(c))
		} else {
			f.placedTables = append(f.placedTables, placed{scopeOf(sequence[:k]...), int32(c)})
		}
	}
	return f
}

// hasFewClasses reports whether a network may have at most maxClasses classes, and at most half as many as variables, by the neighbours of
// its variables alone.
func hasFewClasses(net *btn.Network, memory int64) bool {
	f := scopesOf(net, memory)
	if f == nil {
		return false
	}
	f.moveLeaves()
	limit := min(maxClasses, f.memberCount()/2)
	return f.countTwins(firstTwins, limit) <= limit && f.countTwins(len(f.domains), limit) <= limit
}

// memberCount returns the number of variables that are no leaves.
func (f *factors) memberCount() (n int) {
	for _, l := range f.leafOf {
		if l == nil {
			n++
		}
	}
	return n
}

// factorsOf reads the tables of a network. It returns nil if they are no plain tables of numbers of at least 0, or take more bytes than
// memory. Cost O(entries of all tables).
func factorsOf(ctx context.Context, net *btn.Network, memory int64) (*factors, error) {
	f := scopesOf(net, memory)
	if f == nil {
		return nil, nil
	}
	in := interner{factors: f, seed: maphash.MakeSeed(), known: map[uint64][]int32{}, permuted: map[permutation]int32{}}
	look := pace.New(ctx)
	bytes := 0.0
	read := func(core int32) (int32, bool) {
		dense, err := tensor.ToDense(net.Cores[core].T, maxEntries)
		if err != nil || look.Over(int64(len(dense.Data)+16)) {
			return 0, false
		}
		before := len(f.tables)
		id, ok := in.internTable(dense.Shape, dense.Data)
		if len(f.tables) > before {
			bytes += float64(32 * len(dense.Data))
		}
		return id, ok && bytes <= float64(memory)/4
	}
	for k := range f.placedTables {
		p := &f.placedTables[k]
		id, ok := read(p.table)
		if !ok {
			return nil, look.Err()
		}
		p.table = in.internSorted(id, f.sequences[p.table], p.scope.order())
	}
	for _, list := range f.unaryTables {
		for k, core := range list {
			id, ok := read(core)
			if !ok {
				return nil, look.Err()
			}
			list[k] = id
		}
	}
	f.sequences = nil
	f.moveLeaves()
	return f, nil
}

// interner keeps every distinct table once.
type interner struct {
	*factors
	seed     maphash.Seed
	known    map[uint64][]int32
	permuted map[permutation]int32
	bytes    []byte
}

// turn is a table with its axes in another sequence.
type permutation struct {
	table int32
	axes  [maxOrder]int8
}

// internTable returns the number of a table, which it adds if it is new. ok is false if an entry is below 0 or not finite.
func (in *interner) internTable(dims []int, data []float64) (int32, bool) {
	in.bytes = in.bytes[:0]
	for _, d := range dims {
		in.bytes = append(in.bytes, byte(d))
	}
	for _, x := range data {
		if !(x >= 0) || math.IsInf(x, 1) {
			return 0, false
		}
		in.bytes = binary.LittleEndian.AppendUint64(in.bytes, math.Float64bits(x))
	}
	key := maphash.Bytes(in.seed, in.bytes)
	for _, id := range in.known[key] {
		if t := in.tables[id]; slices.Equal(t.dims, dims) && slices.Equal(t.data, data) {
			return id, true
		}
	}
	id := int32(len(in.tables))
	in.tables = append(in.tables, table{dims, data})
	in.known[key] = append(in.known[key], id)
	return id, true
}

// internSorted returns the number of a table with its axes in increasing sequence of the variables. The axes of table id, k of them, are in
// the given sequence of variables.
func (in *interner) internSorted(id int32, sequence scope, k int) int32 {
	if slices.IsSorted(sequence[:k]) {
		return id
	}
	t := permutation{table: id}
	axes := make([]int, k)
	for at := range axes {
		axes[at] = at
	}
	slices.SortFunc(axes, func(a, b int) int { return int(sequence[a] - sequence[b]) })
	for at, from := range axes {
		t.axes[at] = int8(from)
	}
	if known, ok := in.permuted[t]; ok {
		return known
	}
	old := in.tables[id]
	dims, strides := make([]int, k), strides(old.dims)
	for at, from := range axes {
		dims[at] = old.dims[from]
	}
	data := make([]float64, len(old.data))
	digits := make([]int, k)
	for to := range data {
		from := 0
		for at, axis := range axes {
			from += digits[at] * strides[axis]
		}
		data[to] = old.data[from]
		advance(digits, dims)
	}
	turned, _ := in.internTable(dims, data)
	in.permuted[t] = turned
	return turned
}

// strides returns the distance of neighbouring entries along every axis, the last axis fastest.
func strides(dims []int) []int {
	s := make([]int, len(dims))
	size := 1
	for k := len(dims) - 1; k >= 0; k-- {
		s[k] = size
		size *= dims[k]
	}
	return s
}

// advance changes the digits of an entry into those of the next one, the last digit fastest. After the last entry comes the first.
func advance(digits, dims []int) {
	for k := len(digits) - 1; k >= 0; k-- {
		if digits[k]++; digits[k] < dims[k] {
			return
		}
		digits[k] = 0
	}
}

// moveLeaves finds the leaves and moves their tables from placedTables to them. A leaf shares tables with at most two other variables, of
// which none shares tables with at most two. Linear time.
func (f *factors) moveLeaves() {
	n := len(f.domains)
	others := make([][]int32, n) // up to three distinct ones of each
	for _, p := range f.placedTables {
		list := p.scope.variables()
		for _, v := range list {
			for _, u := range list {
				if u != v && len(others[v]) < 3 && !slices.Contains(others[v], u) {
					others[v] = append(others[v], u)
				}
			}
		}
	}
	for v := range others {
		if len(others[v]) < 3 && !slices.ContainsFunc(others[v], func(u int32) bool { return len(others[u]) < 3 }) {
			slices.Sort(others[v])
			f.leafOf[v] = &leaf{variable: int32(v), neighbours: others[v]}
		}
	}
	f.placedTables = slices.DeleteFunc(f.placedTables, func(p placed) bool {
		for _, v := range p.scope.variables() {
			if l := f.leafOf[v]; l != nil {
				l.tables = append(l.tables, p)
				return true
			}
		}
		return false
	})
}

// firstTwins is the number of variables that show of most networks that there are many classes.
const firstTwins = 64 * maxClasses

// countTwins counts groups of variables with the same neighbours among the first n variables: two variables of one class are in one group.
// It stops above limit. Cost O(Σ (variables of a table)²).
func (f *factors) countTwins(n, most int) int {
	n = min(n, len(f.domains))
	seed := maphash.MakeSeed()
	name := make([]uint64, len(f.domains))
	for v := range name {
		name[v] = maphash.Comparable(seed, v)
	}
	sum := make([]uint64, len(f.domains))
	isAdded := map[[2]int32]bool{}
	add := func(u, v int32) {
		if int(u) >= n && int(v) >= n || isAdded[[2]int32{u, v}] {
			return
		}
		isAdded[[2]int32{u, v}] = true
		sum[u] += name[v]
		sum[v] += name[u]
	}
	for _, p := range f.placedTables {
		list := p.scope.variables()
		for k, v := range list {
			for _, u := range list[:k] {
				add(u, v)
			}
		}
	}
	for _, l := range f.leafOf {
		if l != nil && len(l.neighbours) == 2 {
			add(l.neighbours[0], l.neighbours[1])
		}
	}
	apart, joined := map[uint64]bool{}, map[uint64]bool{}
	count := 0
	for v := range n {
		if f.leafOf[v] != nil {
			continue
		}
		if a, j := sum[v], sum[v]+name[v]; !apart[a] && !joined[j] {
			apart[a], joined[j] = true, true
			if count++; count > most {
				return count
			}
		}
	}
	return count
}
