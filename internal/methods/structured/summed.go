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

// expandStatistics returns the fit in which each statistic s = Σ_i v(i, x_i) is a variable of its own. These variables come after all
// others. The values of such a variable are the nodes y of the quadrature of its statistic, e^{½ λ s²} = Σ_y weight(y) Π_i e^{√λ y v(i,
// x_i)}. So each variable i of the statistic gets a table over x_i and y. The weight is divided among these tables: each has a power of it,
// in proportion to its largest v², and the powers add up to 1. It returns a misfit if a λ is below 0, or if a statistic has too many nodes
// or too large a range.
func (f *Fit) expandStatistics() (*Fit, error) {
	variables, values := len(f.Domains), len(f.Field)
	expanded := *f
	expanded.StatisticsAreVariables, expanded.Lambda, expanded.Vectors = false, nil, nil
	expanded.Domains, expanded.Field, expanded.Rest = slices.Clone(f.Domains), slices.Clone(f.Field), slices.Clone(f.Rest)
	for k, a := range f.axes() {
		nodes := a.last - a.first + 1
		if a.isNegative || nodes > maxStatisticNodes {
			return nil, btn.Misfit("statistic %d of %v nodes is no variable", k, nodes)
		}
		vectors := f.Vectors[k*values:][:values]
		largestSquare := f.largestSquares(vectors) // by variable
		sumOfSquares, largestExponent := 0.0, 0.0  // of all variables; a bound of √λ |s|, so ½ its square bounds ½ λ s²
		for _, square := range largestSquare {
			sumOfSquares += square
			largestExponent += a.sqrtLambda * math.Sqrt(square)
		}
		if largestExponent*largestExponent/2 > maxLnRange {
			return nil, btn.Misfit("the tables of statistic %d range over e^%.0f", k, largestExponent*largestExponent/2)
		}

		// A table of each variable that the statistic depends on, and the statistic itself, whose values change fastest.
		offset := 0
		for i, d := range f.Domains {
			if largestSquare[i] > 0 {
				t := Table{Scope: []int{i, variables + k}, Values: make([]float64, 0, d*nodes)}
				for _, v := range vectors[offset : offset+d] {
					for m := a.first; m <= a.last; m++ {
						exponent := a.sqrtLambda*a.step*float64(m)*v + a.lnWeight(m)*largestSquare[i]/sumOfSquares
						t.Values = append(t.Values, math.Exp(exponent))
					}
				}
				expanded.Rest = append(expanded.Rest, t)
			}
			offset += d
		}
		expanded.Domains = append(expanded.Domains, nodes)
		expanded.Field = append(expanded.Field, make([]float64, nodes)...)
	}
	return &expanded, nil
}

// largestSquares returns, by variable, the largest v² of its values. vectors has v by value of one variable after the other.
func (f *Fit) largestSquares(vectors []float64) []float64 {
	largest, offset := make([]float64, len(f.Domains)), 0
	for i, d := range f.Domains {
		for _, v := range vectors[offset : offset+d] {
			largest[i] = max(largest[i], v*v)
		}
		offset += d
	}
	return largest
}

// eliminateStatistics returns the fit with StatisticsAreVariables set and with an order that eliminates the statistics, too. It returns nil
// if statistics cannot be variables, or if a table along the order has more than maxRestTable entries. That is so if statistics have many
// variables in common.
func (f *Fit) eliminateStatistics(ctx context.Context) (*Fit, error) {
	eliminated := *f
	eliminated.StatisticsAreVariables = true
	expanded, err := eliminated.expandStatistics()
	if err != nil { // a misfit: statistics cannot be variables
		return nil, nil
	}
	if eliminated.Order, err = expanded.restOrder(ctx); err != nil {
		return nil, err
	}
	expanded.Order = eliminated.Order
	if _, err := newProgram(expanded); err != nil { // a table is too large
		return nil, nil
	}
	return &eliminated, nil
}

// restOrder returns an order that eliminates the variables of the rest, the tables that the statistics do not give. It is the best order
// that a search of orderMoves moves finds. Variables that no table has are not in it.
func (f *Fit) restOrder(ctx context.Context) (order []int, err error) {
	shape := contractionorder.Hypergraph{Dims: slices.Clone(f.Domains)}
	isMissing := make([]bool, len(f.Domains)) // the variable is in the rest, and not in the order yet
	for _, t := range f.Rest {
		shape.Edges = append(shape.Edges, t.Scope)
		for _, v := range t.Scope {
			isMissing[v] = true
		}
	}
	best, _, err := contractionorder.BestWithin(ctx, shape, orderMoves)
	if err != nil {
		return nil, err
	}
	for _, v := range best {
		if isMissing[v] {
			order, isMissing[v] = append(order, v), false
		}
	}
	for v, missing := range isMissing { // the search leaves out domains of one value
		if missing {
			order = append(order, v)
		}
	}
	return order, nil
}

