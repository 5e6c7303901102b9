package bayesnet

// Nodes and tables as they are read, up to the model.

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/basetensor/basetensor/internal/base/decimal"
	"github.com/basetensor/basetensor/internal/base/nearest"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/tensor"
	"github.com/basetensor/basetensor/pkg/uai"
)

// network is a file's nodes and tables, as far as they were read.
type network struct {
	*source
	unknown func(node string) // hears of tables that are unknown; nil: they are errors

	m      *factorgraph.Model
	index  map[string]int     // variables by name
	values []map[string]int   // by name, per variable
	places []int              // where the nodes are in the text
	drawn  map[int][2]float64 // where the file draws variables: x to the right, y downwards
	tables []bool             // per variable, whether its table was there
	domain int                // most states of a node
	states int                // of nodes that have no names for them
	left   int                // entries that tables may still have
	most   int                // entries that they may have together
	begun  bool               // the word that begins a model was there
}

// spare bounds the entries of tables beyond the bytes of their file.
const spare = 1 << 20

func newNetwork(l lexicon, r io.Reader, limits uai.Limits) (*network, error) {
	s, err := newSource(l, r, limits)
	if err != nil {
		return nil, err
	}
	most := limits.Entries
	most = cmp.Or(most, 1<<27)
	most = min(most, spare+len(s.text))
	domain := limits.Domain
	domain = cmp.Or(domain, 1<<20)
	return &network{
		source: s, unknown: limits.Unknown, m: &factorgraph.Model{Bayes: true, Names: []string{}, States: [][]string{}},
		index: map[string]int{}, domain: domain, left: most, most: most,
	}, nil
}

