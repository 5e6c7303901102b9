package structured

// The rest under weights of single variables: one elimination, compiled once, run for every node.

import (
	"errors"

	"github.com/basetensor/basetensor/internal/network/sumproduct"
)

// errWide states that a table along the elimination of the rest is too large.
var errWide = errors.New("structured: the rest has no elimination in small tables")

// program is a compiled elimination of the rest's variables, one clique for each. It is compiled once and run for every node.
type program struct {
	cliques  []clique // in the sequence of the elimination
	cliqueOf []int    // by variable; −1: no table of the rest has the variable
	entries  int      // of all cliques together
	// roundings bounds those of a term of the rest on its way through all cliques, without those of the weights.
	roundings  float64
	leaves     []summedLeaf
	shareCount int // number of values of all variables and leaves; the values of the leaves are the last ones
}

// clique is the elimination of one variable. Its table is the product of the variable's weights, of some tables of the rest and of the
// messages of earlier cliques. Its message is the sum of the table over the variable.
type clique struct {
	variable     int
	scope        []int   // variables of the table: first the eliminated one, then those of the message
	entries      int     // of the table
	valueOf      []int32 // by entry: the value of the eliminated variable
	tables       []operand
	messages     []operand // that it receives
	messageEntry []int32   // by entry: the entry of the message that it is added to
	messageSize  int       // entries of the message
}

// operand is a factor of a clique's table: a table of the rest, or the message of an earlier clique.
type operand struct {
	index   int     // of the table in Fit.Rest, or of the earlier clique
	entryOf []int32 // by entry of the clique's table: the entry of the operand at the same values
}

// newProgram compiles the elimination of the variables of a fit's rest, the tables that its statistics do not give, along Fit.Order. A
// clique is the elimination of one variable: it multiplies tables and messages of earlier cliques, and sends their sum over the variable to
// a later clique. newProgram returns errWide if a clique's table has more than maxRestTable entries.
func newProgram(f *Fit) (*program, error) {
	p := &program{cliqueOf: make([]int, len(f.Domains))}
	for v := range p.cliqueOf {
		p.cliqueOf[v] = -1
	}
	position := make([]int, len(f.Domains)) // by variable: its position in the order
	for k, v := range f.Order {
		position[v] = k
	}

	// Clique k eliminates the variable at position k.
	tables := f.restByClique(position)
	senders := make([][]int, len(f.Order)) // by clique: the earlier ones whose messages it receives
	receiver := make([]int, len(f.Order))  // by clique: the later one that receives its message; −1: none
	for k, v := range f.Order {
		c, ok := p.newClique(f, v, tables[k], senders[k]) // all senders to clique k come before it
		if !ok {
			return nil, errWide
		}
		receiver[k] = -1
		if len(c.scope) > 1 { // its message has variables: the clique of the first variable among them that is eliminated receives it
			next := firstPosition(position, c.scope[1:])
			senders[next] = append(senders[next], k)
			receiver[k] = next
		}
		p.cliqueOf[v] = k
		p.cliques = append(p.cliques, c)
		p.entries += c.entries
		p.roundings += float64(len(c.tables) + len(c.messages) + f.Domains[v] + 3) // one for each factor and addition, and a few more
	}
	p.addLeaves(f, receiver)
	return p, nil
}

// restByClique lists the tables of f.Rest by the clique that multiplies them. Clique k eliminates the variable at position k of the
// order. It multiplies the tables over that variable that no earlier clique multiplies. position is by variable.
func (f *Fit) restByClique(position []int) [][]int {
	tables := make([][]int, len(f.Order))
	for t, table := range f.Rest {
		if len(table.Scope) > 0 {
			first := firstPosition(position, table.Scope)
			tables[first] = append(tables[first], t)
		}
	}
	return tables
}

// firstPosition returns the smallest position of at least one variable. position is by variable.
func firstPosition(position, variables []int) int {
	first := position[variables[0]]
	for _, v := range variables {
		first = min(first, position[v])
	}
	return first
}

// newClique returns the clique that eliminates variable v. It multiplies some tables of f.Rest, whose indices are tables, and the messages
// of some earlier cliques, senders. The clique's own table is over v and all other variables of these. Its message, the sum over v, is over
// scope[1:]. ok is false if its own table has more than maxRestTable entries.
func (p *program) newClique(f *Fit, v int, tables, senders []int) (c clique, ok bool) {
	c = clique{variable: v, scope: []int{v}, entries: f.Domains[v]}
	isInScope := map[int]bool{v: true}
	addToScope := func(variables []int) bool {
		for _, u := range variables {
			if !isInScope[u] {
				isInScope[u] = true
				c.scope = append(c.scope, u)
				c.entries *= f.Domains[u]
				if c.entries > maxRestTable {
					return false
				}
			}
		}
		return true
	}
	for _, t := range tables {
		if !addToScope(f.Rest[t].Scope) {
			return c, false
		}
	}
	for _, s := range senders {
		if !addToScope(p.cliques[s].scope[1:]) {
			return c, false
		}
	}

	for _, t := range tables {
		c.tables = append(c.tables, operand{index: t, entryOf: subsetEntries(f.Domains, c.scope, f.Rest[t].Scope)})
	}
	for _, s := range senders {
		c.messages = append(c.messages, operand{index: s, entryOf: subsetEntries(f.Domains, c.scope, p.cliques[s].scope[1:])})
	}
	c.valueOf = subsetEntries(f.Domains, c.scope, c.scope[:1])
	c.messageEntry = subsetEntries(f.Domains, c.scope, c.scope[1:])
	c.messageSize = c.entries / f.Domains[v]
	return c, true
}

// subsetEntries returns, for each entry of a table over scope, the entry with the same values of a table over subset, which is some of the
// variables of scope. The last variable changes fastest. Example: for binary variables, scope (0, 1) and subset (1) it is 0, 1, 0, 1.
func subsetEntries(domains, scope, subset []int) []int32 {
	entries := []int32{0}
	for k, step := range sumproduct.AxisStrides(domains, subset, scope) { // 0 for a variable that is not in subset
		entries = sumproduct.ExpandOffsets(entries, domains[scope[k]], step)
	}
	return entries
}
