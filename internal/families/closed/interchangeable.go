package closed

// Interchangeable variables that nobody declared: plain tables of three and more binary variables whose product depends on a count, or on
// a count for each of few classes.

import (
	"context"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/proposal"
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/tensor"
)

const (
	// leastInterchangeable is the number of variables below which elimination is cheap.
	leastInterchangeable = 12
	// mostOrder bounds the variables of a table.
	mostOrder = 6
	// leastShare is the share of all sets of variables that have a table, below which no interchangeable variables are looked for.
	leastShare = 0.05
	// largestField bounds the main effect of a variable, nats.
	largestField = 300
	// deviation bounds Σ of what interactions differ from those of interchangeable variables, nats.
	deviation = 1e-10
)

// ProposeInterchangeable is the proposal of a sum in count space: see interchangeable. It is asked of networks that are dense in tables
// of three variables, or more.
func ProposeInterchangeable(j *proposal.Job, ask proposal.Ask) (*btn.Assignment, error) {
	if order := dense(j.Net); order < 3 {
		return nil, nil
	}
	plan, hit, err := j.Remember("interchangeable/2", contractionorder.Hypergraph{}, func(ctx context.Context) (*btn.Plan, error) {
		part, err := interchangeable(ctx, j.Net)
		if part == nil || err != nil {
			return &btn.Plan{Method: btn.MethodExact}, err
		}
		return proposal.Exact(btn.Cost{Flops: CountFlops(part.Frame.On(j.Net), part.Frame.Levels)}, part), nil
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

// dense returns the order of the largest tables of a network, if leastShare of the sets of so many variables have one; else 0. Linear time.
func dense(net *btn.Network) (order int) {
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
	if leastShare*choose(n, order) > float64(count) {
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
		c := 1
		for i := range k + 1 {
			c = c * (t - i) / (i + 1)
		}
		at += c
	}
	return at
}

// interchangeable returns B as a function of the count of each class, times a vector for each variable (Lemma 4):
//
//	B(x) = S(c_1, …, c_K) · Π_i e^{c_i(x_i)},   c_k = #{i of class k: σ_i(x_i) = 1}
//
// for plain tables of binary variables without zeros, whose interactions are the same for all sets with as many variables of each class,
// after values are exchanged at some variables; nil for other networks. One value of a variable is the level of its class, the other level
// 0, on its first leg. What interactions of two variables and more differ adds up to at most deviation, which bounds the relative error of
// B entry by entry, and so of Z.
//
// Cost O(Σ 2^k·k over the tables), 8 bytes for every set.
func interchangeable(ctx context.Context, net *btn.Network) (*SymmetryRankOne, error) {
	variable := variables(net)
	if variable == nil {
		return nil, nil
	}
	m, err := transformed(ctx, net, variable)
	if m == nil || err != nil {
		return nil, err
	}
	of := m.classes()
	if of == nil {
		return nil, nil
	}
	signs := m.signs(of)
	if signs == nil {
		return nil, nil
	}
	mean, off := m.means(of, signs)
	if off > deviation {
		return nil, nil
	}

	p := &SymmetryRankOne{Frame: &btn.Frame{Closed: true, Firsts: true}}
	levels := countspace.Levels{D: 1 + of.count}
	for _, link := range net.Links {
		if len(link.Legs) == 0 {
			continue
		}
		i := variable[link.Legs[0]]
		field := m.of[1][i]
		if !(math.Abs(field) <= largestField) {
			return nil, nil
		}
		at := []uint8{0, uint8(of.class[i] + 1)}
		if signs[i] < 0 {
			slices.Reverse(at)
		}
		levels.Of = append(levels.Of, at)
		p.R = append(p.R, []float64{math.Exp(-field), math.Exp(field)})
	}
	p.Frame.Levels = levels
	if p.S, err = of.sum(ctx, m.of[0][0], mean, levels); err != nil {
		return nil, ctx.Err() // or too many counts
	}
	return p, nil
}

// variables returns the variable of every leg; nil where the variables of a network are not binary, or have maps.
func variables(net *btn.Network) []int {
	if slices.ContainsFunc(net.Maps, func(m btn.Map) bool { return m.A != nil }) {
		return nil
	}
	of := slices.Repeat([]int{-1}, len(net.Dims))
	for v, at := range net.Variables {
		link := net.Links[at.Link]
		cp, ok := link.T.(*tensor.CP)
		if !ok || at.Domain != 2 || slices.ContainsFunc(cp.Vectors, func(v []float64) bool { return v != nil }) {
			return nil
		}
		for _, l := range link.Legs {
			of[l] = v
		}
	}
	return of
}

// transformed returns the interactions of all tables; nil where one has a zero, or is not plain.
func transformed(ctx context.Context, net *btn.Network, variable []int) (*interactions, error) {
	n := len(net.Variables)
	m := &interactions{n: n, of: make([][]float64, dense(net)+1)}
	for k := range m.of {
		m.of[k] = make([]float64, int(choose(n, k)))
	}
	var scopes, sets [mostOrder]int
	var logarithms [1 << mostOrder]float64
	for c, core := range net.Cores {
		if c%4096 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		t, err := tensor.ToDense(core.T, 1<<mostOrder)
		if err != nil {
			return nil, nil
		}
		k := len(core.Legs)
		scope := scopes[:k]
		for l, leg := range core.Legs {
			if scope[l] = variable[leg]; scope[l] < 0 || slices.Contains(scope[:l], scope[l]) {
				return nil, nil
			}
		}
		ln := logarithms[:len(t.Data)]
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
			set := sets[:0]
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
