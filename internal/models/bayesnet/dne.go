package bayesnet

// DNE (DNET), the text format of Netica. The numbers of a table have the node fastest, then its last parent; parentheses within them are
// not needed. A function names a state for every combination of the parents' states.

import (
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/basetensor/basetensor/internal/base/decimal"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/uai"
)

// ReadDNE reads a DNE file: nodes of nature (chance nodes) with a table or a function, discrete ones, or continuous ones that are divided
// into intervals by levels. Constants are left out, as long as no node has one as its parent. Decisions, utilities, nodes given by an
// equation and delays are refused with fault.Unsupported. A finding (an observation) that is entered on a node is not part of the model.
func ReadDNE(r io.Reader, limits uai.Limits) (*factorgraph.Model, error) {
	n, err := newNetwork(lexicon{format: "dne", stops: structure + "=", comments: []string{"//"}, hasBlockComments: true}, r, limits)
	if err != nil {
		return nil, err
	}
	p := &dne{network: n, constants: map[string]bool{}}
	file := p.readTop("bnet")
	var nodes []*field
	for i := range file.fields {
		if block := &file.fields[i]; block.name == "node" && p.err == nil && p.readNode(block) {
			nodes = append(nodes, block)
		}
	}
	for v, block := range nodes {
		if p.err == nil {
			p.readDistribution(v, block)
		}
	}
	return p.finish()
}

// dne reads a DNE file.
type dne struct {
	*network
	constants map[string]bool // names of constant nodes, which are no variables
}

// readNode reads a node with its states and adds it. It returns false if the node is no variable of the model, or after
// an error.
func (p *dne) readNode(node *field) bool {
	kind := strings.ToUpper(p.wordOf(node.attribute("kind")))
	switch {
	case kind == "CONSTANT" || kind == "DOCUMENTATION":
		p.constants[node.label] = true
		return false
	case kind != "" && kind != "NATURE":
		p.failNode(node, "is of the kind %s: a model has discrete chance nodes only", strings.ToLower(kind))
	case node.attribute("delays") != nil:
		p.failNode(node, "has delays: unroll the network over time first")
	case p.err == nil:
		p.addNode(node.offset, node.label, p.readStates(node))
	}
	return p.err == nil
}

// failNode notes the error that a node is of a sort that is not read.
func (p *dne) failNode(node *field, why string, args ...any) {
	p.failAs(fault.Unsupported, node.offset, uai.ErrModel, "node %s "+why, append([]any{quote(node.label)}, args...)...)
}

// readStates returns the names of a node's states, empty ones if it has none. Without a name a state is called by its
// level, or, if the node is divided into intervals, as "0 to 10" by the levels at both ends: so a number in the file is
// never taken for the state's position.
func (p *dne) readStates(node *field) []string {
	if list := p.wordsOf(node.attribute("states")); len(list) > 0 {
		return list
	}
	titles := p.wordsOf(node.attribute("statetitles"))
	levels := p.wordsOf(node.attribute("levels"))
	number := node.attribute("numstates")
	isDiscrete := strings.ToUpper(p.wordOf(node.attribute("discrete"))) != "FALSE"
	switch {
	case !isDiscrete && len(levels) > 1:
		intervals := make([]string, len(levels)-1)
		for k := range intervals {
			intervals[k] = levels[k] + " to " + levels[k+1]
		}
		return emptyIfRepeated(intervals) // names that repeat are no names
	case !isDiscrete:
		p.failNode(node, "is continuous and has no levels: a model has discrete chance nodes only")
		return nil
	case len(titles) > 0:
		return titles
	case len(levels) > 0:
		return emptyIfRepeated(levels)
	case number != nil:
		n, err := strconv.Atoi(p.wordOf(number))
		if err != nil || n < 1 || n > p.mostStates {
			p.fail(number.offset, uai.ErrModel, "node %s has %s states, 1 to %d are read", quote(node.label), quote(p.wordOf(number)), p.mostStates)
			return nil
		}
		return p.unnamedStates(number.offset, node.label, n)
	}
	return nil
}

// emptyIfRepeated returns the names, or as many empty ones if two of them are the same.
func emptyIfRepeated(names []string) []string {
	sorted := slices.Sorted(slices.Values(names))
	if hasDuplicate := len(slices.Compact(sorted)) < len(names); hasDuplicate {
		return make([]string, len(names))
	}
	return names
}

