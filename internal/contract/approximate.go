package contract

// Components of approximate classes: truncated legs, and regions in the BP gauge.

import (
	"errors"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/truncated"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// truncated contracts one slice of a rung of truncated legs. Its marginals are probabilities; times Z they add up.
func (j job) truncated() (btn.Value, error) {
	g := j.dec.Growth
	rung := &g.Rungs[j.q.Rung]
	plan := &g.Plans[rung.Plan]
	net, evidence, marginals := j.net, factorgraph.Evidence{}, j.m != nil
	if g.Masked {
		net, evidence, marginals = j.options.Base, j.options.Evidence, true
	}
	evidence, err := j.slice(rung, evidence)
	if errors.Is(err, factorgraph.ErrContradictory) {
		return btn.Value{}, nil // the evidence excludes the slice
	}
	if err != nil {
		return btn.Value{}, err
	}
	p, err := truncated.Prepare(j.ctx, net, marginals)
	if err != nil {
		return btn.Value{}, err
	}
	if err := p.Check(plan); err != nil {
		return btn.Value{}, err
	}
	if g.Masked && j.m == nil && len(rung.Slices) == 0 { // a slice has no room for the shape of the whole
		a, err := p.Under(j.ctx, plan, rung.Bond, j.memory, evidence, truncated.Reuse{Accuracy: g.Accuracy, Projectors: j.projectors})
		return btn.Value{Z: a.Z, Flops: a.Flops, Truncation: &a.Truncation}, err
	}
	if p, err = p.Mask(evidence); err != nil {
		return btn.Value{}, err
	}
	a, err := p.Contract(j.ctx, plan, rung.Bond, j.memory, j.m != nil)
	if err != nil {
		return btn.Value{}, err
	}
	v := btn.Value{Z: a.Z, Flops: a.Flops, Truncation: &a.Truncation}
	if j.m != nil && a.Rows != nil {
		v.Marginals = j.weighted(a.Rows, a.Z)
	}
	return v, nil
}

// slice adds the component's slice, digits of the rung's variables with the last one fastest, to evidence.
func (j job) slice(rung *btn.Rung, evidence factorgraph.Evidence) (factorgraph.Evidence, error) {
	if len(rung.Slices) == 0 {
		return evidence, nil
	}
	hard := append([]factorgraph.Observation(nil), evidence.Hard...)
	rest := j.q.Slice
	for k := len(rung.Slices) - 1; k >= 0; k-- {
		v := rung.Slices[k]
		d := int64(j.net.Variables[v].Domain)
		hard = append(hard, factorgraph.Observation{Var: v, Value: int(rest % d)})
		rest /= d
	}
	return factorgraph.NewEvidence(hard, evidence.Soft)
}

// weighted returns probabilities per variable as marginals that add up to z.
func (j job) weighted(rows [][]float64, z scaled.Number) *btn.Marginals {
	for v, row := range rows {
		at := j.m.at[j.m.offset[v]:]
		for x, q := range row {
			at[x] = scaled.FromFloat(q).Mul(z)
		}
	}
	return j.m.result(scaled.One)
}
