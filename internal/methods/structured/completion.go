package structured

// The completion of the matrix of interactions: the search for an approximation of one rank, and the choice of its outliers, the few pairs
// of variables whose blocks of the matrix it need not fit.

import (
	"context"
	"math"
	"math/bits"
	"slices"
)

const (
	// maxRounds bounds the rounds of a search at one rank.
	maxRounds = 400
	// maxOutliersPerVariable bounds the number of outliers, as a multiple of the number of variables.
	maxOutliersPerVariable = 3
	// exactError is the error of entries of B, nats, up to which a fit is exact. If the statistics are integers, the interactions are read
	// again in more digits, so that their rounding does not count.
	exactError = 1e-9
	// residualFloor is the rounding of an interaction, relative to the largest.
	residualFloor = 4e-14
	// largeFactor is the multiple of the typical interaction above which a pair is an outlier before the first step.
	largeFactor = 4
	// minSample and maxSample bound the pairs of one variable whose median is taken; typicalSample is about the number of pairs, of all
	// variables, whose median is taken.
	minSample, maxSample = 8, 64
	typicalSample        = 4096
	// After probeRounds rounds the median residual has to be below probeShare of the median interaction, or no search is made.
	probeRounds = 8
	probeShare  = 0.5
	// maxRestTable bounds the entries of a table along the elimination of the rest.
	maxRestTable = 1 << 16
	// orderMoves bounds the search for an elimination order of the rest.
	orderMoves = 1 << 16
)

// outlierFactors are the factors of searchRank, one search after the other. With 0 only pairs with zeros are outliers.
var outlierFactors = [...]float64{0, 24, 8, 4}

// completion is a search for an approximation of one rank. A pair of variables is given by its index in pairs.
type completion struct {
	*interactions
	pairs             [][2]int
	residuals         []float64       // by pair: the norm of its block of the matrix less the approximation
	outliers          map[[2]int]bool // pairs that the approximation need not fit
	outlierNeighbours [][]int         // by variable: the other variables of its outliers
	fittedResidual    float64         // Σ of the residuals of all pairs but outliers
	totalInteraction  float64         // Σ of the sizes of all interactions
	interacting       []int           // pairs whose interaction is more than a rounding
	sample            [][]int         // by variable: some of its interacting pairs that are not loose; nil if they are fewer than minSample
	approximation     *lowRank
}

// newCompletion begins a search for an approximation of rank k, with random directions. Outliers are pairs that the approximation need not
// fit. Without hasOutliers, only the pairs with zeros are outliers. With it, chooseFirstOutliers adds others, among them loose pairs: those
// whose variables have few neighbours in common. largest is the size of the largest interaction of a pair.
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
		if x > residualFloor*largest { // more than a rounding
			c.interacting = append(c.interacting, r)
		}
	}
	loose := c.loosePairs()
	c.choosePairsToSample(loose)
	if hasOutliers {
		c.chooseFirstOutliers(loose)
	} else {
		c.chooseOutliers(math.Inf(1)) // only pairs with zeros
	}
	return c, largest
}

// chooseFirstOutliers makes outliers of three kinds of pairs: pairs with zeros, pairs whose interaction is more than largeFactor times the
// one expected from their two variables, and, unless there are many, loose pairs (loosePairs). In a matrix of rank one, the expected
// interaction of variables i and j is m_i m_j / m: m_i is the median interaction of variable i, and m the median of all m_i.
func (c *completion) chooseFirstOutliers(loose map[int]bool) {
	medians, _ := c.medianResiduals(c.typicalResidual()) // without the largest of them
	typical := median(slices.Clone(medians))
	interactions := slices.Clone(c.residuals) // before the first step the residuals are the interactions

	// For the choice, the residuals are the interactions, divided by the expected ones and multiplied by the typical one.
	for r, p := range c.pairs {
		if x := medians[p[0]] * medians[p[1]]; x > 0 {
			c.residuals[r] *= typical * typical / x
		}
		if loose[r] && len(loose) <= maxOutliersPerVariable*len(c.domains) {
			c.residuals[r] = math.Inf(1)
		}
	}
	c.chooseOutliers(largeFactor * typical)
	c.residuals = interactions
}

