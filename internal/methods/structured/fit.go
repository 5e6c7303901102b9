package structured

// The matrix of interactions as low rank plus few pairs of variables.

import (
	"context"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"

	"github.com/basetensor/basetensor/internal/base/linalg"
	"github.com/basetensor/basetensor/internal/network/btn"
)

const (
	// maxRounds bounds the rounds of a search at one rank.
	maxRounds = 400
	// maxApartPerVariable bounds the pairs that are apart, by variable.
	maxApartPerVariable = 3
	// exactError is the error of entries of B, nats, up to which a fit is exact. If its statistics may be integers it may be off by
	// the rounding of interactions: they are read again then, in more digits.
	exactError = 1e-9
	// residualFloor is the rounding of an interaction, relative to the largest.
	residualFloor = 4e-14
	// largeFactor is the multiple of the median interaction above which one is set apart to begin with.
	largeFactor = 4
	// minSample and maxSample bound the pairs of a variable whose median is taken.
	minSample, maxSample = 8, 64
	// probeRounds and probeShare are the rounds after which the median residual has to be below a share of the median interaction.
	probeRounds = 8
	probeShare  = 0.5
	// vanishingShare is the eigenvalue, relative to the largest, below which a direction is dropped.
	vanishingShare = 1e-6
	// maxRestTable bounds the entries of a table along the elimination of the rest.
	maxRestTable = 1 << 16
	// orderMoves bounds the search for an elimination order of the rest.
	orderMoves = 1 << 16
)

// apartFactors are the factors of searchRank, one search after the other. With 0 no pair is set apart.
var apartFactors = [...]float64{0, 24, 8, 4}

// spectrum is Σ_k λ_k w_k w_kᵀ: an approximation of the matrix of interactions.
type spectrum struct {
	lambda     []float64
	directions []float64 // w: column by column, each of the matrix's order
}

// completion is a search for an approximation of one rank. Pairs of variables are numbered by their place in pairs.
type completion struct {
	*interactions
	pairs            [][2]int
	residuals        []float64 // by pair
	apart            map[[2]int]bool
	apartNeighbours  [][]int // by variable: the variables that it is apart with
	residualOfOthers float64 // Σ of the residuals of the pairs that are not apart
	totalInteraction float64 // Σ of the sizes of all interactions
	coupled          []int   // pairs with an interaction
	sample           [][]int // by variable: some of its coupled pairs that are no strangers; nil if they are fewer than minSample
	approximation    *spectrum
}

// newCompletion begins a search for rank k in random directions. largest is the largest interaction of a pair. With setsApart, pairs are
// apart from the beginning if their interactions are far above those of their variables, or if they are strangers.
func (m *interactions) newCompletion(pairs [][2]int, k int, setsApart bool) (c *completion, largest float64) {
	n := len(m.domains)
	c = &completion{
		interactions: m, pairs: pairs, approximation: m.randomDirections(k),
		residuals: make([]float64, len(pairs)), sample: make([][]int, n),
	}
	for r, p := range pairs {
		c.residuals[r] = m.residual(&spectrum{}, p)
		c.totalInteraction += c.residuals[r]
		largest = max(largest, c.residuals[r])
	}
	for r, x := range c.residuals {
		if x > residualFloor*largest {
			c.coupled = append(c.coupled, r)
		}
	}
	strangers := c.strangers()
	c.choosePairsToSample(strangers)
	if !setsApart {
		c.divideAbove(math.Inf(1))
		return c, largest
	}
	// Of a matrix of rank one, an interaction is the product of its variables' medians over the median: interactions are compared with that.
	medians, _ := c.medianResiduals(c.typicalResidual())
	typical := median(slices.Clone(medians))
	residuals := slices.Clone(c.residuals)
	for r, p := range pairs {
		if x := medians[p[0]] * medians[p[1]]; x > 0 {
			c.residuals[r] *= typical * typical / x
		}
		if strangers[r] && len(strangers) <= maxApartPerVariable*n {
			c.residuals[r] = math.Inf(1)
		}
	}
	c.divideAbove(largeFactor * typical)
	c.residuals = residuals
	return c, largest
}

