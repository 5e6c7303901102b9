package closed

// Lemmas 3 and 4: a symmetric base tensor, or one times a rank-one tensor, contracts in count space.

import (
	"fmt"

	"github.com/basetensor/basetensor/internal/methods/counts"
	"github.com/basetensor/basetensor/internal/network/contraction"
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// contractSymmetric returns Σ_c S_c [z^c] Π_j p_j(z). Coefficient c of the count polynomial p_j is the sum of the entries of link j with
// c_a legs at each level a, a class of the values of a leg, times the leg weights, which contain R and the learned maps. Lemma 3 is R = 1.
// It adds the marginals if they are wanted. It multiplies the links' polynomials first and contracts the product with S last. The paper
// contracts S with one link after the other, with the same bound of the work. Source: Hamid and Braun, Lemmas 3 and 4.
func (j form) contractSymmetric() (scaled.Number, error) {
	levels := j.levels
	if err := j.checkMemory(levels); err != nil {
		return scaled.Number{}, err
	}

	weights := j.legWeights(j.vectors, levels)
	polys := make([]countspace.Poly, len(j.Net.Links))
	for k, link := range j.Net.Links {
		if err := j.Ctx.Err(); err != nil {
			return scaled.Number{}, err
		}
		p, err := tensor.CountPoly(link.T, pickWeights(link.Legs, weights), levels.D, j.Ops)
		if err != nil {
			return scaled.Number{}, fmt.Errorf("link %d: %w", k, err)
		}
		if p.IsZero() && j.Marginals == nil { // Z is 0, and the other links cannot change that
			return scaled.Number{}, nil
		}
		polys[k] = p
	}

	// The sum, with its derivative by the polynomial of every link that has a variable's marginal.
	product := counts.Product{S: j.symmetricPoly, Polys: polys, Signed: j.mayCancel(weights), Memory: j.Memory}
	if j.Marginals != nil {
		product.Wanted = func(k int) bool { return j.Marginals.Variable[k] >= 0 }
	}
	visit := func(k int, derivative countspace.Poly) error {
		return j.addMarginals(k, derivative, scaled.One, weights)
	}
	hasOneCount := levels.D == 2 // counts.Product has derivatives for polynomials in one variable only
	if product.Wanted != nil && !hasOneCount && len(polys) > 0 {
		return derivativePass{j, product, visit}.sumAndVisit()
	}
	return product.Sum(j.Ctx, j.Ops, visit)
}

// checkMemory returns an error if a count space takes more bytes than the memory. It counts four times the coefficients of a polynomial
// with a variable for each level and the whole range of counts, the box of the levels: one time for all factors, which together have no
// more coefficients, and three times for their product. In the last multiplication two halves and their product are in memory together, and
// the product has normalised copies.
func (j form) checkMemory(levels countspace.Levels) error {
	size, err := levels.Size()
	if err != nil {
		return err
	}

	const bytesPerCoefficient, copies = 16, 4
	if need := float64(size) * bytesPerCoefficient * copies; need > float64(j.Memory) {
		return fault.New(fault.OverBudget,
			"%w: a count space of %d coefficients needs %.0f bytes, the budget is %d",
			contraction.ErrMemory, size, need, j.Memory)
	}
	return nil
}