// choosePairsToSample fills sample: for each variable about maxSample of the interacting pairs that it is in, without the loose ones. A
// pair is loose if its variables interact with few variables in common (loosePairs). A variable of fewer than minSample such pairs has no
// sample. The pairs are taken at equal distances in the variable's list, from a place that differs from variable to variable.
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

// loosePairs returns the loose pairs, by index in pairs. The neighbours of a variable are the variables with which it is in an interacting
// pair. An interacting pair is loose if its two variables have few neighbours in common: less than a third of the neighbours of the
// variable that has fewer. Variables of one group, or of a dense matrix, have many neighbours in common. Cost O(pairs · n / 64).
func (c *completion) loosePairs() map[int]bool {
	loose := map[int]bool{}
	n := len(c.domains)
	words := (n + 63) / 64 // in one bit set
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
			loose[r] = true
		}
	}
	return loose
}

// typicalResidual returns the median residual of the interacting pairs, estimated from about typicalSample of them.
func (c *completion) typicalResidual() float64 {
	var sample []float64
	for k := 0; k < len(c.interacting); k += max(1, len(c.interacting)/typicalSample) {
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
// A round is good if all but few pairs, the outliers, have residuals like roundings. The search ends well once good rounds stop being
// progress. It fails if the typical residual stops falling, or if there are too many outliers.
//
// It returns the approximation, nil if the search fails, the outliers, and the sum of the residuals of all other pairs, nats.
func (m *interactions) searchRank(
	ctx context.Context, pairs [][2]int, k int, factor float64,
) (approximation *lowRank, outliers map[[2]int]bool, residual float64, err error) {
	const window = 12  // rounds in which the typical residual has to fall by a tenth, and the outliers to become few
	if 2*k > m.order { // the matrix is too small for an approximation of rank k to mean anything
		return nil, nil, 0, nil
	}
	hasOutliers := factor > 0
	c, largest := m.newCompletion(pairs, k, hasOutliers)
	floor := residualFloor * largest // a residual up to this is a rounding
	maxOutliers := maxOutliersPerVariable*len(m.domains) + len(m.zeroPairs)
	var typicals []float64 // typical residual, by round
	goodRounds := goodRounds{smallest: math.Inf(1)}
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

		hasTooManyOutliers := len(c.outliers) > maxOutliers
		if hasTooManyOutliers && len(typicals) > window {
			return nil, nil, 0, nil
		}
		hasLargeResidual := c.fittedResidual > max(exactError, residualFloor*c.totalInteraction)
		isLimitFalling := hasOutliers && limit > floor
		isGood := !hasLargeResidual && !hasTooManyOutliers && !isLimitFalling
		if isGood && goodRounds.isSettled(c.fittedResidual) {
			return c.approximation, c.outliers, c.fittedResidual, nil
		}
		if earlier := len(typicals) - window; earlier >= 0 && typical > floor && typical > 0.9*typicals[earlier] {
			return nil, nil, 0, nil // it stopped falling
		}
	}
	return nil, nil, 0, nil
}

// goodRounds tells when the residual of the good rounds of searchRank has settled.
type goodRounds struct {
	smallest        float64 // residual of the last good round that was progress
	withoutProgress int     // good rounds after it
}

// isSettled counts one more good round, and reports whether three of them have passed without progress. A good round is progress if its
// residual is less than half of the smallest one, or, while it is above exactError, at least 5% below the smallest one.
func (g *goodRounds) isSettled(residual float64) bool {
	if residual < 0.5*g.smallest || residual > exactError && residual < 0.95*g.smallest {
		g.smallest, g.withoutProgress = residual, 0
		return false
	}
	g.withoutProgress++
	return g.withoutProgress >= 3 // chosen
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

// median returns the upper median of at least one value. It sorts the values.
func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}
