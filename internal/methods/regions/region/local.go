package region

// A region as a small network of its own.

import (
	"encoding/binary"
	"slices"

	"github.com/basetensor/basetensor/internal/network/contractionorder"
)

// local numbers the indices and tables of a region by first appearance. Its arrays over the graph
// are clean between calls.
type local struct {
	g            *graph
	slotI, slotT []int32 // 1 + number, 0: not in the region
	index, table []int32 // by number
	dims         []int   // by number
	leg          []int32 // legs of table t: leg[start[t]:start[t+1]], ascending
	start, fill  []int32
	key          []byte // equal for networks of one shape
}

func newLocal(g *graph) *local {
	return &local{g: g, slotI: make([]int32, len(g.dims)), slotT: make([]int32, len(g.edges))}
}

// build takes the legs of a region. Near-linear time, no allocation once it has grown.
func (l *local) build(legs []int32) {
	g := l.g
	l.index, l.table, l.dims, l.start = l.index[:0], l.table[:0], l.dims[:0], append(l.start[:0], 0)
	for _, leg := range legs {
		if i := g.index[leg]; l.slotI[i] == 0 {
			l.index, l.dims = append(l.index, i), append(l.dims, g.dims[i])
			l.slotI[i] = int32(len(l.index))
		}
		t := g.table[leg]
		if l.slotT[t] == 0 {
			l.table, l.start = append(l.table, t), append(l.start, 0)
			l.slotT[t] = int32(len(l.table))
		}
		l.start[l.slotT[t]]++
	}

	for t := range l.table {
		l.start[t+1] += l.start[t]
	}
	l.fill = append(l.fill[:0], l.start...)
	l.leg = slices.Grow(l.leg[:0], len(legs))[:len(legs)]
	for _, leg := range legs {
		t := l.slotT[g.table[leg]] - 1
		l.leg[l.fill[t]] = leg
		l.fill[t]++
	}

	l.describe()
	for _, leg := range legs {
		l.slotI[g.index[leg]], l.slotT[g.table[leg]] = 0, 0
	}
}

// describe sorts the legs of every table and writes the key: dimensions, and the scopes in numbers
// of the region.
func (l *local) describe() {
	l.key = binary.AppendUvarint(l.key[:0], uint64(len(l.dims)))
	for _, d := range l.dims {
		l.key = binary.AppendUvarint(l.key, uint64(d))
	}
	for t := range l.table {
		legs := l.legs(t)
		slices.Sort(legs)
		l.key = binary.AppendUvarint(l.key, uint64(len(legs)))
		for _, leg := range legs {
			l.key = binary.AppendUvarint(l.key, uint64(l.slotI[l.g.index[leg]]))
		}
	}
}

func (l *local) legs(t int) []int32 { return l.leg[l.start[t]:l.start[t+1]] }

// shape returns the dimensions of a region and the scopes of its tables, in numbers of the region. It
// reads the key, where they are kept.
func (l *local) shape() contractionorder.Hypergraph {
	rest := l.key
	next := func() int {
		v, n := binary.Uvarint(rest)
		rest = rest[n:]
		return int(v)
	}
	for range next() {
		next()
	}

	scopes := make([][]int, len(l.table))
	for t := range scopes {
		scopes[t] = make([]int, next())
		for k := range scopes[t] {
			scopes[t][k] = next() - 1
		}
	}

	return contractionorder.Hypergraph{Dims: l.dims, Edges: scopes}
}
