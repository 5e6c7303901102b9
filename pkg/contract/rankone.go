package contract

// Lemma 2: a base tensor of rank one, or in CP form, contracts link by link.

import (
	"fmt"

	"github.com/basetensor/basetensor/pkg/btn"
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// oneLevel is the count space of tensors that count nothing.
var oneLevel = countspace.Levels{D: 1}

// value is the outcome of a class whose cost is counted in j.ops: a multiply-add is two flops.
func (j job) value(z scaled.Number, err error) (btn.Value, error) {
	if err != nil {
		return btn.Value{}, err
	}
	return btn.Value{Z: z.Mul(j.net.Scale), Flops: 2 * float64(j.ops.MulAdds)}, nil
}

// rankOne returns Π_j ⟨L^(j), ⊗_ℓ O_ℓ v_ℓ⟩ (Lemma 2 with r = 1). A zero link ends it early.
func (j job) rankOne(r [][]float64) (scaled.Number, error) {
	weights := j.legWeights(r, oneLevel)
	z := scaled.One
	for k, link := range j.net.Links {
		if err := j.ctx.Err(); err != nil {
			return scaled.Number{}, err
		}
		p, err := tensor.CountPoly(link.T, on(link.Legs, weights), 1, j.ops)
		if err != nil {
			return scaled.Number{}, fmt.Errorf("link %d: %w", k, err)
		}
		if z = z.Mul(p.At(nil)); z.IsZero() {
			break
		}
	}
	return z, nil
}

// cp returns Σ_t w_t Π_j ⟨L^(j), ⊗_ℓ O_ℓ v_ℓt⟩ (Lemma 2), its terms summed with one rounding.
func (j job) cp() (scaled.Number, error) {
	t := j.q.CP
	terms := make([]scaled.Number, 0, len(t.Weights))
	for i, w := range t.Weights {
		if w == 0 {
			continue
		}
		z, err := j.rankOne(termVectors(t, i))
		if err != nil {
			return scaled.Number{}, fmt.Errorf("term %d: %w", i, err)
		}
		terms = append(terms, z.Mul(scaled.FromFloat(w)))
	}
	return scaled.Sum(terms), nil
}

// termVectors returns the vectors of term i, unit vectors where t has the identity.
func termVectors(t *tensor.CP, i int) [][]float64 {
	r := make([][]float64, len(t.Shape))
	for l, d := range t.Shape {
		if v := t.Vectors[l]; v != nil {
			r[l] = v[i*d : (i+1)*d]
			continue
		}
		r[l] = make([]float64, d)
		r[l][i] = 1
	}
	return r
}
