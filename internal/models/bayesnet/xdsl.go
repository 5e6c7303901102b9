package bayesnet

// XDSL, the format of GeNIe and SMILE. The numbers of a cpt have the node fastest, then its last parent; a deterministic node
// names its state for every state of the parents in that order; a noisymax has a distribution for every state of every parent, by
// itself, and one for none. Nodes of other kinds are refused.

import (
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/basetensor/basetensor/internal/base/decimal"
	"github.com/basetensor/basetensor/internal/base/nearest"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/tensor"
	"github.com/basetensor/basetensor/pkg/uai"
)

// ReadXDSL reads an XDSL file. Nodes are called by their ids, and found by the names that GeNIe shows, too.
func ReadXDSL(r io.Reader, limits uai.Limits) (*factorgraph.Model, error) {
	n, err := newNetwork(lexicon{format: "xdsl"}, r, limits)
	if err != nil {
		return nil, err
	}
	p := &xdsl{network: n, ids: map[string]int{}}
	p.elements([]string{"smile", "nodes"}, p.declaration)
	p.elements([]string{"smile", "nodes"}, p.definition)
	p.elements([]string{"smile", "dynamic"}, func(e *element) {
		if p.err == nil {
			p.failAs(fault.Unsupported, e.at, uai.ErrModel, "the network is a dynamic one: unroll it first")
		}
	})
	p.extensions()
	return p.finish()
}

// extensions reads what GeNIe shows, in the element node of each id below extensions: names, which are second names, and positions.
func (p *xdsl) extensions() {
	d := p.decoder()
	var open []string // elements
	v, known, isGrid := 0, false, false
	var text strings.Builder
	for p.err == nil {
		at := int(d.InputOffset())
		token, err := d.Token()
		if err != nil {
			return // elements has read the text to its end before
		}
		switch t := token.(type) {
		case xml.StartElement:
			open = append(open, strings.ToLower(t.Name.Local))
			text.Reset()
			if len(open) == 3 && open[2] == "genie" {
				isGrid = (&element{attr: t.Attr}).attribute(own) == grid
			}
			if len(open) > 2 && open[1] == "extensions" && open[len(open)-1] == "node" {
				v, known = p.ids[(&element{attr: t.Attr}).attribute("id")]
			}
		case xml.CharData:
			text.Write(t)
		case xml.EndElement:
			if n := len(open); n > 2 && known && open[1] == "extensions" && open[n-1] == "name" && open[n-2] == "node" {
				p.alias(at, v, strings.Join(strings.Fields(text.String()), " "))
			} else if n > 2 && known && !isGrid && open[1] == "extensions" && open[n-1] == "position" && open[n-2] == "node" {
				p.drawBox(v, strings.Fields(text.String()))
			}
			open = open[:len(open)-1]
		}
	}
}

// drawBox notes where GeNIe draws variable v: in the middle of a box, of which the left, the upper, the right and the lower end are given.
func (p *xdsl) drawBox(v int, ends []string) {
	if box := coordinates(ends); len(box) == 4 {
		p.draw(v, (box[0]+box[2])/2, (box[1]+box[3])/2)
	}
}

// grid is the attribute's value where a file has positions only because GeNIe shows no node without one.
const grid = "grid"

// xdsl reads an XDSL file.
type xdsl struct {
	*network
	ids    map[string]int   // variables by their ids
	states []map[string]int // of variables, by their ids
}

// own is the attribute with a name that is no identifier, of nodes and states.
const own = "basetensor"

// declaration reads a node with its states.
func (p *xdsl) declaration(e *element) {
	id := e.attribute("id")
	switch {
	case p.err != nil:
		return
	case e.name != "cpt" && e.name != "deterministic" && e.name != "noisymax":
		p.failAs(fault.Unsupported, e.at, uai.ErrModel, "%s is of the kind %s: cpt, deterministic and noisymax are read", quoted(id), e.name)
		return
	}
	if v, twice := p.ids[id]; twice {
		p.twice(e.at, id, v)
		return
	}
	p.ids[id] = len(p.m.Domains)
	var states []string
	ids := map[string]int{}
	for _, state := range e.all("state") {
		name := state.attribute("id")
		if _, twice := ids[name]; twice {
			p.fail(state.at, uai.ErrModel, "node %s: state %s is there twice", quoted(id), quoted(name))
			return
		}
		ids[name] = len(states)
		if real := state.attribute(own); real != "" {
			name = real
		}
		states = append(states, name)
	}
	p.states = append(p.states, ids)
	name := id
	if real := e.attribute(own); real != "" {
		name = real
	}
	p.node(e.at, name, states)
}