// choosePairsToSample fills sample: of each variable pairs at equal distances in their list, about maxSample of them.
func (c *completion) choosePairsToSample(strangers map[int]bool) {
	pairsOf := make([][]int, len(c.domains))
	for _, r := range c.coupled {
		if !strangers[r] {
			for _, i := range c.pairs[r] {
				pairsOf[i] = append(pairsOf[i], r)
			}
		}
	}
	for i, pairs := range pairsOf {
		if len(pairs) >= minSample {
			step := max(1, len(pairs)/maxSample)
			for k := i % step; k < len(pairs); k += step {
				c.sample[i] = append(c.sample[i], pairs[k])
			}
		}
	}
}

// strangers returns the coupled pairs that have few neighbours in common: less than a third of the neighbours of one of both. Variables of
// one group, or of a dense matrix, have many in common. Cost O(pairs · n / 64).
func (c *completion) strangers() map[int]bool {
	out := map[int]bool{}
	n := len(c.domains)
	words := (n + 63) / 64
	neighbours, degree := make([]uint64, n*words), make([]int, n) // neighbours: a set of bits for each variable
	for _, r := range c.coupled {
		p := c.pairs[r]
		neighbours[p[0]*words+p[1]/64] |= 1 << (p[1] % 64)
		neighbours[p[1]*words+p[0]/64] |= 1 << (p[0] % 64)
		degree[p[0]]++
		degree[p[1]]++
	}
	for _, r := range c.coupled {
		p, common := c.pairs[r], 0
		for w, x := range neighbours[p[0]*words : p[0]*words+words] {
			common += bits.OnesCount64(x & neighbours[p[1]*words+w])
		}
		if 3*common < min(degree[p[0]], degree[p[1]]) {
			out[r] = true
		}
	}
	return out
}

// typicalResidual returns the median residual of the coupled pairs, by a sample of some 4,096.
func (c *completion) typicalResidual() float64 {
	var sample []float64
	for k := 0; k < len(c.coupled); k += max(1, len(c.coupled)/4096) {
		sample = append(sample, c.residuals[c.coupled[k]])
	}
	return median(sample)
}

// medianResiduals returns the median residual of each variable's sample, or the typical one for a variable without a sample, and the
// largest of these medians.
func (c *completion) medianResiduals(typical float64) (medians []float64, worst float64) {
	medians = make([]float64, len(c.sample))
	for i, pairs := range c.sample {
		if medians[i] = typical; len(pairs) > 0 {
			residuals := make([]float64, len(pairs))
			for k, r := range pairs {
				residuals[k] = c.residuals[r]
			}
			medians[i] = median(residuals)
		}
		worst = max(worst, medians[i])
	}
	return medians, worst
}

// divideAbove sets the pairs apart whose residuals are above a limit, and those that have tables with zeros, and no others.
func (c *completion) divideAbove(limit float64) {
	c.apart, c.apartNeighbours, c.residualOfOthers = map[[2]int]bool{}, make([][]int, len(c.domains)), 0
	for r, p := range c.pairs {
		x := c.residuals[r]
		if x > limit || len(c.zeroPairs) > 0 && c.zeroPairs[p] {
			c.apart[p] = true
			c.apartNeighbours[p[0]] = append(c.apartNeighbours[p[0]], p[1])
			c.apartNeighbours[p[1]] = append(c.apartNeighbours[p[1]], p[0])
		} else {
			c.residualOfOthers += x
		}
	}
}

// improve improves the approximation by a step of least squares and computes the residuals. It fails if the matrix has fewer directions.
func (c *completion) improve() error {
	if err := c.leastSquaresStep(c.approximation, c.apartNeighbours); err != nil {
		return err
	}
	c.approximation.dropVanishing()
	for r, p := range c.pairs {
		c.residuals[r] = c.residual(c.approximation, p)
	}
	return nil
}

