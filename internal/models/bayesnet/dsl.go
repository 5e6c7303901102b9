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
	n, err := newNetwork(lexicon{format: "dsl", stops: structure + "=", comments: []string{"//"}, hasBlockComments: true}, r, limits)
	if err != nil {
		return nil, err
	}
	p := &xdsl{network: n, ids: map[string]int{}}
	file := p.readTop("net")
	var nodes []*element
	for i := range file.fields {
		if block := &file.fields[i]; block.name == "node" && p.err == nil {
			node := p.asXDSL(block)
			nodes = append(nodes, node)
			p.readNode(node)
		}
	}
	for _, node := range nodes {
		p.readDistribution(node)
	}
	return p.finish()
}

// asXDSL returns a node of a DSL file as the element that XDSL has for it: its kind, id, parents, states and numbers.
func (p *xdsl) asXDSL(block *field) *element {
	// kind and id
	kind := p.wordOf(block.attribute("type"))
	node := &element{name: kindsOfDSL[kind], offset: block.offset}
	if node.name == "" {
		node.name = strings.ToLower(kind)
	}
	id := block.label
	if header := block.attribute("header"); header != nil && header.attribute("id") != nil {
		id = p.wordOf(header.attribute("id"))
	}
	node.setAttribute("id", id)

	// parents, states and numbers
	if parents := block.attribute("parents"); parents != nil {
		node.children = append(node.children, p.listElement("parents", parents))
	}
	definition := block.attribute("definition")
	if definition == nil {
		return node
	}
	// XDSL has the same names, but calls the probabilities of a noisymax parameters.
	nameInXDSL := map[string]string{"probabilities": "probabilities", "resultingstates": "resultingstates", "strengths": "strengths"}
	if node.name == "noisymax" {
		nameInXDSL["probabilities"] = "parameters"
	}
	p.forEachItem(definition.attribute("namestates"), func(offset int, word string) {
		state := &element{name: "state", offset: offset}
		state.setAttribute("id", word)
		node.children = append(node.children, state)
	})
	for i := range definition.fields {
		if name := nameInXDSL[definition.fields[i].name]; name != "" {
			node.children = append(node.children, p.listElement(name, &definition.fields[i]))
		}
	}
	return node
}

// listElement returns the words of a list as an XML element of this name with the words as its text.
func (p *xdsl) listElement(name string, e *field) *element {
	return &element{name: name, offset: e.offset, text: strings.Join(p.wordsOf(e), " ")}
}

// setAttribute adds an attribute.
func (e *element) setAttribute(name, value string) {
	e.attributes = append(e.attributes, xml.Attr{Name: xml.Name{Local: name}, Value: value})
}
