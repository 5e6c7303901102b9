package structured

// The rest under weights of single variables: one elimination, compiled once, run for every node.

import (
	"errors"

	"github.com/basetensor/basetensor/internal/network/sumproduct"
)

// errWide says that a table along the elimination of the rest is too large.
var errWide = errors.New("structured: the rest has no elimination in small tables")

// program eliminates the variables of the rest in sequence: each has a clique, the table over itself and all that its factors have.
type program struct {
	cliques []clique
	clique  []int // of each variable; −1: in no factor of the rest
	entries int   // of all cliques together
	// roundings bounds those of a term of the rest on the way through all cliques, the weights' own aside.
	roundings float64
	widest    int
	leaves    []summedLeaf
	shares    int // values of all variables, and then of the leaves
}

// clique is the elimination of a variable. Its table is Π of the variable's weights, some tables of the rest and the messages of
// earlier cliques; the message is its sum over the variable, the first of the scope.
type clique struct {
	variable int
	scope    []int
	size     int
	value    []int32 // of the variable, by entry
	tables   []operand
	messages []operand
	out      []int32 // place in the message, by entry
	length   int     // of the message
}

// operand is a table, or the message of a clique, in the table of another.
type operand struct {
	of    int
	place []int32 // in the operand, by entry
}

// newProgram compiles the elimination of a fit's rest. It returns errWide where a table has more than mostRestTable entries.
func newProgram(f *Fit) (*program, error) {
	p := &program{clique: make([]int, len(f.Domains))}
	for v := range p.clique {
		p.clique[v] = -1
	}
	position := make([]int, len(f.Domains))
	for at, v := range f.Order {
		position[v] = at
	}
	tables := make([][]int, len(f.Order)) // of the rest, by clique
	for t, table := range f.Rest {
		first := len(f.Order)
		for _, v := range table.Scope {
			first = min(first, position[v])
		}
		if len(table.Scope) > 0 {
			tables[first] = append(tables[first], t)
		}
	}
	waiting := make([][]int, len(f.Order)) // messages, by clique
	to := make([]int, len(f.Order))        // clique of the message; −1: none
	for at, v := range f.Order {
		c := clique{variable: v, scope: []int{v}, size: f.Domains[v]}
		has := map[int]bool{v: true}
		join := func(scope []int) bool {
			for _, u := range scope {
				if !has[u] {
					has[u] = true
					c.scope = append(c.scope, u)
					if c.size *= f.Domains[u]; c.size > mostRestTable {
						return false
					}
				}
			}
			return true
		}
		for _, t := range tables[at] {
			if !join(f.Rest[t].Scope) {
				return nil, errWide
			}
		}
		for _, e := range waiting[at] {
			if !join(p.cliques[e].scope[1:]) {
				return nil, errWide
			}
		}
		for _, t := range tables[at] {
			c.tables = append(c.tables, operand{of: t, place: places(f, c.scope, f.Rest[t].Scope)})
		}
		for _, e := range waiting[at] {
			c.messages = append(c.messages, operand{of: e, place: places(f, c.scope, p.cliques[e].scope[1:])})
		}
		c.value = places(f, c.scope, c.scope[:1])
		c.out = places(f, c.scope, c.scope[1:])
		c.length = c.size / f.Domains[v]
		to[at] = -1
		if next := len(f.Order); len(c.scope) > 1 {
			for _, u := range c.scope[1:] {
				next = min(next, position[u])
			}
			waiting[next] = append(waiting[next], at)
			to[at] = next
		}
		p.clique[v] = at
		p.cliques = append(p.cliques, c)
		p.entries += c.size
		p.roundings += float64(len(c.tables) + len(c.messages) + f.Domains[v] + 3)
		p.widest = max(p.widest, c.size)
	}
	p.sumLeaves(f, to)
	return p, nil
}

// places returns, for each entry of a table over scope, the place in a table over some of its variables.
func places(f *Fit, scope, of []int) []int32 {
	out := []int32{0}
	for k, step := range sumproduct.Along(f.Domains, of, scope) {
		out = sumproduct.Spread(out, f.Domains[scope[k]], step)
	}
	return out
}
