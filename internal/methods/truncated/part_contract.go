package truncated

// Truncated legs: one slice along a tree or a sweep.

import (
	"context"
	"errors"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contraction"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/pkg/factorgraph"
)

// slot and baseSlot are the keys under which a problem keeps its simplified network, under its evidence and without evidence.
type (
	slot     struct{ marginals bool }
	baseSlot struct{}
)

// Simplify returns the problem's network simplified for truncated legs, under its evidence. Errors: those of Prepare.
func Simplify(ctx context.Context, p *problem.Problem, marginals bool) (*Prepared, error) {
	return problem.Form(ctx, p, slot{marginals}, nil, func() (*Prepared, error) { return Prepare(ctx, p.Net, marginals) })
}

// SimplifyBase returns the problem's network without evidence, simplified so that every marginal can be recovered and evidence can enter
// as a mask. Queries of one network share it. Errors: those of Prepare.
func SimplifyBase(ctx context.Context, p *problem.Problem) (*Prepared, error) {
	return problem.FormOfBase(ctx, p, baseSlot{}, func() (*Prepared, error) { return Prepare(ctx, p.Base, true) })
}

// run is the contraction of one part of a plan on one problem.
type run struct{ contraction.Contraction }

// Contract implements contraction.Contractor. It contracts the slice of q along its plan; the slice, and evidence that the simplified
// network does not have, enter as a mask. Marginals are probabilities times Z, so that those of slices add up. A mask is evidence as
// weights of the values of indices.
func (q *Truncated) Contract(ctx context.Context, p *problem.Problem, want btn.Want) (btn.Value, error) {
	if err := contraction.RefuseJoint(want); err != nil {
		return btn.Value{}, err
	}
	begun, err := contraction.Begin(ctx, p, want)
	if err != nil {
		return btn.Value{}, err
	}
	j := run{begun}

	prepared, evidence, err := j.prepare(q)
	if err != nil {
		return btn.Value{}, err
	}
	evidence, err = p.EvidenceOfSlice(q.Slice, evidence) // with the values of the slice
	if errors.Is(err, factorgraph.ErrContradictory) {
		return btn.Value{}, nil // the evidence excludes the slice
	}
	if err != nil {
		return btn.Value{}, err
	}

	if err := prepared.CheckShape(q.Plan); err != nil {
		return btn.Value{}, err
	}
	masked, err := prepared.Mask(evidence)
	if err != nil {
		return btn.Value{}, err
	}
	wantsMarginals := j.Marginals != nil
	answer, err := masked.Contract(j.Ctx, q.Plan, q.Bond, j.Memory, wantsMarginals)
	if err != nil {
		return btn.Value{}, err
	}

	v := btn.Value{Z: answer.Z, Flops: answer.Flops, Truncation: &answer.Truncation}
	if wantsMarginals && answer.Rows != nil {
		v.Marginals = j.ScaledMarginals(answer.Rows, answer.Z)
	}
	return v, nil
}

// prepare returns the simplified network that the plan of a part is for, and the evidence that has to enter it as a mask. The evidence is
// empty if the network was simplified under it. A mask is evidence as weights of the values of indices.
func (j run) prepare(q *Truncated) (*Prepared, factorgraph.Evidence, error) {
	if q.Plan.Masked {
		prepared, err := SimplifyBase(j.Ctx, j.Problem)
		return prepared, j.Problem.Evidence, err
	}
	wantsMarginals := j.Marginals != nil
	prepared, err := Simplify(j.Ctx, j.Problem, wantsMarginals)
	return prepared, factorgraph.Evidence{}, err
}