// definition reads a node's distribution.
func (p *xdsl) definition(e *element) {
	if p.err != nil {
		return
	}
	child := p.ids[e.attribute("id")]
	where := "node " + p.called(child)
	var scope []int
	if parents, once := e.only("parents"); !once {
		p.fail(e.at, uai.ErrSyntax, "%s has two lists of parents", where)
		return
	} else if parents != nil {
		for word, rest := cutWord(parents.text); word != ""; word, rest = cutWord(rest) {
			v, ok := p.ids[word]
			if !ok {
				p.fail(parents.at, uai.ErrModel, "%s: no node has the id %s%s", where, quoted(word),
					nearest.Suggest(word, slices.Sorted(maps.Keys(p.ids)), nil))
				return
			}
			scope = append(scope, v)
		}
	}
	scope = append(scope, child)
	switch e.name {
	case "cpt":
		if t := p.table(e.at, scope); t == nil {
			return
		} else if len(e.all("probabilities")) == 0 {
			p.isUnknown(t)
		} else {
			p.list(e, "probabilities", where, t.Data)
		}
	case "deterministic":
		p.deterministic(e, scope, where)
	case "noisymax":
		p.noisyMax(e, scope, where)
	}
}

// list reads the numbers of the only element of a name within e.
func (p *xdsl) list(e *element, name, where string, into []float64) {
	if list := p.one(e, name, where); list != nil {
		p.numbers(list, where, into)
	}
}

// one is the only element of a name within e; nil, and an error, where there is none or there are several.
func (p *xdsl) one(e *element, name, where string) *element {
	list, once := e.only(name)
	if list == nil || !once {
		p.fail(e.at, uai.ErrSyntax, "%s needs one element %s", where, name)
		return nil
	}
	return list
}

// deterministic reads the state of the node for all states of its parents.
func (p *xdsl) deterministic(e *element, scope []int, where string) {
	list := p.one(e, "resultingstates", where)
	if list == nil || !p.factor(e.at, scope) {
		return
	}
	shape := p.shape(scope)
	if !p.spend(e.at, scope, shape) {
		return
	}
	child := scope[len(scope)-1]
	values := make([]int, decimal.Entries(shape[:len(shape)-1]))
	if !p.words(list, where, "resulting states", len(values), func(i int, word string) {
		var ok bool
		if values[i], ok = p.states[child][word]; !ok {
			p.fail(list.at, uai.ErrModel, "%s: resulting state %d: it has no state %s", where, i+1, quoted(word))
		}
	}) {
		return
	}
	p.m.Factors[len(p.m.Factors)-1].Table = function(shape, values)
}

// noisyMax reads the distributions of a noisy-max node, and in which order they have the states of the parents.
func (p *xdsl) noisyMax(e *element, scope []int, where string) {
	if !p.factor(e.at, scope) {
		return
	}
	shape := p.shape(scope)
	parents, d := shape[:len(shape)-1], shape[len(shape)-1]
	columns := 1
	for _, n := range parents {
		columns += n
	}
	if numbers := decimal.Entries([]int{d, columns + d}); numbers > p.left {
		p.fail(e.at, uai.ErrLimit, "%s: it takes %s numbers, this file may have %d in all tables together", where,
			decimal.EntriesText(numbers), p.most)
		return
	}
	p.left -= d * (columns + d)
	read := make([]float64, columns*d)
	p.list(e, "parameters", where, read)
	if slices.ContainsFunc(read, math.IsNaN) {
		p.fail(e.at, uai.ErrModel, "%s: parameters of a noisy-max are unknown, and only tables are learned", where)
	}
	order, ok := p.strengths(e, parents, where)
	if !ok || p.err != nil {
		return
	}
	// in the order of the parents' states
	links := make([][]float64, len(parents))
	from := 0
	for k, n := range parents {
		links[k] = make([]float64, n*d)
		for column := range n {
			copy(links[k][order[from+column]*d:], read[(from+column)*d:(from+column+1)*d])
		}
		from += n
	}
	f := &p.m.Factors[len(p.m.Factors)-1]
	if f.Table = noisyMax(shape, links, read[from*d:]); len(parents) == 0 {
		f.Table = &tensor.Dense{Shape: shape, Data: read}
	}
}

// strengths reads which state of its parent every column is of: without the element they are in the order of the states.
func (p *xdsl) strengths(e *element, parents []int, where string) (order []int, ok bool) {
	list, once := e.only("strengths")
	if !once {
		p.fail(e.at, uai.ErrSyntax, "%s has two lists of strengths", where)
		return nil, false
	}
	rest := ""
	if list != nil {
		rest = list.text
	}
	for _, n := range parents {
		seen := make([]bool, n)
		for column := range n {
			x := column
			if list != nil {
				var word string
				word, rest = cutWord(rest)
				var err error
				if x, err = strconv.Atoi(word); err != nil || x < 0 || x >= n || seen[x] {
					p.fail(list.at, uai.ErrModel, "%s: strength %d: %s is no state of its parent, or there twice", where, len(order)+1, quoted(word))
					return nil, false
				}
				seen[x] = true
			}
			order = append(order, x)
		}
	}
	if word, _ := cutWord(rest); word != "" {
		p.fail(list.at, uai.ErrModel, "%s: more than %d strengths", where, len(order))
		return nil, false
	}
	return order, true
}

