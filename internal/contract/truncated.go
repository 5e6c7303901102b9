package contract

// Truncated legs: one slice along a tree or a sweep.

import (
	"context"
	"errors"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/families/truncated"
	"github.com/basetensor/basetensor/internal/problem"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// truncatedLegs contracts slices of B with truncated legs.
// Marginals are probabilities; times Z they add up.
type truncatedLegs struct{ planned }

// Contract implements Engine.
func (truncatedLegs) Contract(
	ctx context.Context, p *problem.Problem, part btn.Part, want problem.Want,
) (btn.Value, error) {
	if err := noJoint(want); err != nil {
		return btn.Value{}, err
	}
	j, err := begin(ctx, p, want)
	if err != nil {
		return btn.Value{}, err
	}

	q := part.(*btn.Truncated)
	if q.Along.Masked {
		return j.masked(q)
	}

	prepared, err := p.Truncated(ctx, want.Marginals)
	if err != nil {
		return btn.Value{}, err
	}
	return j.underMask(q, prepared, factorgraph.Evidence{})
}

// masked contracts along a plan for the network without evidence, which enters as a mask.
func (j contraction) masked(q *btn.Truncated) (btn.Value, error) {
	prepared, err := j.problem.Unmasked(j.ctx)
	if err != nil {
		return btn.Value{}, err
	}

	if j.m != nil || len(q.Slice.Variables) > 0 { // a slice has no room for the shape of the whole
		return j.underMask(q, prepared, j.problem.Evidence)
	}

	if err := prepared.Check(q.Along); err != nil {
		return btn.Value{}, err
	}

	reuse := truncated.Reuse{Accuracy: q.Along.Accuracy, Projectors: j.problem.LearnProjectors}
	a, err := prepared.Under(j.ctx, q.Along, q.Bond, j.memory, j.problem.Evidence, reuse)
	return btn.Value{Z: a.Z, Flops: a.Flops, Truncation: &a.Truncation}, err
}

// underMask contracts the part's slice under evidence.
func (j contraction) underMask(
	q *btn.Truncated, prepared *truncated.Prepared, evidence factorgraph.Evidence,
) (btn.Value, error) {
	evidence, err := j.problem.Given(q.Slice, evidence)
	if errors.Is(err, factorgraph.ErrContradictory) {
		return btn.Value{}, nil // the evidence excludes the slice
	}
	if err != nil {
		return btn.Value{}, err
	}

	if err := prepared.Check(q.Along); err != nil {
		return btn.Value{}, err
	}

	masked, err := prepared.Mask(evidence)
	if err != nil {
		return btn.Value{}, err
	}

	a, err := masked.Contract(j.ctx, q.Along, q.Bond, j.memory, j.m != nil)
	if err != nil {
		return btn.Value{}, err
	}

	v := btn.Value{Z: a.Z, Flops: a.Flops, Truncation: &a.Truncation}
	if j.m != nil && a.Rows != nil {
		v.Marginals = j.weighted(a.Rows, a.Z)
	}
	return v, nil
}

// weighted returns probabilities per variable as marginals that add up to z.
func (j contraction) weighted(rows [][]float64, z scaled.Number) *btn.Marginals {
	for v, row := range rows {
		at := j.m.at[j.m.offset[v]:]
		for x, q := range row {
			at[x] = scaled.FromFloat(q).Mul(z)
		}
	}

	return j.m.result(scaled.One)
}