// groupedOrSame returns an approximation that is aligned to groups of variables (alignToGroups), and the sum of its residuals over all
// pairs but outliers, nats. It returns s and its residual instead if one group has all directions of s (alignToGroups returns nil), if the
// aligned approximation has more than MaxStatistics directions, or if it is not exact: its residual is above exactError.
func (m *interactions) groupedOrSame(
	pairs [][2]int, s *lowRank, outliers map[[2]int]bool, residual float64,
) (*lowRank, float64, error) {
	aligned, err := m.alignToGroups(s)
	if err != nil || aligned == nil || len(aligned.lambda) > MaxStatistics {
		return s, residual, err
	}
	alignedResidual := 0.0
	for _, p := range pairs {
		if !outliers[p] {
			alignedResidual += m.blockResidual(aligned, p)
		}
	}
	if alignedResidual > exactError {
		return s, residual, nil
	}
	return aligned, alignedResidual, nil
}

// alignToGroups turns the directions of an approximation: afterwards each direction is 0 outside of one group of coordinates. The entry (r,
// c) of the approximation, if it is not 0, puts the coordinates r and c into one group. The directions of s are eigenvectors, and those of
// equal eigenvalues may mix groups. It returns nil if one group has all directions.
func (m *interactions) alignToGroups(s *lowRank) (*lowRank, error) {
	n := m.order
	largest := 0.0
	for r := range n {
		for c := range r {
			largest = max(largest, math.Abs(s.entry(n, r, c)))
		}
	}
	vanishing := vanishingShare * largest // entries and λ up to this are roundings

	group, count := s.findGroups(n, vanishing)
	coordinates := make([][]int, count) // by group
	for r, g := range group {
		coordinates[g] = append(coordinates[g], r)
	}
	aligned := &lowRank{}
	for _, members := range coordinates {
		g, err := s.directionsOf(members, n, vanishing)
		if err != nil || g == nil {
			return nil, err
		}
		aligned.lambda = append(aligned.lambda, g.lambda...)
		aligned.directions = append(aligned.directions, g.directions...)
	}
	return aligned, nil
}

// directionsOf returns the directions of a group of the n coordinates: the eigenvectors of the group's block of the approximation, 0 at all
// other coordinates, without those whose eigenvalues are vanishing. It returns nil if the group has as many independent directions as s.
func (s *lowRank) directionsOf(group []int, n int, vanishing float64) (*lowRank, error) {
	k := len(s.lambda)
	block := make([]float64, 0, len(group)*k) // the directions of s at the group's coordinates: k numbers for each coordinate
	for _, r := range group {
		for c := range k {
			block = append(block, s.directions[c*n+r])
		}
	}
	principal, err := principalCombinations(block, k) // orthogonal combinations of the directions that are not 0 in the group
	if err != nil || len(principal) == k {
		return nil, err
	}
	lambdas, vectors, err := s.blockEigenvectors(principal)
	if err != nil {
		return nil, err
	}
	directions := &lowRank{}
	for a, lambda := range lambdas {
		if math.Abs(lambda) <= vanishing {
			continue
		}
		direction := make([]float64, n) // Σ_b vectors[b, a] · combination b, divided by the combination's length
		for i, r := range group {
			for b, p := range principal {
				for c, y := range block[i*k : i*k+k] {
					direction[r] += y * p.factors[c] / math.Sqrt(p.size) * vectors[b*len(principal)+a]
				}
			}
		}
		directions.lambda = append(directions.lambda, lambda)
		directions.directions = append(directions.directions, direction...)
	}
	return directions, nil
}

// combination is a sum of multiples of directions.
type combination struct {
	factors []float64 // by direction, with Σ factors² = 1
	size    float64   // square of the sum's length
}

// principalCombinations returns combinations of k directions that are orthogonal to each other and have the same span, without those of
// vanishing size. rows has the k numbers of each coordinate. The factors are the eigenvectors of rowsᵀ rows, and the sizes its eigenvalues.
func principalCombinations(rows []float64, k int) (principal []combination, err error) {
	gram := make([]float64, k*k)
	addGram(gram, rows, k, 1)
	sizes, vectors, err := linalg.SymmetricEigen(gram, k)
	if err != nil {
		return nil, err
	}
	for a, size := range sizes {
		if size > vanishingShare*vanishingShare { // sizes are squares of lengths, and directions have length 1
			factors := make([]float64, k)
			for c := range factors {
				factors[c] = vectors[c*k+a]
			}
			principal = append(principal, combination{factors, size})
		}
	}
	return principal, nil
}

// blockEigenvectors returns the eigenvalues and eigenvectors of a block of the approximation Σ_c λ_c w_c w_cᵀ. The block is written as a
// matrix over the principal combinations of the directions w_c, each divided by its length √size. For two combinations with factors f and
// g, its entry is the product of their lengths and Σ_c f_c λ_c g_c. Eigenvector a is column a of vectors.
func (s *lowRank) blockEigenvectors(principal []combination) (lambdas, vectors []float64, err error) {
	k := len(principal)
	matrix := make([]float64, k*k)
	for a, p := range principal {
		for b, q := range principal {
			for c, lambda := range s.lambda {
				matrix[a*k+b] += math.Sqrt(p.size*q.size) * p.factors[c] * lambda * q.factors[c]
			}
		}
	}
	return linalg.SymmetricEigen(matrix, k)
}

// findGroups divides the n coordinates into groups: two coordinates are in one group if a chain of entries above limit joins them. It
// returns the group of each coordinate and the number of groups.
func (s *lowRank) findGroups(n int, limit float64) (group []int, count int) {
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
