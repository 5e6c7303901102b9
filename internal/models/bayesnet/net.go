package bayesnet

// Hugin's NET language, of version 5 and later: `net { … }` or `class NAME { … }` around nodes and potentials, or before them.
//
// The numbers of a potential have the node fastest, then its last parent; parentheses within them are checked, and may be left
// out. Utilities, decisions, continuous nodes, functions and instances are refused.

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/basetensor/basetensor/internal/base/nearest"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/tensor"
	"github.com/basetensor/basetensor/pkg/uai"
)

// netRealName is the attribute of a node whose name is no identifier: it has the name.
const netRealName = "basetensor_name"

// ReadNET reads a NET file: nodes with their states, and their potentials.
func ReadNET(r io.Reader, limits uai.Limits) (*factorgraph.Model, error) {
	file, err := newNetwork(lexicon{format: "net", stops: structure + "=", comments: []string{"%", "//"}, hasBlockComments: true}, r, limits)
	if err != nil {
		return nil, err
	}
	p := &net{network: file, ids: map[string]int{}}
	for isInClass := false; !p.atEnd(); {
		offset := p.offset
		switch word := p.readWord(); {
		case word == "net" && !isInClass:
			p.beginModel(offset, "net")
			p.expect('{', "after net")
			for !p.accept('}') && p.err == nil {
				p.readAttribute("net", nil) // nil: its value is not needed
			}
		case word == "class" && !isInClass:
			p.beginModel(offset, "class")
			p.readName()
			p.expect('{', "after class")
			isInClass = true
		case word == "" && isInClass && p.accept('}'): // the end of the class
			isInClass = false
		case word == "discrete" || word == "node":
			if word == "discrete" && p.readWord() != "node" {
				p.failWanted("node", "after discrete")
			}
			p.readNode(offset)
		case word == "potential":
			p.readPotential(offset)
		case slices.Contains([]string{"utility", "decision", "continuous", "function", "instance"}, word):
			p.failKind(offset, word)
		case word != "" && isInClass && p.accept('='): // an attribute of the class
			p.readValue("the file", nil) // nil: it is not needed
		default:
			p.offset = offset
			p.failWanted("a node or a potential", "between blocks")
		}
	}
	return p.finish()
}

// net reads a NET file.
type net struct {
	*network
	ids map[string]int // variables by their names in potentials
}

// failKind notes the error that a node is of a kind that models do not have.
func (p *net) failKind(offset int, kind string) {
	name := p.readWord()
	if name == "node" {
		name = p.readWord()
	}
	p.failAs(fault.Unsupported, offset, uai.ErrModel, "%s is of the kind %s: a model has discrete chance nodes only", quote(name), kind)
}

// readAttribute reads `name = value;` and calls take, unless it is nil, with the words and texts of the value in their
// order.
func (p *net) readAttribute(place string, take func(offset int, name string, items []string)) {
	p.peek() // skips white space and comments
	offset := p.offset
	name := p.readWord()
	if name == "" {
		p.failWanted("an attribute or '}'", "in %s", place)
		return
	}
	p.expect('=', "%s: after %s", place, name)
	var items []string
	p.readValue(place+": "+name, &items)
	if take != nil && p.err == nil {
		take(offset, name, items)
	}
}

// readValue reads a value up to its semicolon, and the semicolon. It appends its words and texts to items, unless that
// is nil.
func (p *net) readValue(place string, items *[]string) {
	depth, start := 0, p.offset
	for !p.failIfLong(start, "%s", place) { // true after any error, too
		switch c := p.peek(); {
		case c == ';' && depth == 0:
			p.offset++
			return
		case items != nil && len(*items) > p.mostStates:
			p.fail(start, uai.ErrLimit, "%s: more than %d items", place, p.mostStates)
		case c == '(':
			depth++
			p.offset++
		case c == ')' && depth > 0:
			depth--
			p.offset++
		case p.atEnd() || strings.IndexByte(";){}", c) >= 0:
			p.failWanted("';'", "%s", place)
		case c == '"':
			item := p.readName()
			if items != nil {
				*items = append(*items, item)
			}
		default:
			if item := p.readWordTo("();{}\""); items != nil {
				*items = append(*items, item)
			}
		}
	}
}

// netNode is what a NET file says of a node. Lists that it does not have are nil.
type netNode struct {
	name, label      string
	states           []string
	hasStates        bool
	values, position []string
	subtype          string // such as number or interval
}

