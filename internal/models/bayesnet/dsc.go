package bayesnet

// DSC, the belief network language of Microsoft's MSBN, as GeNIe and bnlearn write it. Rows name the states of the parents by
// position; states by name are read too.

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/uai"
)

// ReadDSC reads a DSC file.
func ReadDSC(r io.Reader, limits uai.Limits) (*factorgraph.Model, error) {
	n, err := newNetwork(lexicon{"dsc", structure + ":=", []string{"//"}, true}, r, limits)
	if err != nil {
		return nil, err
	}
	p := &dsc{n}
	for !p.done() {
		at := p.at
		switch word := p.word(); word {
		case "belief":
			p.begin(at, "belief network")
			if p.word() != "network" {
				p.wanted("network", "after belief")
			}
			if p.peek() == '"' {
				p.name()
			}
		case "properties":
			p.block("properties")
		case "node":
			p.declaration(at)
		case "probability":
			p.distribution(at)
		case "decision", "utility":
			p.failAs(fault.Unsupported, at, uai.ErrModel, "%s is of the kind %s: a model has discrete chance nodes only",
				quoted(p.name()), word)
		default:
			p.at = at
			p.wanted("a node or a probability", "between blocks")
		}
	}
	return p.finish()
}

// dsc reads a DSC file.
type dsc struct{ *network }

// block passes a block in braces.
func (p *dsc) block(where string) {
	p.expect('{', "after %s", where)
	for depth, from := 1, p.at; depth > 0 && !p.long(from, "%s", where); {
		switch p.peek() {
		case '{':
			depth++
			p.at++
		case '}':
			depth--
			p.at++
		case '"':
			p.name()
		default:
			if p.done() {
				p.wanted("'}'", "in %s", where)
				return
			}
			p.at++
		}
	}
}

// declaration reads a node with its states.
func (p *dsc) declaration(at int) {
	name := p.name()
	p.expect('{', "after node %s", quoted(name))
	var states []string
	display := ""
	for !p.take('}') && p.err == nil {
		p.peek()
		from := p.at
		switch p.word() {
		case "name":
			p.assigned()
			display = p.name()
			p.skip(';', "node %s", quoted(name))
		case "type":
			if states != nil {
				p.fail(from, uai.ErrSyntax, "node %s has two types", quoted(name))
				return
			}
			p.assigned()
			states = p.states(name)
		case "properties":
			p.block("the properties of node " + quoted(name))
		case "":
			p.wanted("'}'", "node %s", quoted(name))
		default:
			p.skip(';', "node %s", quoted(name))
		}
	}
	p.node(at, name, states)
	p.alias(at, len(p.m.Domains)-1, display)
}

// assigned passes a colon or an equals sign, if one is there.
func (p *dsc) assigned() {
	if !p.take(':') {
		p.take('=')
	}
}

// states reads `discrete[2] = { "yes", "no" };`; the names may be left out.
func (p *dsc) states(name string) []string {
	said := p.discrete("node", name, fault.Unsupported)
	if said == 0 {
		return nil
	}
	var states []string
	at := p.at
	if p.take('='); p.take('{') {
		states = p.list("node", name, said)
	} else {
		states = p.unnamed(at, name, said)
	}
	p.expect(';', "after the type of node %s", quoted(name))
	return states
}

// distribution reads the table of a node.
func (p *dsc) distribution(at int) {
	rows := p.rows(at)
	if rows == nil {
		return
	}
	for !p.take('}') && p.err == nil {
		p.peek()
		from := p.at
		c := p.peek()
		switch {
		case p.take('('):
			r := p.row(from, rows)
			p.take(':')
			if p.err == nil {
				rows.fill(from, r)
			}
		case len(rows.scope) == 1 && strings.IndexByte("0123456789.-?", c) >= 0:
			rows.fill(from, 0)
		default:
			switch word := p.word(); word {
			case "default":
				p.assigned()
				rows.fallback(from)
			case "property":
				p.skip(';', "node %s", p.called(rows.child()))
			case "function":
				p.assigned()
				p.failAs(fault.Unsupported, from, uai.ErrModel, "node %s is given by the function %s, rows of numbers are read",
					p.called(rows.child()), quoted(p.name()))
			default:
				p.at = from
				p.wanted("a row", "node %s", p.called(rows.child()))
			}
		}
	}
	rows.close(at)
}

// row reads `0, 1)`: the states of the parents, by position or by name.
func (p *dsc) row(at int, rows *rows) (row int) {
	parents, n := rows.scope[:len(rows.scope)-1], 0
	for !p.take(')') && p.err == nil {
		c := p.peek()
		from := p.at
		label := p.name()
		if label == "" && c != '"' {
			p.wanted("a state", "node %s", p.called(rows.child()))
			return 0
		}
		if n++; n <= len(parents) {
			row = row*rows.t.Shape[n-1] + p.position(from, parents[n-1], label, c == '"')
		}
		p.take(',')
	}
	if n != len(parents) {
		p.fail(at, uai.ErrModel, "node %s: a row names %d states, it has %d parents", p.called(rows.child()), n, len(parents))
	}
	return row
}

// position is the state that a label means: digits are a position, unless they are in quotes.
func (p *dsc) position(at, v int, label string, name bool) int {
	x, err := strconv.Atoi(label)
	if err != nil || name {
		return p.state(at, v, label)
	}
	if x < 0 || x >= p.m.Domains[v] {
		p.fail(at, uai.ErrModel, "node %s has no state %d, it has %d", p.called(v), x, p.m.Domains[v])
		return 0
	}
	return x
}

// WriteDSC writes a Bayesian network as a DSC file that ReadDSC reads back with the same bits.
func WriteDSC(to io.Writer, m *factorgraph.Model) error {
	w, err := newWritten("dsc", to, m)
	if err != nil {
		return err
	}
	w.WriteString("belief network \"unknown\"\n")
	names := each(dscName, w.names)
	for v, name := range names {
		states := strings.Join(each(inQuotes, w.states[v]), ", ")
		fmt.Fprintf(w, "node %s {\n", name)
		if display := w.display(v); display != w.names[v] {
			fmt.Fprintf(w, "  name : %s;\n", inQuotes(display))
		}
		fmt.Fprintf(w, "  type : discrete [ %d ] = { %s };\n}\n", len(w.states[v]), states)
	}
	w.distributions(names, "", ") : ", func(_, x int) string { return strconv.Itoa(x) })
	return w.close()
}

// dscName is a node's name: in quotes where it is no identifier.
func dscName(name string) string {
	if identifier(name, "_") == name {
		return name
	}
	return inQuotes(name)
}
