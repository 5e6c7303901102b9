package structured

// The choice of a path: the statistics that a fit begins with and the rungs, by the variance that pilots see.

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/base/sampling"
	"github.com/basetensor/basetensor/internal/network/problem"
)

const (
	// leastSquaresRounds are the rounds of a fit by least squares.
	leastSquaresRounds = 24
	// maxNearStatistics bounds the statistics of a fit that draws begin with.
	maxNearStatistics = 3
	// pilotRungs are the rungs of a pilot, pilotChains its chains.
	pilotRungs, pilotChains = 8, 32
	// maxNearNodes bounds the nodes of such a fit.
	maxNearNodes = 1 << 17
	// maxVariance is the variance of ln of a weight, nats², above which the low-rank part is no good start.
	maxVariance = 2.5
	// goodVariance is the variance that the rungs are chosen for: weights of a larger one have tails that pilots do not see, and more rungs
	// cost as much as they save.
	goodVariance = 0.1
	// closeVariance is the variance with one rung up to which these chains beat those of package annealing, whose loops are eight side by
	// side; networks of more than fewTables tables have no others in time. Measured on complete graphs of 100 with noise: 0.06 gains a
	// factor of 6 in the error, 3 nothing, 30 loses one of 9.
	closeVariance = 1.5
	fewTables     = 20_000
	// chainsPerBudget is the number of chains that a tenth of the budget has to hold.
	chainsPerBudget = 100
)

// FindNearPath returns a path to a network under its evidence from a low-rank part that carries most of the interaction. A path is a fit,
// which chains can be drawn from, and a number of rungs, the steps of a chain from the fit to the network. The rank is the number of
// statistics of the fit, at most maxNearStatistics. It takes the rank with the smallest product of the work of a chain and the relative
// variance of its weight. spread is the relative variance of a weight that a pilot saw, flopsPerChain the flops of a chain, and setup the
// flops before the first chain. The path is nil if none fits the work, in flops. Pilots draw with a seed of their own.
func FindNearPath(
	ctx context.Context, p *problem.Problem, seed uint64, work float64,
) (path *Path, spread, flopsPerChain, setup float64, err error) {
	const sumsLeaves = false // chains need all variables
	interactions, err := readInteractions(ctx, p.Net, p.Memory, sumsLeaves)
	if err != nil || interactions == nil || p.Net.Scale.Sign() <= 0 { // chains have weights above 0 only
		return nil, 0, 0, 0, err
	}
	bestCost := math.Inf(1)
	for rank := 1; rank <= maxNearStatistics; rank++ {
		fit, hasRank, err := interactions.nearFit(ctx, rank)
		if err != nil {
			return nil, 0, 0, 0, err
		}
		if !hasRank { // nor has a higher rank
			break
		}
		if fit == nil { // the rest is too wide, at every rank
			return nil, 0, 0, 0, nil
		}

		// A pilot of its chains sees their variance.
		chains, err := interactions.newChains(ctx, p.Net, &Path{Fit: fit, Rungs: pilotRungs})
		if err != nil {
			return nil, 0, 0, 0, err
		}
		if math.IsInf(chains.lnZ, -1) { // no state is possible, at any rank
			return nil, 0, 0, 0, nil
		}
		variance, ok, err := chains.chooseRungs(ctx, seed, work, len(p.Net.Cores))
		if err != nil {
			return nil, 0, 0, 0, err
		}
		if !ok { // the variance is too large at this rank
			continue
		}

		// For a given error of Z the number of chains is proportional to the relative variance of a weight: e^variance − 1, if ln of a
		// weight is normal.
		if cost := math.Expm1(variance) * chains.chainFlops(); cost < bestCost {
			bestCost = cost
			path, spread, flopsPerChain = &Path{Fit: fit, Rungs: chains.rungs}, math.Expm1(variance), chains.chainFlops()
			setup = chains.setupFlops(interactions.order)
		}
	}
	return path, spread, flopsPerChain, setup, nil
}

// nearFit returns a fit that is near the network. Its interactions are a sum of terms λ w wᵀ with λ > 0 (nearestPositive), as many as
// rank, each of which is one statistic of the fit. The rest of the network is a list of tables. The fit is nil if these tables have no
// elimination in small tables. hasRank is false if there are fewer such terms, or if the fit's quadrature has more than maxNearNodes
// nodes.
func (m *interactions) nearFit(ctx context.Context, rank int) (fit *Fit, hasRank bool, err error) {
	positive, err := m.nearestPositive(ctx, rank)
	if err != nil || len(positive.lambda) < rank {
		return nil, false, err
	}
	const noResidual = 0                                                   // how far the fit is off: chains correct that
	if fit, err = m.writeFit(ctx, positive, nil, noResidual); err != nil { // nil: no pairs that the fit leaves out
		return nil, false, err
	}
	if fit == nil {
		return nil, true, nil
	}
	return fit, fit.gridSize() <= maxNearNodes, nil
}

