package bp

// The factor graph of an expression in flat arrays, and the sequence in which sweeps visit its indices.

import (
	"fmt"
	"math"

	"github.com/basetensor/basetensor/pkg/einsum"
	"github.com/basetensor/basetensor/pkg/fault"
)

// graph numbers the incidences table by table: those of table t are tableEdge[t] to tableEdge[t+1].
type graph struct {
	e         *einsum.Expression
	tableEdge []int32
	at        []int   // at[k]: where the message of incidence k begins; one more at the end
	table     []int32 // the table of an incidence
	indexEdge []int32 // the incidences of index i are edges[indexEdge[i]:indexEdge[i+1]]
	edges     []int32
	order     []int32 // indices, breadth first over each connected part
	roles     []role  // of an incidence
	signed    bool    // some entry is negative
}

// role says when sweeps send the message of an incidence to its index.
type role uint8

const (
	later role = iota // forwards
	first             // backwards: no other index of the table comes earlier in order
	only              // never: the table has one index, and its message is the table
)

func newGraph(e *einsum.Expression) (*graph, error) {
	g := &graph{e: e, tableEdge: make([]int32, len(e.Tables)+1), at: []int{0}}
	incidences := 0
	for _, t := range e.Tables {
		incidences += len(t.Scope)
	}
	if incidences > math.MaxInt32 || len(e.Dims) > math.MaxInt32 || len(e.Tables) >= math.MaxInt32 {
		return nil, fault.New(fault.OverBudget, "bp: %d incidences, at most %d", incidences, math.MaxInt32)
	}
	g.at = append(make([]int, 0, incidences+1), 0)
	g.table = make([]int32, 0, incidences)
	g.indexEdge = make([]int32, len(e.Dims)+1)
	last := make([]int32, len(e.Dims))
	for t := range e.Tables {
		if err := g.addTable(t, last); err != nil {
			return nil, err
		}
	}
	g.collect()
	g.breadthFirst()
	return g, nil
}

// addTable checks table t and numbers its incidences; last[i] is one more than the last table with index i.
func (g *graph) addTable(t int, last []int32) error {
	table, size := g.e.Tables[t], 1
	for _, i := range table.Scope {
		if i < 0 || i >= len(g.e.Dims) || g.e.Dims[i] < 1 || last[i] == int32(t+1) {
			return fault.New(fault.BadInput, "%w: table %d, index %d is unknown, without values or named twice", einsum.ErrExpression, t, i)
		}
		last[i] = int32(t + 1)
		if size > len(table.Data) {
			break
		}
		size *= g.e.Dims[i]
		g.indexEdge[i+1]++
		g.table = append(g.table, int32(t))
		g.at = append(g.at, g.at[len(g.at)-1]+g.e.Dims[i])
	}
	if size != len(table.Data) {
		return fault.New(fault.BadInput, "%w: table %d has %d entries, its scope %v needs another number", einsum.ErrExpression, t, len(table.Data), table.Scope)
	}
	for _, x := range table.Data {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return fault.New(fault.BadInput, "%w: table %d", einsum.ErrNotFinite, t)
		}
		g.signed = g.signed || x < 0
	}
	g.tableEdge[t+1] = int32(len(g.table))
	return nil
}

// collect lists the incidences of every index, by table.
func (g *graph) collect() {
	for i := range g.e.Dims {
		g.indexEdge[i+1] += g.indexEdge[i]
	}
	next := append([]int32(nil), g.indexEdge...)
	g.edges = make([]int32, len(g.table))
	for k := range g.table {
		i := g.index(int32(k))
		g.edges[next[i]] = int32(k)
		next[i]++
	}
}

// breadthFirst orders the indices. In a tree, each table's first index is then nearest to the root, so that one sweep
// backwards (messages to first indices) and one forwards (to the others) send every message once, after what it is made of.
func (g *graph) breadthFirst() {
	g.order = make([]int32, 0, len(g.e.Dims))
	g.roles = make([]role, len(g.table))
	seenIndex, seenTable := make([]bool, len(g.e.Dims)), make([]bool, len(g.e.Tables))
	for root := range g.e.Dims {
		if seenIndex[root] {
			continue
		}
		seenIndex[root] = true
		done := len(g.order)
		g.order = append(g.order, int32(root))
		for ; done < len(g.order); done++ {
			for _, k := range g.edgesOf(int(g.order[done])) {
				t := g.table[k]
				if seenTable[t] {
					continue
				}
				seenTable[t], g.roles[k] = true, first
				if len(g.e.Tables[t].Scope) == 1 {
					g.roles[k] = only
				}
				for _, i := range g.e.Tables[t].Scope {
					if !seenIndex[i] {
						seenIndex[i] = true
						g.order = append(g.order, int32(i))
					}
				}
			}
		}
	}
}

func (g *graph) edgesOf(i int) []int32 { return g.edges[g.indexEdge[i]:g.indexEdge[i+1]] }

// index returns the index of incidence k.
func (g *graph) index(k int32) int {
	t := g.table[k]
	return g.e.Tables[t].Scope[k-g.tableEdge[t]]
}

// edge returns the number of the k-th incidence of table t.
func (g *graph) edge(t, k int) int32 {
	if k < 0 || k >= len(g.e.Tables[t].Scope) {
		panic(fmt.Sprintf("bp: table %d has no incidence %d", t, k))
	}
	return g.tableEdge[t] + int32(k)
}

// of returns the part of messages that belongs to incidence k.
func (g *graph) of(messages []float64, k int32) []float64 { return messages[g.at[k]:g.at[k+1]] }
