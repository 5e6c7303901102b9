package factorgraph

// Interventions: a switch as a further parent of a variable.

import (
	"slices"
	"strconv"

	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// maxSwitched bounds the numbers of a table with a switch.
const maxSwitched = 1 << 26

// AddSwitch adds a variable S with size values of the same probability behind all others, as a parent of variable v: at S = 0 v has its own
// table if isLeft, at S = k the value values[k−1] for certain. At all other S, which are not used, it has values[0]. There are values, and
// fewer than size. Errors: m is no Bayesian network (bad_input); the table of v is of a form that has no switch, or too large with one
// (unsupported). Linear time in the table that is made.
func (m *Model) AddSwitch(v int, values []int, size int, isLeft bool) error {
	j, mode, err := m.tableOf(v)
	if err != nil {
		return err
	}
	positions := make([]int, size) // in values for every S, −1 for the own table
	for s := range positions {
		if 1 <= s && s <= len(values) {
			positions[s] = s - 1
		}
	}
	if isLeft {
		positions[0] = -1
	}
	f := m.Factors[j]
	var table tensor.Tensor
	switch t := f.Table.(type) {
	case *tensor.Dense:
		if len(t.Data) > maxSwitched/size {
			return m.tooLarge(v)
		}
		table = switchedTable(t, mode, values, positions)
	case *tensor.CP:
		if terms := len(t.Weights) + len(values); terms > maxSwitched/(size+sumOfShape(t.Shape)) {
			return m.tooLarge(v)
		}
		table = switchedCP(t, mode, values, positions)
	default:
		return fault.New(fault.Unsupported, "do: %s has a factor that is no table", m.variable(v))
	}
	s := len(m.Domains)
	m.Domains = append(m.Domains, size)
	m.Factors[j] = Factor{Scope: slices.Concat([]int{s}, f.Scope), Table: table}
	prior := slices.Repeat([]float64{1 / float64(size)}, size)
	m.Factors = append(m.Factors, Factor{Scope: []int{s}, Table: &tensor.Dense{Shape: []int{size}, Data: prior}})
	if m.Names != nil {
		name := "do(" + m.Names[v] + ")"
		if m.Names[v] == "" || slices.Contains(m.Names, name) {
			name = ""
		}
		m.Names = append(m.Names, name)
	}
	if m.States != nil {
		m.States = append(m.States, nil)
	}
	if m.Aliases != nil {
		m.Aliases = append(m.Aliases, "")
	}
	m.Layout = nil // the switch is nowhere in the drawing
	if m.Lines != nil {
		m.Lines = append(m.Lines, 0)
	}
	return nil
}

// tooLarge is the error for a table that has too many numbers with a switch.
func (m *Model) tooLarge(v int) error {
	return fault.New(
		fault.Unsupported, "do: the table of %s has more than %d numbers with the values that are set", m.variable(v), maxSwitched,
	)
}

// tableOf returns the factor that is the conditional probability table of variable v, and the place of v in its scope.
func (m *Model) tableOf(v int) (factor, mode int, err error) {
	nodes := m.NetworkNodes()
	if nodes == nil {
		return 0, 0, fault.New(fault.BadInput, "do: the model is no Bayesian network, in which every variable has one table given its "+
			"parents: nothing says what causes what")
	}
	for j, f := range m.Factors {
		if f.Scope[nodes[j]] == v {
			return j, nodes[j], nil
		}
	}
	return 0, 0, fault.New(fault.BadInput, "do: %s has no table", m.variable(v))
}

// NetworkNodes returns the position in each factor's scope of the variable whose table the factor is, or nil if m is no Bayesian network by
// its scopes: it is not called one, two tables are of one variable, or a variable is its own ancestor. Numbers are not looked at; Directed
// looks at them, too. Time linear in the scopes.
func (m *Model) NetworkNodes() []int {
	if !m.Bayes {
		return nil
	}
	nodes := m.nodes()
	if nodes == nil || !m.isAcyclic(nodes) {
		return nil
	}
	return nodes
}

// isAcyclic reports whether parents can be put before their children, if nodes are the places of the children in the scopes.
func (m *Model) isAcyclic(nodes []int) bool {
	ordered := Model{Domains: m.Domains, Factors: make([]Factor, len(m.Factors))}
	for j, f := range m.Factors {
		scope := slices.Clone(f.Scope)
		last := len(scope) - 1
		scope[nodes[j]], scope[last] = scope[last], scope[nodes[j]]
		ordered.Factors[j].Scope = scope
	}
	return ordered.acyclic()
}

// variable names variable v in an error.
func (m *Model) variable(v int) string {
	if v < len(m.Names) && m.Names[v] != "" {
		return strconv.Quote(m.Names[v])
	}
	return "variable " + strconv.Itoa(v)
}

// switchedTable puts a switch before all modes of a table. positions are those of the values at every value of the switch, −1 for the
// table.
func switchedTable(t *tensor.Dense, mode int, values, positions []int) *tensor.Dense {
	out := &tensor.Dense{Shape: slices.Concat([]int{len(positions)}, t.Shape), Data: make([]float64, 0, len(positions)*len(t.Data))}
	stride := strideOf(t, mode)
	for _, k := range positions {
		if k < 0 {
			out.Data = append(out.Data, t.Data...)
			continue
		}
		for entry := range t.Data {
			out.Data = append(out.Data, unit(entry/stride%t.Shape[mode] == values[k]))
		}
	}
	return out
}

// switchedCP puts a switch before all modes of a CP factor: its terms are there if the position is −1, and a term for each value that is
// set.
func switchedCP(t *tensor.CP, mode int, values, positions []int) *tensor.CP {
	terms := len(t.Weights) + len(values)
	out := &tensor.CP{
		Shape:   slices.Concat([]int{len(positions)}, t.Shape),
		Weights: slices.Concat(t.Weights, slices.Repeat([]float64{1}, len(values))),
		Vectors: make([][]float64, 1+len(t.Shape)),
	}
	first := make([]float64, 0, terms*len(positions))
	for range t.Weights {
		for _, k := range positions {
			first = append(first, unit(k < 0))
		}
	}
	for value := range values {
		for _, k := range positions {
			first = append(first, unit(k == value))
		}
	}
	out.Vectors[0] = first
	for l, d := range t.Shape {
		vectors := make([]float64, 0, terms*d)
		for k := range t.Weights {
			for x := range d {
				vectors = append(vectors, term{k, 1}.at(t, l, x))
			}
		}
		for _, value := range values {
			for x := range d {
				vectors = append(vectors, unit(l != mode || x == value))
			}
		}
		out.Vectors[1+l] = vectors
	}
	return out
}

// unit is 1 if it is true, else 0.
func unit(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

func sumOfShape(shape []int) (sum int) {
	for _, d := range shape {
		sum += d
	}
	return sum
}
