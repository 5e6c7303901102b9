package bayesnet

// Nodes and tables as they are read, up to the model.

import (
	"fmt"
	"math"
	"strings"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/tensor"
	"github.com/basetensor/basetensor/pkg/uai"
)

// network is what was read of a file so far.
type network struct {
	*source
	m      *factorgraph.Model
	index  map[string]int   // variables by name
	values []map[string]int // by name, per variable
	places []int            // where the nodes are in the text
	tables []bool           // per variable, whether its table was there
	domain int              // most states of a node
	left   int              // entries that tables may still have
	most   int              // entries that they may have together
}

// spare is how many entries tables may have beyond the bytes of their file.
const spare = 1 << 20

func newNetwork(s *source, limits uai.Limits) *network {
	most := limits.Entries
	if most == 0 {
		most = 1 << 27
	}
	most = min(most, spare+len(s.text))
	domain := limits.Domain
	if domain == 0 {
		domain = 1 << 20
	}
	return &network{
		source: s, m: &factorgraph.Model{Bayes: true, Names: []string{}, States: [][]string{}},
		index: map[string]int{}, domain: domain, left: most, most: most,
	}
}

// node adds a variable. States of which none has a name have none in the model.
func (n *network) node(at int, name string, states []string) {
	if name == "" {
		n.fail(at, uai.ErrModel, "a node without a name")
		return
	}
	if _, twice := n.index[name]; twice {
		n.fail(at, uai.ErrModel, "node %s is there twice", quoted(name))
		return
	}
	if len(states) == 0 || len(states) > n.domain {
		n.fail(at, uai.ErrModel, "node %s has %d states, 1 to %d are read", quoted(name), len(states), n.domain)
		return
	}
	values := make(map[string]int, len(states))
	if n.m.States = append(n.m.States, states); strings.Join(states, "") == "" {
		n.m.States[len(n.m.Domains)] = nil
	}
	for x, state := range n.m.States[len(n.m.Domains)] {
		if _, twice := values[state]; twice {
			n.fail(at, uai.ErrModel, "node %s: state %s is there twice", quoted(name), quoted(state))
			return
		}
		values[state] = x
	}
	n.index[name] = len(n.m.Domains)
	n.m.Domains = append(n.m.Domains, len(states))
	n.m.Names = append(n.m.Names, name)
	n.values, n.places, n.tables = append(n.values, values), append(n.places, at), append(n.tables, false)
}

// variable returns the position of a node that was there before.
func (n *network) variable(at int, name string) int {
	v, ok := n.index[name]
	if !ok {
		n.fail(at, uai.ErrModel, "no node has the name %s", quoted(name))
	}
	return v
}

// state returns the position of a node's state.
func (n *network) state(at, v int, name string) int {
	x, ok := n.values[v][name]
	if !ok {
		n.fail(at, uai.ErrModel, "node %s has no state %s", quoted(n.m.Names[v]), quoted(name))
	}
	return x
}

// factor adds the table of a node, which is filled later: the scope's last variable is the node. False: it cannot be.
func (n *network) factor(at int, scope []int) bool {
	if n.err != nil {
		return false
	}
	child := scope[len(scope)-1]
	if n.tables[child] {
		n.fail(at, uai.ErrModel, "node %s has a table already", n.called(child))
		return false
	}
	n.tables[child] = true
	seen := map[int]bool{}
	for _, v := range scope {
		if seen[v] {
			n.fail(at, uai.ErrModel, "node %s: %s is twice among the node and its parents", n.called(child), n.called(v))
			return false
		}
		seen[v] = true
	}
	n.m.Factors = append(n.m.Factors, factorgraph.Factor{Scope: scope})
	return true
}

// table adds the table of a node, all entries 0; nil: it cannot be.
func (n *network) table(at int, scope []int) *tensor.Dense {
	if !n.factor(at, scope) {
		return nil
	}
	shape := n.shape(scope)
	if !n.spend(at, scope, shape) {
		return nil
	}
	t := &tensor.Dense{Shape: shape, Data: make([]float64, product(shape))}
	n.m.Factors[len(n.m.Factors)-1].Table = t
	return t
}