// searchRank looks for an approximation of rank k whose residuals are roundings. Blocks of one variable are free, and so are those of pairs
// apart. If factor is 0 only pairs with zeros are apart. Otherwise pairs with large interactions are apart to begin with, and after each
// round those with residuals above factor times the worst variable's median. It returns the approximation, the pairs apart, and Σ of the
// residuals of all other pairs, nats. The approximation is nil if the search fails.
func (m *interactions) searchRank(
	ctx context.Context, pairs [][2]int, k int, factor float64,
) (s *spectrum, apart map[[2]int]bool, residual float64, err error) {
	const (
		window   = 12 // rounds after which the typical residual has to have fallen by a tenth
		patience = 3  // rounds without progress that end a search that has succeeded
	)
	if 2*k > m.order {
		return nil, nil, 0, nil
	}
	setsApart := factor > 0
	c, largest := m.newCompletion(pairs, k, setsApart)
	floor := residualFloor * largest
	maxApart := maxApartPerVariable*len(m.domains) + len(m.zeroPairs)
	var typicals []float64 // by round
	sinceBest, best := 0, math.Inf(1)
	for range maxRounds {
		if err := ctx.Err(); err != nil {
			return nil, nil, 0, err
		}
		if c.improve() != nil {
			return nil, nil, 0, nil // a matrix without k directions
		}
		typical := c.typicalResidual()
		typicals = append(typicals, typical)
		_, worst := c.medianResiduals(typical)
		limit := math.Inf(1)
		if setsApart {
			limit = max(floor, factor*worst)
		}
		c.divideAbove(limit)
		residual := c.residualOfOthers
		switch {
		case len(c.apart) > maxApart && len(typicals) > window:
			return nil, nil, 0, nil
		case residual > max(exactError, residualFloor*c.totalInteraction) || len(c.apart) > maxApart || setsApart && limit > floor:
			// not there yet
		case residual < 0.5*best || residual > exactError && residual < 0.95*best:
			best, sinceBest = residual, 0
		default:
			if sinceBest++; sinceBest >= patience {
				return c.approximation, c.apart, residual, nil
			}
		}
		if r := len(typicals) - window; r >= 0 && typical > floor && typical > 0.9*typicals[r] {
			return nil, nil, 0, nil
		}
	}
	return nil, nil, 0, nil
}

// allPairs lists the pairs of variables, with a table or without.
func (m *interactions) allPairs() (all [][2]int) {
	for i := range m.domains {
		for j := i + 1; j < len(m.domains); j++ {
			all = append(all, [2]int{i, j})
		}
	}
	return all
}

// randomDirections returns k random directions, the same ones in every call.
func (m *interactions) randomDirections(k int) *spectrum {
	random := rand.New(rand.NewPCG(1, uint64(k)))
	s := &spectrum{lambda: make([]float64, k), directions: make([]float64, k*m.order)}
	for i := range s.directions {
		s.directions[i] = random.NormFloat64()
	}
	return s
}

// leastSquaresStep is a step of alternating least squares. Given the directions w, it finds the rows u for which u wᵀ is nearest to the
// matrix outside of the free blocks: those of single variables and of the pairs apart, which are given by variable. The new directions are
// these rows, made orthonormal and turned to eigenvectors. It returns an error if the rows are dependent.
func (m *interactions) leastSquaresStep(s *spectrum, apart [][]int) error {
	n, k := m.order, len(s.lambda)
	u, ok := m.fitRows(s, apart)
	if !ok {
		return btn.ErrPart
	}
	q := make([]float64, k*n)
	for r := range n {
		for c := range k {
			q[c*n+r] = u[r*k+c]
		}
	}
	if !orthonormalise(q, n, k) {
		return btn.ErrPart
	}
	// In the new directions the approximation u·wᵀ is (qᵀu)(wᵀq).
	left, right := make([]float64, k*k), make([]float64, k*k)
	for a := range k {
		for b := range k {
			for r := range n {
				left[a*k+b] += q[a*n+r] * u[r*k+b]
				right[a*k+b] += s.directions[a*n+r] * q[b*n+r]
			}
		}
	}
	small := make([]float64, k*k) // made symmetric
	for a := range k {
		for b := range k {
			for c := range k {
				small[a*k+b] += (left[a*k+c]*right[c*k+b] + left[b*k+c]*right[c*k+a]) / 2
			}
		}
	}
	values, vectors, err := linalg.SymmetricEigen(small, k)
	if err != nil {
		return err
	}
	copy(s.lambda, values)
	for a := range k {
		w := s.directions[a*n : a*n+n]
		clear(w)
		for b := range k {
			f := vectors[b*k+a]
			for i, y := range q[b*n : b*n+n] {
				w[i] += f * y
			}
		}
	}
	return nil
}

