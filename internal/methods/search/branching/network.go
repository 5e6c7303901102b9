// Package branching finds an assignment of least cost in a network of cost functions, by branch and bound over soft local consistency. At
// every moment it has the best assignment so far and a bound below which there is none.
//
// Costs are integers in units of a power of two of a nat, rounded down, so that bounds hold for the model's own numbers. All that is done
// to the functions moves cost between them and keeps every assignment's total: existential directional arc consistency (de Givry, Heras,
// Zytnicki and Larrosa, IJCAI 2005) at every node, at the root virtual arc consistency (Cooper et al., Artificial Intelligence 2010) and
// sequentially reweighted message passing (Kolmogorov, PAMI 2015), which suggests the first assignments. The tables stay as they are:
// moved cost is a number per value of each leg. The search is a best-first one over depth-first dives (Allouche, de Givry, Katsirelos,
// Schiex and Zytnicki, CP 2015).
package branching

import (
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/base/floats"
	"github.com/basetensor/basetensor/pkg/fault"
)

// Network is a sum of cost functions.
type Network struct {
	Domains []int
	Factors []Factor
}

// Factor is a table of costs in nats over some variables, the last one fastest: −ln of weights. +Inf forbids.
type Factor struct {
	Scope []int
	Costs []float64
}

// Limits of a network.
const (
	// MostEntries limits the entries of all tables together. Solve refuses larger networks.
	MostEntries = 1 << 27
	// EntryBytes is the memory that an entry takes at most.
	EntryBytes = 40
	// maxTotal limits the sum of the tables' largest costs, in units.
	maxTotal = 1 << 52
	// maxTotalForbidding is the same limit if combinations are forbidden: their cost is above that sum and is moved to one value again and
	// again.
	maxTotalForbidding = 1 << 46
	// finestUnit is the smallest unit, nats.
	finestUnit = 0x1p-36
)

// Cost returns the cost of an assignment, nats. It is +Inf if a factor forbids it.
func (n *Network) Cost(values []int) float64 {
	var sum floats.Sum
	for k := range n.Factors {
		f := &n.Factors[k]
		index := 0
		for _, v := range f.Scope {
			index = index*n.Domains[v] + values[v]
		}
		x := f.Costs[index]
		if math.IsInf(x, 1) {
			return x
		}
		sum.Add(x)
	}
	return sum.Value()
}

// isAssignment reports whether values has a value of its domain for each variable of the network.
func (n *Network) isAssignment(values []int) bool {
	if len(values) != len(n.Domains) {
		return false
	}
	for x, a := range values {
		if a < 0 || a >= n.Domains[x] {
			return false
		}
	}
	return true
}

// check returns an error if the network is invalid or too large.
func (n *Network) check() error {
	for _, d := range n.Domains {
		if d < 1 || d > math.MaxInt16 {
			return fault.New(fault.BadInput, "search: a domain of %d values, 1 to %d are allowed", d, math.MaxInt16)
		}
	}
	entries := 0.0
	for k := range n.Factors {
		size, err := n.checkFactor(k)
		if err != nil {
			return err
		}
		entries += size
	}
	if entries > MostEntries {
		return fault.New(fault.OverBudget, "search: tables of %.3g entries, %d are allowed", entries, MostEntries)
	}
	return nil
}

// checkFactor returns the number of entries of factor k, or an error if the factor is invalid. A cost of +Inf is valid: it forbids the
// combination.
func (n *Network) checkFactor(k int) (size float64, err error) {
	f := &n.Factors[k]
	size = 1
	for i, v := range f.Scope {
		if v < 0 || v >= len(n.Domains) || slices.Contains(f.Scope[:i], v) {
			return 0, fault.New(fault.BadInput, "search: factor %d has variable %d of %d, or twice", k, v, len(n.Domains))
		}
		size *= float64(n.Domains[v])
	}
	if size != float64(len(f.Costs)) {
		return 0, fault.New(fault.BadInput, "search: factor %d has %d costs for %.0f combinations", k, len(f.Costs), size)
	}
	for _, x := range f.Costs {
		if math.IsNaN(x) || math.IsInf(x, -1) {
			return 0, fault.New(fault.BadInput, "search: factor %d has the cost %g", k, x)
		}
	}
	return size, nil
}

// merged is a network with one table for each variable and for each pair of variables that has factors. Variables of one value are left out
// of scopes. The least cost of each table is in constant.
type merged struct {
	constant      floats.Sum  // cost of every assignment beside the tables
	roundingError float64     // bound of the rounding error of each cost, in units of 2^-50
	unary         [][]float64 // by variable and value
	pairs         []Factor    // of two variables, the smaller one first
	wide          []Factor    // of three or more variables
}

// magnitudes describe tables that are added up to one table.
type magnitudes struct {
	sum   float64 // of the largest absolute cost of each table
	count float64 // number of tables
}

// add records one more table, whose largest absolute cost is largest. It returns a bound of the rounding error of an entry of the tables'
// sum, in units of 2^-50: each of count additions is off by at most 2^-53 · sum, an eighth of such a unit of sum.
func (m *magnitudes) add(largest float64) float64 {
	m.sum, m.count = m.sum+largest, m.count+1
	return m.sum * max(1, m.count/8)
}

// merge adds up the factors over the same variable or the same two variables, and moves the least cost of each table to the constant
// (normalise). isPossible is false if a table forbids all combinations of its variables. Magnitudes bound the rounding errors of the sums.
func (n *Network) merge() (m *merged, isPossible bool) {
	g := merger{net: n, merged: &merged{unary: make([][]float64, len(n.Domains))}, pairIndex: map[[2]int]int{}}
	for v, d := range n.Domains {
		g.unary[v] = make([]float64, d)
	}
	g.unaryMagnitudes = make([]magnitudes, len(n.Domains))
	for k := range n.Factors {
		g.addFactor(&n.Factors[k])
	}
	return g.merged, g.merged.normalise()
}

