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
	p.forEachElement([]string{"smile", "nodes"}, p.readNode)
	p.forEachElement([]string{"smile", "nodes"}, p.readDistribution)
	p.forEachElement([]string{"smile", "dynamic"}, func(e *element) {
		if p.err == nil {
			p.failAs(fault.Unsupported, e.offset, uai.ErrModel, "the network is a dynamic one: unroll it first")
		}
	})
	p.readExtensions()
	return p.finish()
}

// readExtensions reads what GeNIe shows, from the elements node below extensions: the name, which becomes a second name
// of the variable, and the position.
func (p *xdsl) readExtensions() {
	d := p.newDecoder()
	var open []string        // the names of the elements that are open, the innermost last
	v, isKnown := 0, false   // the variable of the last node, if its id is known
	isGrid := false          // the positions say nothing: see gridMark
	var text strings.Builder // of the innermost element so far
	for p.err == nil {
		offset := int(d.InputOffset())
		token, err := d.Token()
		if err != nil {
			return // forEachElement has read the text to its end before
		}
		switch t := token.(type) {
		case xml.StartElement:
			open = append(open, strings.ToLower(t.Name.Local))
			text.Reset()
			if len(open) == 3 && open[2] == "genie" {
				isGrid = (&element{attributes: t.Attr}).attribute(realNameKey) == gridMark
			}
			if len(open) > 2 && open[1] == "extensions" && open[len(open)-1] == "node" {
				v, isKnown = p.ids[(&element{attributes: t.Attr}).attribute("id")]
			}
		case xml.CharData:
			text.Write(t)
		case xml.EndElement:
			n := len(open)
			isInNode := n > 2 && isKnown && open[1] == "extensions" && open[n-2] == "node"
			if isInNode && open[n-1] == "name" {
				p.setAlias(offset, v, strings.Join(strings.Fields(text.String()), " "))
			} else if isInNode && !isGrid && open[n-1] == "position" {
				p.setBoxPosition(v, strings.Fields(text.String()))
			}
			open = open[:len(open)-1]
		}
	}
}

// setBoxPosition sets the position of variable v to the middle of its box. bounds has the left, the upper, the right
// and the lower end.
func (p *xdsl) setBoxPosition(v int, bounds []string) {
	if box := parseCoordinates(bounds); len(box) == 4 {
		p.setPosition(v, (box[0]+box[2])/2, (box[1]+box[3])/2)
	}
}

// gridMark is the value of the attribute basetensor of a file whose model has no positions. WriteXDSL writes some
// nevertheless, since GeNIe shows no node without one.
const gridMark = "grid"

// xdsl reads an XDSL file.
type xdsl struct {
	*network
	ids    map[string]int   // the number of each variable, by its id
	states []map[string]int // per variable, the position of each state by its id
}

// realNameKey is the attribute of a node or a state whose name is no identifier: it has the name, as the id cannot.
const realNameKey = "basetensor"

// readNode reads a node with its states and adds it.
func (p *xdsl) readNode(e *element) {
	id := e.attribute("id")
	switch {
	case p.err != nil:
		return
	case e.name != "cpt" && e.name != "deterministic" && e.name != "noisymax":
		p.failAs(fault.Unsupported, e.offset, uai.ErrModel, "%s is of the kind %s: cpt, deterministic and noisymax are read", quote(id), e.name)
		return
	}
	if v, twice := p.ids[id]; twice {
		p.failTwice(e.offset, id, v)
		return
	}
	p.ids[id] = len(p.m.Domains)
	var states []string
	ids := map[string]int{}
	for _, state := range e.childrenNamed("state") {
		name := state.attribute("id")
		if _, twice := ids[name]; twice {
			p.fail(state.offset, uai.ErrModel, "node %s: state %s is there twice", quote(id), quote(name))
			return
		}
		ids[name] = len(states)
		if real := state.attribute(realNameKey); real != "" {
			name = real
		}
		states = append(states, name)
	}
	p.states = append(p.states, ids) // readDeterministic finds states by their ids
	name := id
	if real := e.attribute(realNameKey); real != "" {
		name = real
	}
	p.addNode(e.offset, name, states)
}

