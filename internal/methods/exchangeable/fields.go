package exchangeable

// Weights of single variables under evidence, and the variables of a class that have the same.

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/base/pace"
)

// group is the variables of a class with the same weights.
type group struct {
	variables []int32
	field     []logarithm // by the class's value, nats
	support   []int       // values whose weight is not 0
}

// fields are the weights of single variables.
type fields struct {
	constant logarithm
	groups   [][]group              // by class
	lnError  float64                // Σ of the differences between weights of one group, nats
	leaves   map[int32]*conditional // leaves of one neighbour or none
}

// fieldsOf returns the weights of the classes' variables: the product of those of the network's links, of tables over one variable, of
// leaves with one neighbour, and of the parts of larger tables that depend on one variable. A leaf is a variable that is summed out first,
// or maximised over with isMaximal. It returns nil if a weight is below 0. Cost O(values · log variables).
func fieldsOf(ctx context.Context, m *interactions, p *partition, weights [][]float64, isMaximal bool) (*fields, error) {
	look := pace.New(ctx) // counts operations, and is over once the context has ended
	logs, err := m.ownFields(p, weights, look)
	if logs == nil || err != nil {
		return nil, err
	}
	f := &fields{constant: m.constant, leaves: map[int32]*conditional{}}
	if ok, err := f.multiplyLeaves(m, p, weights, isMaximal, logs, look); !ok || err != nil {
		return nil, err
	}

	// Divide each class into groups of variables with the same weights.
	members := make([][]int32, p.count)
	for v, c := range p.classOf {
		if c >= 0 { // no leaf
			members[c] = append(members[c], int32(v))
		}
	}
	for _, list := range members {
		f.groups = append(f.groups, f.divideIntoGroups(list, logs))
	}
	return f, nil
}

// ownFields returns the logarithms of the variables' weights without those of leaves: of links, of tables over one variable, and of the
// parts of larger tables over one variable. They are by variable and the class's value, which a relabelling gives for the variable's own
// value (canonical). Those of a leaf are nil. The result is nil if a weight is below 0.
func (m *interactions) ownFields(p *partition, weights [][]float64, look *pace.Pace) ([][]logarithm, error) {
	logs := make([][]logarithm, len(m.domains))
	for v, list := range weights {
		if m.leafOf[v] != nil {
			continue
		}
		logs[v] = make([]logarithm, len(list))
		for x, w := range list {
			if !(w >= 0) { // below 0, or not a number
				return nil, nil
			}
			ln := logarithmOf(w)
			for _, id := range m.unaryTables[v] {
				ln = ln.plus(logarithmOf(m.tables[id].data[x]))
			}
			if m.field[v] != nil {
				ln = ln.plus(m.field[v][x])
			}
			logs[v][p.canonical(int32(v), x)] = ln // at the class's value of the variable's value x
		}
		if look.Over(int64(8 * len(list))) { // about 8 operations for a logarithm
			return nil, look.Err()
		}
	}
	return logs, nil
}

// multiplyLeaves sums out the leaves with one neighbour or none, or maximises over them with isMaximal. The result of a leaf without
// neighbours is added to f.constant, that of another one to the logs of its neighbour, which are by variable and the class's value
// (canonical). It returns false if a weight is below 0.
func (f *fields) multiplyLeaves(
	m *interactions, p *partition, weights [][]float64, isMaximal bool, logs [][]logarithm, look *pace.Pace,
) (ok bool, err error) {
	for v, l := range m.leafOf {
		if l == nil || len(l.neighbours) == 2 { // leaves with two neighbours are interactions
			continue
		}
		c := m.conditional(l, weights[v], isMaximal)
		if c == nil {
			return false, nil
		}
		f.leaves[int32(v)] = c
		if len(l.neighbours) == 0 {
			f.constant = f.constant.plus(c.sum[0])
			continue
		}
		u := l.neighbours[0]
		for x, ln := range c.sum {
			sum := &logs[u][p.canonical(u, x)]
			*sum = sum.plus(ln)
		}
		if look.Over(int64(16 * len(c.table))) { // about 16 operations for each entry of the leaf's tables
			return false, look.Err()
		}
	}
	return true, nil
}

// divideIntoGroups divides the variables of a class into groups with the same weights up to rounding, in the sequence of their first
// variables. logs are the logarithms of the weights, by variable and the class's value. It sorts the variables by their logarithms, so that
// equal ones are neighbours, and adds what the weights of a group differ by to f.lnError.
func (f *fields) divideIntoGroups(variables []int32, logs [][]logarithm) (groups []group) {
	sorted := slices.Clone(variables)
	slices.SortStableFunc(sorted, func(a, b int32) int {
		return slices.CompareFunc(logs[a], logs[b], func(x, y logarithm) int { return cmp.Compare(x.High, y.High) })
	})
	for index, v := range sorted {
		if index > 0 {
			lastGroup := &groups[len(groups)-1]
			if difference, isSame := compareFields(lastGroup.field, logs[v]); isSame {
				f.lnError += difference
				lastGroup.variables = append(lastGroup.variables, v)
				continue
			}
		}
		g := group{variables: []int32{v}, field: logs[v]}
		for x, y := range logs[v] {
			if !y.isImpossible() {
				g.support = append(g.support, x)
			}
		}
		groups = append(groups, g)
	}
	for k := range groups {
		slices.Sort(groups[k].variables)
	}
	slices.SortFunc(groups, func(a, b group) int { return cmp.Compare(a.variables[0], b.variables[0]) })
	return groups
}

// compareFields reports whether two lists of logarithms are the same up to their rounding, and returns their largest difference. Logarithms
// have twice the digits of float64, about 106 bits. Differences below 2^−90 of them are taken for roundings.
func compareFields(a, b []logarithm) (largest float64, isSame bool) {
	for x := range a {
		if a[x].isImpossible() || b[x].isImpossible() {
			if a[x].isImpossible() != b[x].isImpossible() {
				return 0, false
			}
			continue
		}
		difference := math.Abs(a[x].minus(b[x]).float())
		if difference > 0x1p-90*(1+math.Abs(a[x].High)) {
			return 0, false
		}
		largest = max(largest, difference)
	}
	return largest, true
}