// merger is a merged network under way.
type merger struct {
	*merged
	net             *Network
	pairIndex       map[[2]int]int // index in pairs by variables, the smaller one first
	unaryMagnitudes []magnitudes   // by variable
	pairMagnitudes  []magnitudes   // by index in pairs
}

// addFactor adds the costs of a factor to the merged network: to the constant if it has no variables, to the table over the same variables
// if it has one or two. Every factor of three or more variables gets a table of its own. Variables of one value do not count. All tables
// are row-major, so that leaving them out changes no index.
func (g *merger) addFactor(f *Factor) {
	var scope []int // variables of several values
	for _, v := range f.Scope {
		if g.net.Domains[v] > 1 {
			scope = append(scope, v)
		}
	}

	// The largest absolute cost, for the bound of rounding errors.
	largest := 0.0
	for _, x := range f.Costs {
		if !math.IsInf(x, 1) {
			largest = max(largest, math.Abs(x))
		}
	}
	g.roundingError = max(g.roundingError, largest)

	switch len(scope) {
	case 0:
		g.constant.Add(f.Costs[0])
	case 1:
		x := scope[0]
		g.roundingError = max(g.roundingError, g.unaryMagnitudes[x].add(largest)) // the bound for the sum of the table
		for a, c := range f.Costs {
			g.unary[x][a] += c
		}
	case 2:
		g.addPair(scope[0], scope[1], f.Costs, largest)
	default:
		g.wide = append(g.wide, Factor{Scope: scope, Costs: slices.Clone(f.Costs)})
	}
}

// addPair adds costs to the merged table of x and y. costs has a row for each value of x and a column for each value of y. The merged table
// has a row for each value of the variable with the smaller number, so costs are transposed if x > y. largest is the largest absolute cost;
// g.pairMagnitudes bounds the rounding error of the sums by it.
func (g *merger) addPair(x, y int, costs []float64, largest float64) {
	key := [2]int{min(x, y), max(x, y)}
	k, ok := g.pairIndex[key]
	if !ok {
		k = len(g.pairs)
		g.pairIndex[key] = k
		g.pairs = append(g.pairs, Factor{Scope: key[:], Costs: make([]float64, len(costs))})
		g.pairMagnitudes = append(g.pairMagnitudes, magnitudes{})
	}
	g.roundingError = max(g.roundingError, g.pairMagnitudes[k].add(largest))
	dx, dy := g.net.Domains[x], g.net.Domains[y]
	sum := g.pairs[k].Costs
	for a := range dx {
		for b := range dy {
			if x < y {
				sum[a*dy+b] += costs[a*dy+b]
			} else {
				sum[b*dx+a] += costs[a*dy+b]
			}
		}
	}
}

// normalise moves the least cost of each table to the constant. It returns false if the constant or a whole table is +Inf: no assignment is
// possible then.
func (m *merged) normalise() (isPossible bool) {
	isPossible = !math.IsInf(m.constant.High, 1) // the sum in two float64, of which High is the larger
	m.eachTable(func(costs []float64) {
		leastCost := slices.Min(costs)
		if math.IsInf(leastCost, 1) {
			isPossible = false
			return
		}
		m.constant.Add(leastCost)
		for a := range costs {
			costs[a] -= leastCost
		}
	})
	return isPossible
}

// eachTable calls visit with the costs of each table: unary ones first, then pairs, then wide ones.
func (m *merged) eachTable(visit func(costs []float64)) {
	for v := range m.unary {
		visit(m.unary[v])
	}
	for k := range m.pairs {
		visit(m.pairs[k].Costs)
	}
	for k := range m.wide {
		visit(m.wide[k].Costs)
	}
}

// unit returns the unit of costs, a power of two of a nat, and the cost of forbidden combinations in units: 1 more than the sum of the
// largest costs of all tables. The unit is the smallest one, from finestUnit on, for which that sum is at most totalLimit units and the
// rounding error of a cost is at most a quarter of a unit. m.roundingError bounds that error in units of 2^-50, so
//
//	m.roundingError · 2^-50 ≤ unit/4,  that is  m.roundingError · 2^-48 ≤ unit
func (m *merged) unit() (unit float64, forbidden int64) {
	total, totalLimit := 0.0, float64(maxTotal)
	// largestOf returns the largest finite cost. If there is an infinite one, it sets the lower limit for networks that forbid
	// combinations.
	largestOf := func(costs []float64) (largest float64) {
		for _, x := range costs {
			if math.IsInf(x, 1) {
				totalLimit = maxTotalForbidding
			} else {
				largest = max(largest, x)
			}
		}
		return largest
	}
	m.eachTable(func(costs []float64) { total += largestOf(costs) })

	unit = finestUnit
	for total/unit > totalLimit || m.roundingError*0x1p-48 > unit {
		unit *= 2
	}

	m.eachTable(func(costs []float64) { forbidden += int64(largestOf(costs) / unit) })
	return unit, forbidden + 1
}

// roundDown returns costs in units as integers that are not above the true costs, nor below 0. +Inf becomes forbidden. The costs have
// rounding errors of at most a quarter of a unit (merged.unit), so a quarter is taken off before rounding down.
func roundDown(costs []float64, unit float64, forbidden int64) []int64 {
	rounded := make([]int64, len(costs))
	for a, x := range costs {
		if math.IsInf(x, 1) {
			rounded[a] = forbidden
		} else {
			rounded[a] = max(0, int64(math.Floor(x/unit-0.25)))
		}
	}
	return rounded
}