// readDistribution reads a node's parents and its distribution.
func (p *xdsl) readDistribution(e *element) {
	if p.err != nil {
		return
	}
	child := p.ids[e.attribute("id")]
	place := "node " + p.nameOf(child)
	parents, ok := p.readParents(e, place)
	if !ok {
		return
	}
	scope := append(parents, child)
	switch e.name {
	case "cpt":
		if t := p.addTable(e.offset, scope); t == nil { // after an error
			return
		} else if len(e.childrenNamed("probabilities")) == 0 {
			p.markUnknown(t)
		} else {
			p.readOnlyNumbers(e, "probabilities", place, t.Data)
		}
	case "deterministic":
		p.readDeterministic(e, scope, place)
	case "noisymax":
		p.readNoisyMax(e, scope, place)
	}
}

// readParents returns the parents of a node. ok is false after an error.
func (p *xdsl) readParents(e *element, place string) (parents []int, ok bool) {
	only, isOnly := e.onlyChild("parents") // its text has their ids
	switch {
	case !isOnly:
		p.fail(e.offset, uai.ErrSyntax, "%s has two lists of parents", place)
		return nil, false
	case only == nil: // the node has no parents
		return nil, true
	}
	for id, text := cutWord(only.text); id != ""; id, text = cutWord(text) {
		v, isKnown := p.ids[id]
		if !isKnown {
			p.fail(only.offset, uai.ErrModel, "%s: no node has the id %s%s", place, quote(id),
				nearest.Suggest(id, slices.Sorted(maps.Keys(p.ids)), nil))
			return nil, false
		}
		parents = append(parents, v)
	}
	return parents, true
}

// readOnlyNumbers reads the numbers in the only element of a name within e into numbers.
func (p *xdsl) readOnlyNumbers(e *element, name, place string, numbers []float64) {
	if child := p.onlyElement(e, name, place); child != nil {
		p.readNumbers(child, place, numbers)
	}
}

// onlyElement returns the only element of a name within e. It returns nil, after an error, if there is none or there
// are several.
func (p *xdsl) onlyElement(e *element, name, place string) *element {
	child, isOnly := e.onlyChild(name)
	if child == nil || !isOnly {
		p.fail(e.offset, uai.ErrSyntax, "%s needs one element %s", place, name)
		return nil
	}
	return child
}

// readDeterministic reads the state of a node for each combination of its parents' states.
func (p *xdsl) readDeterministic(e *element, scope []int, place string) {
	only := p.onlyElement(e, "resultingstates", place)
	if only == nil || !p.addFactor(e.offset, scope) {
		return
	}
	shape := p.shapeOf(scope)
	if !p.spendEntries(e.offset, scope, shape) {
		return
	}
	child := scope[len(scope)-1]
	values := make([]int, decimal.Entries(shape[:len(shape)-1]))
	if !p.forEachWord(only, place, "resulting states", len(values), func(i int, word string) {
		var ok bool
		if values[i], ok = p.states[child][word]; !ok {
			p.fail(only.offset, uai.ErrModel, "%s: resulting state %d: it has no state %s", place, i+1, quote(word))
		}
	}) {
		return
	}
	p.m.Factors[len(p.m.Factors)-1].Table = functionTable(shape, values)
}