// readDistribution reads the parents and the distribution of node v: a table, or a function if there is no table or the
// node says that it is deterministic.
func (p *dne) readDistribution(v int, node *field) {
	var scope []int
	p.forEachItem(node.attribute("parents"), func(offset int, word string) {
		if p.constants[word] {
			p.failAs(fault.Unsupported, offset, uai.ErrModel, "node %s has the constant %s as its parent", p.nameOf(v), quote(word))
			return
		}
		scope = append(scope, p.findVariable(offset, word))
	})
	if p.err != nil {
		return
	}
	scope = append(scope, v)
	table, function := node.attribute("probs"), node.attribute("functable")
	switch {
	case function != nil && (table == nil || strings.EqualFold(p.wordOf(node.attribute("chance")), "DETERMIN")):
		p.readFunction(function, scope, p.readLevels(node))
	case table != nil:
		p.readTable(table, scope)
	case node.attribute("equation") != nil:
		p.failNode(node, "is given by the equation %s, tables are read", quote(p.wordOf(node.attribute("equation"))))
	} // else finish notes that the node has no table
}

// readTable reads a table: numbers, @imposs for 0, and #3 for a whole row that has 1 for state 3 and 0 for the others.
func (p *dne) readTable(e *field, scope []int) {
	t := p.addTable(e.offset, scope)
	if t == nil {
		return
	}
	node, filled := scope[len(scope)-1], 0 // the node; the number of entries so far
	place := "the table of node " + p.nameOf(node)
	p.forEachItem(e, func(offset int, word string) {
		size := 1 // entries that the word stands for
		if strings.HasPrefix(word, "#") {
			size = p.m.Domains[node]
		}
		switch {
		case filled+size > len(t.Data):
			p.fail(offset, uai.ErrModel, "%s: more than %d numbers", place, len(t.Data))
			return
		case size > 1 && filled%size != 0:
			p.fail(offset, uai.ErrModel, "%s: %s within a row", place, quote(word))
			return
		case strings.HasPrefix(word, "#"):
			if x := p.stateIndex(offset, node, word, nil); p.err == nil { // nil: # is a position, not a level
				t.Data[filled+x] = 1
			}
		case strings.EqualFold(word, "@imposs"): // 0, as the entry is already
		default:
			t.Data[filled] = p.parseNumber(offset, word, place)
		}
		filled += size
	})
	if filled < len(t.Data) {
		p.fail(e.offset, uai.ErrModel, "%s: %d numbers, %d are needed", place, filled, len(t.Data))
	}
}

// readFunction reads the state of a node for every combination of its parents' states. levels are those of the node, by
// which it may name a state.
func (p *dne) readFunction(e *field, scope []int, levels []float64) {
	if !p.addFactor(e.offset, scope) {
		return
	}
	shape := p.shapeOf(scope)
	if !p.spendEntries(e.offset, scope, shape) {
		return
	}
	v := scope[len(scope)-1]
	size := decimal.Entries(shape[:len(shape)-1])
	var values []int
	p.forEachItem(e, func(offset int, word string) {
		if len(values) == size {
			p.fail(offset, uai.ErrModel, "the function of node %s: more than %d states", p.nameOf(v), size)
			return
		}
		values = append(values, p.stateIndex(offset, v, word, levels))
	})
	if len(values) < size {
		p.fail(e.offset, uai.ErrModel, "the function of node %s: %d states, %d are needed", p.nameOf(v), len(values), size)
	}
	if p.err == nil {
		p.m.Factors[len(p.m.Factors)-1].Table = functionTable(shape, values)
	}
}

// readLevels returns the levels of a node: the number of each state or, if there is one more than states, the limits
// between which each state lies. It returns nil if the node has none.
func (p *dne) readLevels(node *field) (list []float64) {
	p.forEachItem(node.attribute("levels"), func(offset int, word string) {
		v, err := strconv.ParseFloat(strings.Replace(strings.ToUpper(word), "INFINITY", "INF", 1), 64)
		if err != nil {
			p.fail(offset, uai.ErrSyntax, "node %s: the level %s is no number", quote(node.label), quote(word))
		}
		list = append(list, v)
	})
	return list
}

// stateIndex returns the index of the state of node v that a word means: by its name, by its position as in #3, or by a
// number that is the state's level or lies within its limits.
func (p *dne) stateIndex(offset, v int, word string, levels []float64) int {
	position, isPosition := strings.CutPrefix(word, "#")
	number, err := decimal.Parse(word)
	_, isName := p.values[v][word]
	switch {
	case isPosition:
		x, err := strconv.Atoi(position)
		if err != nil || x < 0 || x >= p.m.Domains[v] {
			p.fail(offset, uai.ErrModel, "node %s has no state %s, it has %d", p.nameOf(v), quote(word), p.m.Domains[v])
			return 0
		}
		return x
	case err != nil || isName || len(levels) == 0:
		return p.findState(offset, v, word)
	}
	areLimits := len(levels) == p.m.Domains[v]+1
	for x := range p.m.Domains[v] {
		if areLimits && levels[x] <= number && number < levels[x+1] {
			return x
		}
		if !areLimits && x < len(levels) && levels[x] == number {
			return x
		}
	}
	p.fail(offset, uai.ErrModel, "node %s has no state for %s among its levels", p.nameOf(v), quote(word))
	return 0
}
