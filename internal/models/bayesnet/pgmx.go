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

// ReadPGMX reads a ProbModelXML file of a Bayesian network. A potential is a table, or uniform, or a model of independent causes whose node
// has the largest (OR / MAX) or the smallest (AND / MIN) of their effects. Other types of networks, variables and potentials, and links
// with restrictions, are refused with fault.Unsupported.
func ReadPGMX(r io.Reader, limits uai.Limits) (*factorgraph.Model, error) {
	n, err := newNetwork(lexicon{format: "pgmx"}, r, limits)
	if err != nil {
		return nil, err
	}
	p := &pgmx{n}
	p.checkKind()
	p.forEachElement([]string{"probmodelxml", "probnet", "variables"}, p.readVariable)
	p.forEachElement([]string{"probmodelxml", "probnet", "links"}, func(e *element) {
		if restrictions, _ := e.onlyChild("potential"); restrictions != nil && p.err == nil { // a potential of a link
			p.failAs(fault.Unsupported, e.offset, uai.ErrModel, "a link has a restriction, potentials of nodes are read")
		}
	})
	p.forEachElement([]string{"probmodelxml", "probnet", "potentials"}, p.readPotential)
	return p.finish()
}

// pgmx reads a ProbModelXML file.
type pgmx struct{ *network }

// checkKind notes an error if the first ProbNet of the file is not a Bayesian network.
func (p *pgmx) checkKind() {
	d := p.newDecoder()
	for p.err == nil {
		offset := int(d.InputOffset())
		token, err := d.RawToken()
		if err != nil {
			return // reading the elements reports it
		}
		if e, ok := token.(xml.StartElement); ok && strings.EqualFold(e.Name.Local, "probnet") {
			node := element{attributes: e.Attr}
			if kind := node.attribute("type"); !strings.EqualFold(kind, "BayesianNetwork") {
				p.failAs(fault.Unsupported, offset, uai.ErrModel, "the network is of the type %s: BayesianNetwork is read", quote(kind))
			}
			return
		}
	}
}

// readVariable reads a variable with its states and adds it.
func (p *pgmx) readVariable(e *element) {
	name, kind, role := e.attribute("name"), e.attribute("type"), e.attribute("role")
	var states []string
	if list, _ := e.onlyChild("states"); list != nil { // the first one, if there are several
		for _, state := range list.childrenNamed("state") {
			states = append(states, state.attribute("name"))
		}
	}
	switch {
	case p.err != nil:
	case role != "" && !strings.EqualFold(role, "chance"):
		p.failAs(fault.Unsupported, e.offset, uai.ErrModel, "variable %s has the role %s: a model has chance variables only", quote(name), role)
	case strings.EqualFold(kind, "numeric"):
		p.failAs(fault.Unsupported, e.offset, uai.ErrModel, "variable %s is numeric: variables with states are read", quote(name))
	case e.attribute("timeslice") != "":
		p.failAs(fault.Unsupported, e.offset, uai.ErrModel, "variable %s has a time slice: unroll the network first", quote(name))
	default:
		p.addNode(e.offset, name, states)
	}
}

// readPotential reads the distribution of a node and adds it.
func (p *pgmx) readPotential(e *element) {
	scope := p.readScope(e)
	if p.err != nil {
		return
	}
	kind := strings.ToLower(strings.ReplaceAll(e.attribute("type"), " ", ""))
	place := "the potential of " + p.nameOf(scope[len(scope)-1])
	switch role := e.attribute("role"); {
	case role != "" && !strings.EqualFold(role, "conditionalProbability"):
		p.failAs(fault.Unsupported, e.offset, uai.ErrModel, "%s has the role %s: conditional probabilities are read", place, quote(role))
	case kind == "table" || kind == "probtable":
		if t := p.addTable(e.offset, scope); t != nil {
			p.readValues(e, place, t.Data)
		}
	case kind == "uniform":
		if t := p.addTable(e.offset, scope); t != nil {
			for i := range t.Data {
				t.Data[i] = 1 / float64(t.Shape[len(t.Shape)-1])
			}
		}
	case kind == "icimodel":
		p.readIndependentCauses(e, scope, place)
	default:
		p.failAs(fault.Unsupported, e.offset, uai.ErrModel, "%s is of the type %s: Table, ProbTable, Uniform and ICIModel are read", place,
			quote(e.attribute("type")))
	}
}

// readScope returns the variables of a potential: the parents, the last one of the file first, then the node.
// OpenMarkov writes the list of a model of independent causes twice, so a second list has to be equal.
func (p *pgmx) readScope(e *element) (scope []int) {
	for i, list := range e.childrenNamed("variables") {
		var variables []int
		for _, variable := range list.childrenNamed("variable") {
			variables = append(variables, p.findVariable(variable.offset, variable.attribute("name")))
		}
		if i > 0 && !slices.Equal(variables, scope) {
			p.fail(list.offset, uai.ErrModel, "a potential has two lists of variables")
		}
		scope = variables
	}
	if len(scope) == 0 {
		p.fail(e.offset, uai.ErrSyntax, "a potential needs a list of variables")
	}
	slices.Reverse(scope)
	return scope
}

// readValues reads the numbers of a potential into list.
func (p *pgmx) readValues(e *element, place string, list []float64) {
	values, isOnly := e.onlyChild("values")
	if values == nil || !isOnly {
		p.fail(e.offset, uai.ErrSyntax, "%s needs one element Values", place)
		return
	}
	p.readNumbers(values, place, list)
}