// readNoisyMax reads a noisy-max node: its state is the strongest of independent effects, one of each parent and the leak, which is there
// without a cause. The file has columns of d numbers, where d is the number of states of the node: the distribution of the effect for each
// state of each parent, in the sequence of their strengths, and then that of the leak.
func (p *xdsl) readNoisyMax(e *element, scope []int, place string) {
	if !p.addFactor(e.offset, scope) {
		return
	}
	shape := p.shapeOf(scope)
	parents, d := shape[:len(shape)-1], shape[len(shape)-1] // numbers of states
	columns := 1                                            // that of the leak
	for _, n := range parents {
		columns += n
	}
	if !p.spendNoisyMax(e.offset, d, columns, place) {
		return
	}
	numbers := make([]float64, columns*d)
	p.readOnlyNumbers(e, "parameters", place, numbers)
	if slices.ContainsFunc(numbers, math.IsNaN) {
		p.fail(e.offset, uai.ErrModel, "%s: parameters of a noisy-max are unknown, and only tables are learned", place)
	}
	stateOf, ok := p.readStrengths(e, parents, place)
	if !ok || p.err != nil {
		return
	}

	// links[k][x*d+y] is the probability of effect y if parent k has state x
	links := make([][]float64, len(parents))
	first := 0 // the first column of the parent
	for k, n := range parents {
		links[k] = make([]float64, n*d)
		for column := first; column < first+n; column++ {
			copy(links[k][stateOf[column]*d:], numbers[column*d:(column+1)*d])
		}
		first += n
	}
	f := &p.m.Factors[len(p.m.Factors)-1] // the one that addFactor has added
	leak := numbers[first*d:]
	if f.Table = noisyMaxTable(shape, links, leak); len(parents) == 0 {
		f.Table = &tensor.Dense{Shape: shape, Data: leak}
	}
}

// spendNoisyMax takes the numbers of a noisy-max table from the budget of entries: d for each column of the file, and d·d for the node
// itself. It returns false, after an error, if the budget is too small.
func (p *xdsl) spendNoisyMax(offset, d, columns int, place string) bool {
	if numbers := decimal.Entries([]int{d, columns + d}); numbers > p.entriesLeft {
		p.fail(offset, uai.ErrLimit, "%s: it takes %s numbers, this file may have %d in all tables together", place,
			decimal.EntriesText(numbers), p.mostEntries)
		return false
	}
	p.entriesLeft -= d * (columns + d)
	return true
}

// readStrengths returns, for each column of numbers of a noisy-max, the state of its parent that the column is for. parents has the numbers
// of states. The element strengths lists them; if the file has none, the columns have the sequence of the states. ok is false after an
// error.
func (p *xdsl) readStrengths(e *element, parents []int, place string) (states []int, ok bool) {
	only, isOnly := e.onlyChild("strengths")
	if !isOnly {
		p.fail(e.offset, uai.ErrSyntax, "%s has two lists of strengths", place)
		return nil, false
	}
	text := ""
	if only != nil {
		text = only.text
	}
	for _, n := range parents {
		isUsed := make([]bool, n) // per state of the parent
		for column := range n {
			x := column
			if only != nil {
				var word string
				word, text = cutWord(text)
				var err error
				if x, err = strconv.Atoi(word); err != nil || x < 0 || x >= n || isUsed[x] {
					p.fail(only.offset, uai.ErrModel, "%s: strength %d: %s is no state of its parent, or there twice", place, len(states)+1, quote(word))
					return nil, false
				}
				isUsed[x] = true
			}
			states = append(states, x)
		}
	}
	if word, _ := cutWord(text); word != "" {
		p.fail(only.offset, uai.ErrModel, "%s: more than %d strengths", place, len(states))
		return nil, false
	}
	return states, true
}

// WriteXDSL writes a Bayesian network as an XDSL file that ReadXDSL reads back with the same bits, parents before their children.
// Every node is a cpt; ids are names where these are identifiers, and the attribute basetensor has the others.
func WriteXDSL(to io.Writer, m *factorgraph.Model) error {
	w, err := newNetworkWriter("xdsl", to, m)
	if err != nil {
		return err
	}
	ids := identifiers(w.names, "node_")
	w.WriteString("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<smile version=\"1.0\" id=\"unknown\">\n  <nodes>\n")
	for _, j := range w.order {
		w.writeCPT(j, ids)
	}
	w.writeLayout(ids)
	w.WriteString("    </genie>\n  </extensions>\n</smile>\n")
	return w.finish()
}

