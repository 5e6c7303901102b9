package bayesnet

// ProbModelXML, the format of OpenMarkov. The first variable of a potential is its node and the fastest one, then come the parents, the
// last one slowest. A model of independent causes has a table for every parent by itself, and one for the leak.

import (
	"encoding/xml"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/basetensor/basetensor/internal/base/decimal"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/tensor"
	"github.com/basetensor/basetensor/pkg/uai"
)

// ReadPGMX reads a ProbModelXML file of a Bayesian network: potentials that are tables, uniform, or models of independent causes for the
// largest or the smallest effect. Other types of networks, variables and potentials, and links with restrictions, are refused with
// fault.Unsupported.
func ReadPGMX(r io.Reader, limits uai.Limits) (*factorgraph.Model, error) {
	n, err := newNetwork(lexicon{format: "pgmx"}, r, limits)
	if err != nil {
		return nil, err
	}
	p := &pgmx{n}
	p.kind()
	network := []string{"probmodelxml", "probnet"}
	below := func(name string) []string { return append(slices.Clone(network), name) }
	p.elements(below("variables"), p.declaration)
	p.elements(below("links"), func(e *element) {
		if restrictions, _ := e.only("potential"); restrictions != nil && p.err == nil {
			p.failAs(fault.Unsupported, e.at, uai.ErrModel, "a link has a restriction, potentials of nodes are read")
		}
	})
	p.elements(below("potentials"), p.potential)
	return p.finish()
}

// pgmx reads a ProbModelXML file.
type pgmx struct{ *network }

// kind refuses other networks than Bayesian ones, by the type of the first ProbNet.
func (p *pgmx) kind() {
	d := p.decoder()
	for p.err == nil {
		offset := int(d.InputOffset())
		token, err := d.RawToken()
		if err != nil {
			return // elements says it, or that there is none
		}
		if e, ok := token.(xml.StartElement); ok && strings.EqualFold(e.Name.Local, "probnet") {
			node := element{attr: e.Attr}
			if kind := node.attribute("type"); !strings.EqualFold(kind, "BayesianNetwork") {
				p.failAs(fault.Unsupported, offset, uai.ErrModel, "the network is of the type %s: BayesianNetwork is read", quoted(kind))
			}
			return
		}
	}
}

// declaration reads a variable with its states.
func (p *pgmx) declaration(e *element) {
	name, kind, role := e.attribute("name"), e.attribute("type"), e.attribute("role")
	var states []string
	if list, _ := e.only("states"); list != nil {
		for _, state := range list.all("state") {
			states = append(states, state.attribute("name"))
		}
	}
	switch {
	case p.err != nil:
	case role != "" && !strings.EqualFold(role, "chance"):
		p.failAs(fault.Unsupported, e.at, uai.ErrModel, "variable %s has the role %s: a model has chance variables only", quoted(name), role)
	case strings.EqualFold(kind, "numeric"):
		p.failAs(fault.Unsupported, e.at, uai.ErrModel, "variable %s is numeric: variables with states are read", quoted(name))
	case e.attribute("timeslice") != "":
		p.failAs(fault.Unsupported, e.at, uai.ErrModel, "variable %s has a time slice: unroll the network first", quoted(name))
	default:
		p.node(e.at, name, states)
	}
}

// potential reads the distribution of a node.
func (p *pgmx) potential(e *element) {
	scope := p.scope(e)
	if p.err != nil {
		return
	}
	kind := strings.ToLower(strings.ReplaceAll(e.attribute("type"), " ", ""))
	where := "the potential of " + p.called(scope[len(scope)-1])
	switch role := e.attribute("role"); {
	case role != "" && !strings.EqualFold(role, "conditionalProbability"):
		p.failAs(fault.Unsupported, e.at, uai.ErrModel, "%s has the role %s: conditional probabilities are read", where, quoted(role))
	case kind == "table" || kind == "probtable":
		if t := p.table(e.at, scope); t != nil {
			p.values(e, where, t.Data)
		}
	case kind == "uniform":
		if t := p.table(e.at, scope); t != nil {
			for i := range t.Data {
				t.Data[i] = 1 / float64(t.Shape[len(t.Shape)-1])
			}
		}
	case kind == "icimodel":
		p.causes(e, scope, where)
	default:
		p.failAs(fault.Unsupported, e.at, uai.ErrModel, "%s is of the type %s: Table, ProbTable, Uniform and ICIModel are read", where,
			quoted(e.attribute("type")))
	}
}

