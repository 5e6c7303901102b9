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
	graph *graph
	// By index and by table of the graph: 1 + its local number, or 0 if it is not in the region; all 0 between calls of build.
	localIndex, localTable []int32
	indexIDs, tableIDs     []int32 // by local number: the index or the table of the graph
	dims                   []int   // by local index: number of values
	legs, legStart         []int32 // local table t has the legs legs[legStart[t]:legStart[t+1]], ascending
	nextLeg                []int32 // scratch of build: the place of the next leg of a table
	key                    []byte  // the dimensions and the scopes in local numbers (describe)
}

// newSubnetwork returns memory for the regions of a graph.
func newSubnetwork(g *graph) *subnetwork {
	return &subnetwork{graph: g, localIndex: make([]int32, len(g.dims)), localTable: make([]int32, len(g.edges))}
}

// build sets l to the network of the region with the given legs. A leg is one index of one table. Indices and tables get local numbers from
// 0. Near-linear time, no allocation once the memory has grown.
func (l *subnetwork) build(legs []int32) {
	// Number the indices and the tables, and count the legs of each table.
	g := l.graph
	l.indexIDs, l.tableIDs, l.dims, l.legStart = l.indexIDs[:0], l.tableIDs[:0], l.dims[:0], append(l.legStart[:0], 0)
	for _, leg := range legs {
		if i := g.indexOf[leg]; l.localIndex[i] == 0 {
			l.indexIDs, l.dims = append(l.indexIDs, i), append(l.dims, g.dims[i])
			l.localIndex[i] = int32(len(l.indexIDs))
		}
		t := g.tableOf[leg]
		if l.localTable[t] == 0 {
			l.tableIDs, l.legStart = append(l.tableIDs, t), append(l.legStart, 0)
			l.localTable[t] = int32(len(l.tableIDs))
		}
		l.legStart[l.localTable[t]]++ // localTable is 1 + the number, so this counts the legs of the table at its end
	}

	// Sort the legs by table.
	for t := range l.tableIDs {
		l.legStart[t+1] += l.legStart[t]
	}
	l.nextLeg = append(l.nextLeg[:0], l.legStart...)
	l.legs = slices.Grow(l.legs[:0], len(legs))[:len(legs)]
	for _, leg := range legs {
		t := l.localTable[g.tableOf[leg]] - 1
		l.legs[l.nextLeg[t]] = leg
		l.nextLeg[t]++
	}

	l.describe()
	for _, leg := range legs {
		l.localIndex[g.indexOf[leg]], l.localTable[g.tableOf[leg]] = 0, 0
	}
}

// describe sorts the legs of every table and writes the key of the region's shape, a sequence of varints: the number of indices, their
// dimensions, then for each table its number of legs and, for each leg, 1 + the local index. A leg is one index of one table. Regions with
// the same key are contracted alike.
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
			l.key = binary.AppendUvarint(l.key, uint64(l.localIndex[l.graph.indexOf[leg]])) // 1 + the local index
		}
	}
}

// tableLegs returns the legs of a local table that are in the region, ascending.
func (l *subnetwork) tableLegs(t int) []int32 { return l.legs[l.legStart[t]:l.legStart[t+1]] }

// hypergraph returns the dimensions and the scopes of the region in local numbers. It decodes the scopes from the key (describe), since
// build has cleared the local numbers.
func (l *subnetwork) hypergraph() contractionorder.Hypergraph {
	undecoded := l.key
	decode := func() int {
		v, n := binary.Uvarint(undecoded)
		undecoded = undecoded[n:]
		return int(v)
	}
	for range decode() {
		decode() // a dimension, which l.dims has
	}

	scopes := make([][]int, len(l.tableIDs))
	for t := range scopes {
		scopes[t] = make([]int, decode())
		for k := range scopes[t] {
			scopes[t][k] = decode() - 1
		}
	}

	return contractionorder.Hypergraph{Dims: l.dims, Edges: scopes}
}
