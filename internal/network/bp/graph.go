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
// index, in the sequence in which sweeps visit the indices, so that all messages to and from one index are one piece of memory.
type graph struct {
	expression *sumproduct.Expression
	// The incidences of table t are incidences[scopeStart[t]:scopeStart[t+1]], in the sequence of its scope.
	scopeStart                   []int32
	incidences                   []int32
	tableOf                      []int32 // by incidence: its table
	scopePosition                []int32 // by incidence: the position of its index in the scope of the table
	messageStart                 []int   // by incidence: where its message begins in a list of all messages; one more at the end
	role                         []role  // by incidence
	firstIncidence, endIncidence []int32 // by index: its incidences are firstIncidence to endIncidence−1
	order                        []int32 // the indices, breadth first in each connected part
	isSigned                     bool    // some entry is below 0
}

// role tells in which sweep the message of an incidence is sent to its index.
type role uint8

const (
	sentForwards  role = iota // in the sweep forwards over order
	sentBackwards             // in the sweep backwards: the index is the first of its table in order
	neverSent                 // in none: the table has only this index, so that its message never changes
)

// newGraph checks an expression and returns its factor graph. An incidence is a pair of a table and an index of its scope. Errors are
// those of Run about the expression. Linear time.
func newGraph(e *sumproduct.Expression) (*graph, error) {
	g := &graph{expression: e, scopeStart: make([]int32, len(e.Tables)+1)}
	incidenceCount := 0
	for _, t := range e.Tables {
		incidenceCount += len(t.Scope)
	}
	if incidenceCount > math.MaxInt32 || len(e.Dims) > math.MaxInt32 || len(e.Tables) >= math.MaxInt32 {
		return nil, fault.New(fault.OverBudget, "bp: %d incidences, at most %d", incidenceCount, math.MaxInt32)
	}
	if err := e.Validate(); err != nil {
		return nil, err
	}

	for t := range e.Tables {
		if err := e.CheckFinite(t); err != nil {
			return nil, err
		}
		_, _, hasNegative := floats.Extent(e.Tables[t].Data)
		g.isSigned = g.isSigned || hasNegative
		g.scopeStart[t+1] = g.scopeStart[t] + int32(len(e.Tables[t].Scope))
	}

	// Sweeps visit the indices in g.order, so incidences are numbered by it. firstIndex has, by table, the index of its scope that comes first
	// in g.order: the message of the table to that index is sent in the sweep backwards.
	firstIndex := g.breadthFirst() // it also sets g.order
	g.numberIncidences(firstIndex)
	return g, nil
}

// tablesByIndex returns the tables of every index: those of index i are tables[start[i]:start[i+1]], ascending.
func (g *graph) tablesByIndex() (start, tables []int32) {
	// Count the tables of each index, and sum the counts up.
	start = make([]int32, len(g.expression.Dims)+1)
	for _, t := range g.expression.Tables {
		for _, i := range t.Scope {
			start[i+1]++
		}
	}
	for i := range g.expression.Dims {
		start[i+1] += start[i]
	}

	position := append([]int32(nil), start...) // by index: where its next table is to be written
	tables = make([]int32, start[len(g.expression.Dims)])
	for t, table := range g.expression.Tables {
		for _, i := range table.Scope {
			tables[position[i]] = int32(t)
			position[i]++
		}
	}

	return start, tables
}

// breadthFirst sets g.order to the indices, breadth first in each connected part. firstIndex has, by table, the index of its scope that
// comes first in that order, or −1 for a table without indices. In a tree that index is the one nearest to the root. So one sweep
// backwards over the order, with the message of each table to its first index, and one forwards, with its messages to all other indices,
// send every message once, after those it depends on.
func (g *graph) breadthFirst() (firstIndex []int32) {
	start, tables := g.tablesByIndex() // of index i: tables[start[i]:start[i+1]]
	g.order = make([]int32, 0, len(g.expression.Dims))
	firstIndex = slices.Repeat([]int32{-1}, len(g.expression.Tables))

	isListed := make([]bool, len(g.expression.Dims)) // by index: it is in order
	for root := range g.expression.Dims {
		if isListed[root] {
			continue
		}
		isListed[root] = true
		next := len(g.order) // order is also the queue of the search
		g.order = append(g.order, int32(root))
		for ; next < len(g.order); next++ {
			index := g.order[next]
			for _, t := range tables[start[index]:start[index+1]] {
				if isNew := firstIndex[t] < 0; isNew {
					firstIndex[t] = index
					g.listIndices(g.expression.Tables[t].Scope, isListed)
				}
			}
		}
	}
	return firstIndex
}

// listIndices appends the indices of a scope that are not listed yet to order, and marks them as listed.
func (g *graph) listIndices(scope []int, isListed []bool) {
	for _, i := range scope {
		if !isListed[i] {
			isListed[i] = true
			g.order = append(g.order, int32(i))
		}
	}
}

// numberIncidences numbers the incidences, pairs of a table and an index of its scope. The incidences of one index have consecutive
// numbers; the indices are in the sequence of g.order, in which sweeps visit them, and the tables of an index ascending. It fills all lists
// about incidences. firstIndex has, by table, the index of its scope that comes first in g.order: it decides in which sweep a message is
// sent.
func (g *graph) numberIncidences(firstIndex []int32) {
	start, tables := g.tablesByIndex() // of index i: tables[start[i]:start[i+1]]
	count := len(tables)
	g.incidences, g.tableOf, g.scopePosition = make([]int32, count), make([]int32, count), make([]int32, count)
	g.role, g.messageStart = make([]role, count), make([]int, count+1)
	g.firstIncidence, g.endIncidence = make([]int32, len(g.expression.Dims)), make([]int32, len(g.expression.Dims))

	k := int32(0) // number of the incidence
	for _, i := range g.order {
		g.firstIncidence[i] = k
		for _, t := range tables[start[i]:start[i+1]] {
			scope := g.expression.Tables[t].Scope
			position := slices.Index(scope, int(i))
			g.tableOf[k], g.scopePosition[k] = t, int32(position)
			g.messageStart[k+1] = g.messageStart[k] + g.expression.Dims[i]
			g.incidences[g.scopeStart[t]+int32(position)] = k
			switch {
			case len(scope) == 1:
				g.role[k] = neverSent
			case firstIndex[t] == i:
				g.role[k] = sentBackwards
			} // all other incidences keep the zero value, sentForwards
			k++
		}
		g.endIncidence[i] = k
	}
}

// incidencesOfTable returns the incidences of table t with the indices of its scope, in their sequence.
func (g *graph) incidencesOfTable(t int32) []int32 {
	return g.incidences[g.scopeStart[t]:g.scopeStart[t+1]]
}

// indexOf returns the index of incidence k.
func (g *graph) indexOf(k int32) int {
	return g.expression.Tables[g.tableOf[k]].Scope[g.scopePosition[k]]
}

// incidenceAt returns the number of the incidence of table t with the k-th index of its scope. It panics if there is none.
func (g *graph) incidenceAt(t, k int) int32 {
	if k < 0 || k >= len(g.expression.Tables[t].Scope) {
		panic(fmt.Sprintf("bp: table %d has no incidence %d", t, k))
	}
	return g.incidences[g.scopeStart[t]+int32(k)]
}

// messageOf returns the message of incidence k in a list of all messages. It shares memory with the list.
func (g *graph) messageOf(messages []float64, k int32) []float64 {
	return messages[g.messageStart[k]:g.messageStart[k+1]]
}
