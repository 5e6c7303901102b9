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

// ReadXMLBIF reads an XMLBIF file.
func ReadXMLBIF(r io.Reader, limits uai.Limits) (*factorgraph.Model, error) {
	n, err := newNetwork(lexicon{format: "xmlbif"}, r, limits)
	if err != nil {
		return nil, err
	}
	p := &xmlbif{n}
	p.text = malformedComment.ReplaceAllStringFunc(p.text, blank)
	path := []string{"bif", "network"}
	if p.root() == "network" {
		path = path[1:]
	}
	p.elements(path, func(e *element) {
		if e.name == "variable" && p.err == nil {
			p.variable(e)
		}
	})
	p.elements(path, func(e *element) {
		if (e.name == "definition" || e.name == "probability") && p.err == nil {
			p.definition(e)
		}
	})
	return p.finish()
}

// malformedComment is a comment that is none in XML, as pyAgrum 2.1.0 to 2.2.1 writes it into every variable.
var malformedComment = regexp.MustCompile(`<!- [^<>]*->`)

// blank is white space of the same length and lines.
func blank(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' {
			return r
		}
		return ' '
	}, text)
}

// xmlbif reads an XMLBIF file.
type xmlbif struct{ *network }

// variable reads a node.
func (p *xmlbif) variable(e *element) {
	name, once := e.only("name")
	if name == nil || !once {
		p.fail(e.at, uai.ErrSyntax, "a VARIABLE needs one NAME")
		return
	}
	if kind := strings.ToLower(e.attribute("type")); kind == "decision" || kind == "utility" {
		p.failAs(fault.Unsupported, e.at, uai.ErrModel, "%s is of the kind %s: a model has discrete chance nodes only", quoted(name.text), kind)
		return
	}
	var states []string
	for _, kid := range e.kids {
		if kid.name == "outcome" || kid.name == "value" {
			states = append(states, kid.text)
		}
	}
	for _, property := range e.all("property") {
		p.drawBy(len(p.m.Domains), strings.TrimSpace(property.text))
	}
	p.node(e.at, name.text, states)
}

// definition reads the table of a node.
func (p *xmlbif) definition(e *element) {
	node, once := e.only("for")
	if node == nil || !once {
		p.fail(e.at, uai.ErrSyntax, "a DEFINITION needs one FOR")
		return
	}
	var scope []int
	for _, given := range e.all("given") {
		scope = append(scope, p.network.variable(given.at, given.text))
	}
	scope = append(scope, p.network.variable(node.at, node.text))
	t := p.table(e.at, scope)
	if t == nil {
		return
	}
	list, once := e.only("table")
	if !once {
		p.fail(e.at, uai.ErrSyntax, "node %s: a DEFINITION has two TABLEs", quoted(node.text))
		return
	}
	if list == nil {
		p.isUnknown(t)
		return
	}
	p.numbers(list, "node "+quoted(node.text), t.Data)
}

// WriteXMLBIF writes a Bayesian network as an XMLBIF file that ReadXMLBIF reads back with the same bits.
func WriteXMLBIF(to io.Writer, m *factorgraph.Model) error {
	w, err := newWritten("xmlbif", to, m)
	if err != nil {
		return err
	}
	w.WriteString("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<BIF VERSION=\"0.3\">\n<NETWORK>\n<NAME>unknown</NAME>\n")
	names := make([]string, len(w.names))
	for v, name := range w.names {
		names[v] = w.escaped(name)
		fmt.Fprintf(w, "<VARIABLE TYPE=\"nature\">\n  <NAME>%s</NAME>\n", names[v])
		for _, state := range w.states[v] {
			fmt.Fprintf(w, "  <OUTCOME>%s</OUTCOME>\n", w.escaped(state))
		}
		w.WriteString("</VARIABLE>\n")
	}
	for j := range w.tables {
		fmt.Fprintf(w, "<DEFINITION>\n  <FOR>%s</FOR>\n", names[w.child(j)])
		for _, p := range w.parents(j) {
			fmt.Fprintf(w, "  <GIVEN>%s</GIVEN>\n", names[p])
		}
		w.WriteString("  <TABLE>\n")
		w.each(j, func(row []float64, _ []int) {
			w.WriteString("    ")
			w.numbers(row, " ")
			w.WriteByte('\n')
		})
		w.WriteString("  </TABLE>\n</DEFINITION>\n")
	}
	w.WriteString("</NETWORK>\n</BIF>\n")
	return w.close()
}