// fitRows returns the rows u of leastSquaresStep, row by row, k numbers each. The rows of a variable solve the normal equations of the
// blocks that are not free. ok is false if some are singular.
func (m *interactions) fitRows(s *spectrum, apart [][]int) (u []float64, ok bool) {
	n, k := m.order, len(s.lambda)
	u = make([]float64, n*k)
	gram := make([]float64, k*k)
	w := make([]float64, n*k) // the directions, row by row
	work := make([]float64, k*k)
	for c := range k {
		for r, y := range s.directions[c*n : c*n+n] {
			w[r*k+c] = y
		}
	}
	addGram(gram, w, k, 1)
	for i, d := range m.domains {
		first := m.coordinate[i]
		for r := first; r < first+d-1; r++ {
			right := u[r*k : r*k+k]
			for j, x := range m.matrix[r*n : r*n+n] {
				if x != 0 {
					for c, y := range w[j*k : j*k+k] {
						right[c] += x * y
					}
				}
			}
			for _, j := range apart[i] {
				for l := m.coordinate[j]; l < m.coordinate[j]+m.domains[j]-1; l++ {
					for c, y := range w[l*k : l*k+k] {
						right[c] -= m.matrix[r*n+l] * y
					}
				}
			}
		}
		if d == 1 {
			continue
		}
		normal := slices.Clone(gram)
		addGram(normal, w[first*k:(first+d-1)*k], k, -1)
		for _, j := range apart[i] {
			addGram(normal, w[m.coordinate[j]*k:(m.coordinate[j]+m.domains[j]-1)*k], k, -1)
		}
		for r := first; r < first+d-1; r++ {
			copy(work, normal)
			if !linalg.SolveSmall(work, k, u[r*k:r*k+k]) {
				return nil, false
			}
		}
	}
	return u, true
}

// addGram adds sign · Σ_r row_rᵀ row_r to a k × k matrix, for rows of k numbers.
func addGram(gram, rows []float64, k int, sign float64) {
	for r := 0; r < len(rows); r += k {
		for a, x := range rows[r : r+k] {
			for b, y := range rows[r : r+k] {
				gram[a*k+b] += sign * x * y
			}
		}
	}
}

// orthonormalise makes k columns of length n orthonormal. It returns false if a column depends on those before it.
func orthonormalise(columns []float64, n, k int) bool {
	for c := range k {
		column := columns[c*n : c*n+n]
		before := norm(column)
		for range 2 { // the second pass takes off the roundings of the first
			for e := range c {
				earlier := columns[e*n : e*n+n]
				dot := 0.0
				for i, y := range earlier {
					dot += column[i] * y
				}
				for i, y := range earlier {
					column[i] -= dot * y
				}
			}
		}
		after := norm(column)
		if !(after > 1e-13*before) {
			return false
		}
		for i := range column {
			column[i] /= after
		}
	}
	return true
}

// norm returns the Euclidean length of a vector.
func norm(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x * x
	}
	return math.Sqrt(sum)
}

// dropVanishing drops the directions whose eigenvalues are at most vanishingShare of the largest.
func (s *spectrum) dropVanishing() {
	n, largest := len(s.directions)/len(s.lambda), 0.0
	for _, l := range s.lambda {
		largest = max(largest, math.Abs(l))
	}
	kept := 0
	for k, l := range s.lambda {
		if math.Abs(l) > vanishingShare*largest {
			copy(s.directions[kept*n:], s.directions[k*n:k*n+n])
			s.lambda[kept] = l
			kept++
		}
	}
	s.lambda, s.directions = s.lambda[:kept], s.directions[:kept*n]
}

// entry returns entry (r, c) of an approximation of order n.
func (s *spectrum) entry(n, r, c int) (x float64) {
	for k, l := range s.lambda {
		x += l * s.directions[k*n+r] * s.directions[k*n+c]
	}
	return x
}

// residual returns the Frobenius norm of a pair's block of the matrix less the approximation. No entry of the pair's interaction is off by
// more.
func (m *interactions) residual(s *spectrum, p [2]int) float64 {
	i, j := p[0], p[1]
	sum := 0.0
	for r := m.coordinate[i]; r < m.coordinate[i]+m.domains[i]-1; r++ {
		for c := m.coordinate[j]; c < m.coordinate[j]+m.domains[j]-1; c++ {
			x := m.matrix[r*m.order+c] - s.entry(m.order, r, c)
			sum += x * x
		}
	}
	return math.Sqrt(sum)
}

// median returns the upper median of some values, which it sorts; there is at least one.
func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}
