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

// network is a file's model as far as it was read.
type network struct {
	*source
	unknown func(node string) // is called for each node whose table is unknown; nil: such a table is an error

	m            *factorgraph.Model // what was read so far
	index        map[string]int     // the number of each variable, by its name
	values       []map[string]int   // per variable, the position of each state by its name
	offsets      []int              // per variable, where its node begins in the text
	positions    map[int][2]float64 // by variable, where the file draws it: x to the right, y downwards
	hasTable     []bool             // per variable, whether its table was read
	mostStates   int                // the largest number of states that a node may have
	unnamedCount int                // the number of states of all nodes whose states have no names
	entriesLeft  int                // the number of entries that further tables may have
	mostEntries  int                // the number of entries that all tables may have together
	hasBegun     bool               // whether the word that begins a model was read
}

// spare is the number of entries that the tables of a file may have beyond its bytes.
const spare = 1 << 20

// newNetwork reads all of r and returns a network without nodes.
func newNetwork(format lexicon, r io.Reader, limits uai.Limits) (*network, error) {
	text, err := newSource(format, r, limits)
	if err != nil {
		return nil, err
	}
	// 2^27 entries take 1 GiB. A short file can declare large tables: all together may have spare entries more than it has bytes.
	maxEntries := min(cmp.Or(limits.Entries, 1<<27), spare+len(text.text))
	return &network{
		source: text, unknown: limits.Unknown, m: &factorgraph.Model{Bayes: true, Names: []string{}, States: [][]string{}},
		index: map[string]int{}, mostStates: cmp.Or(limits.Domain, 1<<20), entriesLeft: maxEntries, mostEntries: maxEntries,
	}, nil
}

// addNode adds a variable with its states, unless reading has failed or there is something wrong with them. If no state has a name, the
// variable's states have none in the model.
func (n *network) addNode(offset int, name string, states []string) {
	if !n.checkNode(offset, name, states) {
		return
	}
	size := len(states)
	if strings.Join(states, "") == "" {
		states = nil
	}
	n.m.States = append(n.m.States, states)
	values := make(map[string]int, size)
	for x, state := range states {
		if _, twice := values[state]; twice {
			n.fail(offset, uai.ErrModel, "node %s: state %s is there twice", quote(name), quote(state))
			return
		}
		values[state] = x
	}
	n.index[name] = len(n.m.Domains)
	n.m.Domains = append(n.m.Domains, size)
	n.m.Names = append(n.m.Names, name)
	n.values, n.offsets, n.hasTable = append(n.values, values), append(n.offsets, offset), append(n.hasTable, false)
}

// checkNode checks the names of a node and of its states, and their number. It returns false after an error.
func (n *network) checkNode(offset int, name string, states []string) bool {
	if name == "" {
		n.fail(offset, uai.ErrModel, "a node without a name")
		return false
	}
	if v, twice := n.index[name]; twice {
		n.failTwice(offset, name, v)
		return false
	}
	if n.failIfGarbled(offset, name, "name") {
		return false
	}
	for _, state := range states {
		if n.failIfGarbled(offset, state, "state") {
			return false
		}
	}
	if len(states) == 0 || len(states) > n.mostStates {
		n.fail(offset, uai.ErrModel, "node %s has %d states, 1 to %d are read", quote(name), len(states), n.mostStates)
		return false
	}
	return true
}

// failTwice notes the error that a node is there a second time; the first one is variable v.
func (n *network) failTwice(offset int, name string, v int) {
	first := 1 + strings.Count(n.text[:n.offsets[v]], "\n")
	n.fail(offset, uai.ErrModel, "node %s is there twice, first on line %d", quote(name), first)
}

// beginModel notes that a model begins at an offset. A second one is an error.
func (n *network) beginModel(offset int, what string) {
	if n.hasBegun {
		n.fail(offset, uai.ErrModel, "%s: a second model begins here, and a file has one", what)
	}
	n.hasBegun = true
}

// failIfGarbled notes an error if a name is not ASCII and the encoding of the file is unknown. It returns true after
// any error.
func (n *network) failIfGarbled(offset int, name, what string) bool {
	if n.isEncodingUnknown && strings.ContainsFunc(name, func(r rune) bool { return r >= utf8.RuneSelf }) {
		n.fail(offset, uai.ErrSyntax, "the %s %s is not in UTF-8, and the file does not say in which encoding it is: save it as UTF-8",
			what, quote(name))
	}
	return n.err != nil
}

// setAlias sets the display name of variable v, which is its second name. An empty one is none, since files may leave
// it out.
func (n *network) setAlias(offset, v int, name string) {
	if n.err != nil || name == "" || name == n.m.Names[v] || n.failIfGarbled(offset, name, "display name") {
		return
	}
	if missing := v + 1 - len(n.m.Aliases); missing > 0 {
		n.m.Aliases = append(n.m.Aliases, make([]string, missing)...)
	}
	n.m.Aliases[v] = name
}

