package preprocess

// Tables of low rank.

import (
	"slices"

	"github.com/basetensor/basetensor/pkg/tensor"
)

// star writes table n as Σ_h weight_h Π_k v_hk, if it has a rank so low that the vectors are much smaller: clauses,
// noisy-or, parity, equality. Rows of weight and vectors are the matrices over (h, index); the weights go into the first.
func (w *work) star(n int) (pieces, bool) {
	t := w.tables[n]
	shape := w.shape(t)
	sum := 0
	for _, d := range shape {
		sum += d
	}
	rank := min(maxRank, len(t.data)/(saving*sum))
	if rank < 2 {
		return pieces{}, false
	}
	cp, ok := tensor.LowRank(&tensor.Dense{Shape: shape, Data: t.data}, rank)
	if !ok {
		return pieces{}, false
	}
	r := len(cp.Weights)
	p := pieces{table: n, arity: len(shape), hidden: []int{r}}
	for k, i := range t.scope {
		v := slices.Clone(cp.Vectors[k])
		if cp.Vectors[k] == nil {
			v = make([]float64, r*r)
			for h := range r {
				v[h*r+h] = 1
			}
		}
		if k == 0 {
			for h, weight := range cp.Weights {
				for x := range shape[0] {
					v[h*shape[0]+x] *= weight
				}
			}
		}
		p.scopes, p.data = append(p.scopes, []int{-1, i}), append(p.data, v)
	}
	return p, true
}
