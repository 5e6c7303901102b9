package region

// The expression in the gauge of belief propagation.

import (
	"context"

	"github.com/basetensor/basetensor/internal/network/bp"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
)

// gauge holds the tables of regions, scaled so that the whole of belief propagation is 1:
//
//	b_i(x) = Π_t m_{t→i}(x) / Z_i,   q_ℓ = m_ℓ ∘ v_ℓ,   ρ_t(x) = T_t(x) / (⟨T_t, ⊗v⟩ Π_ℓ m_ℓ(x_ℓ))
//	Z_r / Z_BP = Σ_x Π_{i ∈ r} b_i(x_i) Π_{t ∈ r} ρ_t^r(x),   ρ_t^r = Σ over the legs of t outside r of ρ_t Π q_ℓ
//
// At a fixed point q_ℓ = b_i and ρ_t is the ratio of the table's belief to the product of its
// indices' beliefs. Where a message is 0 the value has no weight in b, and ρ is set to 0.
type gauge struct {
	belief [][]float64 // by index
	q      [][]float64 // by leg
	rho    [][]float64 // by table; nil for tables of order below 2
}

// newGauge takes the messages of s. Linear time and memory.
func newGauge(ctx context.Context, g *graph, e *sumproduct.Expression, s *bp.State) (*gauge, error) {
	y := &gauge{
		belief: make([][]float64, len(e.Dims)),
		q:      make([][]float64, len(g.index)),
		rho:    make([][]float64, len(e.Tables)),
	}
	for i := range e.Dims {
		if len(g.legsOf(int32(i))) > 0 {
			y.belief[i] = s.Belief(i)
		}
	}

	var m, v [][]float64
	for t, table := range e.Tables {
		if t%1024 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		first, order := int(g.first[t]), int(g.first[t+1]-g.first[t])
		if order == 0 {
			continue
		}
		m, v = m[:0], v[:0]
		for k := range order {
			m, v = append(m, s.ToVariable(t, k)), append(v, s.ToFactor(t, k))
			q := make([]float64, len(m[k]))
			for x := range q {
				q[x] = m[k][x] * v[k][x]
			}
			y.q[first+k] = q
		}

		y.rho[t] = ratios(table.Data, sumproduct.NewWalk(e.Dims, table.Scope), m, v)
	}

	return y, nil
}

// ratios returns T / (⟨T, ⊗v⟩ ⊗m).
func ratios(data []float64, at *sumproduct.Walk, m, v [][]float64) []float64 {
	rho := make([]float64, len(data))
	total := 0.0
	for n, entry := range data {
		weight, scale := entry, 1.0
		for k, a := range at.X {
			weight *= v[k][a]
			scale *= m[k][a]
		}
		total += weight
		if scale != 0 {
			rho[n] = entry / scale
		}
		at.Next()
	}

	for n := range rho {
		rho[n] /= total
	}
	return rho
}
