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
	lnError  float64                // Σ of what the weights of a group differ, nats
	leaves   map[int32]*conditional // leaves of one neighbour or none
}

// fieldsOf returns the weights of the classes' variables: the product of those of the network's links, of tables over one variable, of
// leaves with one neighbour, and of the parts of larger tables that depend on one variable. It returns nil if a weight is below 0. Cost
// O(values · log variables).
func fieldsOf(ctx context.Context, m *interactions, p *partition, weights [][]float64, isMaximal bool) (*fields, error) {
	f := &fields{constant: m.constant, leaves: map[int32]*conditional{}}
	look := pace.New(ctx)

	// Links, tables over one variable, and parts of larger tables.
	logs := make([][]logarithm, len(m.domains)) // by variable and the class's value
	for v, list := range weights {
		if m.leafOf[v] != nil {
			continue
		}
		logs[v] = make([]logarithm, len(list))
		for x, w := range list {
			if !(w >= 0) {
				return nil, nil
			}
			to := &logs[v][p.canonical(int32(v), x)] // at the class's value of the variable's value x
			*to = logarithmOf(w)
			for _, id := range m.unaryTables[v] {
				*to = to.plus(logarithmOf(m.tables[id].data[x]))
			}
			if m.field[v] != nil {
				*to = to.plus(m.field[v][x])
			}
		}
		if look.Over(int64(8 * len(list))) {
			return nil, look.Err()
		}
	}

	// Leaves with one neighbour or none.
	for v, l := range m.leafOf {
		if l == nil || len(l.neighbours) == 2 {
			continue
		}
		c := m.conditional(l, weights[v], isMaximal)
		if c == nil {
			return nil, nil
		}
		f.leaves[int32(v)] = c
		if len(l.neighbours) == 0 {
			f.constant = f.constant.plus(c.sum[0])
			continue
		}
		u := l.neighbours[0]
		for x, ln := range c.sum {
			to := &logs[u][p.canonical(u, x)]
			*to = to.plus(ln)
		}
		if look.Over(int64(16 * len(c.table))) {
			return nil, look.Err()
		}
	}

	// Divide each class into groups of variables with the same weights.
	members := make([][]int32, p.count)
	for v, c := range p.class {
		if c >= 0 {
			members[c] = append(members[c], int32(v))
		}
	}
	for _, list := range members {
		f.groups = append(f.groups, f.divideIntoGroups(list, logs))
	}
	return f, nil
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
