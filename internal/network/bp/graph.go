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

// graph is the factor graph of an expression. An incidence is a pair of a table and an index of its scope. Incidences are numbered index by
// index, in the sequence in which sweeps visit the indices, so that all messages to and from one index are one piece of memory: index i has
// the incidences begin[i] to end[i]−1, by table.
type graph struct {
	e *sumproduct.Expression
	// The incidences of table t are incidences[tableEdge[t]:tableEdge[t+1]], in the sequence of its scope.
	tableEdge  []int32
	incidences []int32
	tableOf    []int32 // by incidence: its table
	slot       []int32 // by incidence: the position of its index in the scope of the table
	offset     []int   // by incidence: where its message begins in a list of all messages; one more at the end
	role       []role  // by incidence
	begin, end []int32
	order      []int32 // the indices, breadth first in each connected part
	isSigned   bool    // some entry is below 0
}

// role tells in which sweep the message of an incidence is sent to its index.
type role uint8

const (
	sentForwards  role = iota // in the sweep forwards over order
	sentBackwards             // in the sweep backwards: the index is the first of its table in order
	neverSent                 // in none: the table has only this index, so that its message never changes
)

// newGraph checks an expression and returns its graph. Errors are those of Run about the expression. Linear time.
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
		_, _, hasNegative := floats.Extent(e.Tables[t].Data)
		g.isSigned = g.isSigned || hasNegative
		g.tableEdge[t+1] = g.tableEdge[t] + int32(len(e.Tables[t].Scope))
	}

	g.numberIncidences(g.breadthFirst())
	return g, nil
}

// tablesByIndex lists the tables of every index: those of index i are tables[start[i]:start[i+1]].
func (g *graph) tablesByIndex() (start, tables []int32) {
	start = make([]int32, len(g.e.Dims)+1)
	for _, t := range g.e.Tables {
		for _, i := range t.Scope {
			start[i+1]++
		}
	}

	for i := range g.e.Dims {
		start[i+1] += start[i]
	}
	place := append([]int32(nil), start...) // by index: where its next table goes
	tables = make([]int32, start[len(g.e.Dims)])
	for t, table := range g.e.Tables {
		for _, i := range table.Scope {
			tables[place[i]] = int32(t)
			place[i]++
		}
	}

	return start, tables
}

// breadthFirst sets order and returns, by table, its first index in that order, −1 for a table without indices. In a tree the first index
// is the one nearest to the root. So one sweep backwards, with the messages to first indices, and one forwards, with the messages to the
// other indices, send every message once, after those it depends on.
func (g *graph) breadthFirst() (firsts []int32) {
	start, tables := g.tablesByIndex()
	g.order = make([]int32, 0, len(g.e.Dims))
	firsts = slices.Repeat([]int32{-1}, len(g.e.Tables))

	isListed := make([]bool, len(g.e.Dims))
	for root := range g.e.Dims {
		if isListed[root] {
			continue
		}
		isListed[root] = true
		next := len(g.order)
		g.order = append(g.order, int32(root))
		for ; next < len(g.order); next++ {
			index := g.order[next]
			for _, t := range tables[start[index]:start[index+1]] {
				if firsts[t] >= 0 {
					continue
				}
				firsts[t] = index
				for _, i := range g.e.Tables[t].Scope {
					if !isListed[i] {
						isListed[i] = true
						g.order = append(g.order, int32(i))
					}
				}
			}
		}
	}

	return firsts
}

// numberIncidences numbers the incidences in the order of the indices. firsts has the first index of every table.
func (g *graph) numberIncidences(firsts []int32) {
	start, tables := g.tablesByIndex()
	count := len(tables)
	g.incidences, g.tableOf, g.slot = make([]int32, count), make([]int32, count), make([]int32, count)
	g.role, g.offset = make([]role, count), make([]int, count+1)
	g.begin, g.end = make([]int32, len(g.e.Dims)), make([]int32, len(g.e.Dims))
	k := int32(0)
	for _, i := range g.order {
		g.begin[i] = k
		for _, t := range tables[start[i]:start[i+1]] {
			scope := g.e.Tables[t].Scope
			slot := slices.Index(scope, int(i))
			g.tableOf[k], g.slot[k], g.offset[k+1] = t, int32(slot), g.offset[k]+g.e.Dims[i]
			g.incidences[g.tableEdge[t]+int32(slot)] = k
			switch {
			case len(scope) == 1:
				g.role[k] = neverSent
			case firsts[t] == i:
				g.role[k] = sentBackwards
			}
			k++
		}
		g.end[i] = k
	}
}

// alongScope returns the incidences of table t, in the sequence of its scope.
func (g *graph) alongScope(t int32) []int32 { return g.incidences[g.tableEdge[t]:g.tableEdge[t+1]] }

// indexOf returns the index of incidence k.
func (g *graph) indexOf(k int32) int { return g.e.Tables[g.tableOf[k]].Scope[g.slot[k]] }

// incidence returns the number of the incidence of table t with the k-th index of its scope. It panics if there is none.
func (g *graph) incidence(t, k int) int32 {
	if k < 0 || k >= len(g.e.Tables[t].Scope) {
		panic(fmt.Sprintf("bp: table %d has no incidence %d", t, k))
	}
	return g.incidences[g.tableEdge[t]+int32(k)]
}

// message returns the part of a list of all messages that is the message of incidence k. It shares memory with the list.
func (g *graph) message(messages []float64, k int32) []float64 {
	return messages[g.offset[k]:g.offset[k+1]]
}