// setPosition notes that the file draws variable v at x, to the right, and y, downwards.
func (n *network) setPosition(v int, x, y float64) {
	if n.positions == nil {
		n.positions = map[int][2]float64{}
	}
	n.positions[v] = [2]float64{x, y}
}

// parseCoordinates returns the numbers that some words stand for. It returns nil if one of them is no number below 1e9 in
// size, which is no error, since only drawings need them.
func parseCoordinates(words []string) (numbers []float64) {
	const most = 1e9
	for _, word := range words {
		x, err := strconv.ParseFloat(word, 64)
		if err != nil || !(math.Abs(x) < most) { // so for NaN, too
			return nil
		}
		numbers = append(numbers, x)
	}
	return numbers
}

// positionProperty is the property of BIF and XMLBIF files that says where a variable is drawn: position = (73, 165).
var positionProperty = regexp.MustCompile(`^position\s*=\s*\(\s*([^,()\s]+)\s*,\s*([^,()\s]+)\s*\)$`)

// setPositionFrom sets the position of variable v if the property gives one.
func (n *network) setPositionFrom(v int, property string) {
	if words := positionProperty.FindStringSubmatch(property); words != nil {
		if point := parseCoordinates(words[1:]); point != nil {
			n.setPosition(v, point[0], point[1])
		}
	}
}

// layout returns x and y of all variables, one after another; nil if the file does not draw all of them.
func (n *network) layout() (layout []float64) {
	if len(n.positions) == 0 || len(n.positions) != len(n.m.Domains) {
		return nil
	}
	for v := range n.m.Domains {
		layout = append(layout, n.positions[v][0], n.positions[v][1])
	}
	return layout
}

// unnamedStates returns empty names for the states of a node of which the file has only the number. All nodes together
// may have as many as the file has bytes, and 2^20 more, so that the memory follows the size of the file and not a
// number in it.
func (n *network) unnamedStates(offset int, name string, states int) []string {
	if n.unnamedCount += states; n.unnamedCount > spare+len(n.text) {
		n.fail(offset, uai.ErrLimit, "node %s: the nodes have more than %d states without names together", quote(name), spare+len(n.text))
		return nil
	}
	return make([]string, states)
}

// findVariable returns the number of the variable of this name. If there is none, it notes an error.
func (n *network) findVariable(offset int, name string) int {
	v, ok := n.index[name]
	if !ok {
		n.fail(offset, uai.ErrModel, "no node has the name %s%s", quote(name), nearest.Suggest(name, n.m.Names, nil))
	}
	return v
}

// findState returns the position of a state of variable v by its name. If there is none, it notes an error.
func (n *network) findState(offset, v int, name string) int {
	x, ok := n.values[v][name]
	if !ok {
		states := n.m.States[v]
		n.fail(offset, uai.ErrModel, "node %s has no state %s%s", quote(n.m.Names[v]), quote(name), nearest.Suggest(name, states, states))
	}
	return x
}

// addFactor adds a factor for the table of the scope's last variable, to be filled later. It returns false after an
// error: the variable has a table already, or the scope has a variable twice.
func (n *network) addFactor(offset int, scope []int) bool {
	if n.err != nil {
		return false
	}
	child := scope[len(scope)-1]
	if n.hasTable[child] {
		first := slices.IndexFunc(n.m.Factors, func(f factorgraph.Factor) bool { return f.Scope[len(f.Scope)-1] == child })
		n.fail(offset, uai.ErrModel, "node %s has two tables, the first on line %d", n.nameOf(child), n.m.Lines[first])
		return false
	}
	n.hasTable[child] = true
	inScope := map[int]bool{}
	for _, v := range scope {
		if inScope[v] {
			n.fail(offset, uai.ErrModel, "node %s: %s is twice among the node and its parents", n.nameOf(child), n.nameOf(v))
			return false
		}
		inScope[v] = true
	}
	n.m.Factors = append(n.m.Factors, factorgraph.Factor{Scope: scope})
	n.m.Lines = append(n.m.Lines, n.lineAt(offset))
	return true
}

// addTable adds a table of zeros for the scope's last variable. It returns nil after an error.
func (n *network) addTable(offset int, scope []int) *tensor.Dense {
	if !n.addFactor(offset, scope) {
		return nil
	}
	shape := n.shapeOf(scope)
	if !n.spendEntries(offset, scope, shape) {
		return nil
	}
	t := &tensor.Dense{Shape: shape, Data: make([]float64, decimal.Entries(shape))}
	n.m.Factors[len(n.m.Factors)-1].Table = t
	return t
}

