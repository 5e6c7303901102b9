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
	// mostOrder bounds the variables of a table, mostEntries its entries, mostDomain the values of a variable.
	mostOrder   = 6
	mostEntries = 1 << 14
	mostDomain  = 64
	// scopeBytes is what a table's place takes beside its entries: in a list, a map, and the lists of its variables.
	scopeBytes = 160
)

// scope is an increasing set of variables, then −1.
type scope [mostOrder]int32

// empty is the scope without variables.
var empty = scope{-1, -1, -1, -1, -1, -1}

// order is the number of variables.
func (s *scope) order() int {
	for k, v := range s {
		if v < 0 {
			return k
		}
	}
	return mostOrder
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
	domains []int
	tables  []table
	list    []placed // over two variables and more, and no leaf among them
	unary   [][]int32
	leaf    []*leaf // by variable; nil: it is none

	sequences []scope // of the cores' legs, while they are read
}

// leaf is a variable that is summed out: all its tables are over it and at most two others, which are no leaves.
type leaf struct {
	variable int32
	others   []int32  // increasing
	list     []placed // its tables over more than itself
}

// scopesOf returns the sets of variables that a network has cores over: numbers of cores stand for their tables. It is nil if the network
// is none of factors over variables as they are, or has more cores than memory has room for. Linear time.
func scopesOf(net *btn.Network, memory int64) *factors {
	if net.Choice != query.CoresAreFactors || float64(len(net.Cores))*scopeBytes > float64(memory)/4 {
		return nil
	}
	variable := slices.Repeat([]int32{-1}, len(net.Dims))
	f := &factors{
		unary: make([][]int32, len(net.Variables)), leaf: make([]*leaf, len(net.Variables)), domains: make([]int, 0, len(net.Variables)),
		sequences: make([]scope, 0, len(net.Cores)), list: make([]placed, 0, len(net.Cores)),
	}
	for v, place := range net.Variables {
		link := net.Links[place.Link]
		cp, ok := link.T.(*tensor.CP)
		if !ok || place.Domain > mostDomain || slices.ContainsFunc(cp.Vectors, func(a []float64) bool { return a != nil }) {
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
		if k == 0 || k > mostOrder {
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
			f.unary[sequence[0]] = append(f.unary[sequence[0]], int32(c))
		} else {
			f.list = append(f.list, placed{scopeOf(sequence[:k]...), int32(c)})
		}
	}
	return f
}

// hasFewClasses reports whether a network may have classes of two variables and more in the mean, and no more than mostClasses, by the
// neighbours of its variables.
func hasFewClasses(net *btn.Network, memory int64) bool {
	f := scopesOf(net, memory)
	if f == nil {
		return false
	}
	f.takeLeaves()
	limit := min(mostClasses, f.members()/2)
	return f.twins(firstTwins, limit) <= limit && f.twins(len(f.domains), limit) <= limit
}

// members counts the variables that are no leaves.
func (f *factors) members() (n int) {
	for _, l := range f.leaf {
		if l == nil {
			n++
		}
	}
	return n
}

// factorsOf reads a network; nil if it is no set of plain tables of numbers of at least 0, or if its tables take more bytes than memory.
// Cost O(entries of all tables).
func factorsOf(ctx context.Context, net *btn.Network, memory int64) (*factors, error) {
	f := scopesOf(net, memory)
	if f == nil {
		return nil, nil
	}
	in := interner{factors: f, seed: maphash.MakeSeed(), known: map[uint64][]int32{}, turned: map[turn]int32{}}
	look := pace.New(ctx)
	bytes := 0.0
	read := func(core int32) (int32, bool) {
		dense, err := tensor.ToDense(net.Cores[core].T, mostEntries)
		if err != nil || look.Over(int64(len(dense.Data)+16)) {
			return 0, false
		}
		before := len(f.tables)
		id, ok := in.table(dense.Shape, dense.Data)
		if len(f.tables) > before {
			bytes += float64(32 * len(dense.Data))
		}
		return id, ok && bytes <= float64(memory)/4
	}
	for k := range f.list {
		p := &f.list[k]
		id, ok := read(p.table)
		if !ok {
			return nil, look.Err()
		}
		p.table = in.sorted(id, f.sequences[p.table], p.scope.order())
	}
	for _, list := range f.unary {
		for k, core := range list {
			id, ok := read(core)
			if !ok {
				return nil, look.Err()
			}
			list[k] = id
		}
	}
	f.sequences = nil
	f.takeLeaves()
	return f, nil
}

// interner keeps every distinct table once.
type interner struct {
	*factors
	seed   maphash.Seed
	known  map[uint64][]int32
	turned map[turn]int32
	bytes  []byte
}

// turn is a table with its axes in another sequence.
type turn struct {
	table int32
	axes  [mostOrder]int8
}

// table returns the number of a table; false if an entry is below 0 or not finite.
func (in *interner) table(dims []int, data []float64) (int32, bool) {
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

// sorted returns the number of a table with its axes in increasing sequence of the variables.
func (in *interner) sorted(id int32, sequence scope, k int) int32 {
	if slices.IsSorted(sequence[:k]) {
		return id
	}
	t := turn{table: id}
	axes := make([]int, k)
	for at := range axes {
		axes[at] = at
	}
	slices.SortFunc(axes, func(a, b int) int { return int(sequence[a] - sequence[b]) })
	for at, from := range axes {
		t.axes[at] = int8(from)
	}
	if known, ok := in.turned[t]; ok {
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
		following(digits, dims)
	}
	turned, _ := in.table(dims, data)
	in.turned[t] = turned
	return turned
}

// strides returns the distance of two neighbours along every axis, the last axis fastest.
func strides(dims []int) []int {
	s := make([]int, len(dims))
	size := 1
	for k := len(dims) - 1; k >= 0; k-- {
		s[k] = size
		size *= dims[k]
	}
	return s
}

// following changes digits into those of the next entry.
func following(digits, dims []int) {
	for k := len(digits) - 1; k >= 0; k-- {
		if digits[k]++; digits[k] < dims[k] {
			return
		}
		digits[k] = 0
	}
}

// takeLeaves moves the tables of leaves from the list to the leaves. Linear time.
func (f *factors) takeLeaves() {
	n := len(f.domains)
	others := make([][]int32, n) // up to three distinct ones of each
	for _, p := range f.list {
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
			f.leaf[v] = &leaf{variable: int32(v), others: others[v]}
		}
	}
	f.list = slices.DeleteFunc(f.list, func(p placed) bool {
		for _, v := range p.scope.variables() {
			if l := f.leaf[v]; l != nil {
				l.list = append(l.list, p)
				return true
			}
		}
		return false
	})
}

// firstTwins is the number of variables that show of most networks that there are many classes.
const firstTwins = 64 * mostClasses

// twins counts sets of variables with the same neighbours among the first n variables, of which no two are variables of one class; it stops
// beyond most. Cost O(Σ (variables of a table)²).
func (f *factors) twins(n, most int) int {
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
	for _, p := range f.list {
		list := p.scope.variables()
		for k, v := range list {
			for _, u := range list[:k] {
				add(u, v)
			}
		}
	}
	for _, l := range f.leaf {
		if l != nil && len(l.others) == 2 {
			add(l.others[0], l.others[1])
		}
	}
	apart, joined := map[uint64]bool{}, map[uint64]bool{}
	count := 0
	for v := range n {
		if f.leaf[v] != nil {
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
