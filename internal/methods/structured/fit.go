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
	maxOutliersPerVariable = 3
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
var outlierFactors = [...]float64{0, 24, 8, 4}

// lowRank is Σ_k λ_k w_k w_kᵀ, an approximation of the matrix of interactions. Coordinate r of w_k is directions[k*n+r], for order n.
type lowRank struct {
	lambda     []float64
	directions []float64 // w_k, one vector after the other
}

// completion is a search for an approximation of one rank. A pair of variables is given by its index in pairs.
type completion struct {
	*interactions
	pairs             [][2]int
	residuals         []float64       // by pair
	outliers          map[[2]int]bool // pairs that the approximation need not fit
	outlierNeighbours [][]int         // by variable: the others of the outliers that it is in
	fittedResidual    float64         // Σ of the residuals of all pairs but outliers
	totalInteraction  float64         // Σ of the sizes of all interactions
	interacting       []int           // pairs with an interaction
	sample            [][]int         // by variable: some of its interacting pairs that are not loose; nil if they are fewer than minSample
	approximation     *lowRank
}

// newCompletion begins a search for rank k in random directions. Outliers are pairs that the approximation need not fit; pairs with zeros
// always are. With hasOutliers, a pair is an outlier from the beginning if its interaction is far above the typical ones of its two
// variables. Loose pairs, whose variables have few neighbours in common, are outliers too, unless they are many. largest is the largest
// interaction of a pair.
func (m *interactions) newCompletion(pairs [][2]int, k int, hasOutliers bool) (c *completion, largest float64) {
	n := len(m.domains)
	c = &completion{
		interactions: m, pairs: pairs, approximation: m.randomDirections(k),
		residuals: make([]float64, len(pairs)), sample: make([][]int, n),
	}

	// Before the first step the residual of a pair is its interaction.
	for r, p := range pairs {
		c.residuals[r] = m.blockResidual(&lowRank{}, p)
		c.totalInteraction += c.residuals[r]
		largest = max(largest, c.residuals[r])
	}
	for r, x := range c.residuals {
		if x > residualFloor*largest {
			c.interacting = append(c.interacting, r)
		}
	}
	loose := c.loosePairs()
	c.choosePairsToSample(loose)
	if !hasOutliers {
		c.chooseOutliers(math.Inf(1)) // only pairs with zeros
		return c, largest
	}

	// In a matrix of rank one, a typical interaction is medians[i]·medians[j]/typical. For the choice of outliers, interactions are divided
	// by that and multiplied by typical, and loose pairs, if they are few, are infinite. Then the residuals are restored.
	medians, _ := c.medianResiduals(c.typicalResidual())
	typical := median(slices.Clone(medians))
	residuals := slices.Clone(c.residuals)
	for r, p := range pairs {
		if x := medians[p[0]] * medians[p[1]]; x > 0 {
			c.residuals[r] *= typical * typical / x
		}
		if loose[r] && len(loose) <= maxOutliersPerVariable*n {
			c.residuals[r] = math.Inf(1)
		}
	}
	c.chooseOutliers(largeFactor * typical)
	c.residuals = residuals
	return c, largest
}