// scope reads the variables of a potential: the parents, the last one first, and the node. OpenMarkov writes the list of a model of
// independent causes twice.
func (p *pgmx) scope(e *element) (scope []int) {
	for i, list := range e.all("variables") {
		var again []int
		for _, variable := range list.all("variable") {
			again = append(again, p.variable(variable.at, variable.attribute("name")))
		}
		if i > 0 && !slices.Equal(again, scope) {
			p.fail(list.at, uai.ErrModel, "a potential has two lists of variables")
		}
		scope = again
	}
	if len(scope) == 0 {
		p.fail(e.at, uai.ErrSyntax, "a potential needs a list of variables")
	}
	slices.Reverse(scope)
	return scope
}

// values reads the numbers of a potential.
func (p *pgmx) values(e *element, where string, into []float64) {
	list, once := e.only("values")
	if list == nil || !once {
		p.fail(e.at, uai.ErrSyntax, "%s needs one element Values", where)
		return
	}
	p.numbers(list, where, into)
}

// causes reads a model of independent causes: the node has the largest of the effects, or the smallest, by the sequence of its states.
func (p *pgmx) causes(e *element, scope []int, where string) {
	model, _ := e.only("model")
	list, _ := e.only("subpotentials")
	name := ""
	if model != nil {
		name = strings.ToUpper(strings.ReplaceAll(model.text, " ", ""))
	}
	largest := strings.Contains(name, "MAX")
	switch {
	case !largest && !strings.Contains(name, "MIN"):
		p.failAs(fault.Unsupported, e.at, uai.ErrModel, "%s is the model %s: OR / MAX and AND / MIN are read", where, quoted(name))
		return
	case list == nil:
		p.fail(e.at, uai.ErrSyntax, "%s needs an element Subpotentials", where)
		return
	case !p.factor(e.at, scope):
		return
	}
	shape := p.shape(scope)
	links, leak, ok := p.effects(list, scope, shape, largest, where)
	if !ok {
		return
	}
	f := &p.m.Factors[len(p.m.Factors)-1]
	f.Table = &tensor.Dense{Shape: shape, Data: leak}
	if len(scope) > 1 {
		f.Table = noisyMax(shape, links, leak)
	}
	if largest {
		reverseLast(f.Table)
	}
}

// effects reads the tables of a model of independent causes: of every parent by itself, and of the leak, which is no effect where there is
// none. For the largest effect the node's states are in reverse, since noisyMax has the strongest one first.
func (p *pgmx) effects(list *element, scope, shape []int, largest bool, where string) (links [][]float64, leak []float64, ok bool) {
	parents, d := scope[:len(scope)-1], shape[len(shape)-1]
	child := scope[len(parents)]
	links = make([][]float64, len(parents))
	for _, e := range list.all("potential") {
		part := p.scope(e)
		if p.err != nil {
			return nil, nil, false
		}
		k := slices.Index(parents, part[0])
		if len(part) == 1 {
			k = -1
		}
		if part[len(part)-1] != child || len(part) > 2 || len(part) == 2 && k < 0 || k >= 0 && links[k] != nil || k < 0 && leak != nil {
			p.fail(e.at, uai.ErrModel, "%s: a subpotential is of one parent and the node, or of the node, each once", where)
			return nil, nil, false
		}
		size := d
		if k >= 0 {
			size = decimal.Entries([]int{shape[k], d})
		}
		if !p.spendNumbers(e.at, scope, size) {
			return nil, nil, false
		}
		table := make([]float64, size)
		p.values(e, where, table)
		if slices.ContainsFunc(table, math.IsNaN) {
			p.fail(e.at, uai.ErrModel, "%s: numbers of a subpotential are unknown, and only tables are learned", where)
			return nil, nil, false
		}
		if largest {
			reverseRows(table, d)
		}
		if k >= 0 {
			links[k] = table
		} else {
			leak = table
		}
	}
	for k, link := range links {
		if link == nil && p.err == nil {
			p.fail(list.at, uai.ErrModel, "%s: no subpotential of the parent %s", where, p.called(parents[k]))
		}
	}
	if leak == nil {
		leak = make([]float64, d)
		leak[d-1] = 1
	}
	return links, leak, p.err == nil
}

// spendNumbers takes numbers from the rest of the budget: those that are read and those of a term of a noisy-max.
func (p *pgmx) spendNumbers(at int, scope []int, size int) bool {
	d := p.m.Domains[scope[len(scope)-1]]
	return p.spend(at, scope, []int{size, 1 + d})
}

// reverseRows reverses every row of a table.
func reverseRows(table []float64, d int) {
	for row := range slices.Chunk(table, d) {
		slices.Reverse(row)
	}
}

// reverseLast reverses the states of a table's last variable.
func reverseLast(t tensor.Tensor) {
	switch t := t.(type) {
	case *tensor.Dense:
		reverseRows(t.Data, t.Shape[len(t.Shape)-1])
	case *tensor.CP:
		reverseRows(t.Vectors[len(t.Vectors)-1], t.Shape[len(t.Shape)-1])
	}
}
