package additive

import (
	"fmt"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// Marginals from the unnormalised marginals of the components, which add up as Z does.

// ProbabilityRounding is the largest distance below 0 or above 1 that a probability may have because of rounding. A number further off is
// no probability, and the marginals are not returned.
const ProbabilityRounding = 1e-9

// Marginals returns the marginal of every variable v, or of every one of the targets if there are any,
//
//	P(x_v = a) = Σ_i α_i M^(i)_v(a) / Σ_a Σ_i α_i M^(i)_v(a)
//
// from the unnormalised marginals M^(i) of the components, parts, and their weights α. Each sum is correctly rounded. It returns nil and no
// warning if the components have no marginals. It returns nil with a warning if the marginals of an estimate are negative or have no
// positive total.
func Marginals(
	alpha []scaled.Number, parts []*btn.Marginals, targets []int,
) (p [][]float64, warning string, err error) {
	if len(parts) == 0 || parts[0] == nil {
		return nil, "", nil
	}
	domains := parts[0].Domains
	if targets != nil && len(domains) != len(targets) {
		return nil, "", fmt.Errorf("component 0 has marginals of %d variables, not of %d", len(domains), len(targets))
	}
	size := 0
	for _, d := range domains {
		size += d
	}

	sums, err := sumMarginals(alpha, parts, domains, size)
	if err != nil {
		return nil, "", err
	}

	p, warning = normaliseEach(sums, domains, targets)
	return p, warning, nil
}

// normaliseEach divides the sums of each variable by their total. sums has, variable by variable, a number for each value, and domains the
// number of values. The variables are the targets, or all variables if targets is nil. If the quotients of a variable are no distribution,
// it returns nil and a warning about that variable.
func normaliseEach(sums []scaled.Number, domains, targets []int) (p [][]float64, warning string) {
	p = make([][]float64, 0, len(domains))
	memory := make([]float64, len(sums)) // of all distributions
	for i, d := range domains {
		v := i
		if targets != nil {
			v = targets[i]
		}
		// wrong is the first value whose quotient is no probability, −1 if all are.
		distribution, wrong := Normalise(sums[:d], memory[:d:d])
		sums, memory = sums[d:], memory[d:]
		switch {
		case distribution == nil:
			return nil, fmt.Sprintf(
				"no marginals: those of variable %d have no positive total", v,
			)
		case wrong >= 0:
			return nil, fmt.Sprintf(
				"no marginals: the estimate of P(x_%d = %d) is %.3g", v, wrong, distribution[wrong],
			)
		}
		p = append(p, distribution)
	}
	return p, ""
}

// Joint returns the joint marginal of a set of variables, as one distribution over all combinations of their values, and its shape. As in
// Marginals, it is computed from the unnormalised joint marginals of the components, parts, and their weights alpha. It returns nil with a
// warning if a cell is negative or the cells have no positive total.
func Joint(
	alpha []scaled.Number, parts []*btn.Marginals, set []int,
) (p []float64, shape []int, warning string, err error) {
	if len(parts) == 0 || len(set) == 0 {
		return nil, nil, "", nil
	}
	if parts[0] == nil || len(parts[0].Domains) != len(set) {
		return nil, nil, "", fmt.Errorf("component 0 has no joint marginal of %d variables", len(set))
	}
	shape = parts[0].Domains
	size := 1
	for _, d := range shape {
		if d < 1 || d > query.MaxJointCells/size {
			return nil, nil, "", fmt.Errorf("a joint marginal of shape %v", shape)
		}
		size *= d
	}

	sums, err := sumMarginals(alpha, parts, shape, size)
	if err != nil {
		return nil, nil, "", err
	}

	distribution, wrong := Normalise(sums, make([]float64, size)) // wrong: the first cell that is no probability, −1 if all are
	switch {
	case distribution == nil:
		return nil, nil, "no joint marginal: its cells have no positive total", nil
	case wrong >= 0:
		return nil, nil, fmt.Sprintf("no joint marginal: cell %d is %.3g", wrong, distribution[wrong]), nil
	}
	return distribution, shape, "", nil
}

// sumMarginals returns Σ_i α_i M^(i)[k] for all entries k of the unnormalised marginals M^(i) of the components, parts, each sum correctly
// rounded. It returns an error if a component does not have size entries of variables with these domains.
func sumMarginals(
	alpha []scaled.Number, parts []*btn.Marginals, domains []int, size int,
) ([]scaled.Number, error) {
	for i, m := range parts {
		if m == nil || len(m.Mant) != size || !slices.Equal(m.Domains, domains) {
			return nil, fmt.Errorf(
				"the marginals of component %d are missing or of another shape", i,
			)
		}
	}

	terms := make([]scaled.Number, len(parts))
	sums := make([]scaled.Number, size)
	for k := range sums {
		for i, m := range parts {
			terms[i] = scaled.Make(m.Mant[k], m.Exp)
		}
		sums[k] = scaled.SumProducts(alpha, terms)
		if !sums[k].IsFinite() {
			return nil, fmt.Errorf("marginal %d is not finite", k)
		}
	}
	return sums, nil
}

// Normalise divides sums by their total, writes the quotients to memory and returns them. It returns nil if the total is not positive.
// wrong is −1 if all quotients are probabilities within rounding, which it corrects. Otherwise it is the position of the first one that is
// not, and the quotients after it are not computed.
func Normalise(sums []scaled.Number, memory []float64) (distribution []float64, wrong int) {
	total := scaled.Sum(sums)
	if total.Sign() <= 0 {
		return nil, -1
	}

	for a := range memory {
		memory[a] = sums[a].Div(total).Float64()
		if memory[a] < -ProbabilityRounding || memory[a] > 1+ProbabilityRounding {
			return memory, a
		}
		memory[a] = math.Min(1, math.Max(0, memory[a]))
	}
	return memory, -1
}