// choosePairsToSample fills sample: for each variable about maxSample of the interacting pairs that it is in, without the loose ones. A
// variable of fewer than minSample such pairs has no sample. The pairs are taken at equal distances in the variable's list, from a place
// that differs from variable to variable.
func (c *completion) choosePairsToSample(loose map[int]bool) {
	pairsOf := make([][]int, len(c.domains)) // by variable
	for _, r := range c.interacting {
		if !loose[r] {
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

// loosePairs returns the interacting pairs, by index in pairs, whose two variables have few neighbours in common: less than a third of the
// neighbours of the variable that has fewer. The neighbours of a variable are those with which it is in an interacting pair. Variables of
// one group, or of a dense matrix, have many neighbours in common. Cost O(pairs · n / 64).
func (c *completion) loosePairs() map[int]bool {
	out := map[int]bool{}
	n := len(c.domains)
	words := (n + 63) / 64 // of one set
	// The neighbours of variable i are a bit set of words numbers from neighbours[i*words] on. degree is their number.
	neighbours, degree := make([]uint64, n*words), make([]int, n)
	for _, r := range c.interacting {
		p := c.pairs[r]
		neighbours[p[0]*words+p[1]/64] |= 1 << (p[1] % 64)
		neighbours[p[1]*words+p[0]/64] |= 1 << (p[0] % 64)
		degree[p[0]]++
		degree[p[1]]++
	}
	for _, r := range c.interacting {
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

// typicalResidual returns the median residual of the interacting pairs, estimated from about 4,096 of them.
func (c *completion) typicalResidual() float64 {
	var sample []float64
	for k := 0; k < len(c.interacting); k += max(1, len(c.interacting)/4096) {
		sample = append(sample, c.residuals[c.interacting[k]])
	}
	return median(sample)
}

// medianResiduals returns, by variable, the median residual of a sample of the variable's pairs, and the largest of these medians. A
// variable without a sample has the given typical residual instead. Pairs are given by their index in residuals.
func (c *completion) medianResiduals(typical float64) (medians []float64, largest float64) {
	medians = make([]float64, len(c.sample))
	for i, pairs := range c.sample {
		medians[i] = typical
		if len(pairs) > 0 {
			residuals := make([]float64, len(pairs))
			for k, r := range pairs {
				residuals[k] = c.residuals[r]
			}
			medians[i] = median(residuals)
		}
		largest = max(largest, medians[i])
	}
	return medians, largest
}

// chooseOutliers makes outliers of the pairs whose residuals are above a limit or whose tables have zeros, and of no others. It also
// updates outlierNeighbours and fittedResidual.
func (c *completion) chooseOutliers(limit float64) {
	c.outliers, c.outlierNeighbours, c.fittedResidual = map[[2]int]bool{}, make([][]int, len(c.domains)), 0
	for r, p := range c.pairs {
		x := c.residuals[r]
		if x > limit || c.zeroPairs[p] {
			c.outliers[p] = true
			c.outlierNeighbours[p[0]] = append(c.outlierNeighbours[p[0]], p[1])
			c.outlierNeighbours[p[1]] = append(c.outlierNeighbours[p[1]], p[0])
		} else {
			c.fittedResidual += x
		}
	}
}

// improve improves the approximation by a step of least squares and recomputes the residual of every pair of variables. It returns an error
// if the matrix has a lower rank than the approximation.
func (c *completion) improve() error {
	if err := c.leastSquaresStep(c.approximation, c.outlierNeighbours); err != nil {
		return err
	}
	c.approximation.dropVanishing()
	for r, p := range c.pairs {
		c.residuals[r] = c.blockResidual(c.approximation, p)
	}
	return nil
}

// searchRank looks for an approximation of rank k whose residuals are roundings. The blocks of single variables and of outliers are not
// fitted. If factor is 0, outliers are the pairs with zeros. Otherwise they begin as the pairs with large interactions, and after each
// round they are those with residuals above factor times the largest of the variables' medians.
//
// It returns the approximation, the outliers, and the sum of the residuals of all other pairs, nats. The approximation is nil if the search
// fails: if the typical residual stops falling, or if there are too many outliers.
func (m *interactions) searchRank(
	ctx context.Context, pairs [][2]int, k int, factor float64,
) (approximation *lowRank, outliers map[[2]int]bool, residual float64, err error) {
	const (
		window   = 12 // rounds after which the typical residual has to have fallen by a tenth
		patience = 3  // rounds without progress that end a search that has succeeded
	)
	if 2*k > m.order { // the matrix is too small for an approximation of rank k to mean anything
		return nil, nil, 0, nil
	}
	hasOutliers := factor > 0
	c, largest := m.newCompletion(pairs, k, hasOutliers)
	floor := residualFloor * largest // of a residual that is a rounding
	maxOutliers := maxOutliersPerVariable*len(m.domains) + len(m.zeroPairs)
	var typicals []float64            // typical residual, by round
	best, sinceBest := math.Inf(1), 0 // smallest residual, and the rounds since then
	for range maxRounds {
		if err := ctx.Err(); err != nil {
			return nil, nil, 0, err
		}
		if c.improve() != nil {
			return nil, nil, 0, nil // the matrix has a lower rank
		}
		typical := c.typicalResidual()
		typicals = append(typicals, typical)
		_, largestMedian := c.medianResiduals(typical)
		limit := math.Inf(1)
		if hasOutliers {
			limit = max(floor, factor*largestMedian)
		}
		c.chooseOutliers(limit)

		// A good round has residuals like roundings and few outliers. The search succeeds after patience good rounds without progress.
		residual := c.fittedResidual
		hasTooManyOutliers := len(c.outliers) > maxOutliers
		hasLargeResidual := residual > max(exactError, residualFloor*c.totalInteraction)
		isLimitFalling := hasOutliers && limit > floor
		switch {
		case hasTooManyOutliers && len(typicals) > window:
			return nil, nil, 0, nil
		case hasLargeResidual || hasTooManyOutliers || isLimitFalling:
			// no good round yet
		case residual < 0.5*best || residual > exactError && residual < 0.95*best:
			best, sinceBest = residual, 0
		default:
			if sinceBest++; sinceBest >= patience {
				return c.approximation, c.outliers, residual, nil
			}
		}
		if earlier := len(typicals) - window; earlier >= 0 && typical > floor && typical > 0.9*typicals[earlier] {
			return nil, nil, 0, nil // it stopped falling
		}
	}
	return nil, nil, 0, nil
}

// allPairs lists all pairs of variables (i, j) with i < j.
func (m *interactions) allPairs() (pairs [][2]int) {
	for i := range m.domains {
		for j := i + 1; j < len(m.domains); j++ {
			pairs = append(pairs, [2]int{i, j})
		}
	}
	return pairs
}

// randomDirections returns an approximation with k random directions, the same ones in every call. All λ are 0.
func (m *interactions) randomDirections(k int) *lowRank {
	random := rand.New(rand.NewPCG(1, uint64(k)))
	s := &lowRank{lambda: make([]float64, k), directions: make([]float64, k*m.order)}
	for i := range s.directions {
		s.directions[i] = random.NormFloat64()
	}
	return s
}

// leastSquaresStep improves an approximation by a step of alternating least squares. For the directions w, it finds the rows u for which u
// wᵀ is nearest to the matrix. The blocks of single variables and those of outliers do not count; outlierNeighbours is, by variable, the
// others of its outliers. The columns of u, made orthonormal and turned to eigenvectors, are the new directions. It returns an error if the
// columns are dependent.
func (m *interactions) leastSquaresStep(s *lowRank, outlierNeighbours [][]int) error {
	n, k := m.order, len(s.lambda)
	u, ok := m.fitRows(s, outlierNeighbours)
	if !ok {
		return btn.ErrPart
	}

	// q are the columns of u, made orthonormal.
	q := make([]float64, k*n)
	for r := range n {
		for c := range k {
			q[c*n+r] = u[r*k+c]
		}
	}
	if !orthonormalise(q, n, k) {
		return btn.ErrPart
	}

	// In the directions q the approximation u·wᵀ is the k × k matrix left · right = (qᵀu)(wᵀq).
	left, right := make([]float64, k*k), make([]float64, k*k)
	for a := range k {
		for b := range k {
			for r := range n {
				left[a*k+b] += q[a*n+r] * u[r*k+b]
				right[a*k+b] += s.directions[a*n+r] * q[b*n+r]
			}
		}
	}
	small := make([]float64, k*k) // left · right, made symmetric
	for a := range k {
		for b := range k {
			for c := range k {
				small[a*k+b] += (left[a*k+c]*right[c*k+b] + left[b*k+c]*right[c*k+a]) / 2
			}
		}
	}

	// Its eigenvalues are the new λ, and q times its eigenvectors the new directions.
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

// fitRows returns the rows u for which u wᵀ is nearest to the matrix, for the directions w of s. Row r is u[r*k : r*k+k]. A row of variable
// i solves the normal equations G u_r = Σ_c matrix[r, c] w_c, G = Σ_c w_c w_cᵀ. Both sums are over the columns c of all variables but i and
// outlierNeighbours[i]. ok is false if some equations are singular.
func (m *interactions) fitRows(s *lowRank, outlierNeighbours [][]int) (u []float64, ok bool) {
	n, k := m.order, len(s.lambda)
	u = make([]float64, n*k)
	gram := make([]float64, k*k) // Σ_c w_c w_cᵀ over all columns
	w := make([]float64, n*k)    // row c has the k directions at coordinate c
	work := make([]float64, k*k)
	for c := range k {
		for r, y := range s.directions[c*n : c*n+n] {
			w[r*k+c] = y
		}
	}
	addGram(gram, w, k, 1)
	for i, d := range m.domains {
		firstRow := m.firstCoordinate[i]

		// The right sides. The matrix is 0 in the block of variable i.
		for r := firstRow; r < firstRow+d-1; r++ {
			right := u[r*k : r*k+k]
			for j, x := range m.matrix[r*n : r*n+n] {
				if x != 0 {
					for c, y := range w[j*k : j*k+k] {
						right[c] += x * y
					}
				}
			}
			for _, j := range outlierNeighbours[i] { // take off the columns of outliers
				for column := m.firstCoordinate[j]; column < m.firstCoordinate[j]+m.domains[j]-1; column++ {
					for c, y := range w[column*k : column*k+k] {
						right[c] -= m.matrix[r*n+column] * y
					}
				}
			}
		}
		if d == 1 { // it has no row
			continue
		}

		// The left side, one for all rows of the variable.
		normal := slices.Clone(gram)
		addGram(normal, w[firstRow*k:(firstRow+d-1)*k], k, -1)
		for _, j := range outlierNeighbours[i] {
			addGram(normal, w[m.firstCoordinate[j]*k:(m.firstCoordinate[j]+m.domains[j]-1)*k], k, -1)
		}
		for r := firstRow; r < firstRow+d-1; r++ {
			copy(work, normal)
			if !linalg.SolveSmall(work, k, u[r*k:r*k+k]) {
				return nil, false
			}
		}
	}
	return u, true
}

// addGram adds sign · Σ_r row_rᵀ row_r to a k × k matrix. rows has one row of k numbers after the other.
func addGram(gram, rows []float64, k int, sign float64) {
	for r := 0; r < len(rows); r += k {
		for a, x := range rows[r : r+k] {
			for b, y := range rows[r : r+k] {
				gram[a*k+b] += sign * x * y
			}
		}
	}
}

// orthonormalise makes k columns of length n orthonormal by Gram and Schmidt's method. Column c is columns[c*n : c*n+n]. It returns false
// if a column depends on those before it.
func orthonormalise(columns []float64, n, k int) bool {
	for c := range k {
		column := columns[c*n : c*n+n]
		normBefore := norm(column)
		for range 2 { // the second pass takes off the roundings of the first
			for previous := range c {
				earlier := columns[previous*n : previous*n+n]
				dot := 0.0
				for i, y := range earlier {
					dot += column[i] * y
				}
				for i, y := range earlier {
					column[i] -= dot * y
				}
			}
		}
		normAfter := norm(column)
		if !(normAfter > 1e-13*normBefore) {
			return false
		}
		for i := range column {
			column[i] /= normAfter
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
func (s *lowRank) dropVanishing() {
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

// entry returns entry (r, c) of an approximation of an n × n matrix: Σ_k λ_k w_k(r) w_k(c).
func (s *lowRank) entry(n, r, c int) (x float64) {
	for k, l := range s.lambda {
		x += l * s.directions[k*n+r] * s.directions[k*n+c]
	}
	return x
}

// blockResidual returns the Frobenius norm of the matrix less the approximation in the block of a pair of variables. No entry of the pair's
// interaction is off by more.
func (m *interactions) blockResidual(s *lowRank, p [2]int) float64 {
	i, j := p[0], p[1]
	sum := 0.0
	for r := m.firstCoordinate[i]; r < m.firstCoordinate[i]+m.domains[i]-1; r++ {
		for c := m.firstCoordinate[j]; c < m.firstCoordinate[j]+m.domains[j]-1; c++ {
			x := m.matrix[r*m.order+c] - s.entry(m.order, r, c)
			sum += x * x
		}
	}
	return math.Sqrt(sum)
}

// median returns the upper median of at least one value. It sorts the values.
func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}