// node adds a variable. States without any name have none in the model.
func (n *network) node(at int, name string, states []string) {
	if name == "" {
		n.fail(at, uai.ErrModel, "a node without a name")
		return
	}
	if v, twice := n.index[name]; twice {
		n.twice(at, name, v)
		return
	}
	if n.garbled(at, name, "name") {
		return
	}
	for _, state := range states {
		if n.garbled(at, state, "state") {
			return
		}
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

// twice is the error for a node that was there before as variable v.
func (n *network) twice(at int, name string, v int) {
	first := 1 + strings.Count(n.text[:n.places[v]], "\n")
	n.fail(at, uai.ErrModel, "node %s is there twice, first on line %d", quoted(name), first)
}

// begin notes that a model begins at a place: a file has one.
func (n *network) begin(at int, what string) {
	if n.begun {
		n.fail(at, uai.ErrModel, "%s: a second model begins here, and a file has one", what)
	}
	n.begun = true
}

// garbled is an error where a name is not ASCII and the encoding of the text is not known.
func (n *network) garbled(at int, name, what string) bool {
	if n.undeclared && strings.ContainsFunc(name, func(r rune) bool { return r >= utf8.RuneSelf }) {
		n.fail(at, uai.ErrSyntax, "the %s %s is not in UTF-8, and the file does not say in which encoding it is: save it as UTF-8",
			what, quoted(name))
	}
	return n.err != nil
}

// alias gives variable v its display name as a second name. It is optional in files, so an empty one is none.
func (n *network) alias(at, v int, name string) {
	if n.err != nil || name == "" || name == n.m.Names[v] || n.garbled(at, name, "display name") {
		return
	}
	if missing := v + 1 - len(n.m.Aliases); missing > 0 {
		n.m.Aliases = append(n.m.Aliases, make([]string, missing)...)
	}
	n.m.Aliases[v] = name
}

// draw notes that the file draws variable v at x, to the right, and y, downwards.
func (n *network) draw(v int, x, y float64) {
	if n.drawn == nil {
		n.drawn = map[int][2]float64{}
	}
	n.drawn[v] = [2]float64{x, y}
}

// coordinates are the numbers in some words; nil if one of them is none, which is no error: only drawings read them.
func coordinates(words []string) (all []float64) {
	const most = 1e9
	for _, word := range words {
		x, err := strconv.ParseFloat(word, 64)
		if err != nil || !(math.Abs(x) < most) {
			return nil
		}
		all = append(all, x)
	}
	return all
}

// position is a property of a variable in BIF files and XMLBIF files: position = (73, 165).
var position = regexp.MustCompile(`^position\s*=\s*\(\s*([^,()\s]+)\s*,\s*([^,()\s]+)\s*\)$`)

// drawBy notes where the file draws variable v, if that is what a property says.
func (n *network) drawBy(v int, property string) {
	if words := position.FindStringSubmatch(property); words != nil {
		if point := coordinates(words[1:]); point != nil {
			n.draw(v, point[0], point[1])
		}
	}
}

// layout is that of the model, if the file draws all variables.
func (n *network) layout() (all []float64) {
	if len(n.drawn) == 0 || len(n.drawn) != len(n.m.Domains) {
		return nil
	}
	for v := range n.m.Domains {
		all = append(all, n.drawn[v][0], n.drawn[v][1])
	}
	return all
}

// unnamed returns states without names, for a node that has only their number. All nodes together have at most as many as the file has
// bytes, and 2^20 more: its cost follows its bytes, not a number in it.
func (n *network) unnamed(at int, name string, states int) []string {
	if n.states += states; n.states > spare+len(n.text) {
		n.fail(at, uai.ErrLimit, "node %s: the nodes have more than %d states without names together", quoted(name), spare+len(n.text))
		return nil
	}
	return make([]string, states)
}

// variable returns the position of a node that was there before.
func (n *network) variable(at int, name string) int {
	v, ok := n.index[name]
	if !ok {
		n.fail(at, uai.ErrModel, "no node has the name %s%s", quoted(name), nearest.Suggest(name, n.m.Names, nil))
	}
	return v
}

// state returns the position of a node's state.
func (n *network) state(at, v int, name string) int {
	x, ok := n.values[v][name]
	if !ok {
		states := n.m.States[v]
		n.fail(at, uai.ErrModel, "node %s has no state %s%s", quoted(n.m.Names[v]), quoted(name), nearest.Suggest(name, states, states))
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
		first := slices.IndexFunc(n.m.Factors, func(f factorgraph.Factor) bool { return f.Scope[len(f.Scope)-1] == child })
		n.fail(at, uai.ErrModel, "node %s has two tables, the first on line %d", n.called(child), n.m.Lines[first])
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
	n.m.Lines = append(n.m.Lines, n.line(at))
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
	t := &tensor.Dense{Shape: shape, Data: make([]float64, decimal.Entries(shape))}
	n.m.Factors[len(n.m.Factors)-1].Table = t
	return t
}

// spend takes the entries of a shape from the rest of the budget.
func (n *network) spend(at int, scope, shape []int) bool {
	size := decimal.Entries(shape)
	if size > n.left {
		n.fail(at, uai.ErrLimit, "node %s: its table needs %s entries, this file may have %d in all tables together",
			n.called(scope[len(scope)-1]), decimal.EntriesText(size), n.most)
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
		if _, cycle := ancestorsFirst(n.m); cycle != nil {
			v := cycle[0]
			n.fail(n.places[v], uai.ErrModel, "node %s is its own ancestor: %s", n.called(v), n.path(cycle))
		}
	}
	if n.err == nil && n.hasUnknown {
		n.complete()
	}
	if n.err != nil {
		return nil, n.err
	}
	if n.m.Aliases != nil {
		n.m.Aliases = append(n.m.Aliases, make([]string, len(n.m.Domains)-len(n.m.Aliases))...)
	}
	n.m.Layout = n.layout()
	if err := n.m.Validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", n.format, err)
	}
	return n.m, nil
}

// mostArcs bounds the arcs of a cycle that an error shows.
const mostArcs = 12

// path shows a cycle as nodes and arrows; of a long one the first nodes and the last.
func (n *network) path(cycle []int) string {
	names := make([]string, 0, mostArcs+2)
	for k, v := range cycle {
		switch {
		case k < mostArcs || k == len(cycle)-1:
			names = append(names, nearest.Short(n.m.Names[v]))
		case k == mostArcs:
			names = append(names, "…")
		}
	}
	return strings.Join(names, " → ")
}

// ancestorsFirst are the factors, the tables of a node's ancestors before its own, else in their order, and a directed cycle of
// variables, the first again at its end; nil: there is none. Scopes end with their node.
func ancestorsFirst(m *factorgraph.Model) (order, cycle []int) {
	table := make([]int, len(m.Domains))
	for j := range m.Factors {
		table[child(m, j)] = j
	}
	const unseen, placed = 0, -1
	next := make([]int, len(m.Factors)) // 1 + the parent to look at: such factors are on the stack
	for j := range m.Factors {
		var stack []int
		if next[j] == unseen {
			next[j], stack = 1, []int{j}
		}
		for len(stack) > 0 {
			top := stack[len(stack)-1]
			scope, at := m.Factors[top].Scope, next[top]-1
			if at == len(scope)-1 {
				order, next[top], stack = append(order, top), placed, stack[:len(stack)-1]
				continue
			}
			next[top]++
			switch parent := table[scope[at]]; {
			case next[parent] > 0:
				cycle = []int{scope[at]}
				for k := len(stack) - 1; stack[k] != parent; k-- {
					cycle = append(cycle, child(m, stack[k]))
				}
				return nil, append(cycle, scope[at])
			case next[parent] == unseen:
				next[parent], stack = 1, append(stack, parent)
			}
		}
	}
	return order, nil
}

// child is the variable whose table factor j is.
func child(m *factorgraph.Model, j int) int { return m.Factors[j].Scope[len(m.Factors[j].Scope)-1] }
