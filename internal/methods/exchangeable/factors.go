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

// order returns the number of variables of a scope.
func (s *scope) order() int {
	for k, v := range s {
		if v < 0 {
			return k
		}
	}
	return maxOrder
}

// variables returns the variables of a scope, increasing.
func (s *scope) variables() []int32 { return s[:s.order()] }

// scopeOf returns the scope of some variables, which may be in any sequence.
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
	placedTables []placed  // over two variables and more, and no leaf among them
	unaryTables  [][]int32 // by variable: the numbers of its tables over it alone
	leafOf       []*leaf   // by variable: the leaf that it is; nil: none

	sequences []scope // of the cores' legs, while they are read
}

// leaf is a variable that is summed out: all its tables are over it and at most two others, which are no leaves.
type leaf struct {
	variable   int32
	neighbours []int32  // increasing
	tables     []placed // its tables over more than itself
}

// scopesOf returns the scopes of a network's cores, with the number of the core in the place of each table's. It returns nil if the network
// has factors, maps or domains that this method does not read, or more cores than memory has room for. Linear time.
func scopesOf(net *btn.Network, memory int64) *factors {
	if net.Choice != query.CoresAreFactors || float64(len(net.Cores))*scopeBytes > float64(memory)/4 {
		return nil
	}
	f := &factors{
		unaryTables: make([][]int32, len(net.Variables)), leafOf: make([]*leaf, len(net.Variables)), domains: make([]int, 0, len(net.Variables)),
		sequences: make([]scope, 0, len(net.Cores)), placedTables: make([]placed, 0, len(net.Cores)),
	}
	variable := f.readVariables(net)
	if variable == nil {
		return nil
	}

	// The variables of each core in the sequence of its legs.
	for c, core := range net.Cores {
		k := len(core.Legs)
		if k == 0 || k > maxOrder {
			return nil
		}
		sequence := empty
		for axis, leg := range core.Legs {
			sequence[axis] = variable[leg]
			isRepeated := slices.Contains(sequence[:axis], sequence[axis])
			if sequence[axis] < 0 || isRepeated {
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

// readVariables sets the domains, and returns the variable of each leg, or −1 if it has none. It returns nil if a link is more than weights
// of its values, if a leg has a map, or if a domain is too large.
func (f *factors) readVariables(net *btn.Network) (variable []int32) {
	variable = slices.Repeat([]int32{-1}, len(net.Dims)) // by leg
	for v := range net.Variables {
		link, domain := net.Links[net.Variables[v].Link], net.Variables[v].Domain
		cp, ok := link.T.(*tensor.CP)
		if !ok || domain > maxDomain || slices.ContainsFunc(cp.Vectors, func(a []float64) bool { return a != nil }) {
			return nil
		}
		for _, leg := range link.Legs {
			if net.Maps != nil && net.Maps[leg].A != nil { // the leg has a map, so that the cores are no plain tables
				return nil
			}
			variable[leg] = int32(v)
		}
		f.domains = append(f.domains, domain)
	}
	return variable
}

// hasFewClasses reports whether a network may have at most maxClasses classes, and at most half as many as variables. It counts twins:
// groups of variables with the same neighbours. There are no more such groups than classes, because variables of one class are in one
// group. It looks at the first firstTwins variables first, which settles most networks, then at all. Leaves, which are summed out, are not
// counted: moveLeaves takes them out.
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
func (f *factors) memberCount() (count int) {
	for _, l := range f.leafOf {
		if l == nil {
			count++
		}
	}
	return count
}

// factorsOf reads the tables of a network, each distinct one once, and finds its leaves. It returns nil if the factors are no plain tables
// of numbers of at least 0, or take more bytes than memory. Cost O(entries of all tables).
func factorsOf(ctx context.Context, net *btn.Network, memory int64) (*factors, error) {
	f := scopesOf(net, memory)
	if f == nil {
		return nil, nil
	}
	r := &coreReader{
		interner: &interner{factors: f, seed: maphash.MakeSeed(), known: map[uint64][]int32{}, permuted: map[permutation]int32{}},
		net:      net, memory: float64(memory), look: pace.New(ctx),
	}

	// Read the table of each core. So far placedTables and unaryTables have the number of the core in the place of the table's (scopesOf).
	// f.sequences[core] are its variables in the sequence of its axes. After a core that is no plain table the result is nil, and so is the
	// error, unless the context ended.
	for k := range f.placedTables {
		p := &f.placedTables[k]
		id, ok := r.readCore(p.table)
		if !ok {
			return nil, r.look.Err()
		}
		p.table = r.internSorted(id, f.sequences[p.table], p.scope.order())
	}
	for _, list := range f.unaryTables {
		for k, core := range list {
			id, ok := r.readCore(core)
			if !ok {
				return nil, r.look.Err()
			}
			list[k] = id
		}
	}
	f.sequences = nil // not needed any more
	f.moveLeaves()
	return f, nil
}

// coreReader reads the tables of a network's cores.
type coreReader struct {
	*interner
	net         *btn.Network
	memory      float64 // bytes; the distinct tables may take a quarter of it
	tablesBytes float64 // of the distinct tables so far
	look        *pace.Pace
}

// readCore returns the number of a core's table, and adds the table if it is new. ok is false if the core is no table of numbers of at
// least 0, if the tables take too many bytes, or if the context ended.
func (r *coreReader) readCore(core int32) (table int32, ok bool) {
	dense, err := tensor.ToDense(r.net.Cores[core].T, maxEntries)
	if err != nil || r.look.Over(int64(len(dense.Data)+16)) {
		return 0, false
	}
	countBefore := len(r.tables)
	id, ok := r.internTable(dense.Shape, dense.Data)
	if isNew := len(r.tables) > countBefore; isNew {
		r.tablesBytes += float64(32 * len(dense.Data)) // four numbers an entry: copies with sorted axes and logarithms may follow
	}
	return id, ok && r.tablesBytes <= r.memory/4
}

// interner keeps every distinct table once.
type interner struct {
	*factors
	seed     maphash.Seed
	known    map[uint64][]int32    // by hash: the numbers of tables
	permuted map[permutation]int32 // results of internSorted
	bytes    []byte                // room for what is hashed
}

// permutation is a table with its axes in another sequence.
type permutation struct {
	table int32
	axes  [maxOrder]int8
}

// internTable returns the number of a table, and adds the table if it is new. Tables are found by a hash of their dimensions, which are
// below 256, and of their entries. It returns false if an entry is below 0 or not finite.
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

// internSorted returns the number of the table that has the axes of table id in increasing sequence of their variables. The variables of
// the k axes of table id are given as sequence.
func (in *interner) internSorted(id int32, sequence scope, k int) int32 {
	if slices.IsSorted(sequence[:k]) {
		return id
	}
	t := permutation{table: id}
	axes := make([]int, k)
	for axis := range axes {
		axes[axis] = axis
	}
	slices.SortFunc(axes, func(a, b int) int { return int(sequence[a] - sequence[b]) })
	for axis, oldAxis := range axes { // axis of the sorted table is oldAxis of table id
		t.axes[axis] = int8(oldAxis)
	}
	if number, ok := in.permuted[t]; ok {
		return number
	}
	old := in.tables[id]
	dims, strides := make([]int, k), strides(old.dims)
	for axis, oldAxis := range axes {
		dims[axis] = old.dims[oldAxis]
	}
	data := make([]float64, len(old.data))
	digits := make([]int, k) // the entry's index along every axis
	for entry := range data {
		oldEntry := 0
		for axis, oldAxis := range axes {
			oldEntry += digits[axis] * strides[oldAxis]
		}
		data[entry] = old.data[oldEntry]
		advance(digits, dims)
	}
	sortedID, _ := in.internTable(dims, data) // never false: the entries are those of a table that was accepted
	in.permuted[t] = sortedID
	return sortedID
}

// strides returns, for every axis of a table, the distance of entries that are neighbours along it. The last axis changes fastest.
func strides(dims []int) []int {
	s := make([]int, len(dims))
	size := 1
	for k := len(dims) - 1; k >= 0; k-- {
		s[k] = size
		size *= dims[k]
	}
	return s
}

// advance changes digits, the index of an entry along every axis, to those of the next entry. The last axis changes fastest, and the first
// entry follows the last one.
func advance(digits, dims []int) {
	for k := len(digits) - 1; k >= 0; k-- {
		if digits[k]++; digits[k] < dims[k] {
			return
		}
		digits[k] = 0
	}
}

// moveLeaves finds the leaves, the variables that will be summed out, and moves their tables from placedTables to them. A leaf is a
// variable that shares tables with at most two others, if each of those shares tables with at least three variables. So no neighbour of a
// leaf is a leaf. Linear time.
func (f *factors) moveLeaves() {
	n := len(f.domains)
	neighbours := make([][]int32, n) // by variable: up to three of those that it shares tables with
	for _, p := range f.placedTables {
		list := p.scope.variables()
		for _, v := range list {
			for _, u := range list {
				if u != v && len(neighbours[v]) < 3 && !slices.Contains(neighbours[v], u) {
					neighbours[v] = append(neighbours[v], u)
				}
			}
		}
	}

	for v := range neighbours {
		if len(neighbours[v]) < 3 && !slices.ContainsFunc(neighbours[v], func(u int32) bool { return len(neighbours[u]) < 3 }) {
			slices.Sort(neighbours[v])
			f.leafOf[v] = &leaf{variable: int32(v), neighbours: neighbours[v]}
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

// firstTwins is the number of variables that suffice, in most networks, to see that there are many classes.
const firstTwins = 64 * maxClasses

// countTwins counts the groups of variables with the same neighbours among the first n variables. Variables of one class are in one group,
// so there are at least as many classes. Neighbours share a table. It stops above limit. Cost O(Σ (variables of a table)²).
//
// Two variables are in one group if they have the same neighbours, either without themselves or with themselves. Sets of neighbours are
// compared by sums of random numbers, one for each variable.
func (f *factors) countTwins(n, limit int) int {
	n = min(n, len(f.domains))
	seed := maphash.MakeSeed()
	hash := make([]uint64, len(f.domains)) // by variable
	for v := range hash {
		hash[v] = maphash.Comparable(seed, v)
	}
	sum := f.sumNeighbours(n, hash)

	// Count the distinct sets. Twins that are neighbours have the same sums with themselves, others without.
	hasOpen, hasClosed := map[uint64]bool{}, map[uint64]bool{}
	count := 0
	for v := range n {
		if f.leafOf[v] != nil {
			continue
		}
		if open, closed := sum[v], sum[v]+hash[v]; !hasOpen[open] && !hasClosed[closed] {
			hasOpen[open], hasClosed[closed] = true, true
			if count++; count > limit {
				return count
			}
		}
	}
	return count
}

// sumNeighbours returns, for each of the first n variables, the sum of the hashes of its neighbours. Two variables are neighbours if they
// share a table, or if they are the neighbours of one leaf. The sums of later variables are not complete.
func (f *factors) sumNeighbours(n int, hash []uint64) (sum []uint64) {
	sum = make([]uint64, len(f.domains))
	isAdded := map[[2]int32]bool{}
	addNeighbours := func(u, v int32) {
		areLater := int(u) >= n && int(v) >= n
		if areLater || isAdded[[2]int32{u, v}] {
			return
		}
		isAdded[[2]int32{u, v}] = true
		sum[u] += hash[v]
		sum[v] += hash[u]
	}
	for _, p := range f.placedTables {
		list := p.scope.variables()
		for k, v := range list {
			for _, u := range list[:k] {
				addNeighbours(u, v)
			}
		}
	}
	for _, l := range f.leafOf {
		if l != nil && len(l.neighbours) == 2 {
			addNeighbours(l.neighbours[0], l.neighbours[1])
		}
	}
	return sum
}
