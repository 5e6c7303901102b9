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

// named is the attribute with the name of a node whose name is no identifier.
const named = "basetensor_name"

// ReadNET reads a NET file.
func ReadNET(r io.Reader, limits uai.Limits) (*factorgraph.Model, error) {
	file, err := newNetwork(lexicon{"net", structure + "=", []string{"%", "//"}, true}, r, limits)
	if err != nil {
		return nil, err
	}
	p := &net{network: file, ids: map[string]int{}}
	for open := false; !p.done(); {
		at := p.at
		switch word := p.word(); {
		case word == "net" && !open:
			p.begin(at, "net")
			p.expect('{', "after net")
			for !p.take('}') && p.err == nil {
				p.attribute("net", nil)
			}
		case word == "class" && !open:
			p.begin(at, "class")
			p.name()
			p.expect('{', "after class")
			open = true
		case word == "" && open && p.take('}'):
			open = false
		case word == "discrete" || word == "node":
			if word == "discrete" && p.word() != "node" {
				p.wanted("node", "after discrete")
			}
			p.declaration(at)
		case word == "potential":
			p.potential(at)
		case slices.Contains([]string{"utility", "decision", "continuous", "function", "instance"}, word):
			p.refuse(at, word)
		case word != "" && open && p.take('='):
			p.value("the file", nil)
		default:
			p.at = at
			p.wanted("a node or a potential", "between blocks")
		}
	}
	return p.finish()
}

// net reads a NET file.
type net struct {
	*network
	ids map[string]int // variables by their names in potentials
}

// refuse names a node of a kind that models do not have.
func (p *net) refuse(at int, kind string) {
	name := p.word()
	if name == "node" {
		name = p.word()
	}
	p.failAs(fault.Unsupported, at, uai.ErrModel, "%s is of the kind %s: a model has discrete chance nodes only", quoted(name), kind)
}

// attribute reads `name = value;` and gives numbers and texts of the value, in their order, to take.
func (p *net) attribute(where string, take func(at int, name string, list []string)) {
	p.peek()
	at := p.at
	name := p.word()
	if name == "" {
		p.wanted("an attribute or '}'", "in %s", where)
		return
	}
	p.expect('=', "%s: after %s", where, name)
	var list []string
	p.value(where+": "+name, &list)
	if take != nil && p.err == nil {
		take(at, name, list)
	}
}

// value reads a value up to its semicolon: words, texts, parentheses.
func (p *net) value(where string, list *[]string) {
	depth, from := 0, p.at
	for !p.long(from, "%s", where) {
		switch c := p.peek(); {
		case c == ';' && depth == 0:
			p.at++
			return
		case list != nil && len(*list) > p.domain:
			p.fail(from, uai.ErrLimit, "%s: more than %d items", where, p.domain)
		case c == '(':
			depth++
			p.at++
		case c == ')' && depth > 0:
			depth--
			p.at++
		case p.done() || strings.IndexByte(";){}", c) >= 0:
			p.wanted("';'", "%s", where)
		case c == '"':
			item := p.name()
			if list != nil {
				*list = append(*list, item)
			}
		default:
			if item := p.wordTo("();{}\""); list != nil {
				*list = append(*list, item)
			}
		}
	}
}

// declaration reads a node.
func (p *net) declaration(at int) {
	id := p.name()
	name, label, where := id, "", "node "+quoted(id)
	var states, values, drawn []string
	stated, subtype := false, ""
	p.expect('{', "%s", where)
	for !p.take('}') && p.err == nil {
		p.attribute(where, func(from int, attribute string, list []string) {
			switch attribute {
			case "states":
				if stated {
					p.fail(from, uai.ErrSyntax, "%s has two lists of states", where)
				}
				states, stated = list, true
			case "state_values":
				values = list
			case "subtype":
				subtype = strings.Join(list, " ")
			case "position":
				drawn = list
			case "label":
				label = strings.Join(list, " ")
			case named:
				name = strings.Join(list, " ")
			}
		})
	}
	if !stated && subtype == "interval" && len(values) > 0 {
		states = make([]string, len(values)-1)
	} else if !stated {
		states = make([]string, len(values))
	}
	if v, twice := p.ids[id]; twice {
		p.twice(at, id, v)
		return
	}
	p.ids[id] = len(p.m.Domains)
	if subtype == "number" && len(values) == len(states) && strings.Join(states, "") == "" {
		states = values // labels are optional: without them numbers are names
	}
	p.node(at, name, states)
	p.alias(at, len(p.m.Domains)-1, label)
	if point := coordinates(drawn); len(point) == 2 { // y grows upwards in NET
		p.draw(len(p.m.Domains)-1, point[0], -point[1])
	}
}