// spendEntries subtracts the entries of a table of this shape from the number that the file may still have in all tables (entriesLeft). It
// returns false, after an error, if too few are left.
func (n *network) spendEntries(offset int, scope, shape []int) bool {
	size := decimal.Entries(shape)
	if size > n.entriesLeft {
		n.fail(offset, uai.ErrLimit, "node %s: its table needs %s entries, this file may have %d in all tables together",
			n.nameOf(scope[len(scope)-1]), decimal.EntriesText(size), n.mostEntries)
		return false
	}
	n.entriesLeft -= size
	return true
}

// shapeOf returns the numbers of states of the variables.
func (n *network) shapeOf(scope []int) []int {
	shape := make([]int, len(scope))
	for k, v := range scope {
		shape[k] = n.m.Domains[v]
	}
	return shape
}

// nameOf returns the name of variable v, in quotes, for an error.
func (n *network) nameOf(v int) string { return quote(n.m.Names[v]) }

// rowText names row r of a table by the states of the parents, as in (a = yes, b = 1). The last parent is fastest; the
// scope's last variable is the node.
func (n *network) rowText(scope []int, r int) string {
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

// finish completes and returns the model. It checks that every node has a table and that none is its own ancestor.
func (n *network) finish() (*factorgraph.Model, error) {
	if n.err == nil && len(n.m.Domains) == 0 {
		n.fail(len(n.text), uai.ErrModel, "the file has no nodes")
	}
	for v, hasTable := range n.hasTable {
		if !hasTable && n.err == nil {
			n.fail(n.offsets[v], uai.ErrModel, "node %s has no table", n.nameOf(v))
		}
	}
	if n.err == nil {
		if _, cycle := orderAncestorsFirst(n.m); cycle != nil {
			v := cycle[0]
			n.fail(n.offsets[v], uai.ErrModel, "node %s is its own ancestor: %s", n.nameOf(v), n.cycleText(cycle))
		}
	}
	if n.err == nil && n.hasUnknown {
		n.completeUnknown()
	}
	if n.err != nil {
		return nil, n.err
	}
	if n.m.Aliases != nil { // the list ends with the last variable that has one
		n.m.Aliases = append(n.m.Aliases, make([]string, len(n.m.Domains)-len(n.m.Aliases))...)
	}
	n.m.Layout = n.layout()
	if err := n.m.Validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", n.format, err)
	}
	return n.m, nil
}

// mostArcs is the number of arcs of a cycle that an error shows.
const mostArcs = 12

// cycleText shows a cycle as names and arrows; of a long one the first nodes and the last.
func (n *network) cycleText(cycle []int) string {
	names := make([]string, 0, mostArcs+2)
	for k, v := range cycle {
		switch {
		case k < mostArcs || k == len(cycle)-1:
			names = append(names, nearest.Shorten(n.m.Names[v]))
		case k == mostArcs:
			names = append(names, "…")
		}
	}
	return strings.Join(names, " → ")
}

// orderAncestorsFirst returns all factors such that the table of a node comes after those of its ancestors. If there is
// a directed cycle, it returns the variables of one instead, the first again at the end. The last variable of each
// scope is the node whose table the factor is.
func orderAncestorsFirst(m *factorgraph.Model) (order, cycle []int) {
	tableOf := make([]int, len(m.Domains)) // per variable, the factor that is its table
	for j := range m.Factors {
		tableOf[childOf(m, j)] = j
	}

	// A depth-first search from each factor to the tables of its parents. The stack is the path from the root to the current factor.
	// next[j] is the 1-based position of the parent of factor j to be visited next, as long as j is on the stack.
	const unseen, placed = 0, -1
	next := make([]int, len(m.Factors))
	for root := range m.Factors {
		var stack []int
		if next[root] == unseen {
			next[root], stack = 1, []int{root}
		}
		for len(stack) > 0 {
			top := stack[len(stack)-1]
			scope, k := m.Factors[top].Scope, next[top]-1
			if hasNoMoreParents := k == len(scope)-1; hasNoMoreParents {
				order, next[top], stack = append(order, top), placed, stack[:len(stack)-1]
				continue
			}
			next[top]++
			switch parent := tableOf[scope[k]]; {
			case next[parent] > 0: // the parent is on the stack, and so its own ancestor
				cycle = []int{scope[k]}
				for depth := len(stack) - 1; stack[depth] != parent; depth-- {
					cycle = append(cycle, childOf(m, stack[depth]))
				}
				return nil, append(cycle, scope[k])
			case next[parent] == unseen:
				next[parent], stack = 1, append(stack, parent)
			}
		}
	}
	return order, nil
}

// childOf returns the node whose table factor j is: the last variable of its scope.
func childOf(m *factorgraph.Model, j int) int { return m.Factors[j].Scope[len(m.Factors[j].Scope)-1] }
