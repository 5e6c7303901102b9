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

// AddSwitch adds a switch to variable v: a new last variable S, a parent of v, whose size values have the same probability. At S = k
// (1 ≤ k ≤ len(values) < size) v has the value values[k−1] with probability 1. At S = 0 v has its table as before, if isLeft is true, which
// means that v is left alone there. At any other S, which nobody is to use, v has values[0]. Errors: m is no Bayesian network (bad_input);
// the table of v is of a form that has no switch, or too large with one (unsupported). Linear time in the table that is made.
func (m *Model) AddSwitch(v int, values []int, size int, isLeft bool) error {
	j, mode, err := m.tableOf(v) // the factor that is its table, and its mode there
	if err != nil {
		return err
	}
	positions := make([]int, size) // by value of S: the position in values, or −1 for the table as before
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
		return fault.New(fault.Unsupported, "do: %s has a factor that is no table", m.variableName(v))
	}
	// the switch: a new first variable of the table, and its own uniform table
	s := len(m.Domains)
	m.Domains = append(m.Domains, size)
	m.Factors[j] = Factor{Scope: slices.Concat([]int{s}, f.Scope), Table: table}
	prior := slices.Repeat([]float64{1 / float64(size)}, size)
	m.Factors = append(m.Factors, Factor{Scope: []int{s}, Table: &tensor.Dense{Shape: []int{size}, Data: prior}})
	m.describeSwitch(v)
	return nil
}

// describeSwitch gives the lists that describe variables and factors an entry for the last variable and factor, a switch to v.
func (m *Model) describeSwitch(v int) {
	if m.Names != nil {
		name := "do(" + m.Names[v] + ")"
		if m.Names[v] == "" || slices.Contains(m.Names, name) {
			name = "" // v has no name, or another variable has the switch's
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
		m.Lines = append(m.Lines, 0) // its table is on no line of a file
	}
}

// tooLarge returns the error for a table of v that has too many numbers with a switch.
func (m *Model) tooLarge(v int) error {
	return fault.New(
		fault.Unsupported, "do: the table of %s has more than %d numbers with the values that are set", m.variableName(v), maxSwitched,
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
	return 0, 0, fault.New(fault.BadInput, "do: %s has no table", m.variableName(v))
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
	childrenLast := Model{Domains: m.Domains, Factors: make([]Factor, len(m.Factors))}
	for j, f := range m.Factors {
		scope := slices.Clone(f.Scope)
		last := len(scope) - 1
		scope[nodes[j]], scope[last] = scope[last], scope[nodes[j]]
		childrenLast.Factors[j].Scope = scope
	}
	return childrenLast.hasParentsFirstOrder()
}

// variableName names variableName v in an error.
func (m *Model) variableName(v int) string {
	if v < len(m.Names) && m.Names[v] != "" {
		return strconv.Quote(m.Names[v])
	}
	return "variable " + strconv.Itoa(v)
}

// switchedTable returns a table with a switch as its first mode. At value s of the switch it is t if positions[s] is −1; else it is 1 if
// the variable at a mode has the value values[positions[s]], and 0 if not.
func switchedTable(t *tensor.Dense, mode int, values, positions []int) *tensor.Dense {
	switched := &tensor.Dense{Shape: slices.Concat([]int{len(positions)}, t.Shape), Data: make([]float64, 0, len(positions)*len(t.Data))}
	stride := strideOf(t, mode)
	for _, k := range positions {
		if k < 0 {
			switched.Data = append(switched.Data, t.Data...)
			continue
		}
		for entry := range t.Data {
			switched.Data = append(switched.Data, indicator(entry/stride%t.Shape[mode] == values[k]))
		}
	}
	return switched
}

// switchedCP is switchedTable for a CP factor, whose entries are sums of products: positions has, by value of the switch, −1 for the
// table as before, or a position in values. The terms of t get a factor for the switch that is 1 at −1 and else 0. A further term for
// each of values is 1 if the switch has its position and v the value, and else 0.
func switchedCP(t *tensor.CP, mode int, values, positions []int) *tensor.CP {
	terms := len(t.Weights) + len(values)
	switched := &tensor.CP{
		Shape:   slices.Concat([]int{len(positions)}, t.Shape),
		Weights: slices.Concat(t.Weights, slices.Repeat([]float64{1}, len(values))),
		Vectors: make([][]float64, 1+len(t.Shape)),
	}
	switchVectors := make([]float64, 0, terms*len(positions))
	for range t.Weights {
		for _, k := range positions {
			switchVectors = append(switchVectors, indicator(k < 0))
		}
	}
	for value := range values {
		for _, k := range positions {
			switchVectors = append(switchVectors, indicator(k == value))
		}
	}
	switched.Vectors[0] = switchVectors
	for l, d := range t.Shape {
		vectors := make([]float64, 0, terms*d)
		for k := range t.Weights {
			for x := range d {
				vectors = append(vectors, term{k, 1}.entry(t, l, x)) // entry does not use the weight 1
			}
		}
		for _, value := range values {
			for x := range d {
				vectors = append(vectors, indicator(l != mode || x == value))
			}
		}
		switched.Vectors[1+l] = vectors
	}
	return switched
}

// indicator returns 1 if the condition holds, else 0.
func indicator(condition bool) float64 {
	if condition {
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
