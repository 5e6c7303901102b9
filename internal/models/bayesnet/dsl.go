package bayesnet

// DSL, the older text format of GeNIe and SMILE: XDSL's nodes and numbers in blocks of attributes.

import (
	"encoding/xml"
	"io"
	"strings"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/uai"
)

// kindsOfDSL are the kinds of nodes as XDSL calls them.
var kindsOfDSL = map[string]string{
	"CPT": "cpt", "TRUTHTABLE": "deterministic", "NOISY_MAX": "noisymax", "NOISY_ADDER": "noisyadder",
	"LIST": "decision", "TABLE": "utility", "MAU": "mau", "ALU": "mau", "EQUATION": "equation",
}

// ReadDSL reads a DSL file. Nodes are called by their ids; kinds of nodes and the sequence of numbers are as in XDSL.
func ReadDSL(r io.Reader, limits uai.Limits) (*factorgraph.Model, error) {
	n, err := newNetwork(lexicon{"dsl", structure + "=", []string{"//"}, true}, r, limits)
	if err != nil {
		return nil, err
	}
	p := &xdsl{network: n, ids: map[string]int{}}
	file := p.top("net")
	var nodes []*element
	for i := range file.fields {
		if e := &file.fields[i]; e.name == "node" && p.err == nil {
			node := p.nodeOfDSL(e)
			nodes = append(nodes, node)
			p.declaration(node)
		}
	}
	for _, node := range nodes {
		p.definition(node)
	}
	return p.finish()
}

// nodeOfDSL is a node as XDSL has it.
func (p *xdsl) nodeOfDSL(e *field) *element {
	kind := p.wordOf(e.attribute("type"))
	node := &element{name: kindsOfDSL[kind], at: e.at}
	if node.name == "" {
		node.name = strings.ToLower(kind)
	}
	id := e.label
	if header := e.attribute("header"); header != nil && header.attribute("id") != nil {
		id = p.wordOf(header.attribute("id"))
	}
	node.set("id", id)
	if parents := e.attribute("parents"); parents != nil {
		node.kids = append(node.kids, p.gathered("parents", parents))
	}
	definition := e.attribute("definition")
	if definition == nil {
		return node
	}
	numbers := map[string]string{"probabilities": "probabilities", "resultingstates": "resultingstates", "strengths": "strengths"}
	if node.name == "noisymax" {
		numbers["probabilities"] = "parameters"
	}
	p.items(definition.attribute("namestates"), func(at int, word string) {
		state := &element{name: "state", at: at}
		state.set("id", word)
		node.kids = append(node.kids, state)
	})
	for i := range definition.fields {
		if name := numbers[definition.fields[i].name]; name != "" {
			node.kids = append(node.kids, p.gathered(name, &definition.fields[i]))
		}
	}
	return node
}

// gathered is a list as an element of XML has it: words between blanks.
func (p *xdsl) gathered(name string, e *field) *element {
	return &element{name: name, at: e.at, text: strings.Join(p.wordsOf(e), " ")}
}

// set gives an element an attribute.
func (e *element) set(name, value string) {
	e.attr = append(e.attr, xml.Attr{Name: xml.Name{Local: name}, Value: value})
}