// gridSize returns the number of points of a fit's grid, which has one axis for each statistic.
func (f *Fit) gridSize() float64 {
	nodes := 1.0
	for _, axis := range f.axes() {
		nodes *= float64(axis.last - axis.first + 1)
	}
	return nodes
}

// setupFlops returns the flops before the first chain for matrices of an order n: of the weights of all nodes, of the low-rank part, and of
// the Cholesky factor that bounds its deviation.
func (c *chains) setupFlops(order int) float64 {
	n := float64(order)
	const hasMarginals = false
	flops := float64(len(c.nodes)) * c.evaluator.nodeFlops(hasMarginals)
	flops += 2 * float64(len(c.axes)+4) * n * n // an entry of the matrix takes 2 for each statistic, and about 8 more
	if order <= maxBoundedOrder {
		flops += math.Pow(n, 3) // a few factorisations of n³/3 each (boundDeviation)
	}
	return flops
}

// chooseRungs chooses the number of rungs, the steps of a chain, and sets c.rungs. A pilot of chains with pilotRungs rungs sees the
// variance of ln of a weight, which is taken as inversely proportional to the rungs. The rungs are so many that it is about goodVariance,
// but so few that chainsPerBudget chains fit the work, in flops. It returns the variance with these rungs, nats². ok is false if that is
// above maxVariance, or if chains of package annealing are better for so few tables.
func (c *chains) chooseRungs(ctx context.Context, seed uint64, work float64, tables int) (variance float64, ok bool, err error) {
	count := int64(max(8, min(pilotChains, work/(3*c.chainFlops())))) // up to a third of the work, but at least 8 (chosen)
	const threads, marginals = 1, false
	pilot, err := c.weighChains(ctx, ^seed, 0, count, threads, marginals) // ^seed: other random numbers than the chains'
	if err != nil {
		return 0, false, err
	}
	varianceOfOneRung := sampling.Variance(pilot.Ln) * pilotRungs
	c.rungs = max(1, int(min(varianceOfOneRung/goodVariance, 1<<20))) // 1<<20: before the conversion, against overflow
	for c.rungs > 1 && c.chainFlops() > work/chainsPerBudget {
		c.rungs /= 2
	}
	variance = varianceOfOneRung / float64(c.rungs)
	isAnnealingBetter := varianceOfOneRung > closeVariance && tables <= fewTables
	if variance > maxVariance || isAnnealingBetter {
		return 0, false, nil
	}
	return variance, true, nil
}

// nearestPositive returns at most k terms λ w wᵀ with λ > 0, whose sum approximates the matrix of interactions. Each has a number λ and
// a vector w, its direction. It fits the matrix by 2k terms of any sign, by least squares over the blocks of pairs of different
// variables without zeros in their tables, and takes those with the largest λ. The result has no terms if the matrix is 0, or if its
// order is below 4k, twice the rank of the fit.
func (m *interactions) nearestPositive(ctx context.Context, k int) (*lowRank, error) {
	const hasOutliers = false // c.outlierNeighbours then has the pairs whose tables have zeros, and no others
	c, largest := m.newCompletion(m.allPairs(), 2*k, hasOutliers)
	if largest == 0 || 4*k > m.order {
		return &lowRank{}, nil
	}
	fitted := c.approximation
	for range leastSquaresRounds {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if m.leastSquaresStep(fitted, c.outlierNeighbours) != nil { // the matrix has a lower rank
			break
		}
		fitted.dropVanishing()
	}

	// Take the terms with the largest λ: up to k, all with λ > 0.
	byLambda := make([]int, len(fitted.lambda)) // numbers of terms, the largest λ first
	for i := range byLambda {
		byLambda[i] = i
	}
	slices.SortFunc(byLambda, func(a, b int) int { return cmp.Or(cmp.Compare(fitted.lambda[b], fitted.lambda[a]), a-b) })
	positive := &lowRank{}
	for _, i := range byLambda {
		if len(positive.lambda) < k && fitted.lambda[i] > 0 {
			positive.lambda = append(positive.lambda, fitted.lambda[i])
			positive.directions = append(positive.directions, fitted.directions[i*m.order:(i+1)*m.order]...)
		}
	}
	return positive, nil
}
