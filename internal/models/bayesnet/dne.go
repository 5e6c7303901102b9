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

// ReadDNE reads a DNE file: nodes of nature, discrete or divided into levels, with a table or a function. Constants are passed, as long as
// no node has one as its parent. Decisions, utilities, nodes given by an equation and delays are refused with fault.Unsupported. A finding
// that is entered on a node is not part of the model.
func ReadDNE(r io.Reader, limits uai.Limits) (*factorgraph.Model, error) {
	n, err := newNetwork(lexicon{"dne", structure + "=", []string{"//"}, true}, r, limits)
	if err != nil {
		return nil, err
	}
	p := &dne{network: n, constants: map[string]bool{}}
	file := p.top("bnet")
	var nodes []*field
	for i := range file.fields {
		if e := &file.fields[i]; e.name == "node" && p.err == nil && p.declaration(e) {
			nodes = append(nodes, e)
		}
	}
	for v, e := range nodes {
		if p.err == nil {
			p.definition(v, e)
		}
	}
	return p.finish()
}

// dne reads a DNE file.
type dne struct {
	*network
	constants map[string]bool
}

// declaration reads a node with its states; false: it is none of the model's.
func (p *dne) declaration(e *field) bool {
	kind := strings.ToUpper(p.wordOf(e.attribute("kind")))
	switch {
	case kind == "CONSTANT" || kind == "DOCUMENTATION":
		p.constants[e.label] = true
		return false
	case kind != "" && kind != "NATURE":
		p.unsupported(e, "is of the kind %s: a model has discrete chance nodes only", strings.ToLower(kind))
	case e.attribute("delays") != nil:
		p.unsupported(e, "has delays: unroll the network over time first")
	case p.err == nil:
		p.node(e.at, e.label, p.states(e))
	}
	return p.err == nil
}

// unsupported refuses a node.
func (p *dne) unsupported(e *field, why string, args ...any) {
	p.failAs(fault.Unsupported, e.at, uai.ErrModel, "node %s "+why, append([]any{quoted(e.label)}, args...)...)
}

// states returns the names of a node's states, empty ones where there are none. Without a name a state is called by its level, and as "0 to
// 10" between each two levels if the node is not discrete: so a number is never taken for its position.
func (p *dne) states(e *field) []string {
	if list := p.wordsOf(e.attribute("states")); len(list) > 0 {
		return list
	}
	titles := p.wordsOf(e.attribute("statetitles"))
	levels := p.wordsOf(e.attribute("levels"))
	number := e.attribute("numstates")
	discrete := strings.ToUpper(p.wordOf(e.attribute("discrete"))) != "FALSE"
	switch {
	case !discrete && len(levels) > 1:
		intervals := make([]string, len(levels)-1)
		for k := range intervals {
			intervals[k] = levels[k] + " to " + levels[k+1]
		}
		return distinct(intervals)
	case !discrete:
		p.unsupported(e, "is continuous and has no levels: a model has discrete chance nodes only")
		return nil
	case len(titles) > 0:
		return titles
	case len(levels) > 0:
		return distinct(levels)
	case number != nil:
		n, err := strconv.Atoi(p.wordOf(number))
		if err != nil || n < 1 || n > p.domain {
			p.fail(number.at, uai.ErrModel, "node %s has %s states, 1 to %d are read", quoted(e.label), quoted(p.wordOf(number)), p.domain)
			return nil
		}
		return p.unnamed(number.at, e.label, n)
	}
	return nil
}

// distinct returns names, empty ones if two are the same.
func distinct(names []string) []string {
	if sorted := slices.Sorted(slices.Values(names)); len(slices.Compact(sorted)) < len(names) {
		return make([]string, len(names))
	}
	return names
}

// definition reads a node's distribution.
func (p *dne) definition(v int, e *field) {
	var scope []int
	p.items(e.attribute("parents"), func(at int, word string) {
		if p.constants[word] {
			p.failAs(fault.Unsupported, at, uai.ErrModel, "node %s has the constant %s as its parent", p.called(v), quoted(word))
			return
		}
		scope = append(scope, p.variable(at, word))
	})
	if p.err != nil {
		return
	}
	scope = append(scope, v)
	table, functional := e.attribute("probs"), e.attribute("functable")
	switch {
	case functional != nil && (table == nil || strings.EqualFold(p.wordOf(e.attribute("chance")), "DETERMIN")):
		p.function(functional, scope, p.levels(e))
	case table != nil:
		p.numbersOf(table, scope)
	case e.attribute("equation") != nil:
		p.unsupported(e, "is given by the equation %s, tables are read", quoted(p.wordOf(e.attribute("equation"))))
	}
}

