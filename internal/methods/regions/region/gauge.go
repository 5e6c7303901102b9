package region

// The expression in the gauge of belief propagation.

import (
	"context"

	"github.com/basetensor/basetensor/internal/network/bp"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
)

// gauge holds the tables that regions are contracted from, scaled so that the value of belief propagation is 1. A leg ℓ is an index of a
// table:
//
//	b_i(x) = Π_t m_{t→i}(x) / Z_i,   q_ℓ = m_ℓ ∘ v_ℓ,   ρ_t(x) = T_t(x) / (⟨T_t, ⊗v⟩ Π_ℓ m_ℓ(x_ℓ))
//	Z_r / Z_BP = Σ_x Π_{i ∈ r} b_i(x_i) Π_{t ∈ r} ρ_t^r(x),   ρ_t^r = Σ over the legs of t outside r of ρ_t Π q_ℓ
//
// m_ℓ is the message along leg ℓ from its table to its index, v_ℓ the message back. At a fixed point q_ℓ = b_i, and ρ_t is the ratio of
// the table's belief to the product of its indices' beliefs. If a message is 0 for a value, that value has no weight in b, and ρ is set
// to 0.
type gauge struct {
	belief     [][]float64 // b_i by index; nil for indices without legs
	legWeights [][]float64 // q_ℓ by leg
	rho        [][]float64 // ρ_t by table; nil for tables of fewer than two indices
}

// newGauge returns the tables of e in the gauge of the messages of s: scaled by messages so that the value of belief propagation is 1. It
// has the belief b_i of each index, the product q_ℓ = m·v of the two messages along each leg ℓ (an index of a table), and ρ_t = T/(⟨T, ⊗v⟩
// ⊗m) for each table T. m are the messages from the table to its indices and v those back; ⊗ is the product over the table's indices, and
// ⟨T, ⊗v⟩ the sum of T·⊗v over all entries. Linear time and memory. The only error is the context's.
func newGauge(ctx context.Context, g *graph, e *sumproduct.Expression, s *bp.State) (*gauge, error) {
	gauge := &gauge{
		belief:     make([][]float64, len(e.Dims)),
		legWeights: make([][]float64, len(g.indexOf)),
		rho:        make([][]float64, len(e.Tables)),
	}
	for i := range e.Dims {
		if len(g.legsOf(int32(i))) > 0 {
			gauge.belief[i] = s.Belief(i)
		}
	}

	// m and v are the messages of one table to its indices and back, by axis.
	var m, v [][]float64
	for t, table := range e.Tables {
		if t%1024 == 0 && ctx.Err() != nil { // now and then
			return nil, ctx.Err()
		}
		first, order := int(g.firstLeg[t]), int(g.firstLeg[t+1]-g.firstLeg[t])
		if order == 0 {
			continue
		}
		m, v = m[:0], v[:0]
		for axis := range order {
			m, v = append(m, s.ToVariable(t, axis)), append(v, s.ToFactor(t, axis))
			q := make([]float64, len(m[axis]))
			for x := range q {
				q[x] = m[axis][x] * v[axis][x]
			}
			gauge.legWeights[first+axis] = q
		}

		gauge.rho[t] = beliefRatios(table.Data, sumproduct.NewWalk(e.Dims, table.Scope), m, v)
	}

	return gauge, nil
}

// beliefRatios returns ρ = T / (⟨T, ⊗v⟩ ⊗m) for the table T, whose entries are data. m are its messages to its indices and v those back, by
// axis. ⊗ is the product over the axes, and ⟨T, ⊗v⟩ the sum of T·⊗v over all entries. walk goes through the values of the indices along the
// entries. An entry where ⊗m is 0 becomes 0.
func beliefRatios(data []float64, walk *sumproduct.Walk, m, v [][]float64) []float64 {
	rho := make([]float64, len(data))
	total := 0.0 // ⟨T, ⊗v⟩
	for n, entry := range data {
		weight, scale := entry, 1.0
		for axis, x := range walk.Values {
			weight *= v[axis][x]
			scale *= m[axis][x]
		}
		total += weight
		if scale != 0 {
			rho[n] = entry / scale
		}
		walk.Next()
	}

	for n := range rho {
		rho[n] /= total
	}
	return rho
}
