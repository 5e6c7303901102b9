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
	// MaxStatistics bounds K.
	MaxStatistics = 6
	// minDensity is the share of all pairs of variables that have a table, below which nothing is looked for.
	minDensity = 0.05
	// minVariables is the number of variables below which elimination is cheap.
	minVariables = 12
	// maxTableEntries bounds the table of one factor.
	maxTableEntries = 1 << 16
	// maxDomain bounds the domain of a variable.
	maxDomain = 64
)

// interactions are the tables of a network, those of two variables centred:
//
//	ln φ_ij(a, b) = c_ij + u_ij(a) + u_ji(b) + A_ij(a, b),   Σ_a A_ij(a, b) = Σ_b A_ij(a, b) = 0
//
// The matrix holds A in orthonormal coordinates of the centred functions of each variable, d−1 for one of d values. Variables are those of
// the network without leaves, numbered anew.
type interactions struct {
	domains          []int
	firstValue       []int           // by variable: the index of its first value in lists by value
	firstCoordinate  []int           // by variable: the index of its first row in the matrix
	functions        [][]float64     // by variable i of d values: functions[i][p*d+a] is basis function p < d−1 at value a (helmert)
	ln               floats.Sum      // Σ c_ij
	field            []floats.Sum    // by value, nats: Σ u, and the tables of one variable
	lnRoundingSize   float64         // Σ over the tables of the largest |ln| of an entry: what roundings are relative to
	order            int             // of the matrix
	matrix           []float64       // order × order, row by row
	zeroPairs        map[[2]int]bool // pairs that have a table with zeros
	otherTables      []Table         // tables with zeros, and of three variables and more
	networkVariables []int           // by variable: that of the network
	leaves           []Leaf
}

// readInteractions returns the interactions of a network of plain tables. A leaf is a variable whose tables are all over one set of three
// variables, itself and two others. With sumsLeaves, leaves are summed out first. The result is nil if the network has maps or other
// factors, if too few pairs of variables have tables or interactions, or if the matrix takes more bytes than memory. Its errors are the
// context's. Cost O(entries of all tables · d).
func readInteractions(ctx context.Context, net *btn.Network, memory int64, sumsLeaves bool) (*interactions, error) {
	if net.Choice != query.CoresAreFactors || !HasEnoughPairTables(net) { // the base tensor has to be the product of the cores
		return nil, nil
	}
	for _, m := range net.Maps {
		if m.A != nil { // the legs have maps
			return nil, nil
		}
	}
	var sets *leafSets // nil: no variable is a leaf
	if sumsLeaves {
		sets = findLeaves(net)
	}

	m := &interactions{zeroPairs: map[[2]int]bool{}}
	domains, number, ok := m.numberVariables(net, sets)
	if !ok {
		return nil, nil
	}

	// The memory holds two matrices of float64, and 40 bytes for every entry of a matrix of the variables: their pairs and residuals.
	if n, order := float64(len(m.domains)), float64(m.order); 16*order*order+40*n*n > float64(memory) {
		return nil, nil
	}
	m.matrix = make([]float64, m.order*m.order)
	if ok, err := m.addTables(ctx, net, sets, domains, number); err != nil || !ok {
		return nil, err
	}
	if isDense, err := m.isDense(ctx); err != nil || !isDense {
		return nil, err
	}
	return m, nil
}

// numberVariables numbers the variables of a network that are no leaves, their values and their coordinates. By variable of the network,
// domains are the domains, and number the numbers. ok is false if a link is no list of weights, or if a domain is too large.
func (m *interactions) numberVariables(net *btn.Network, sets *leafSets) (domains, number []int, ok bool) {
	domains, number = make([]int, len(net.Variables)), make([]int, len(net.Variables))
	values := 0
	for v, variable := range net.Variables {
		d := variable.Domain
		cp, ok := net.Links[variable.Link].T.(*tensor.CP)
		isMapped := ok && slices.ContainsFunc(cp.Vectors, func(a []float64) bool { return a != nil })
		if !ok || d > maxDomain || isMapped {
			return nil, nil, false
		}
		domains[v] = d
		if sets.isLeaf(v) {
			continue
		}
		number[v] = len(m.domains)
		m.networkVariables, m.domains, m.functions = append(m.networkVariables, v), append(m.domains, d), append(m.functions, helmert(d))
		m.firstValue, m.firstCoordinate = append(m.firstValue, values), append(m.firstCoordinate, m.order)
		values, m.order = values+d, m.order+d-1
	}
	m.field = make([]floats.Sum, values)
	return domains, number, true
}

// addTables adds the tables of a network. A leaf is summed out: a variable whose tables are all over one set of three variables, itself and
// two others. sets has the set of each leaf. domains[v] is the domain of variable v of the network, and number[v] its number in the
// interactions. ok is false if a core is no plain table, or if a leaf cannot be summed out.
func (m *interactions) addTables(ctx context.Context, net *btn.Network, sets *leafSets, domains, number []int) (ok bool, err error) {
	variable := legVariables(net)
	leafTables := map[int][]Table{} // by leaf, over variables of the network
	for _, core := range net.Cores {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		t, ok := plainTable(core, variable)
		if !ok {
			return false, nil
		}
		if v := sets.firstLeaf(t.Scope); v >= 0 { // −1 if no leaf is in it; a leaf's tables are added when it is summed out
			leafTables[v] = append(leafTables[v], t)
			continue
		}
		for k, v := range t.Scope {
			t.Scope[k] = number[v]
		}
		m.addTable(t)
	}
	for _, v := range slices.Sorted(maps.Keys(leafTables)) {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		weights := net.Links[net.Variables[v].Link].T.(*tensor.CP).Weights // every link is a CP: numberVariables has refused others
		if !m.sumOutLeaf(v, sets.set[v], weights, leafTables[v], domains, number) {
			return false, nil
		}
	}
	return true, nil
}