// readNode reads a node with its states, its names and its position, and adds it. offset is where it begins.
func (p *net) readNode(offset int) {
	id := p.readName()
	place := "node " + quote(id)
	node := netNode{name: id}
	p.expect('{', "%s", place)
	for !p.accept('}') && p.err == nil {
		p.readAttribute(place, func(start int, attribute string, list []string) {
			if attribute == "states" && node.hasStates {
				p.fail(start, uai.ErrSyntax, "%s has two lists of states", place)
			}
			node.set(attribute, list)
		})
	}

	if v, twice := p.ids[id]; twice {
		p.failTwice(offset, id, v)
		return
	}
	v := len(p.m.Domains)
	p.ids[id] = v
	p.addNode(offset, node.name, node.stateNames())
	p.setAlias(offset, v, node.label)
	if point := parseCoordinates(node.position); len(point) == 2 { // y grows upwards in NET
		p.setPosition(v, point[0], -point[1])
	}
}

// set sets what an attribute says. Other attributes are ignored.
func (n *netNode) set(attribute string, list []string) {
	switch attribute {
	case "states":
		n.states, n.hasStates = list, true
	case "state_values":
		n.values = list
	case "subtype":
		n.subtype = strings.Join(list, " ")
	case "position":
		n.position = list
	case "label":
		n.label = strings.Join(list, " ")
	case netRealName:
		n.name = strings.Join(list, " ")
	}
}

// stateNames returns the names of the states, "" for a state without a name. Without a list of states there is one state for each value or,
// if the values are bounds of intervals, for each interval between two values. Labels are optional: the states of a number without labels
// have their values as names.
func (n *netNode) stateNames() []string {
	states := n.states
	if !n.hasStates {
		count := len(n.values)
		if n.subtype == "interval" && count > 0 {
			count--
		}
		states = make([]string, count)
	}
	areUnnamed := strings.Join(states, "") == ""
	if n.subtype == "number" && len(n.values) == len(states) && areUnnamed {
		return n.values
	}
	return states
}

// readPotential reads the table of a node, all of it unknown if there are no numbers.
func (p *net) readPotential(offset int) {
	scope, t := p.openTable(offset, "potential", func(offset int, name string) int {
		v, ok := p.ids[name]
		if !ok {
			p.fail(offset, uai.ErrModel, "no node has the name %s%s", quote(name), nearest.Suggest(name, p.m.Names, nil))
		}
		return v
	})
	if t == nil {
		return
	}
	place, hasData := "the potential of "+p.nameOf(scope[len(scope)-1]), false
	for !p.accept('}') && p.err == nil {
		p.peek() // skips white space and comments
		start := p.offset
		switch word := p.readWord(); word {
		case "data":
			if hasData {
				p.fail(start, uai.ErrSyntax, "%s has two lists of numbers", place)
				return
			}
			hasData = true
			p.expect('=', "%s", place)
			p.readData(place, t)
		case "model_data":
			p.expect('=', "%s", place)
			text := p.offset // where the formula begins
			p.skipTo(';', "%s", place)
			p.failAs(fault.Unsupported, start, uai.ErrModel, "%s is the formula %s, numbers are read", place,
				strings.Trim(strings.Join(strings.Fields(p.text[min(text, p.offset):p.offset]), " "), "; "))
		default:
			p.offset = start
			p.readAttribute(place, nil) // nil: its value is not needed
		}
	}
	if !hasData {
		p.markUnknown(t)
	}
}