// numbersOf reads a table: numbers, @imposs for 0, and #3 for a row with all of its weight on state 3.
func (p *dne) numbersOf(e *field, scope []int) {
	t := p.table(e.at, scope)
	if t == nil {
		return
	}
	v, n := scope[len(scope)-1], 0
	where := "the table of node " + p.called(v)
	p.items(e, func(at int, word string) {
		size := 1
		if strings.HasPrefix(word, "#") {
			size = p.m.Domains[v]
		}
		switch {
		case n+size > len(t.Data):
			p.fail(at, uai.ErrModel, "%s: more than %d numbers", where, len(t.Data))
			return
		case size > 1 && n%size != 0:
			p.fail(at, uai.ErrModel, "%s: %s within a row", where, quoted(word))
			return
		case strings.HasPrefix(word, "#"):
			if x := p.indexed(at, v, word, nil); p.err == nil {
				t.Data[n+x] = 1
			}
		case strings.EqualFold(word, "@imposs"):
		default:
			t.Data[n] = p.number(at, word, where)
		}
		n += size
	})
	if n < len(t.Data) {
		p.fail(e.at, uai.ErrModel, "%s: %d numbers, %d are needed", where, n, len(t.Data))
	}
}

// function reads the state of a node for every combination of its parents' states, where the node has these levels.
func (p *dne) function(e *field, scope []int, levels []float64) {
	if !p.factor(e.at, scope) {
		return
	}
	shape := p.shape(scope)
	if !p.spend(e.at, scope, shape) {
		return
	}
	v := scope[len(scope)-1]
	size := decimal.Entries(shape[:len(shape)-1])
	var values []int
	p.items(e, func(at int, word string) {
		if len(values) == size {
			p.fail(at, uai.ErrModel, "the function of node %s: more than %d states", p.called(v), size)
			return
		}
		values = append(values, p.indexed(at, v, word, levels))
	})
	if len(values) < size {
		p.fail(e.at, uai.ErrModel, "the function of node %s: %d states, %d are needed", p.called(v), len(values), size)
	}
	if p.err == nil {
		p.m.Factors[len(p.m.Factors)-1].Table = function(shape, values)
	}
}

// levels are the numbers of a node's states, or their limits, where there is one more of these; nil if there are none.
func (p *dne) levels(e *field) (list []float64) {
	p.items(e.attribute("levels"), func(at int, word string) {
		v, err := strconv.ParseFloat(strings.Replace(strings.ToUpper(word), "INFINITY", "INF", 1), 64)
		if err != nil {
			p.fail(at, uai.ErrSyntax, "node %s: the level %s is no number", quoted(e.label), quoted(word))
		}
		list = append(list, v)
	})
	return list
}

// indexed is a state by its name, by its position behind #, or by a number that is its level or lies within its limits.
func (p *dne) indexed(at, v int, word string, levels []float64) int {
	position, ok := strings.CutPrefix(word, "#")
	number, err := decimal.Parse(word)
	_, named := p.values[v][word]
	switch {
	case ok:
		x, err := strconv.Atoi(position)
		if err != nil || x < 0 || x >= p.m.Domains[v] {
			p.fail(at, uai.ErrModel, "node %s has no state %s, it has %d", p.called(v), quoted(word), p.m.Domains[v])
			return 0
		}
		return x
	case err != nil || named || len(levels) == 0:
		return p.state(at, v, word)
	}
	for x := range p.m.Domains[v] {
		limits := len(levels) == p.m.Domains[v]+1
		if limits && levels[x] <= number && number < levels[x+1] || !limits && x < len(levels) && levels[x] == number {
			return x
		}
	}
	p.fail(at, uai.ErrModel, "node %s has no state for %s among its levels", p.called(v), quoted(word))
	return 0
}
