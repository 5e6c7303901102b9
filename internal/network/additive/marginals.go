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

// ProbabilityRounding is how far below 0 or above 1 rounding may put a probability. One further off is no
// probability, and the marginals are not returned.
const ProbabilityRounding = 1e-9

// Marginals returns P(x_v = a) = Σ_i α_i M^(i)_v(a) / Σ_a Σ_i α_i M^(i)_v(a) for every variable v,
// or for every one of the targets where there are any, from the unnormalised marginals M^(i) of the
// components in order. Each sum is correctly rounded. It returns nil and no warning where none were
// asked for, and nil with a warning where an estimate's marginals are negative or have no positive
// total.
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

	p = make([][]float64, 0, len(domains))
	at := 0 // of the first value of variable v
	all := make([]float64, size)
	for i, d := range domains {
		v := i
		if targets != nil {
			v = targets[i]
		}
		q, wrong := Distribution(sums[at:at+d], all[at:at+d:at+d])
		at += d
		switch {
		case q == nil:
			return nil, fmt.Sprintf(
				"no marginals: those of variable %d have no positive total", v,
			), nil
		case wrong >= 0:
			return nil, fmt.Sprintf(
				"no marginals: the estimate of P(x_%d = %d) is %.3g", v, wrong, q[wrong],
			), nil
		}
		p = append(p, q)
	}
	return p, "", nil
}

// Joint returns the joint marginal of a set of variables in the same way, as one distribution over
// all cells.
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

	q, wrong := Distribution(sums, make([]float64, size))
	switch {
	case q == nil:
		return nil, nil, "no joint marginal: its cells have no positive total", nil
	case wrong >= 0:
		return nil, nil, fmt.Sprintf("no joint marginal: cell %d is %.3g", wrong, q[wrong]), nil
	}
	return q, shape, "", nil
}

// sumMarginals returns Σ_i α_i M^(i)[at] for the size entries of the components' unnormalised
// marginals, each sum correctly rounded.
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
	for at := range sums {
		for i, m := range parts {
			terms[i] = scaled.Make(m.Mant[at], m.Exp)
		}
		sums[at] = scaled.SumProducts(alpha, terms)
		if !sums[at].IsFinite() {
			return nil, fmt.Errorf("marginal %d is not finite", at)
		}
	}
	return sums, nil
}

// Distribution writes the sums divided by their total to q, which it returns. It returns nil if the
// total is not positive. wrong is the first position with a quotient that is no probability, even
// allowing for rounding; −1 for none.
func Distribution(sums []scaled.Number, q []float64) (_ []float64, wrong int) {
	total := scaled.Sum(sums)
	if total.Sign() <= 0 {
		return nil, -1
	}

	for a := range q {
		q[a] = sums[a].Div(total).Float64()
		if q[a] < -ProbabilityRounding || q[a] > 1+ProbabilityRounding {
			return q, a
		}
		q[a] = math.Min(1, math.Max(0, q[a]))
	}
	return q, -1
}