// readData reads the numbers of a potential into a table, up to the semicolon. Parentheses may be around all numbers, around those of each
// value of the first parent, and so on to those of each distribution of the node. Some of these levels may be left out, but a parenthesis
// may begin and end only where such a part does.
func (p *net) readData(place string, t *tensor.Dense) {
	sizes := make([]int, len(t.Shape)+1) // sizes[k] is the number of entries in a parenthesis within k others
	sizes[len(t.Shape)] = 1
	for k := len(t.Shape) - 1; k >= 0; k-- {
		sizes[k] = sizes[k+1] * t.Shape[k]
	}
	n, depth := 0, 0 // numbers so far; parentheses that are open
	for p.err == nil {
		c := p.peek() // skips white space: the item begins at p.offset
		offset := p.offset
		switch {
		case c == ';' && depth == 0 && n == len(t.Data):
			p.offset++
			return
		case c == '(' && depth < len(t.Shape):
			p.offset++
			if depth++; n%sizes[depth-1] != 0 {
				p.fail(offset, uai.ErrModel, "%s: a parenthesis within the numbers of one distribution", place)
			}
		case c == '(':
			p.fail(offset, uai.ErrModel, "%s: more than %d parentheses within each other, it has %d parents", place, depth, depth-1)
		case c == ')' && depth > 0:
			p.offset++
			if depth--; n%sizes[depth] != 0 {
				p.fail(offset, uai.ErrModel, "%s: a parenthesis closes after %d numbers, %d are needed", place, n, (n/sizes[depth]+1)*sizes[depth])
			}
		case p.atEnd() || strings.IndexByte(";){}", c) >= 0:
			p.failWanted(fmt.Sprintf("number %d of %d, or its parenthesis", min(n+1, len(t.Data)), len(t.Data)), "%s", place)
		case n == len(t.Data):
			p.fail(offset, uai.ErrModel, "%s: more than %d numbers", place, n)
		default:
			t.Data[n] = p.readProbability("%s", place)
			n++
		}
	}
}

// WriteNET writes a Bayesian network as a NET file that ReadNET reads back with the same bits. Nodes whose names are no
// identifiers get one; the attributes label and basetensor_name have their names.
func WriteNET(to io.Writer, m *factorgraph.Model) error {
	w, err := newNetworkWriter("net", to, m)
	if err != nil {
		return err
	}
	ids := identifiers(w.names, "node_")
	w.WriteString("net\n{\n}\n")
	for v, id := range ids {
		fmt.Fprintf(w, "node %s\n{\n", id)
		if label := w.displayName(v); label != id {
			fmt.Fprintf(w, "  label = %s;\n", quoteName(label))
		}
		if w.m.Layout != nil { // y grows upwards in NET
			fmt.Fprintf(w, "  position = (%.0f %.0f);\n", w.m.Layout[2*v], -w.m.Layout[2*v+1])
		}
		if id != w.names[v] {
			fmt.Fprintf(w, "  %s = %s;\n", netRealName, quoteName(w.names[v]))
		}
		fmt.Fprintf(w, "  states = (%s);\n}\n", strings.Join(mapNames(quoteName, w.states[v]), " "))
	}
	for j, t := range w.tables {
		w.writeScope("potential", j, ids, " ")
		w.WriteString("\n{\n  data = ")
		w.writeNested(t.Shape, t.Data)
		w.WriteString(";\n}\n")
	}
	return w.finish()
}

// writeNested writes a table with parentheses for every variable, as ((0.1 0.9) (0.5 0.5)).
func (w *networkWriter) writeNested(shape []int, data []float64) {
	w.WriteByte('(')
	if len(shape) == 1 {
		w.writeNumbers(data, " ")
	} else {
		for size := len(data) / shape[0]; len(data) > 0; data = data[size:] {
			w.writeNested(shape[1:], data[:size])
		}
	}
	w.WriteByte(')')
}

// quoteName returns a name in quotes, with a backslash before quotes and backslashes.
func quoteName(name string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(name) + `"`
}

// identifiers returns a distinct identifier for each name: the name itself if it is one, else the name with other
// characters replaced, and a number behind it if that is used already.
func identifiers(names []string, prefix string) []string {
	ids, used := make([]string, len(names)), map[string]bool{}
	next := map[string]int{} // by base, how many numbered ids were tried
	for i, name := range names {
		if identifier(name, prefix) == name {
			ids[i], used[name] = name, true
		}
	}
	for i, name := range names {
		if ids[i] != "" {
			continue
		}
		base := identifier(name, prefix)
		id := base
		for used[id] {
			next[base]++
			id = fmt.Sprintf("%s_%d", base, next[base]+1) // _2, _3, …
		}
		ids[i], used[id] = id, true
	}
	return ids
}

// identifier returns the name with _ for characters other than letters, digits and _, behind the prefix if it does not
// begin with a letter. It returns an identifier unchanged.
func identifier(name, prefix string) string {
	isLetter := func(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' }
	id := strings.Map(func(r rune) rune {
		if isLetter(r) || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, name)
	if id == "" || !isLetter(rune(id[0])) {
		return prefix + id
	}
	return id
}