// isDense reports whether at least the share minDensity of all pairs of variables have an interaction that is larger than a rounding.
func (m *interactions) isDense(ctx context.Context) (bool, error) {
	largestEntry, variables := 0.0, len(m.domains)
	for _, x := range m.matrix {
		largestEntry = max(largestEntry, math.Abs(x))
	}
	count := 0
	for i := range variables {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		for j := range i {
			interaction := m.blockResidual(&lowRank{}, [2]int{j, i}) // what an empty approximation leaves
			if interaction > residualFloor*largestEntry {
				count++
			}
		}
	}
	return largestEntry > 0 && float64(count) >= minDensity*float64(variables)*float64(variables-1)/2, nil
}

// plainTable returns a core as a table over variables of the network. variable[l] is the variable of leg l, or −1. ok is false if the core
// has no leg, a leg of no variable, or two legs of one variable. It is also false if the core is too large, or if an entry is below 0 or
// not finite.
func plainTable(core btn.Core, variable []int) (t Table, ok bool) {
	t.Scope = make([]int, len(core.Legs))
	for k, l := range core.Legs {
		t.Scope[k] = variable[l]
		if t.Scope[k] < 0 || slices.Contains(t.Scope[:k], t.Scope[k]) {
			return t, false
		}
	}
	dense, err := tensor.ToDense(core.T, maxTableEntries)
	if err != nil || len(t.Scope) == 0 { // too large, or no leg
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

// addTable adds a table over variables of the interactions. A table of one variable is added to the fields, and one of two variables
// without zeros to the matrix of pair interactions. Any other table is kept as it is, in otherTables; of two variables it is one with
// zeros.
func (m *interactions) addTable(t Table) {
	scope := t.Scope
	switch {
	case len(scope) == 1:
		for a, x := range t.Values {
			m.addField(m.firstValue[scope[0]]+a, math.Log(x))
		}
	case len(scope) == 2 && !slices.Contains(t.Values, 0):
		if i, j := scope[0], scope[1]; i < j {
			m.addPairTable(i, j, t.Values)
		} else {
			m.addPairTable(j, i, transpose(t.Values, m.domains[i], m.domains[j]))
		}
	default:
		if len(scope) == 2 {
			m.zeroPairs[[2]int{min(scope[0], scope[1]), max(scope[0], scope[1])}] = true
		}
		m.otherTables = append(m.otherTables, t)
	}
}

// addField adds ln to the field of a value of a variable. value is the position of the pair (variable, value) in lists by value, which have
// all values of the first variable, then all of the second, and so on. If ln or the field is −Inf, for an impossible value, the sum is
// −Inf.
func (m *interactions) addField(value int, ln float64) {
	if sum := &m.field[value]; math.IsInf(ln, -1) || math.IsInf(sum.High, -1) {
		*sum = floats.Sum{High: math.Inf(-1)}
	} else {
		sum.Add(ln)
	}
}

// transpose returns a rows × columns table with its two variables swapped. Entry (a, b) of t is at a*columns+b.
func transpose(t []float64, rows, columns int) []float64 {
	transposed := make([]float64, len(t))
	for a := range rows {
		for b := range columns {
			transposed[b*rows+a] = t[a*columns+b]
		}
	}
	return transposed
}

// addPairTable adds a table of variables i < j without zeros. Its logarithm is mean + row effect + column effect + interaction: the mean is
// added to m.ln, the effects to the fields of i and j, and the interaction to the matrix. Entry (a, b) of t is at a*dj+b, for dj values of
// j.
func (m *interactions) addPairTable(i, j int, t []float64) {
	di, dj := m.domains[i], m.domains[j]
	ln := make([]float64, len(t))
	rowMeans, columnMeans := make([]float64, di), make([]float64, dj)
	mean, largestLn := 0.0, 0.0
	for a := range di {
		for b := range dj {
			l := math.Log(t[a*dj+b])
			ln[a*dj+b] = l
			largestLn = max(largestLn, math.Abs(l))
			rowMeans[a] += l / float64(dj)
			columnMeans[b] += l / float64(di)
			mean += l / float64(di*dj)
		}
	}
	m.ln.Add(mean)
	m.lnRoundingSize += largestLn
	for a := range di {
		m.addField(m.firstValue[i]+a, rowMeans[a]-mean)
	}
	for b := range dj {
		m.addField(m.firstValue[j]+b, columnMeans[b]-mean)
	}

	// The coordinates of the interaction: coordinate (p, q) is Σ_ab h_p(a) h_q(b) ln(a, b) for the basis functions h of i and of j. These
	// sum to 0, so the mean and the effects do not enter.
	hi, hj := m.functions[i], m.functions[j]
	for p := range di - 1 {
		for q := range dj - 1 {
			x := 0.0
			for a := range di {
				for b := range dj {
					x += hi[p*di+a] * hj[q*dj+b] * ln[a*dj+b]
				}
			}
			row, column := m.firstCoordinate[i]+p, m.firstCoordinate[j]+q
			m.matrix[row*m.order+column] += x
			m.matrix[column*m.order+row] += x
		}
	}
}

// helmert returns d−1 orthonormal functions of d values, each of which sums to 0. Function p at value a is h[p*d+a]. Example: for d = 2
// there is one function, (1/√2, −1/√2).
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
