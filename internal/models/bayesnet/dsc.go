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

// ReadDSC reads a DSC file: discrete nodes with a table, given row by row.
func ReadDSC(r io.Reader, limits uai.Limits) (*factorgraph.Model, error) {
	n, err := newNetwork(lexicon{format: "dsc", stops: structure + ":=", comments: []string{"//"}, hasBlockComments: true}, r, limits)
	if err != nil {
		return nil, err
	}
	p := &dsc{n}
	for !p.atEnd() {
		offset := p.offset
		switch word := p.readWord(); word {
		case "belief":
			p.beginModel(offset, "belief network")
			if p.readWord() != "network" {
				p.failWanted("network", "after belief")
			}
			if p.peek() == '"' {
				p.readName() // it is not needed
			}
		case "properties":
			p.skipBlock("properties")
		case "node":
			p.readNode(offset)
		case "probability":
			p.readDistribution(offset)
		case "decision", "utility":
			p.failAs(fault.Unsupported, offset, uai.ErrModel, "%s is of the kind %s: a model has discrete chance nodes only",
				quote(p.readName()), word)
		default:
			p.offset = offset
			p.failWanted("a node or a probability", "between blocks")
		}
	}
	return p.finish()
}

// dsc reads a DSC file.
type dsc struct{ *network }

// skipBlock reads a block in braces and drops it.
func (p *dsc) skipBlock(place string) {
	p.expect('{', "after %s", place)
	for depth, start := 1, p.offset; depth > 0 && !p.failIfLong(start, "%s", place); {
		switch p.peek() {
		case '{':
			depth++
			p.offset++
		case '}':
			depth--
			p.offset++
		case '"':
			p.readName() // the whole text in quotes
		default:
			if p.atEnd() {
				p.failWanted("'}'", "in %s", place)
				return
			}
			p.offset++
		}
	}
}

// readNode reads a node with its states and its display name, and adds it. offset is where the node begins.
func (p *dsc) readNode(offset int) {
	name := p.readName()
	p.expect('{', "after node %s", quote(name))
	var states []string
	display := ""
	for !p.accept('}') && p.err == nil {
		p.peek() // skips white space and comments
		start := p.offset
		switch p.readWord() {
		case "name":
			p.skipAssignment()
			display = p.readName()
			p.skipTo(';', "node %s", quote(name))
		case "type":
			if states != nil {
				p.fail(start, uai.ErrSyntax, "node %s has two types", quote(name))
				return
			}
			p.skipAssignment()
			states = p.readStates(name)
		case "properties":
			p.skipBlock("the properties of node " + quote(name))
		case "":
			p.failWanted("'}'", "node %s", quote(name))
		default:
			p.skipTo(';', "node %s", quote(name))
		}
	}
	p.addNode(offset, name, states)
	p.setAlias(offset, len(p.m.Domains)-1, display)
}

// skipAssignment reads a colon or an equals sign, if one is next.
func (p *dsc) skipAssignment() {
	if !p.accept(':') {
		p.accept('=') // if it is there
	}
}

// readStates reads `discrete[2] = { "yes", "no" };` and returns the names. They may be left out.
func (p *dsc) readStates(name string) []string {
	announced := p.readDiscrete("node", name, fault.Unsupported)
	if announced == 0 {
		return nil
	}
	var states []string
	offset := p.offset
	if p.accept('='); p.accept('{') { // = may be left out
		states = p.readStateList("node", name, announced)
	} else {
		states = p.unnamedStates(offset, name, announced)
	}
	p.expect(';', "after the type of node %s", quote(name))
	return states
}

// readDistribution reads the table of a node, row by row. offset is where it begins.
func (p *dsc) readDistribution(offset int) {
	rows := p.openRows(offset)
	if rows == nil {
		return
	}
	for !p.accept('}') && p.err == nil {
		c := p.peek() // skips white space: the row begins at p.offset
		start := p.offset
		switch {
		case p.accept('('): // a row with the states of the parents
			r := p.readParentStates(start, rows)
			p.accept(':') // if it is there
			if p.err == nil {
				rows.readRow(start, r)
			}
		case len(rows.scope) == 1 && strings.IndexByte("0123456789.-?", c) >= 0: // the only row of a node without parents
			rows.readRow(start, 0)
		default:
			switch word := p.readWord(); word {
			case "default":
				p.skipAssignment()
				rows.readDefault(start)
			case "property":
				p.skipTo(';', "node %s", p.nameOf(rows.child()))
			case "function":
				p.skipAssignment()
				p.failAs(fault.Unsupported, start, uai.ErrModel, "node %s is given by the function %s, rows of numbers are read",
					p.nameOf(rows.child()), quote(p.readName()))
			default:
				p.offset = start
				p.failWanted("a row", "node %s", p.nameOf(rows.child()))
			}
		}
	}
	rows.fillMissing(offset)
}

// readParentStates reads `0, 1)`, the states of the parents by position or by name, and returns the index of their row.
func (p *dsc) readParentStates(offset int, rows *rowReader) (row int) {
	parents, count := rows.scope[:len(rows.scope)-1], 0
	for !p.accept(')') && p.err == nil {
		c := p.peek()
		start := p.offset
		label := p.readName()
		if label == "" && c != '"' {
			p.failWanted("a state", "node %s", p.nameOf(rows.child()))
			return 0
		}
		if count++; count <= len(parents) {
			isQuoted := c == '"' // then digits are a name, not a position
			row = row*rows.table.Shape[count-1] + p.stateIndex(start, parents[count-1], label, isQuoted)
		}
		p.accept(',') // if it is there
	}
	if count != len(parents) {
		p.fail(offset, uai.ErrModel, "node %s: a row names %d states, it has %d parents", p.nameOf(rows.child()), count, len(parents))
	}
	return row
}

// stateIndex returns the index of the state of node v that a label means: digits are a position, unless they are in
// quotes.
func (p *dsc) stateIndex(offset, v int, label string, isQuoted bool) int {
	x, err := strconv.Atoi(label)
	if err != nil || isQuoted {
		return p.findState(offset, v, label)
	}
	if x < 0 || x >= p.m.Domains[v] {
		p.fail(offset, uai.ErrModel, "node %s has no state %d, it has %d", p.nameOf(v), x, p.m.Domains[v])
		return 0
	}
	return x
}

// WriteDSC writes a Bayesian network as a DSC file that ReadDSC reads back with the same bits.
func WriteDSC(to io.Writer, m *factorgraph.Model) error {
	w, err := newNetworkWriter("dsc", to, m)
	if err != nil {
		return err
	}
	w.WriteString("belief network \"unknown\"\n")
	names := mapNames(dscName, w.names)
	for v, name := range names {
		states := strings.Join(mapNames(quoteName, w.states[v]), ", ")
		fmt.Fprintf(w, "node %s {\n", name)
		if display := w.displayName(v); display != w.names[v] {
			fmt.Fprintf(w, "  name : %s;\n", quoteName(display))
		}
		fmt.Fprintf(w, "  type : discrete [ %d ] = { %s };\n}\n", len(w.states[v]), states)
	}
	// Nothing stands before the row of a node without parents; states are their positions.
	w.writeDistributions(names, "", ") : ", func(_, x int) string { return strconv.Itoa(x) })
	return w.finish()
}

// dscName returns a node's name as DSC has it: in quotes if it is no identifier.
func dscName(name string) string {
	if identifier(name, "_") == name {
		return name
	}
	return quoteName(name)
}
