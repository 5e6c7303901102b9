package truncated

// Truncated legs: one slice along a tree or a sweep.

import (
	"context"
	"errors"

	"github.com/basetensor/basetensor/internal/engine/trees"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contraction"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/pkg/factorgraph"
)

// slot and baseSlot are the places of the simplified network among the forms of a problem.
type (
	slot     struct{ marginals bool }
	baseSlot struct{}
)

// Of returns the problem's network simplified for truncated legs, under its evidence. Errors: those of Prepare.
func Of(ctx context.Context, p *problem.Problem, marginals bool) (*Prepared, error) {
	return problem.Form(ctx, p, slot{marginals}, nil, func() (*Prepared, error) { return Prepare(ctx, p.Net, marginals) })
}

// OfBase returns the problem's network without evidence, simplified so that every marginal
// can be recovered and evidence can enter as a mask. Queries of one network share it. Errors: those of Prepare.
func OfBase(ctx context.Context, p *problem.Problem) (*Prepared, error) {
	return problem.FormOfBase(ctx, p, baseSlot{}, func() (*Prepared, error) { return Prepare(ctx, p.Base, true) })
}

// run is one contraction of one part.
type run struct{ contraction.Contraction }

// Contract implements contraction.Contractor. Marginals are probabilities; times Z they add up.
func (q *Truncated) Contract(ctx context.Context, p *problem.Problem, want btn.Want) (btn.Value, error) {
	if err := contraction.NoJoint(want); err != nil {
		return btn.Value{}, err
	}
	own, err := contraction.Begin(ctx, p, want)
	if err != nil {
		return btn.Value{}, err
	}
	j := run{own}
	if q.Along.Masked {
		return j.masked(q)
	}

	prepared, err := Of(ctx, p, want.Marginals)
	if err != nil {
		return btn.Value{}, err
	}
	return j.underMask(q, prepared, factorgraph.Evidence{})
}

// masked contracts along a plan for the network without evidence, which enters as a mask.
func (j run) masked(q *Truncated) (btn.Value, error) {
	prepared, err := OfBase(j.Ctx, j.Problem)
	if err != nil {
		return btn.Value{}, err
	}

	if j.M != nil || len(q.Slice.Variables) > 0 { // a slice has no room for the shape of the whole
		return j.underMask(q, prepared, j.Problem.Evidence)
	}

	if err := prepared.Check(q.Along); err != nil {
		return btn.Value{}, err
	}

	reuse := Reuse{Accuracy: q.Along.Accuracy, Projectors: j.learn}
	a, err := prepared.Under(j.Ctx, q.Along, q.Bond, j.Memory, j.Problem.Evidence, reuse)
	return btn.Value{Z: a.Z, Flops: a.Flops, Truncation: &a.Truncation}, err
}

// underMask contracts the part's slice under evidence.
func (j run) underMask(
	q *Truncated, prepared *Prepared, evidence factorgraph.Evidence,
) (btn.Value, error) {
	evidence, err := j.Problem.Given(q.Slice, evidence)
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

	a, err := masked.Contract(j.Ctx, q.Along, q.Bond, j.Memory, j.M != nil)
	if err != nil {
		return btn.Value{}, err
	}

	v := btn.Value{Z: a.Z, Flops: a.Flops, Truncation: &a.Truncation}
	if j.M != nil && a.Rows != nil {
		v.Marginals = j.Weighted(a.Rows, a.Z)
	}
	return v, nil
}

// mostProjectors bounds the bytes of projectors that are remembered outside of a process.
const mostProjectors = 4 << 20

// learn returns the projectors of a key through the problem's memo.
func (j run) learn(
	ctx context.Context, key string, learn func(context.Context) (*trees.Projectors, error),
) (*trees.Projectors, error) {
	entry := problem.Entry{Kind: "projectors", Key: key, Most: mostProjectors, Decode: decode}
	return problem.Remember(ctx, j.Problem, entry, learn)
}

// decode reads projectors that were remembered.
func decode(_ context.Context, b []byte) (problem.Memorable, error) {
	p := new(trees.Projectors)
	return p, p.UnmarshalBinary(b)
}
