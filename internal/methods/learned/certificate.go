package learned

// The plan of a learned model with its quality: ρ, and ‖B − B̃‖ with all rounding, from which the certificate follows.

import (
	"fmt"
	"math"

	"github.com/basetensor/basetensor/internal/methods/closed"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// TrivialPlan returns the exact plan of a base tensor that is 0 everywhere, or that is one number since it has no legs. norm2 is ‖B‖².
func TrivialPlan(net *btn.Network, norm2 scaled.Number) (*btn.Plan, error) {
	e := btn.Estimate{
		Rule:   btn.Linear,
		Slices: 1,
		Alpha:  []scaled.Number{{}}, // the weight 0 of the only part: B is 0, unless the end of this function changes it
		Parts:  []btn.Part{newOnes(net.Dims, &btn.Frame{Closed: true})},
		Quality: &btn.Quality{
			Exact:         true,
			ConditionGram: 1,
			LnNormB:       norm2.LogAbs() / 2,
			LnNormError:   math.Inf(-1),
		},
	}
	plan := &btn.Plan{Method: query.MethodSymmetryCP, Estimates: []btn.Estimate{e}}
	if norm2.IsZero() {
		return plan, nil
	}

	sp, err := newSpace(net, countspace.TwoLevels(nil))
	if err != nil {
		return nil, err
	}
	p, err := sp.basePoly(nil)
	if err != nil {
		return nil, err
	}
	e.Alpha[0] = p.Coef.At(0) // plan has the same list: B is a number, and the only part is 1
	return plan, nil
}

// newOnes returns the component of rank one that is 1 everywhere: it has no vectors.
func newOnes(dims []int, frame *btn.Frame) btn.Part {
	return &closed.RankOne{Frame: frame, R: make([][]float64, len(dims))}
}

// dependent is the condition number of the Gram matrix above which a warning states that components are nearly dependent.
const dependent = 1e10

// plan returns the plan of the model: its components of positive weight, with their quality. If there are none, the plan has one component
// of weight 0 and a warning.
func (m *model) plan() *btn.Plan {
	plan := &btn.Plan{Method: query.MethodSymmetryCP}
	quality := &btn.Quality{
		Residual:      m.fit.Residual,
		LnExplained:   m.fit.LnExplained(),
		LnNormB:       m.norm2.LogAbs() / 2,
		ConditionGram: m.fit.Condition,
	}
	// ‖B − B̃‖ is at most ‖B‖ (√(ρ + its rounding) + the rounding of the maps).
	quality.LnNormError = quality.LnNormB + math.Log(math.Sqrt(m.fit.Residual+m.fit.Rounding)+m.sp.mapped)
	estimate := btn.Estimate{Rule: btn.Linear, Slices: 1, Quality: quality}
	// The frame is shared by all components: their levels and, if any leg has one, the learned maps.
	frame := &btn.Frame{Levels: m.sp.levels}
	for _, rotation := range m.sp.rot {
		if rotation != nil {
			frame.Rotations = m.sp.rot
			break
		}
	}

	for i, p := range m.parts {
		if m.fit.Alpha[i].IsZero() { // it adds nothing
			continue
		}
		estimate.Parts = append(estimate.Parts, &closed.SymmetryRankOne{Frame: frame, S: p.s, R: p.r})
		estimate.Alpha = append(estimate.Alpha, m.fit.Alpha[i])
	}

	if len(estimate.Parts) == 0 {
		estimate.Parts = []btn.Part{newOnes(m.sp.dims, frame)}
		estimate.Alpha = []scaled.Number{{}}
		plan.Warnings = append(plan.Warnings,
			"no component explains anything of the base tensor: the estimate is 0")
	}

	if m.fit.Condition > dependent {
		plan.Warnings = append(plan.Warnings,
			fmt.Sprintf("components are nearly dependent: condition of the Gram matrix %.1e", m.fit.Condition))
	}
	plan.Estimates = []btn.Estimate{estimate}
	return plan
}