// WriteXDSL writes a Bayesian network as an XDSL file that ReadXDSL reads back with the same bits, parents before their children.
// Every node is a cpt; ids are names where these are identifiers, and the attribute basetensor has the others.
func WriteXDSL(to io.Writer, m *factorgraph.Model) error {
	w, err := newWritten("xdsl", to, m)
	if err != nil {
		return err
	}
	ids := identifiers(w.names, "node_")
	w.WriteString("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<smile version=\"1.0\" id=\"unknown\">\n  <nodes>\n")
	for _, j := range w.order {
		v := w.child(j)
		fmt.Fprintf(w, "    <cpt id=\"%s\"%s>\n", ids[v], w.realName(ids[v], w.names[v]))
		states := identifiers(w.states[v], "state_")
		for x, state := range states {
			fmt.Fprintf(w, "      <state id=\"%s\"%s />\n", state, w.realName(state, w.states[v][x]))
		}
		if parents := w.parents(j); len(parents) > 0 {
			w.WriteString("      <parents>")
			for k, p := range parents {
				fmt.Fprintf(w, "%s%s", []string{"", " "}[min(k, 1)], ids[p])
			}
			w.WriteString("</parents>\n")
		}
		w.WriteString("      <probabilities>")
		w.numbers(w.tables[j].Data, " ")
		w.WriteString("</probabilities>\n    </cpt>\n")
	}
	mark := ""
	if w.m.Layout == nil {
		mark = fmt.Sprintf(" %s=\"%s\"", own, grid)
	}
	fmt.Fprintf(w, "  </nodes>\n  <extensions>\n    <genie version=\"1.0\" app=\"basetensor\" name=\"unknown\"%s>\n", mark)
	for v, id := range ids { // GeNIe shows no node without a place
		x, y := 80+150*float64(v%10), 50+90*float64(v/10)
		if w.m.Layout != nil {
			x, y = w.m.Layout[2*v], w.m.Layout[2*v+1]
		}
		fmt.Fprintf(w, "      <node id=\"%s\">\n        <name>%s</name>\n        <position>%.0f %.0f %.0f %.0f</position>\n      </node>\n",
			id, w.escaped(w.display(v)), x-60, y-30, x+60, y+30)
	}
	w.WriteString("    </genie>\n  </extensions>\n</smile>\n")
	return w.close()
}

// realName is the attribute with a name that is no identifier.
func (w *written) realName(id, name string) string {
	if id == name {
		return ""
	}
	return fmt.Sprintf(" %s=\"%s\"", own, w.escaped(name))
}

// noisyMax is P(Y | X_1 … X_n) where Y is the strongest of n + 1 effects that come about independently: links has for every
// parent and each of its states the distribution of its effect, leak the distribution of the last one, and states of Y are the stronger the
// earlier they are. Y is weaker than state y − 1 if all effects are, so P(Y = y) is the difference of two products of the
// distributions' tails: a term for every state, each with one number per state of a parent. Distributions that miss 1 by rounding are
// divided by their sums, so that the table's rows sum to 1.
func noisyMax(shape []int, links [][]float64, leak []float64) *tensor.CP {
	parents, d := shape[:len(shape)-1], shape[len(shape)-1]
	t := &tensor.CP{Shape: shape, Vectors: make([][]float64, len(shape))}
	for y := range d {
		weight := tail(leak, y)
		if weight == 0 {
			continue
		}
		t.Weights = append(t.Weights, weight)
		for k, n := range parents {
			for x := range n {
				t.Vectors[k] = append(t.Vectors[k], tail(links[k][x*d:(x+1)*d], y))
			}
		}
		sign := make([]float64, d)
		if sign[y] = 1; y > 0 {
			sign[y-1] = -1
		}
		t.Vectors[len(parents)] = append(t.Vectors[len(parents)], sign...)
	}
	if len(t.Weights) == 0 { // a leak that is never there: all of it is 0
		t.Weights = []float64{0}
		for k, n := range shape {
			t.Vectors[k] = make([]float64, n)
		}
	}
	return t
}

// rounding is how much the sum of a distribution in a noisy-max may miss 1 by rounding.
const rounding = 1e-5

// tail is the probability of the last values from y on.
func tail(p []float64, y int) float64 {
	all := sumFrom(p, 0)
	switch {
	case math.Abs(all-1) > rounding:
		return sumFrom(p, y)
	case y == 0:
		return 1
	}
	return sumFrom(p, y) / all
}

// sumFrom is the sum of the last numbers from y on.
func sumFrom(p []float64, y int) (sum float64) {
	for _, v := range p[y:] {
		sum += v
	}
	return sum
}
