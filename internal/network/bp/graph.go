package bp

// The factor graph of an expression in flat arrays, and the sequence in which sweeps visit its
// indices.

import (
	"fmt"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/base/floats"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/fault"
)

// graph numbers the incidences as sweeps meet them, so that an index's messages in and out are one
// piece of memory: index i has incidences begin[i] to end[i], by table.
type graph struct {
	e *sumproduct.Expression
	// the incidences of table t are incidences[tableEdge[t]:tableEdge[t+1]], along its scope
	tableEdge  []int32
	incidences []int32
	table      []int32 // the table of an incidence
	slot       []int32 // and which of its indices it is
	at         []int   // at[k]: where the message of incidence k begins; one more at the end
	roles      []role  // of an incidence
	begin, end []int32
	order      []int32 // indices, breadth first over each connected part
	signed     bool    // some entry is negative
}

// role says when sweeps send the message of an incidence to its index.
type role uint8

const (
	later role = iota // forwards
	first             // backwards: no other index of the table comes earlier in order
	only              // never: the table has one index, and its message is the table
)

// newGraph checks an expression and numbers its incidences. Linear time.
func newGraph(e *sumproduct.Expression) (*graph, error) {
	g := &graph{e: e, tableEdge: make([]int32, len(e.Tables)+1)}
	count := 0
	for _, t := range e.Tables {
		count += len(t.Scope)
	}
	if count > math.MaxInt32 || len(e.Dims) > math.MaxInt32 || len(e.Tables) >= math.MaxInt32 {
		return nil, fault.New(fault.OverBudget, "bp: %d incidences, at most %d", count, math.MaxInt32)
	}
	if err := e.Validate(); err != nil {
		return nil, err
	}

	for t := range e.Tables {
		if err := e.Finite(t); err != nil {
			return nil, err
		}
		_, _, negative := floats.Extent(e.Tables[t].Data)
		g.signed = g.signed || negative
		g.tableEdge[t+1] = g.tableEdge[t] + int32(len(e.Tables[t].Scope))
	}

	g.number(g.breadthFirst())
	return g, nil
}

// byIndex lists the tables of every index: index i has tables[start[i]:start[i+1]].
func (g *graph) byIndex() (start, tables []int32) {
	start = make([]int32, len(g.e.Dims)+1)
	for _, t := range g.e.Tables {
		for _, i := range t.Scope {
			start[i+1]++
		}
	}

	for i := range g.e.Dims {
		start[i+1] += start[i]
	}
	next := append([]int32(nil), start...)
	tables = make([]int32, start[len(g.e.Dims)])
	for t, table := range g.e.Tables {
		for _, i := range table.Scope {
			tables[next[i]] = int32(t)
			next[i]++
		}
	}

	return start, tables
}

// breadthFirst orders the indices and returns the first index of every table. In a tree it is
// nearest to the root, so that one sweep backwards (messages to first indices) and one forwards (to
// the others) send every message once, after its inputs.
func (g *graph) breadthFirst() (firsts []int32) {
	start, tables := g.byIndex()
	g.order = make([]int32, 0, len(g.e.Dims))
	firsts = slices.Repeat([]int32{-1}, len(g.e.Tables))

	seen := make([]bool, len(g.e.Dims))
	for root := range g.e.Dims {
		if seen[root] {
			continue
		}
		seen[root] = true
		done := len(g.order)
		g.order = append(g.order, int32(root))
		for ; done < len(g.order); done++ {
			from := g.order[done]
			for _, t := range tables[start[from]:start[from+1]] {
				if firsts[t] >= 0 {
					continue
				}
				firsts[t] = from
				for _, i := range g.e.Tables[t].Scope {
					if !seen[i] {
						seen[i] = true
						g.order = append(g.order, int32(i))
					}
				}
			}
		}
	}

	return firsts
}

// number numbers the incidences by the order of the indices.
func (g *graph) number(firsts []int32) {
	start, tables := g.byIndex()
	count := len(tables)
	g.incidences, g.table, g.slot = make([]int32, count), make([]int32, count), make([]int32, count)
	g.roles, g.at = make([]role, count), make([]int, count+1)
	g.begin, g.end = make([]int32, len(g.e.Dims)), make([]int32, len(g.e.Dims))
	k := int32(0)
	for _, i := range g.order {
		g.begin[i] = k
		for _, t := range tables[start[i]:start[i+1]] {
			scope := g.e.Tables[t].Scope
			slot := slices.Index(scope, int(i))
			g.table[k], g.slot[k], g.at[k+1] = t, int32(slot), g.at[k]+g.e.Dims[i]
			g.incidences[g.tableEdge[t]+int32(slot)] = k
			switch {
			case len(scope) == 1:
				g.roles[k] = only
			case firsts[t] == i:
				g.roles[k] = first
			}
			k++
		}
		g.end[i] = k
	}
}

// alongScope returns the incidences of table t.
func (g *graph) alongScope(t int32) []int32 { return g.incidences[g.tableEdge[t]:g.tableEdge[t+1]] }

// index returns the index of incidence k.
func (g *graph) index(k int32) int { return g.e.Tables[g.table[k]].Scope[g.slot[k]] }

// edge returns the number of the k-th incidence of table t.
func (g *graph) edge(t, k int) int32 {
	if k < 0 || k >= len(g.e.Tables[t].Scope) {
		panic(fmt.Sprintf("bp: table %d has no incidence %d", t, k))
	}
	return g.incidences[g.tableEdge[t]+int32(k)]
}

// message returns the part of messages that belongs to incidence k.
func (g *graph) message(messages []float64, k int32) []float64 { return messages[g.at[k]:g.at[k+1]] }