// spend takes the entries of a shape from what is left.
func (n *network) spend(at int, scope, shape []int) bool {
	size := product(shape)
	if size > n.left {
		n.fail(at, uai.ErrLimit, "node %s: its table needs %s entries, this file may have %d in all tables together",
			n.called(scope[len(scope)-1]), sizeText(size), n.most)
		return false
	}
	n.left -= size
	return true
}

func (n *network) shape(scope []int) []int {
	shape := make([]int, len(scope))
	for k, v := range scope {
		shape[k] = n.m.Domains[v]
	}
	return shape
}

// called is a node's name in an error.
func (n *network) called(v int) string { return quoted(n.m.Names[v]) }

// row names the states of the parents for a row of a table.
func (n *network) row(scope []int, r int) string {
	parents := scope[:len(scope)-1]
	values := make([]string, len(parents))
	for k := len(parents) - 1; k >= 0; k-- {
		d := n.m.Domains[parents[k]]
		values[k] = fmt.Sprintf("%s = %d", n.m.Names[parents[k]], r%d)
		if states := n.m.States[parents[k]]; states != nil {
			values[k] = n.m.Names[parents[k]] + " = " + states[r%d]
		}
		r /= d
	}
	return "(" + strings.Join(values, ", ") + ")"
}

// finish returns the model: every node has a table, and none is its own ancestor.
func (n *network) finish() (*factorgraph.Model, error) {
	if n.err == nil && len(n.m.Domains) == 0 {
		n.fail(len(n.text), uai.ErrModel, "the file has no nodes")
	}
	for v, there := range n.tables {
		if !there && n.err == nil {
			n.fail(n.places[v], uai.ErrModel, "node %s has no table", n.called(v))
		}
	}
	if n.err == nil {
		if v := ancestorOfItself(n.m); v >= 0 {
			n.fail(n.places[v], uai.ErrModel, "node %s is its own ancestor", n.called(v))
		}
	}
	if n.err != nil {
		return nil, n.err
	}
	if err := n.m.Validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", n.format, err)
	}
	return n.m, nil
}

// ancestorOfItself returns a variable on a directed cycle, −1 if there is none. Scopes end with their node.
func ancestorOfItself(m *factorgraph.Model) int {
	waits, children := make([]int, len(m.Domains)), make([][]int, len(m.Domains))
	for _, f := range m.Factors {
		child := f.Scope[len(f.Scope)-1]
		waits[child] = len(f.Scope) - 1
		for _, p := range f.Scope[:len(f.Scope)-1] {
			children[p] = append(children[p], child)
		}
	}
	var free []int
	for v, n := range waits {
		if n == 0 {
			free = append(free, v)
		}
	}
	for len(free) > 0 {
		v := free[len(free)-1]
		free = free[:len(free)-1]
		for _, child := range children[v] {
			if waits[child]--; waits[child] == 0 {
				free = append(free, child)
			}
		}
	}
	for v, n := range waits {
		if n == 0 {
			continue
		}
		// v waits for a variable that waits: go up until one comes again
		parents := map[int][]int{}
		for _, f := range m.Factors {
			parents[f.Scope[len(f.Scope)-1]] = f.Scope[:len(f.Scope)-1]
		}
		for seen := map[int]bool{}; !seen[v]; {
			seen[v] = true
			for _, p := range parents[v] {
				if waits[p] > 0 {
					v = p
					break
				}
			}
		}
		return v
	}
	return -1
}

// product returns Π dims, or math.MaxInt where it overflows. All dims are at least 1.
func product(dims []int) int {
	n := 1
	for _, d := range dims {
		if n > math.MaxInt/d {
			return math.MaxInt
		}
		n *= d
	}
	return n
}

func sizeText(size int) string {
	if size == math.MaxInt {
		return "more than 2^63"
	}
	return fmt.Sprint(size)
}
