package bayesnet

// XMLBIF 0.3, as JavaBayes defined it and Weka, pgmpy and aGrUM (bifxml) write it, with the element
// BIF around NETWORK or without. The numbers of a definition have the node fastest, then the last of the given ones.

import (
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/uai"
)

// ReadXMLBIF reads an XMLBIF file: first all variables, then their tables.
func ReadXMLBIF(r io.Reader, limits uai.Limits) (*factorgraph.Model, error) {
	n, err := newNetwork(lexicon{format: "xmlbif"}, r, limits)
	if err != nil {
		return nil, err
	}
	p := &xmlbif{n}
	p.text = malformedComment.ReplaceAllStringFunc(p.text, blankText) // comments that are none in XML, as pyAgrum has written them
	path := []string{"bif", "network"}
	if p.rootName() == "network" { // some files have no element bif
		path = path[1:]
	}
	p.forEachElement(path, func(e *element) {
		if e.name == "variable" && p.err == nil {
			p.readVariable(e)
		}
	})
	p.forEachElement(path, func(e *element) {
		if (e.name == "definition" || e.name == "probability") && p.err == nil {
			p.readDefinition(e)
		}
	})
	return p.finish()
}

// malformedComment is a comment that is none in XML, as pyAgrum 2.1.0 to 2.2.1 writes it into every variable.
var malformedComment = regexp.MustCompile(`<!- [^<>]*->`)

// blankText returns white space in place of a text, with the same length and lines.
func blankText(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' {
			return r
		}
		return ' '
	}, text)
}

// xmlbif reads an XMLBIF file.
type xmlbif struct{ *network }

// readVariable reads a node and adds it.
func (p *xmlbif) readVariable(e *element) {
	name, isOnly := e.onlyChild("name")
	if name == nil || !isOnly {
		p.fail(e.offset, uai.ErrSyntax, "a VARIABLE needs one NAME")
		return
	}
	if kind := strings.ToLower(e.attribute("type")); kind == "decision" || kind == "utility" {
		p.failAs(fault.Unsupported, e.offset, uai.ErrModel, "%s is of the kind %s: a model has discrete chance nodes only",
			quote(name.text), kind)
		return
	}
	var states []string
	for _, kid := range e.children {
		if kid.name == "outcome" || kid.name == "value" {
			states = append(states, kid.text)
		}
	}
	for _, property := range e.childrenNamed("property") {
		p.setPositionFrom(len(p.m.Domains), strings.TrimSpace(property.text)) // of the node that is added below
	}
	p.addNode(e.offset, name.text, states)
}

// readDefinition reads the table of a node, all of it unknown if there are no numbers.
func (p *xmlbif) readDefinition(e *element) {
	node, isOnly := e.onlyChild("for")
	if node == nil || !isOnly {
		p.fail(e.offset, uai.ErrSyntax, "a DEFINITION needs one FOR")
		return
	}
	var scope []int
	for _, given := range e.childrenNamed("given") {
		scope = append(scope, p.network.findVariable(given.offset, given.text))
	}
	scope = append(scope, p.network.findVariable(node.offset, node.text))
	t := p.addTable(e.offset, scope)
	if t == nil {
		return
	}
	only, isOnly := e.onlyChild("table")
	if !isOnly {
		p.fail(e.offset, uai.ErrSyntax, "node %s: a DEFINITION has two TABLEs", quote(node.text))
		return
	}
	if only == nil {
		p.markUnknown(t)
		return
	}
	p.readNumbers(only, "node "+quote(node.text), t.Data)
}

// WriteXMLBIF writes a Bayesian network as an XMLBIF file that ReadXMLBIF reads back with the same bits.
func WriteXMLBIF(to io.Writer, m *factorgraph.Model) error {
	w, err := newNetworkWriter("xmlbif", to, m)
	if err != nil {
		return err
	}
	w.WriteString("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<BIF VERSION=\"0.3\">\n<NETWORK>\n<NAME>unknown</NAME>\n")
	names := make([]string, len(w.names))
	for v, name := range w.names {
		names[v] = w.escapeXML(name)
		fmt.Fprintf(w, "<VARIABLE TYPE=\"nature\">\n  <NAME>%s</NAME>\n", names[v])
		for _, state := range w.states[v] {
			fmt.Fprintf(w, "  <OUTCOME>%s</OUTCOME>\n", w.escapeXML(state))
		}
		w.WriteString("</VARIABLE>\n")
	}
	for j := range w.tables {
		fmt.Fprintf(w, "<DEFINITION>\n  <FOR>%s</FOR>\n", names[w.child(j)])
		for _, p := range w.parents(j) {
			fmt.Fprintf(w, "  <GIVEN>%s</GIVEN>\n", names[p])
		}
		w.WriteString("  <TABLE>\n")
		w.forEachRow(j, func(row []float64, _ []int) {
			w.WriteString("    ")
			w.writeNumbers(row, " ")
			w.WriteByte('\n')
		})
		w.WriteString("  </TABLE>\n</DEFINITION>\n")
	}
	w.WriteString("</NETWORK>\n</BIF>\n")
	return w.finish()
}
