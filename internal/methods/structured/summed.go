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
	// maxStatisticNodes bounds the nodes of a statistic that is a variable.
	maxStatisticNodes = 1 << 10
	// maxLnRange bounds ln of the range of the product of a statistic's tables, nats, so that no partial product underflows.
	maxLnRange = 600
)

// expandStatistics returns the fit in which each statistic is a variable of the rest, whose values are its nodes. e^{½ λ s²} is then the
// sum over the node y of tables e^{√λ y v(i, x_i)}, one for each variable i, times the node's weight, which is divided among the tables in
// proportion to the largest v². It is a misfit if a λ is below 0, or if nodes or ranges are above the bounds.
func (f *Fit) expandStatistics() (*Fit, error) {
	n, values := len(f.Domains), len(f.Field)
	g := *f
	g.StatisticsAreVariables, g.Lambda, g.Vectors = false, nil, nil
	g.Domains, g.Field, g.Rest = slices.Clone(f.Domains), slices.Clone(f.Field), slices.Clone(f.Rest)
	for k, a := range f.axes() {
		if a.isNegative || a.last-a.first >= maxStatisticNodes {
			return nil, btn.Misfit("statistic %d of %v nodes is no variable", k, a.last-a.first+1)
		}
		nodes := a.last - a.first + 1
		vectors := f.Vectors[k*values:][:values]
		largestSquare, sumOfSquares, largestExponent, offset := make([]float64, n), 0.0, 0.0, 0 // of v by variable; over all; of √λ |s|
		for i, d := range f.Domains {
			for _, v := range vectors[offset : offset+d] {
				largestSquare[i] = max(largestSquare[i], v*v)
			}
			sumOfSquares += largestSquare[i]
			largestExponent += a.sqrtLambda * math.Sqrt(largestSquare[i])
			offset += d
		}
		if largestExponent*largestExponent/2 > maxLnRange {
			return nil, btn.Misfit("the tables of statistic %d range over e^%.0f", k, largestExponent*largestExponent/2)
		}
		offset = 0
		for i, d := range f.Domains {
			if largestSquare[i] > 0 {
				t := Table{Scope: []int{i, n + k}, Values: make([]float64, 0, d*nodes)}
				for _, v := range vectors[offset : offset+d] {
					for m := a.first; m <= a.last; m++ {
						exponent := a.sqrtLambda*a.step*float64(m)*v + a.lnWeight(m)*largestSquare[i]/sumOfSquares
						t.Values = append(t.Values, math.Exp(exponent))
					}
				}
				g.Rest = append(g.Rest, t)
			}
			offset += d
		}
		g.Domains = append(g.Domains, nodes)
		g.Field = append(g.Field, make([]float64, nodes)...)
	}
	return &g, nil
}

// eliminateStatistics returns the fit with StatisticsAreVariables and an order that eliminates its rest and its statistics. It returns nil
// if that needs a table above maxRestTable, as it does if statistics share many variables, or if statistics cannot be variables.
func (f *Fit) eliminateStatistics(ctx context.Context) (*Fit, error) {
	g := *f
	g.StatisticsAreVariables = true
	expanded, err := g.expandStatistics()
	if err != nil {
		return nil, nil
	}
	if g.Order, err = expanded.restOrder(ctx); err != nil {
		return nil, err
	}
	expanded.Order = g.Order
	if _, err := newProgram(expanded); err != nil {
		return nil, nil
	}
	return &g, nil
}

// restOrder returns a sequence that eliminates the variables of the rest: the best one found in orderMoves moves.
func (f *Fit) restOrder(ctx context.Context) (order []int, err error) {
	shape := contractionorder.Hypergraph{Dims: slices.Clone(f.Domains)}
	isLeft := make([]bool, len(f.Domains)) // in the rest, and not in the order
	for _, t := range f.Rest {
		shape.Edges = append(shape.Edges, t.Scope)
		for _, v := range t.Scope {
			isLeft[v] = true
		}
	}
	best, _, err := contractionorder.BestWithin(ctx, shape, orderMoves)
	if err != nil {
		return nil, err
	}
	for _, v := range best {
		if isLeft[v] {
			order, isLeft[v] = append(order, v), false
		}
	}
	for v, left := range isLeft { // domains of one value
		if left {
			order = append(order, v)
		}
	}
	return order, nil
}

// groupedOrSame returns an approximation aligned to groups, and Σ of its residuals over the pairs that are not apart, nats. It returns the
// approximation s itself with its sum of residuals if there is one group, or if the aligned one is not exact.
func (m *interactions) groupedOrSame(
	pairs [][2]int, s *spectrum, apart map[[2]int]bool, residual float64,
) (*spectrum, float64, error) {
	aligned, err := m.alignToGroups(s)
	if err != nil || aligned == nil || len(aligned.lambda) > MaxStatistics {
		return s, residual, err
	}
	sum := 0.0
	for _, p := range pairs {
		if !apart[p] {
			sum += m.residual(aligned, p)
		}
	}
	if sum > exactError {
		return s, residual, nil
	}
	return aligned, sum, nil
}

// alignToGroups turns the directions of an approximation so that each direction is of one group of coordinates. Groups are the blocks of
// the approximation that do not interact: if different blocks have equal eigenvalues, eigenvectors mix them. It returns nil if there is one
// group.
func (m *interactions) alignToGroups(s *spectrum) (*spectrum, error) {
	n, k := m.order, len(s.lambda)
	largest := 0.0
	for r := range n {
		for c := range r {
			largest = max(largest, math.Abs(s.entry(n, r, c)))
		}
	}
	group, count := s.groups(n, vanishingShare*largest)
	aligned := &spectrum{}
	for g := range count {
		rows := make([]float64, 0, n*k) // the group's coordinates of all directions, row by row
		for r := range n {
			if group[r] == g {
				for c := range k {
					rows = append(rows, s.directions[c*n+r])
				}
			}
		}
		gram := make([]float64, k*k)
		addGram(gram, rows, k, 1)
		sizes, turn, err := linalg.SymmetricEigen(gram, k)
		if err != nil {
			return nil, err
		}
		// The rows' own directions are rows · turn/√size. In them the approximation is (√size turnᵀ) diag(λ) (turn √size).
		var kept []int
		for c, size := range sizes {
			if size > vanishingShare*vanishingShare {
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
			if math.Abs(lambda) <= vanishingShare*largest {
				continue
			}
			direction := make([]float64, n)
			row := 0
			for r := range n {
				if group[r] != g {
					continue
				}
				for b, cb := range kept {
					for c := range k {
						direction[r] += rows[row+c] * turn[c*k+cb] / math.Sqrt(sizes[cb]) * vectors[b*len(kept)+a]
					}
				}
				row += k
			}
			aligned.lambda = append(aligned.lambda, lambda)
			aligned.directions = append(aligned.directions, direction...)
		}
	}
	return aligned, nil
}

// groups divides the n coordinates into groups that are joined by entries of the approximation above a limit. It returns the group of each
// coordinate and the number of groups.
func (s *spectrum) groups(n int, limit float64) (group []int, count int) {
	const unreached = -1
	group = slices.Repeat([]int{unreached}, n)
	for first := range n {
		if group[first] != unreached {
			continue
		}
		group[first] = count
		for queue := []int{first}; len(queue) > 0; {
			r := queue[0]
			queue = queue[1:]
			for c := range n {
				if group[c] == unreached && math.Abs(s.entry(n, r, c)) > limit {
					group[c] = count
					queue = append(queue, c)
				}
			}
		}
		count++
	}
	return group, count
}
