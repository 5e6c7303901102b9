package region

// A region as a small network.

import (
	"encoding/binary"
	"slices"

	"github.com/basetensor/basetensor/internal/network/contractionorder"
)

// subnetwork is the network of one region. It numbers the region's indices and tables from 0, in the order in which the legs of the
// region come to them. These numbers are called local. Regions of the same shape then have equal local networks.
type subnetwork struct {
	g *graph
	// 1 + the local number of an index or a table of the graph, or 0 if it is not in the region; all 0 between calls of build
	localIndex, localTable []int32
	indexIDs, tableIDs     []int32 // the index and the table of the graph, by local number
	dims                   []int   // by local index
	legs                   []int32 // local table t has legs[start[t]:start[t+1]], ascending
	start, next            []int32 // next is scratch of build: the place of the next leg of a table
	key                    []byte  // the dimensions and the scopes in local numbers; see describe
}

func newSubnetwork(g *graph) *subnetwork {
	return &subnetwork{g: g, localIndex: make([]int32, len(g.dims)), localTable: make([]int32, len(g.edges))}
}

// build makes the network of the region with these legs. Near-linear time, no allocation once it has grown.
func (l *subnetwork) build(legs []int32) {
	g := l.g
	l.indexIDs, l.tableIDs, l.dims, l.start = l.indexIDs[:0], l.tableIDs[:0], l.dims[:0], append(l.start[:0], 0)
	for _, leg := range legs {
		if i := g.indexOf[leg]; l.localIndex[i] == 0 {
			l.indexIDs, l.dims = append(l.indexIDs, i), append(l.dims, g.dims[i])
			l.localIndex[i] = int32(len(l.indexIDs))
		}
		t := g.tableOf[leg]
		if l.localTable[t] == 0 {
			l.tableIDs, l.start = append(l.tableIDs, t), append(l.start, 0)
			l.localTable[t] = int32(len(l.tableIDs))
		}
		l.start[l.localTable[t]]++ // localTable is 1 + the number, so this counts the legs of the table at its end
	}

	for t := range l.tableIDs {
		l.start[t+1] += l.start[t]
	}
	l.next = append(l.next[:0], l.start...)
	l.legs = slices.Grow(l.legs[:0], len(legs))[:len(legs)]
	for _, leg := range legs {
		t := l.localTable[g.tableOf[leg]] - 1
		l.legs[l.next[t]] = leg
		l.next[t]++
	}

	l.describe()
	for _, leg := range legs {
		l.localIndex[g.indexOf[leg]], l.localTable[g.tableOf[leg]] = 0, 0
	}
}

// describe sorts the legs of every table and writes the key, a sequence of varints: the number of indices, their dimensions, then for
// each table its order and, for each leg, 1 + the local index.
func (l *subnetwork) describe() {
	l.key = binary.AppendUvarint(l.key[:0], uint64(len(l.dims)))
	for _, d := range l.dims {
		l.key = binary.AppendUvarint(l.key, uint64(d))
	}
	for t := range l.tableIDs {
		legs := l.tableLegs(t)
		slices.Sort(legs)
		l.key = binary.AppendUvarint(l.key, uint64(len(legs)))
		for _, leg := range legs {
			l.key = binary.AppendUvarint(l.key, uint64(l.localIndex[l.g.indexOf[leg]]))
		}
	}
}

// tableLegs returns the legs of a local table that are in the region, ascending.
func (l *subnetwork) tableLegs(t int) []int32 { return l.legs[l.start[t]:l.start[t+1]] }

// hypergraph returns the dimensions and the scopes of the region in local numbers. It decodes the scopes from the key, since build has
// cleared the local numbers.
func (l *subnetwork) hypergraph() contractionorder.Hypergraph {
	undecoded := l.key
	next := func() int {
		v, n := binary.Uvarint(undecoded)
		undecoded = undecoded[n:]
		return int(v)
	}
	for range next() {
		next() // a dimension
	}

	scopes := make([][]int, len(l.tableIDs))
	for t := range scopes {
		scopes[t] = make([]int, next())
		for k := range scopes[t] {
			scopes[t][k] = next() - 1
		}
	}

	return contractionorder.Hypergraph{Dims: l.dims, Edges: scopes}
}
