package closed

// Interchangeable variables that nobody declared: plain tables of three and more variables whose product depends on counts of their values,
// in each of few classes.

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
	// mostOrder bounds the variables of a table, mostEntries its entries, mostValues the values of a variable.
	mostOrder   = 6
	mostEntries = 1 << 10
	mostValues  = 6
	// mostBytes bounds the interactions of all sets.
	mostBytes = 1 << 29
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
	if order := dense(j.Net); order < 3 || 8*numbers(j.Net, order) > min(mostBytes, float64(j.Settings.Memory)) {
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

// numbers are those of the interactions of a network with tables of so many variables, +Inf where a table is too large.
func numbers(net *btn.Network, order int) (sum float64) {
	d := slices.Max(net.Dims)
	if math.Pow(float64(d), float64(order)) > mostEntries {
		return math.Inf(1)
	}
	for k := range order + 1 {
		sum += choose(len(net.Variables), k) * float64(power(d, k))
	}
	return sum
}

// choose is the number of sets of k out of n.
func choose(n, k int) float64 {
	c := 1.0
	for i := range k {
		c = math.Round(c * float64(n-i) / float64(i+1))
	}
	return c
}

// interactions are the logarithms of a network's tables, each a sum over the subsets T of its variables of functions u_T whose sum over any
// one of their variables is 0:
//
//	Σ ln φ(x) = Σ_T u_T(x_T)
type interactions struct {
	n, d int         // variables, and the values of each
	of   [][]float64 // d^k numbers by k, the size of T, and T's place among the sets of that size
}

// at returns u_T, the last variable fastest. set is increasing.
func (m *interactions) at(set []int) []float64 {
	from, size := place(set), power(m.d, len(set))
	return m.of[len(set)][from*size : (from+1)*size]
}

// power is d^k.
func power(d, k int) int {
	p := 1
	for range k {
		p *= d
	}
	return p
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

// interchangeable returns B as a function of counts, times a vector for each variable (Lemma 4):
//
//	B(x) = S(c) · Π_i e^{u_i(x_i)},   c_{k,a} = #{i of class k: x_i is its value a}
//
// for plain tables of variables of one domain, without zeros, whose interactions are the same for all sets with as many variables of each
// class, after values are relabelled at some variables; nil for other networks. Value a > 0 of class k is level 1 + k(d−1) + a − 1 of a
// variable's first leg, value 0 is level 0. What interactions of two variables and more differ adds up to at most deviation, which bounds
// the relative error of B entry by entry, and so of Z.
//
// Cost O(Σ (d+1)^k·k over the tables), 8·d^k bytes for every set of k.
func interchangeable(ctx context.Context, net *btn.Network) (*SymmetryRankOne, error) {
	variable, d := variables(net)
	if variable == nil {
		return nil, nil
	}
	m, err := split(ctx, net, variable, d)
	if m == nil || err != nil {
		return nil, err
	}
	of := m.classes()
	if of == nil {
		return nil, nil
	}
	m.relabel(of)
	mean, off := m.means(of)
	if off > deviation {
		return nil, nil
	}

	p := &SymmetryRankOne{Frame: &btn.Frame{Closed: true, Firsts: true}}
	levels := countspace.Levels{D: 1 + of.count*(d-1)}
	for _, link := range net.Links {
		if len(link.Legs) == 0 {
			continue
		}
		i := variable[link.Legs[0]]
		at, r := make([]uint8, d), make([]float64, d)
		for a, x := range of.value[i] {
			if k := of.class[i]; k >= 0 && a > 0 {
				at[x] = uint8(k*(d-1) + a)
			}
			field := m.of[1][i*d+x]
			if !(math.Abs(field) <= largestField) {
				return nil, nil
			}
			r[x] = math.Exp(field)
		}
		levels.Of = append(levels.Of, at)
		p.R = append(p.R, r)
	}
	p.Frame.Levels = levels
	if p.S, err = of.sum(ctx, m.of[0][0], mean, levels); err != nil {
		return nil, ctx.Err() // or too many counts
	}
	return p, nil
}

// variables returns the variable of every leg, and their number of values; nil where they differ in that, are of more than mostValues, or
// have maps.
func variables(net *btn.Network) (of []int, d int) {
	if slices.ContainsFunc(net.Maps, func(m btn.Map) bool { return m.A != nil }) {
		return nil, 0
	}
	of = slices.Repeat([]int{-1}, len(net.Dims))
	for v, at := range net.Variables {
		link := net.Links[at.Link]
		cp, ok := link.T.(*tensor.CP)
		if !ok || slices.ContainsFunc(cp.Vectors, func(v []float64) bool { return v != nil }) {
			return nil, 0
		}
		if len(link.Legs) == 0 {
			continue
		}
		if d == 0 {
			d = at.Domain
		}
		if at.Domain != d || d < 2 || d > mostValues {
			return nil, 0
		}
		for _, l := range link.Legs {
			of[l] = v
		}
	}
	return of, d
}

// split returns the interactions of all tables; nil where one has a zero, or is not plain.
func split(ctx context.Context, net *btn.Network, variable []int, d int) (*interactions, error) {
	m := &interactions{n: len(net.Variables), d: d, of: make([][]float64, dense(net)+1)}
	for k := range m.of {
		m.of[k] = make([]float64, int(choose(m.n, k))*power(d, k))
	}

	var scopes, sets [mostOrder]int
	s := splitter{d: d}
	for c, core := range net.Cores {
		if c%4096 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		k := len(core.Legs)
		t, err := tensor.ToDense(core.T, mostEntries)
		if err != nil {
			return nil, nil
		}
		scope := scopes[:k]
		for l, leg := range core.Legs {
			if scope[l] = variable[leg]; scope[l] < 0 || slices.Contains(scope[:l], scope[l]) {
				return nil, nil
			}
		}
		for _, y := range t.Data {
			if !(y > 0) || math.IsInf(y, 1) {
				return nil, nil
			}
		}
		parts := s.split(t.Data, scope)
		slices.Sort(scope)
		for members, from := range s.places(k) {
			set := sets[:0]
			for l, v := range scope {
				if members>>(k-1-l)&1 == 1 {
					set = append(set, v)
				}
			}
			u := m.at(set)
			for x, at := range from {
				u[x] += parts[at]
			}
		}
	}
	return m, nil
}

// splitter splits tables of variables with d values.
type splitter struct {
	d     int
	a, b  []float64
	lists [mostOrder + 1][][]int // see places
}

// split returns the logarithm of a table over d+1 values for each variable in increasing sequence, the last fastest: value d stands for the
// mean over the others, values below it for what they differ from that. The slice is overwritten by the next call.
func (s *splitter) split(data []float64, scope []int) []float64 {
	d := s.d
	s.a = s.a[:0]
	for _, y := range data {
		s.a = append(s.a, math.Log(y))
	}
	if !slices.IsSorted(scope) {
		s.sort(scope)
	}
	stride := 1 // of the axis in the result, those after it are split
	for range scope {
		outer := len(s.a) / (stride * d)
		s.b = s.b[:0]
		for o := range outer {
			from := s.a[o*stride*d : (o+1)*stride*d]
			at := len(s.b)
			s.b = append(s.b, from...)
			for in := range stride {
				sum := 0.0
				for x := range d {
					sum += from[x*stride+in]
				}
				mean := sum / float64(d)
				for x := range d {
					s.b[at+x*stride+in] -= mean
				}
				s.b = append(s.b, mean)
			}
		}
		s.a, s.b = s.b, s.a
		stride *= d + 1
	}
	return s.a
}

// sort moves the axes of a into the sequence of increasing variables.
func (s *splitter) sort(scope []int) {
	k, d := len(scope), s.d
	sequence := make([]int, k) // axes
	for l := range sequence {
		sequence[l] = l
	}
	slices.SortFunc(sequence, func(i, j int) int { return scope[i] - scope[j] })
	s.b = s.b[:0]
	for to := range len(s.a) {
		from := 0
		for l := k - 1; l >= 0; l-- {
			from += to % d * power(d, k-1-sequence[l])
			to /= d
		}
		s.b = append(s.b, s.a[from])
	}
	s.a, s.b = s.b, s.a
}

// places returns, by the members of a set of k variables, the first the highest bit, where in the result of split their function is.
func (s *splitter) places(k int) [][]int {
	for members := len(s.lists[k]); members < 1<<k; members++ {
		list := []int{0}
		for l := range k {
			from, to := s.d, s.d+1
			if members>>(k-1-l)&1 == 1 {
				from, to = 0, s.d
			}
			var next []int
			for _, at := range list {
				for x := from; x < to; x++ {
					next = append(next, at*(s.d+1)+x)
				}
			}
			list = next
		}
		s.lists[k] = append(s.lists[k], list)
	}
	return s.lists[k]
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
