package structured

// Statistics as variables: where they have few variables in common, as those of groups do, they are summed one by one.

import (
	"context"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/base/linalg"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
)

const (
	// mostSteps bounds the nodes of a statistic that is a variable.
	mostSteps = 1 << 10
	// mostRange bounds the range of the products of a statistic's tables, nats: no entry vanishes before the last of them.
	mostRange = 600
)

// summed returns the fit in which each statistic is a variable of the rest, whose values are its nodes y: e^{½ λ s²} is the sum over y of
// tables e^{√λ y v(i, x_i)}, with the node's weight divided among them by the squares of v. Errors: misfit for a λ below 0, or nodes or
// ranges above the bounds.
func (f *Fit) summed() (*Fit, error) {
	n, values := len(f.Domains), len(f.Field)
	g := *f
	g.Summed, g.Lambda, g.Vectors = false, nil, nil
	g.Domains, g.Field, g.Rest = slices.Clone(f.Domains), slices.Clone(f.Field), slices.Clone(f.Rest)
	for k, a := range f.axes() {
		if a.negative || a.last-a.first >= mostSteps {
			return nil, btn.Misfit("statistic %d of %v nodes is no variable", k, a.last-a.first+1)
		}
		count := a.last - a.first + 1
		v := f.Vectors[k*values:][:values]
		squares, total, reach, at := make([]float64, n), 0.0, 0.0, 0
		for i, d := range f.Domains {
			for _, y := range v[at : at+d] {
				squares[i] = max(squares[i], y*y)
			}
			total += squares[i]
			reach += a.root * math.Sqrt(squares[i])
			at += d
		}
		if reach*reach/2 > mostRange {
			return nil, btn.Misfit("the tables of statistic %d range over e^%.0f", k, reach*reach/2)
		}
		at = 0
		for i, d := range f.Domains {
			if squares[i] > 0 {
				t := Table{Scope: []int{i, n + k}, Values: make([]float64, 0, d*count)}
				for _, y := range v[at : at+d] {
					for m := a.first; m <= a.last; m++ {
						t.Values = append(t.Values, math.Exp(a.root*a.step*float64(m)*y+a.lnWeight(m)*squares[i]/total))
					}
				}
				g.Rest = append(g.Rest, t)
			}
			at += d
		}
		g.Domains = append(g.Domains, count)
		g.Field = append(g.Field, make([]float64, count)...)
	}
	return &g, nil
}

// withVariables returns the fit with its statistics as variables, and an order that eliminates all; nil where it has no variables in
// common with few others, or tables that are too large.
func (f *Fit) withVariables(ctx context.Context) (*Fit, error) {
	own := *f
	own.Summed = true
	g, err := own.summed()
	if err != nil {
		return nil, nil
	}
	if own.Order, err = g.order(ctx); err != nil {
		return nil, err
	}
	g.Order = own.Order
	if _, err := newProgram(g); err != nil {
		return nil, nil
	}
	return &own, nil
}

// order lists the variables of the rest in a sequence that eliminates them.
func (f *Fit) order(ctx context.Context) (order []int, err error) {
	shape := contractionorder.Hypergraph{Dims: slices.Clone(f.Domains)}
	in := make([]bool, len(f.Domains))
	for _, t := range f.Rest {
		shape.Edges = append(shape.Edges, t.Scope)
		for _, v := range t.Scope {
			in[v] = true
		}
	}
	all, _, err := contractionorder.BestWithin(ctx, shape, orderMoves)
	if err != nil {
		return nil, err
	}
	for _, v := range all {
		if in[v] {
			order, in[v] = append(order, v), false
		}
	}
	for v, left := range in { // domains of one value
		if left {
			order = append(order, v)
		}
	}
	return order, nil
}

// grouped is an approximation by groups, with Σ of its residuals, nats; the approximation itself where that is too large.
func (m *interactions) grouped(all [][2]int, s *spectrum, apart map[[2]int]bool, off float64) (*spectrum, float64, error) {
	g, err := m.groups(s)
	if err != nil || g == nil || len(g.lambda) > MostStatistics {
		return s, off, err
	}
	sum := 0.0
	for _, p := range all {
		if !apart[p] {
			sum += m.residual(g, p)
		}
	}
	if sum > exactError {
		return s, off, nil
	}
	return g, sum, nil
}

// groups turns the directions of an approximation so that each is of one group of variables, where the approximation divides them into
// groups that do not interact: equal eigenvalues of different groups mix their directions. It returns nil where there is one group.
func (m *interactions) groups(s *spectrum) (*spectrum, error) {
	n, k := m.order, len(s.lambda)
	most := 0.0
	for r := range n {
		for c := range r {
			most = max(most, math.Abs(s.at(n, r, c)))
		}
	}
	group := make([]int, n) // of a coordinate; −1: not reached
	for r := range group {
		group[r] = -1
	}
	count := 0
	for first := range n {
		if group[first] >= 0 {
			continue
		}
		group[first] = count
		for list := []int{first}; len(list) > 0; {
			r := list[0]
			list = list[1:]
			for c := range n {
				if group[c] < 0 && math.Abs(s.at(n, r, c)) > vanishing*most {
					group[c] = count
					list = append(list, c)
				}
			}
		}
		count++
	}
	out := &spectrum{}
	for g := range count {
		rows := make([]float64, 0, n*k) // of the directions, row by row
		for r := range n {
			if group[r] == g {
				for c := range k {
					rows = append(rows, s.w[c*n+r])
				}
			}
		}
		gram := make([]float64, k*k)
		addGram(gram, rows, k, 1)
		sizes, turn, err := linalg.SymmetricEigen(gram, k)
		if err != nil {
			return nil, err
		}
		// The rows' own directions are rows · turn/√size; in them the approximation is (√size turnᵀ) diag(λ) (turn √size).
		var kept []int
		for c, size := range sizes {
			if size > vanishing*vanishing {
				kept = append(kept, c)
			}
		}
		if len(kept) == k {
			return nil, nil
		}
		small := make([]float64, len(kept)*len(kept))
		for a, ca := range kept {
			for b, cb := range kept {
				for c, lambda := range s.lambda {
					small[a*len(kept)+b] += math.Sqrt(sizes[ca]*sizes[cb]) * turn[c*k+ca] * lambda * turn[c*k+cb]
				}
			}
		}
		lambdas, vectors, err := linalg.SymmetricEigen(small, len(kept))
		if err != nil {
			return nil, err
		}
		for a, lambda := range lambdas {
			if math.Abs(lambda) <= vanishing*most {
				continue
			}
			w := make([]float64, n)
			at := 0
			for r := range n {
				if group[r] != g {
					continue
				}
				for b, cb := range kept {
					for c := range k {
						w[r] += rows[at+c] * turn[c*k+cb] / math.Sqrt(sizes[cb]) * vectors[b*len(kept)+a]
					}
				}
				at += k
			}
			out.lambda = append(out.lambda, lambda)
			out.w = append(out.w, w...)
		}
	}
	return out, nil
}
