package structured

// The logarithms of a model's tables of two variables as one symmetric matrix.

import (
	"context"
	"maps"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/base/floats"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
)

const (
	// MostStatistics bounds K.
	MostStatistics = 6
	// leastDensity is the share of all pairs of variables that have a table, below which nothing is looked for.
	leastDensity = 0.05
	// leastVariables is the number of variables below which elimination is cheap.
	leastVariables = 12
	// mostEntries bounds the table of one factor.
	mostEntries = 1 << 16
	// mostDomain bounds the domain of a variable.
	mostDomain = 64
)

// interactions are the tables of a network, those of two variables centred:
//
//	ln φ_ij(a, b) = c_ij + u_ij(a) + u_ji(b) + A_ij(a, b),   Σ_a A_ij(a, b) = Σ_b A_ij(a, b) = 0
//
// The matrix holds A in orthonormal coordinates of the centred functions of each variable, d−1 for one of d values.
type interactions struct {
	domains []int
	at      []int // place of the first value of each variable
	base    []int // place of the first coordinate of each variable in the matrix
	basis   [][]float64
	ln      floats.Sum
	field   []floats.Sum // by value, nats
	size    float64      // Σ over the tables of the largest |ln| of an entry
	order   int          // of the matrix
	matrix  []float64
	apart   map[[2]int]bool // pairs that have a table with zeros
	hard    []Table         // the tables with zeros, and of other than two variables

	variables []int // the network's variable of each
	leaves    []Leaf
}

// read returns the interactions of a network of plain tables, with leaves summed out or without; nil where it is of another kind, too
// sparse, or the matrix takes more bytes than memory. Cost O(entries of all tables · d). Its errors are the context's.
func read(ctx context.Context, net *btn.Network, memory int64, sum bool) (*interactions, error) {
	if net.Choice != query.CoresAreFactors || !Worth(net) {
		return nil, nil
	}
	for _, m := range net.Maps {
		if m.A != nil {
			return nil, nil
		}
	}
	var out *leaves
	if sum {
		out = leavesOf(net)
	}
	m := &interactions{apart: map[[2]int]bool{}}
	domains, place := make([]int, len(net.Variables)), make([]int, len(net.Variables))
	total := 0
	for v, of := range net.Variables {
		d := of.Domain
		cp, ok := net.Links[of.Link].T.(*tensor.CP)
		if !ok || d > mostDomain || slices.ContainsFunc(cp.Vectors, func(a []float64) bool { return a != nil }) { // a map of the leg
			return nil, nil
		}
		if domains[v] = d; out.has(v) {
			continue
		}
		place[v] = len(m.domains)
		m.variables, m.domains, m.basis = append(m.variables, v), append(m.domains, d), append(m.basis, helmert(d))
		m.at, m.base = append(m.at, total), append(m.base, m.order)
		total, m.order = total+d, m.order+d-1
	}
	// Two matrices, and every pair of variables with its residual.
	if n := float64(len(m.domains)); 16*float64(m.order)*float64(m.order)+40*n*n > float64(memory) {
		return nil, nil
	}
	m.field = make([]floats.Sum, total)
	m.matrix = make([]float64, m.order*m.order)
	variable := legVariables(net)
	tables := map[int][]Table{} // of the leaves
	for _, core := range net.Cores {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		t, ok := plainTable(core, variable)
		if !ok {
			return nil, nil
		}
		if v := out.among(t.Scope); v >= 0 {
			tables[v] = append(tables[v], t)
			continue
		}
		for k, v := range t.Scope {
			t.Scope[k] = place[v]
		}
		m.add(t)
	}
	for _, v := range slices.Sorted(maps.Keys(tables)) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		weights := net.Links[net.Variables[v].Link].T.(*tensor.CP).Weights
		if !m.sumOut(v, out.of[v], weights, tables[v], domains, place) {
			return nil, nil
		}
	}
	if dense, err := m.dense(ctx); err != nil || !dense {
		return nil, err
	}
	return m, nil
}