// potential reads the table of a node.
func (p *net) potential(at int) {
	scope, t := p.opened(at, "potential", func(at int, name string) int {
		v, ok := p.ids[name]
		if !ok {
			p.fail(at, uai.ErrModel, "no node has the name %s%s", quoted(name), nearest.Suggest(name, p.m.Names, nil))
		}
		return v
	})
	if t == nil {
		return
	}
	where, there := "the potential of "+p.called(scope[len(scope)-1]), false
	for !p.take('}') && p.err == nil {
		p.peek()
		from := p.at
		switch word := p.word(); word {
		case "data":
			if there {
				p.fail(from, uai.ErrSyntax, "%s has two lists of numbers", where)
				return
			}
			there = true
			p.expect('=', "%s", where)
			p.data(where, t)
		case "model_data":
			p.expect('=', "%s", where)
			text := p.at
			p.skip(';', "%s", where)
			p.failAs(fault.Unsupported, from, uai.ErrModel, "%s is the formula %s, numbers are read", where,
				strings.Trim(strings.Join(strings.Fields(p.text[min(text, p.at):p.at]), " "), "; "))
		default:
			p.at = from
			p.attribute(where, nil)
		}
	}
	if !there {
		p.isUnknown(t)
	}
}

// data reads the numbers of a potential, in parentheses for each parent or in one pair.
func (p *net) data(where string, t *tensor.Dense) {
	sizes := make([]int, len(t.Shape)+1) // of a group at each depth
	sizes[len(t.Shape)] = 1
	for k := len(t.Shape) - 1; k >= 0; k-- {
		sizes[k] = sizes[k+1] * t.Shape[k]
	}
	n, depth := 0, 0
	for p.err == nil {
		p.peek()
		at := p.at
		switch c := p.peek(); {
		case c == ';' && depth == 0 && n == len(t.Data):
			p.at++
			return
		case c == '(' && depth < len(t.Shape):
			p.at++
			if depth++; n%sizes[depth-1] != 0 {
				p.fail(at, uai.ErrModel, "%s: a parenthesis within the numbers of one distribution", where)
			}
		case c == '(':
			p.fail(at, uai.ErrModel, "%s: more than %d parentheses within each other, it has %d parents", where, depth, depth-1)
		case c == ')' && depth > 0:
			p.at++
			if depth--; n%sizes[depth] != 0 {
				p.fail(at, uai.ErrModel, "%s: a parenthesis closes after %d numbers, %d are needed", where, n, (n/sizes[depth]+1)*sizes[depth])
			}
		case p.done() || strings.IndexByte(";){}", c) >= 0:
			p.wanted(fmt.Sprintf("number %d of %d, or its parenthesis", min(n+1, len(t.Data)), len(t.Data)), "%s", where)
		case n == len(t.Data):
			p.fail(at, uai.ErrModel, "%s: more than %d numbers", where, n)
		default:
			t.Data[n] = p.probability("%s", where)
			n++
		}
	}
}

// WriteNET writes a Bayesian network as a NET file that ReadNET reads back with the same bits. Nodes whose names are no
// identifiers get one; the attributes label and basetensor_name have their names.
func WriteNET(to io.Writer, m *factorgraph.Model) error {
	w, err := newWritten("net", to, m)
	if err != nil {
		return err
	}
	ids := identifiers(w.names, "node_")
	w.WriteString("net\n{\n}\n")
	for v, id := range ids {
		fmt.Fprintf(w, "node %s\n{\n", id)
		if label := w.display(v); label != id {
			fmt.Fprintf(w, "  label = %s;\n", inQuotes(label))
		}
		if w.m.Layout != nil {
			fmt.Fprintf(w, "  position = (%.0f %.0f);\n", w.m.Layout[2*v], -w.m.Layout[2*v+1])
		}
		if id != w.names[v] {
			fmt.Fprintf(w, "  %s = %s;\n", named, inQuotes(w.names[v]))
		}
		fmt.Fprintf(w, "  states = (%s);\n}\n", strings.Join(each(inQuotes, w.states[v]), " "))
	}
	for j, t := range w.tables {
		w.scope("potential", j, ids, " ")
		w.WriteString("\n{\n  data = ")
		w.nested(t.Shape, t.Data)
		w.WriteString(";\n}\n")
	}
	return w.close()
}

// nested writes a table with parentheses for every variable.
func (w *written) nested(shape []int, data []float64) {
	w.WriteByte('(')
	if len(shape) == 1 {
		w.numbers(data, " ")
	} else {
		for size := len(data) / shape[0]; len(data) > 0; data = data[size:] {
			w.nested(shape[1:], data[:size])
		}
	}
	w.WriteByte(')')
}

// inQuotes is a name in quotes, with a backslash before quotes and backslashes.
func inQuotes(name string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(name) + `"`
}

// identifiers are the names where they are identifiers, else names with other characters replaced, all of them distinct.
func identifiers(names []string, prefix string) []string {
	ids, used, next := make([]string, len(names)), map[string]bool{}, map[string]int{}
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
			id = fmt.Sprintf("%s_%d", base, next[base]+1)
		}
		ids[i], used[id] = id, true
	}
	return ids
}

// identifier is the name with _ for other characters than letters, digits and _, behind the prefix if it does not begin with a
// letter. It is the name itself where that is an identifier.
func identifier(name, prefix string) string {
	letter := func(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' }
	id := strings.Map(func(r rune) rune {
		if letter(r) || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, name)
	if id == "" || !letter(rune(id[0])) {
		return prefix + id
	}
	return id
}