// writeCPT writes a node of an XDSL file, with its table, which is that of factor j. ids are those of all nodes.
func (w *networkWriter) writeCPT(j int, ids []string) {
	v := w.child(j)
	fmt.Fprintf(w, "    <cpt id=\"%s\"%s>\n", ids[v], w.realNameAttribute(ids[v], w.names[v]))
	states := identifiers(w.states[v], "state_")
	for x, state := range states {
		fmt.Fprintf(w, "      <state id=\"%s\"%s />\n", state, w.realNameAttribute(state, w.states[v][x]))
	}
	if parents := w.parents(j); len(parents) > 0 {
		parentIDs := make([]string, len(parents))
		for k, p := range parents {
			parentIDs[k] = ids[p]
		}
		fmt.Fprintf(w, "      <parents>%s</parents>\n", strings.Join(parentIDs, " "))
	}
	w.WriteString("      <probabilities>")
	w.writeNumbers(w.tables[j].Data, " ")
	w.WriteString("</probabilities>\n    </cpt>\n")
}

// writeLayout writes the end of the nodes of an XDSL file, and their display names and positions in the extension of GeNIe, which shows no
// node without a position. Nodes of a model without positions are on a grid of ten columns, 150 points wide and 90 high. A node's box is
// 120 points wide and 60 high, with its position in the middle.
func (w *networkWriter) writeLayout(ids []string) {
	mark := ""
	if w.m.Layout == nil {
		mark = fmt.Sprintf(" %s=\"%s\"", realNameKey, gridMark)
	}
	fmt.Fprintf(w, "  </nodes>\n  <extensions>\n    <genie version=\"1.0\" app=\"basetensor\" name=\"unknown\"%s>\n", mark)
	for v, id := range ids {
		x, y := 80+150*float64(v%10), 50+90*float64(v/10)
		if w.m.Layout != nil {
			x, y = w.m.Layout[2*v], w.m.Layout[2*v+1]
		}
		fmt.Fprintf(w, "      <node id=\"%s\">\n        <name>%s</name>\n        <position>%.0f %.0f %.0f %.0f</position>\n      </node>\n",
			id, w.escapeXML(w.displayName(v)), x-60, y-30, x+60, y+30)
	}
}

// realNameAttribute returns the text of the attribute with a name that differs from its id; empty if it does not.
func (w *networkWriter) realNameAttribute(id, name string) string {
	if id == name {
		return ""
	}
	return fmt.Sprintf(" %s=\"%s\"", realNameKey, w.escapeXML(name))
}

// noisyMaxTable returns P(Y | X_1 … X_n), where Y is the strongest of n + 1 independent effects: one of each parent,
// and the leak. State 0 of Y is the strongest. links[k][x*d+y] is the probability that parent k in state x has the
// effect y, and leak[y] that of the leak; d is the number of states of Y.
//
// Y ≥ y, that is y or weaker, if all effects are:
//
//	P(Y ≥ y | x) = P(leak ≥ y) ∏_k P(effect k ≥ y | x_k), and P(Y = y | x) = P(Y ≥ y | x) − P(Y ≥ y+1 | x)
//
// So term y of the sum of products has these tail probabilities as its vectors, and the vector (…, −1, 1, …) of Y with 1 at y.
// Distributions that miss 1 by rounding are divided by their sums, so that the table's rows sum to 1.
func noisyMaxTable(shape []int, links [][]float64, leak []float64) *tensor.CP {
	parents, d := shape[:len(shape)-1], shape[len(shape)-1] // numbers of states
	t := &tensor.CP{Shape: shape, Vectors: make([][]float64, len(shape))}
	for y := range d {
		weight := tailProbability(leak, y)
		if weight == 0 { // the term is 0
			continue
		}
		t.Weights = append(t.Weights, weight)
		for k, n := range parents {
			for x := range n {
				t.Vectors[k] = append(t.Vectors[k], tailProbability(links[k][x*d:(x+1)*d], y))
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

// mostRounding is how much the sum of a distribution in a noisy-max may miss 1 by rounding.
const mostRounding = 1e-5

// tailProbability returns P(value ≥ y) under the distribution p. It divides by the sum of p if that misses 1 by
// rounding only.
func tailProbability(p []float64, y int) float64 {
	total := sumFrom(p, 0)
	switch {
	case math.Abs(total-1) > mostRounding:
		return sumFrom(p, y)
	case y == 0:
		return 1
	}
	return sumFrom(p, y) / total
}

// sumFrom returns the sum of p[y:].
func sumFrom(p []float64, y int) (sum float64) {
	for _, v := range p[y:] {
		sum += v
	}
	return sum
}
