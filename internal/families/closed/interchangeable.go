package closed

// Interchangeable variables that nobody declared: plain tables of three and more binary variables whose product depends on a count.

import (
	"context"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/proposal"
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

const (
	// leastInterchangeable is the number of variables below which elimination is cheap.
	leastInterchangeable = 12
	// mostOrder bounds the variables of a table.
	mostOrder = 6
	// largestField bounds the main effect of a variable, nats.
	largestField = 300
	// deviation bounds Σ of what interactions differ from those of interchangeable variables, nats.
	deviation = 1e-10
)

// ProposeInterchangeable is the proposal of a sum in count space: see interchangeable. It is asked of networks with a table for every set
// of so many variables as their largest tables have, three at least.
func ProposeInterchangeable(j *proposal.Job, ask proposal.Ask) (*btn.Assignment, error) {
	if order := complete(j.Net); order < 3 {
		return nil, nil
	}
	plan, hit, err := j.Remember("interchangeable", contractionorder.Hypergraph{}, func(ctx context.Context) (*btn.Plan, error) {
		part, err := interchangeable(ctx, j.Net)
		if part == nil || err != nil {
			return &btn.Plan{Method: btn.MethodExact}, err
		}
		return proposal.Exact(btn.Cost{Flops: CountFlops(j.Net, part.Frame.Levels)}, part), nil
	})
	if err != nil || len(plan.Estimates) == 0 || plan.Estimates[0].Cost.Flops > proposal.Limit(j.Settings) {
		return nil, err
	}
	found := proposal.Priced(plan, hit)
	if ask.Flops > 0 && found.Cost.Flops >= ask.Flops {
		return nil, nil
	}
	found.Joint = ask.Joint
	return found, nil
}

// complete returns the order of the largest tables of a network, if there are as many as sets of so many variables; else 0. Linear time.
func complete(net *btn.Network) (order int) {
	n, count := len(net.Variables), 0
	if net.Choice != btn.CoresAreFactors || n < leastInterchangeable {
		return 0
	}
	for _, core := range net.Cores {
		switch k := len(core.Legs); {
		case k > mostOrder:
			return 0
		case k > order:
			order, count = k, 1
		case k == order:
			count++
		}
	}
	if choose(n, order) > float64(count) {
		return 0
	}
	return order
}

// choose is the number of sets of k out of n.
func choose(n, k int) float64 {
	c := 1.0
	for i := range k {
		c = math.Round(c * float64(n-i) / float64(i+1))
	}
	return c
}

// interactions are the logarithms of a network's tables in the characters of spins, −1 for value 0 and 1 for value 1:
//
//	Σ ln φ(x) = Σ_T c_T Π_{i∈T} σ_i
type interactions struct {
	n  int
	of [][]float64 // c_T by the size of T and its place among the sets of that size
}

// place is the place of a set, its members in increasing order: Σ_k C(t_k, k+1).
func place(set []int) (at int) {
	for k, t := range set {
		at += int(choose(t, k+1))
	}
	return at
}

// interchangeable returns B as a function of a count, times a vector for each variable (Lemma 4):
//
//	B(x) = S(#{i: σ_i(x_i) = 1}) · Π_i e^{c_i(x_i)}
//
// for plain tables of binary variables without zeros, whose interactions are the same for all sets of one size, after values are exchanged
// at some variables; nil for other networks. The two values of a variable are one level each, in its first leg. What interactions of two
// variables and more differ adds up to at most deviation, which bounds the relative error of B entry by entry, and so of Z.
//
// Cost O(Σ 2^k·k over the tables), 8 bytes for every set.
func interchangeable(ctx context.Context, net *btn.Network) (*SymmetryRankOne, error) {
	first, variable := legsOf(net)
	if first == nil {
		return nil, nil
	}
	m, err := transformed(ctx, net, variable)
	if m == nil || err != nil {
		return nil, err
	}
	signs := m.signs()
	if signs == nil {
		return nil, nil
	}
	mean, off := m.means(signs)
	if off > deviation {
		return nil, nil
	}

	n := m.n
	p := &SymmetryRankOne{Frame: &btn.Frame{Closed: true}, R: make([][]float64, len(net.Dims))}
	levels := countspace.Levels{D: 2, Of: slices.Repeat([][]uint8{{0, 0}}, len(net.Dims))}
	rows := map[float64][]uint8{1: {0, 1}, -1: {1, 0}}
	for i, leg := range first {
		field := m.of[1][i]
		if !(math.Abs(field) <= largestField) {
			return nil, nil
		}
		levels.Of[leg] = rows[signs[i]]
		p.R[leg] = []float64{math.Exp(-field), math.Exp(field)}
	}
	p.Frame.Levels = levels
	p.S = countspace.Poly{Shape: []int{n + 1}, Coef: scaled.Vector{Mant: make([]float64, n+1), Exp: make([]int64, n+1)}}
	for up := range n + 1 {
		ln := m.of[0][0]
		for k := 2; k < len(mean); k++ {
			ln += mean[k] * elementary(n, up, k)
		}
		s := scaled.FromLog(ln)
		p.S.Coef.Mant[up], p.S.Coef.Exp[up] = s.Mant, s.Exp
	}
	return p, nil
}

// legsOf returns the first leg of every variable and the variable of every leg; nil where the variables of a network are not binary, in a
// table each, without maps.
func legsOf(net *btn.Network) (first, variable []int) {
	for _, m := range net.Maps {
		if m.A != nil {
			return nil, nil
		}
	}
	first, variable = make([]int, len(net.Variables)), make([]int, len(net.Dims))
	for l := range variable {
		variable[l] = -1
	}
	for v, at := range net.Variables {
		link := net.Links[at.Link]
		cp, ok := link.T.(*tensor.CP)
		if !ok || at.Domain != 2 || len(link.Legs) == 0 {
			return nil, nil
		}
		first[v] = link.Legs[0]
		for k, l := range link.Legs {
			if cp.Vectors[k] != nil {
				return nil, nil
			}
			variable[l] = v
		}
	}
	return first, variable
}

// transformed returns the interactions of all tables; nil where one has a zero, or is not plain.
func transformed(ctx context.Context, net *btn.Network, variable []int) (*interactions, error) {
	n := len(net.Variables)
	m := &interactions{n: n, of: make([][]float64, complete(net)+1)}
	for k := range m.of {
		m.of[k] = make([]float64, int(choose(n, k)))
	}
	for c, core := range net.Cores {
		if c%4096 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		t, err := tensor.ToDense(core.T, 1<<mostOrder)
		if err != nil {
			return nil, nil
		}
		k := len(core.Legs)
		scope := make([]int, k)
		for l, leg := range core.Legs {
			if scope[l] = variable[leg]; scope[l] < 0 || slices.Contains(scope[:l], scope[l]) {
				return nil, nil
			}
		}
		ln := make([]float64, len(t.Data))
		for x, y := range t.Data {
			if !(y > 0) || math.IsInf(y, 1) {
				return nil, nil
			}
			ln[x] = math.Log(y) / float64(len(ln))
		}
		for half := 1; half < len(ln); half *= 2 { // Walsh's transform
			for x := range ln {
				if x&half == 0 {
					ln[x], ln[x|half] = ln[x]+ln[x|half], ln[x|half]-ln[x]
				}
			}
		}
		for members, y := range ln {
			var set []int
			for l, v := range scope {
				if members>>(k-1-l)&1 == 1 {
					set = append(set, v)
				}
			}
			slices.Sort(set)
			m.of[len(set)][place(set)] += y
		}
	}
	return m, nil
}

// signs returns 1 or −1 for each variable: with the spins of the latter turned round, the interactions of the largest sets have one sign.
// Variable 0 is not turned. It returns nil where a sign is not to be seen.
func (m *interactions) signs() []float64 {
	order := len(m.of) - 1
	signs := make([]float64, m.n)
	signs[0] = 1
	for i := 1; i < m.n; i++ {
		var others []int
		for v := 1; len(others) < order-1; v++ {
			if v != i {
				others = append(others, v)
			}
		}
		with := func(v int) float64 {
			set := append(slices.Clone(others), v)
			slices.Sort(set)
			return m.of[order][place(set)]
		}
		switch x := with(0) * with(i); {
		case x > 0:
			signs[i] = 1
		case x < 0:
			signs[i] = -1
		default:
			return nil
		}
	}
	return signs
}

// means returns the mean interaction of the sets of each size, spins turned round by signs, and Σ |interaction − mean| over all sets of
// two and more.
func (m *interactions) means(signs []float64) (mean []float64, off float64) {
	mean = make([]float64, len(m.of))
	for k := 2; k < len(m.of); k++ {
		list := m.of[k]
		set := make([]int, k)
		for i := range set {
			set[i] = i
		}
		for at := range list {
			for _, v := range set {
				list[at] *= signs[v]
			}
			mean[k] += (list[at] - list[0]) / float64(len(list)) // differences: their sum is hardly rounded
			following(set)
		}
		mean[k] += list[0]
		for _, y := range list {
			off += math.Abs(y - mean[k])
		}
	}
	return mean, off
}

// following changes a set into the one at the next place.
func following(set []int) {
	for k := range set {
		if k+1 == len(set) || set[k]+1 < set[k+1] {
			set[k]++
			for i := range k {
				set[i] = i
			}
			return
		}
	}
}

// elementary is Σ over the sets of k of n spins of their product, where up of them are 1 and the others −1: whole numbers below 2^53.
func elementary(n, up, k int) (sum float64) {
	for down := range k + 1 {
		sum += float64(1-2*(down&1)) * choose(n-up, down) * choose(up, k-down)
	}
	return sum
}
