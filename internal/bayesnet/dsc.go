package bayesnet

// DSC, the belief network language of Microsoft's MSBN, as GeNIe and bnlearn write it. Rows name the states of the parents by
// position; states by name are read too.

import (
	"fmt"
	"io"
	"strconv"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/uai"
)

// dscStops end a word of a DSC file.
const dscStops = structure + ":="

// ReadDSC reads a DSC file.
func ReadDSC(r io.Reader, limits uai.Limits) (*factorgraph.Model, error) {
	s, err := newSource("dsc", r, limits)
	if err != nil {
		return nil, err
	}
	s.comments, s.blocks = []string{"//"}, true
	p := &dsc{newNetwork(s, limits)}
	for !p.done() {
		at := p.at
		switch word := p.word(dscStops); word {
		case "belief":
			if p.word(dscStops) != "network" {
				p.wanted("network", "after belief")
			}
			if p.peek() == '"' {
				p.name(dscStops)
			}
		case "properties":
			p.block("properties")
		case "node":
			p.declaration(at)
		case "probability":
			p.distribution(at)
		case "decision", "utility":
			p.failAs(fault.Unsupported, at, uai.ErrModel, "%s is of the kind %s: a model has discrete chance nodes only",
				quoted(p.name(dscStops)), word)
		default:
			p.at = at
			p.wanted("a node or a probability", "between blocks")
		}
	}
	return p.finish()
}

// dsc reads a DSC file.
type dsc struct{ *network }

// block passes what is between braces.
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
			p.name(dscStops)
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
	name := p.name(dscStops)
	p.expect('{', "after node %s", quoted(name))
	var states []string
	for !p.take('}') && p.err == nil {
		p.peek()
		from := p.at
		switch p.word(dscStops) {
		case "type":
			if states != nil {
				p.fail(from, uai.ErrSyntax, "node %s has two types", quoted(name))
				return
			}
			if !p.take(':') {
				p.take('=')
			}
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
}

// states reads `discrete[2] = { "yes", "no" };`; the names may be left out.
func (p *dsc) states(name string) []string {
	p.peek()
	at := p.at
	if kind := p.word(dscStops); kind != "discrete" {
		p.failAs(fault.Unsupported, at, uai.ErrModel, "node %s has the type %s, discrete is read", quoted(name), quoted(kind))
		return nil
	}
	said := p.count(name)
	states := make([]string, said)
	if p.take('='); p.take('{') {
		p.peek()
		at = p.at
		var ok bool
		if states, ok = p.labels('}', said); !ok {
			p.fail(at, uai.ErrModel, "node %s has %d states, %d are announced", quoted(name), len(states), said)
		}
	}
	p.expect(';', "after the type of node %s", quoted(name))
	return states
}

// distribution reads the table of a node.
func (p *dsc) distribution(at int) {
	scope := p.scope("probability", p.variable)
	p.expect('{', "after probability")
	t := p.table(at, scope)
	if t == nil {
		return
	}
	rows := &rows{n: p.network, scope: scope, t: t, there: make([]bool, len(t.Data)/t.Shape[len(t.Shape)-1])}
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
		case len(scope) == 1 && (c >= '0' && c <= '9' || c == '.'):
			rows.fill(from, 0)
		default:
			switch word := p.word(dscStops); word {
			case "default":
				if !p.take(':') {
					p.take('=')
				}
				rows.fallback(from)
			case "property":
				p.skip(';', "node %s", p.called(rows.child()))
			case "function":
				if !p.take(':') {
					p.take('=')
				}
				p.failAs(fault.Unsupported, from, uai.ErrModel, "node %s is given by the function %s, rows of numbers are read",
					p.called(rows.child()), quoted(p.name(dscStops)))
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
		label := p.name(dscStops)
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
	for v, name := range w.names {
		fmt.Fprintf(w, "node %s {\n  type : discrete [ %d ] = { ", dscName(name), len(w.states[v]))
		for x, state := range w.states[v] {
			w.WriteString([]string{"", ", "}[min(x, 1)])
			w.WriteString(inQuotes(state))
		}
		w.WriteString(" };\n}\n")
	}
	for j := range w.tables {
		fmt.Fprintf(w, "probability ( %s", dscName(w.names[w.child(j)]))
		for k, p := range w.parents(j) {
			fmt.Fprintf(w, "%s%s", []string{" | ", ", "}[min(k, 1)], dscName(w.names[p]))
		}
		w.WriteString(" ) {\n")
		w.each(j, func(row []float64, values []int) {
			w.WriteString("  ")
			for k, x := range values {
				fmt.Fprintf(w, "%s%d", []string{"(", ", "}[min(k, 1)], x)
			}
			w.WriteString([]string{"", ") : "}[min(len(values), 1)])
			w.numbers(row, ", ")
			w.WriteString(";\n")
		})
		w.WriteString("}\n")
	}
	return w.close()
}

// dscName is a node's name: in quotes where it is no identifier.
func dscName(name string) string {
	if identifier(name, "_") == name {
		return name
	}
	return inQuotes(name)
}