// readIndependentCauses reads a model of independent causes. Each parent has an effect, a state of the node, and so has the leak, which is
// there without a cause. The node has the largest of these states, in their sequence, if the model is a MAX, and the smallest if it is a
// MIN.
func (p *pgmx) readIndependentCauses(e *element, scope []int, place string) {
	// the kind of the model
	model, _ := e.onlyChild("model") // the first one, if there are several
	list, _ := e.onlyChild("subpotentials")
	name := ""
	if model != nil {
		name = strings.ToUpper(strings.ReplaceAll(model.text, " ", ""))
	}
	isMax := strings.Contains(name, "MAX")
	switch {
	case !isMax && !strings.Contains(name, "MIN"):
		p.failAs(fault.Unsupported, e.offset, uai.ErrModel, "%s is the model %s: OR / MAX and AND / MIN are read", place, quote(name))
		return
	case list == nil:
		p.fail(e.offset, uai.ErrSyntax, "%s needs an element Subpotentials", place)
		return
	case !p.addFactor(e.offset, scope):
		return
	}

	// its table
	shape := p.shapeOf(scope)
	links, leak, ok := p.readEffects(list, scope, shape, isMax, place)
	if !ok {
		return
	}
	f := &p.m.Factors[len(p.m.Factors)-1]
	f.Table = &tensor.Dense{Shape: shape, Data: leak}
	if len(scope) > 1 {
		f.Table = noisyMaxTable(shape, links, leak)
	}
	if isMax { // readEffects has reversed the states
		reverseLast(f.Table)
	}
}

// leakTable is the number of the leak's table, where the tables of the parents are numbered from 0. noTable is that of a table that a model
// of independent causes does not have.
const leakTable, noTable = -1, -2

// tableOf returns the number of the table of a subpotential, by its variables: it has to be of one parent and the node, or, for the leak,
// of the node alone. scope has the parents and then the node.
func tableOf(variables, scope []int) int {
	last := len(scope) - 1
	parent := slices.Index(scope[:last], variables[0])
	switch {
	case variables[len(variables)-1] != scope[last]:
		return noTable
	case len(variables) == 1:
		return leakTable
	case len(variables) == 2 && parent >= 0:
		return parent
	default:
		return noTable
	}
}

// readEffects reads the tables of a model of independent causes. links[k] has, for each state of parent k, the distribution of its effect:
// the state that the node would have by this cause alone. leak is the distribution of the effect without a cause; if the file has none, it
// is the last state, the weakest, for certain. For a MAX the states of the effects are in reverse, since noisyMaxTable has the strongest
// one first. ok is false if reading has failed; then p.err has the error.
func (p *pgmx) readEffects(list *element, scope, shape []int, isMax bool, place string) (links [][]float64, leak []float64, ok bool) {
	parents, d := scope[:len(scope)-1], shape[len(shape)-1]
	links = make([][]float64, len(parents))
	for _, e := range list.childrenNamed("potential") {
		variables := p.readScope(e)
		if p.err != nil {
			return nil, nil, false
		}
		k := tableOf(variables, scope)
		table, size := &leak, d // what k means, and its number of entries
		if k >= 0 {
			table, size = &links[k], decimal.Entries([]int{shape[k], d})
		}
		if k == noTable || *table != nil {
			p.fail(e.offset, uai.ErrModel, "%s: a subpotential is of one parent and the node, or of the node, each once", place)
			return nil, nil, false
		}
		*table = p.readEffectTable(e, scope, size, place)
		if *table == nil {
			return nil, nil, false
		}
		if isMax {
			reverseRows(*table, d)
		}
	}

	// all parents have a table, and there is a leak
	for k, link := range links {
		if link == nil && p.err == nil {
			p.fail(list.offset, uai.ErrModel, "%s: no subpotential of the parent %s", place, p.nameOf(parents[k]))
		}
	}
	if leak == nil {
		leak = make([]float64, d)
		leak[d-1] = 1
	}
	return links, leak, p.err == nil
}

// readEffectTable reads the size numbers of a subpotential. It returns nil, after an error, if they are too many for the budget or some are
// unknown.
func (p *pgmx) readEffectTable(e *element, scope []int, size int, place string) []float64 {
	if !p.spendNumbers(e.offset, scope, size) {
		return nil
	}
	table := make([]float64, size)
	p.readValues(e, place, table)
	if slices.ContainsFunc(table, math.IsNaN) {
		p.fail(e.offset, uai.ErrModel, "%s: numbers of a subpotential are unknown, and only tables are learned", place)
		return nil
	}
	return table
}

// spendNumbers takes numbers from the budget of entries, with those that they take in the terms of a noisy-max. It
// returns false, after an error, if the budget is too small.
func (p *pgmx) spendNumbers(offset int, scope []int, size int) bool {
	d := p.m.Domains[scope[len(scope)-1]]
	return p.spendEntries(offset, scope, []int{size, 1 + d})
}

// reverseRows reverses every row of a table, each of d numbers.
func reverseRows(table []float64, d int) {
	for row := range slices.Chunk(table, d) {
		slices.Reverse(row)
	}
}

// reverseLast reverses the sequence of the states of a table's last variable.
func reverseLast(t tensor.Tensor) {
	switch t := t.(type) {
	case *tensor.Dense:
		reverseRows(t.Data, t.Shape[len(t.Shape)-1])
	case *tensor.CP:
		reverseRows(t.Vectors[len(t.Vectors)-1], t.Shape[len(t.Shape)-1])
	}
}