// dense reports whether enough pairs have an interaction.
func (m *interactions) dense(ctx context.Context) (bool, error) {
	most, n := 0.0, len(m.domains)
	for _, x := range m.matrix {
		most = max(most, math.Abs(x))
	}
	count := 0
	for i := range n {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		for j := range i {
			if m.residual(&spectrum{}, [2]int{j, i}) > residualFloor*most {
				count++
			}
		}
	}
	return most > 0 && float64(count) >= leastDensity*float64(n)*float64(n-1)/2, nil
}

// plainTable returns the table of a core over variables; false where there is none that can be used.
func plainTable(core btn.Core, variable []int) (t Table, ok bool) {
	t.Scope = make([]int, len(core.Legs))
	for k, l := range core.Legs {
		if t.Scope[k] = variable[l]; t.Scope[k] < 0 || slices.Contains(t.Scope[:k], t.Scope[k]) {
			return t, false
		}
	}
	dense, err := tensor.ToDense(core.T, mostEntries)
	if err != nil || len(t.Scope) == 0 {
		return t, false
	}
	for _, x := range dense.Data {
		if !(x >= 0) || math.IsInf(x, 1) {
			return t, false
		}
	}
	t.Values = dense.Data
	return t, true
}

// add adds a table of the network.
func (m *interactions) add(t Table) {
	scope := t.Scope
	switch {
	case len(scope) == 1:
		for a, x := range t.Values {
			m.addField(m.at[scope[0]]+a, math.Log(x))
		}
	case len(scope) == 2 && !slices.Contains(t.Values, 0):
		if i, j := scope[0], scope[1]; i < j {
			m.centre(i, j, t.Values)
		} else {
			m.centre(j, i, transposed(t.Values, m.domains[i], m.domains[j]))
		}
	default:
		if len(scope) == 2 {
			m.apart[[2]int{min(scope[0], scope[1]), max(scope[0], scope[1])}] = true
		}
		m.hard = append(m.hard, t)
	}
}

// addField adds to the field of a value.
func (m *interactions) addField(at int, ln float64) {
	if sum := &m.field[at]; math.IsInf(ln, -1) || math.IsInf(sum.High, -1) {
		*sum = floats.Sum{High: math.Inf(-1)}
	} else {
		sum.Add(ln)
	}
}

// transposed returns a table of rows × columns with its variables in the other sequence.
func transposed(t []float64, rows, columns int) []float64 {
	out := make([]float64, len(t))
	for a := range rows {
		for b := range columns {
			out[b*rows+a] = t[a*columns+b]
		}
	}
	return out
}

// centre adds the table of variables i < j: its mean, its main effects, and its interaction.
func (m *interactions) centre(i, j int, t []float64) {
	di, dj := m.domains[i], m.domains[j]
	ln := make([]float64, len(t))
	rows, columns, mean, largestLn := make([]float64, di), make([]float64, dj), 0.0, 0.0
	for a := range di {
		for b := range dj {
			l := math.Log(t[a*dj+b])
			ln[a*dj+b] = l
			largestLn = max(largestLn, math.Abs(l))
			rows[a] += l / float64(dj)
			columns[b] += l / float64(di)
			mean += l / float64(di*dj)
		}
	}
	m.ln.Add(mean)
	m.size += largestLn
	for a := range di {
		m.addField(m.at[i]+a, rows[a]-mean)
	}
	for b := range dj {
		m.addField(m.at[j]+b, columns[b]-mean)
	}
	hi, hj := m.basis[i], m.basis[j]
	for p := range di - 1 {
		for q := range dj - 1 {
			x := 0.0
			for a := range di {
				for b := range dj {
					x += hi[p*di+a] * hj[q*dj+b] * ln[a*dj+b]
				}
			}
			m.matrix[(m.base[i]+p)*m.order+m.base[j]+q] += x
			m.matrix[(m.base[j]+q)*m.order+m.base[i]+p] += x
		}
	}
}

// helmert returns d−1 orthonormal functions of d values that sum to 0, row by row.
func helmert(d int) []float64 {
	h := make([]float64, (d-1)*d)
	for p := 1; p < d; p++ {
		norm := math.Sqrt(float64(p * (p + 1)))
		for a := range p {
			h[(p-1)*d+a] = 1 / norm
		}
		h[(p-1)*d+p] = -float64(p) / norm
	}
	return h
}
