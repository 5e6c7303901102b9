// Package search finds an assignment of least cost in a network of cost functions, by branch and bound over soft local consistency. At
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
	// MostEntries bounds the entries of all tables, of EntryBytes at most: beyond, Solve refuses.
	MostEntries = 1 << 27
	EntryBytes  = 40
	// mostTotal bounds the sum of the largest costs, in units; mostHard the same where values are forbidden, whose cost is above that sum and
	// is moved to one value again and again.
	mostTotal = 1 << 52
	mostHard  = 1 << 46
	// finest is the least unit, nats.
	finest = 0x1p-36
)

// Cost returns the cost of an assignment, nats.
func (n *Network) Cost(values []int) float64 {
	var sum floats.Sum
	for k := range n.Factors {
		f := &n.Factors[k]
		at := 0
		for _, v := range f.Scope {
			at = at*n.Domains[v] + values[v]
		}
		x := f.Costs[at]
		if math.IsInf(x, 1) {
			return x
		}
		sum.Add(x)
	}
	return sum.Value()
}

// has reports whether values are an assignment of the network's variables.
func (n *Network) has(values []int) bool {
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

// check returns an error for a network that is none.
func (n *Network) check() error {
	entries := 0.0
	for _, d := range n.Domains {
		if d < 1 || d > math.MaxInt16 {
			return fault.New(fault.BadInput, "search: a domain of %d values, 1 to %d are allowed", d, math.MaxInt16)
		}
	}
	for k := range n.Factors {
		f := &n.Factors[k]
		size := 1.0
		for i, v := range f.Scope {
			if v < 0 || v >= len(n.Domains) || slices.Contains(f.Scope[:i], v) {
				return fault.New(fault.BadInput, "search: factor %d has variable %d of %d, or twice", k, v, len(n.Domains))
			}
			size *= float64(n.Domains[v])
		}
		if size != float64(len(f.Costs)) {
			return fault.New(fault.BadInput, "search: factor %d has %d costs for %.0f combinations", k, len(f.Costs), size)
		}
		for _, x := range f.Costs {
			if math.IsNaN(x) || math.IsInf(x, -1) {
				return fault.New(fault.BadInput, "search: factor %d has the cost %g", k, x)
			}
		}
		entries += size
	}
	if entries > MostEntries {
		return fault.New(fault.OverBudget, "search: tables of %.3g entries, %d are allowed", entries, MostEntries)
	}
	return nil
}

// merged are the factors of a network over one set of variables each, variables of one value left out.
type merged struct {
	constant floats.Sum
	size     float64 // bounds the magnitudes that were added up to one cost; of more than eight, an eighth of their number times that
	unary    [][]float64
	pairs    []Factor // smaller variable first
	wide     []Factor
}

// magnitudes are those that are added up to one cost.
type magnitudes struct{ sum, n float64 }

// add returns a bound of the sum's rounding errors, in units of 2^-50.
func (s *magnitudes) add(x float64) float64 {
	s.sum, s.n = s.sum+x, s.n+1
	return s.sum * max(1, s.n/8)
}

// merge adds up the factors over the same one or two variables, and takes the least cost out of each table. possible is false for a table
// that forbids everything.
func (n *Network) merge() (m *merged, possible bool) {
	m = &merged{unary: make([][]float64, len(n.Domains))}
	for v, d := range n.Domains {
		m.unary[v] = make([]float64, d)
	}
	at := map[[2]int]int{}
	alone := make([]magnitudes, len(n.Domains))
	var both []magnitudes
	for k := range n.Factors {
		f := &n.Factors[k]
		var scope []int
		for _, v := range f.Scope {
			if n.Domains[v] > 1 {
				scope = append(scope, v)
			}
		}
		largest := 0.0
		for _, x := range f.Costs {
			if !math.IsInf(x, 1) {
				largest = max(largest, math.Abs(x))
			}
		}
		m.size = max(m.size, largest)
		switch len(scope) {
		case 0:
			m.constant.Add(f.Costs[0])
		case 1:
			m.size = max(m.size, alone[scope[0]].add(largest))
			for a, x := range f.Costs {
				m.unary[scope[0]][a] += x
			}
		case 2:
			x, y := scope[0], scope[1]
			key := [2]int{min(x, y), max(x, y)}
			p, ok := at[key]
			if !ok {
				p = len(m.pairs)
				at[key] = p
				m.pairs = append(m.pairs, Factor{Scope: key[:], Costs: make([]float64, len(f.Costs))})
				both = append(both, magnitudes{})
			}
			m.size = max(m.size, both[p].add(largest))
			dx, dy := n.Domains[x], n.Domains[y]
			for a := range dx {
				for b := range dy {
					if x < y {
						m.pairs[p].Costs[a*dy+b] += f.Costs[a*dy+b]
					} else {
						m.pairs[p].Costs[b*dx+a] += f.Costs[a*dy+b]
					}
				}
			}
		default:
			m.wide = append(m.wide, Factor{Scope: scope, Costs: slices.Clone(f.Costs)})
		}
	}

	possible = !math.IsInf(m.constant.High, 1)
	take := func(costs []float64) {
		least := slices.Min(costs)
		if math.IsInf(least, 1) {
			possible = false
			return
		}
		m.constant.Add(least)
		for a := range costs {
			costs[a] -= least
		}
	}
	for v := range m.unary {
		take(m.unary[v])
	}
	for _, list := range [][]Factor{m.pairs, m.wide} {
		for k := range list {
			take(list[k].Costs)
		}
	}
	return m, possible
}

// unit chooses the unit of costs and the cost of the forbidden: more than all that is allowed adds up to.
func (m *merged) unit() (unit float64, forbidden int64) {
	total, most := 0.0, float64(mostTotal)
	each := func(visit func([]float64)) {
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
	largest := func(costs []float64) (top float64) {
		for _, x := range costs {
			if math.IsInf(x, 1) {
				most = mostHard
			} else {
				top = max(top, x)
			}
		}
		return top
	}
	each(func(c []float64) { total += largest(c) })
	unit = finest
	for total/unit > most || m.size*0x1p-48 > unit {
		unit *= 2
	}
	each(func(c []float64) { forbidden += int64(largest(c) / unit) })
	return unit, forbidden + 1
}

// rounded writes costs in units, none above the truth: a cost is wrong by less than a quarter of a unit.
func rounded(costs []float64, unit float64, forbidden int64) []int64 {
	out := make([]int64, len(costs))
	for a, x := range costs {
		if math.IsInf(x, 1) {
			out[a] = forbidden
		} else {
			out[a] = max(0, int64(math.Floor(x/unit-0.25)))
		}
	}
	return out
}
