package frobenius

// From a learned model to the decomposition that is stored and contracted.

import (
	"fmt"
	"math"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// Trivial returns the exact decomposition of a base tensor that is one number, or 0 everywhere; norm2 is its NormSq.
func Trivial(net *btn.Network, norm2 scaled.Number) (*btn.Decomposition, error) {
	d := &btn.Decomposition{
		Method: btn.MethodSymmetryCP, Exact: true, ConditionGram: 1,
		Components: []btn.Component{{Class: btn.ClassRankOne, R: make([][]float64, len(net.Dims))}},
		Alpha:      []scaled.Number{{}}, LnNormB: norm2.LogAbs() / 2, LnNormError: math.Inf(-1),
	}
	if norm2.IsZero() {
		return d, nil
	}
	sp, err := newSpace(net, DefaultLevels(nil), nil)
	if err != nil {
		return nil, err
	}
	p, err := sp.basePoly(nil, 1)
	if err != nil {
		return nil, err
	}
	d.Alpha[0] = p.Coef.At(0)
	return d, nil
}

// decomposition writes the model out. Parts of weight zero are left out, if that leaves any.
func (m *model) decomposition() *btn.Decomposition {
	d := &btn.Decomposition{
		Method: btn.MethodSymmetryCP, Residual: m.fit.Residual, LnExplained: m.fit.LnExplained(),
		LnNormB: m.norm2.LogAbs() / 2, ConditionGram: m.fit.Condition,
	}
	d.LnNormError = d.LnNormB + math.Log(m.fit.Residual+m.fit.Rounding)/2
	for i, p := range m.parts {
		if m.fit.Alpha[i].IsZero() {
			continue
		}
		c := btn.Component{Class: p.class}
		if p.s != nil {
			c.S = *p.s
			d.Levels = m.sp.levels
		}
		if p.class != btn.ClassSymmetric {
			c.R = p.r
		}
		d.Components = append(d.Components, c)
		d.Alpha = append(d.Alpha, m.fit.Alpha[i])
	}
	if len(d.Components) == 0 {
		d.Components = []btn.Component{{Class: btn.ClassRankOne, R: make([][]float64, len(m.sp.dims))}}
		d.Alpha = []scaled.Number{{}}
		d.Warnings = append(d.Warnings, "no component explains anything of the base tensor: the estimate is 0")
	}
	for _, o := range m.sp.rot {
		if o != nil {
			d.Rotations = m.sp.rot
			break
		}
	}
	if m.fit.Condition > choleskyLimit {
		d.Warnings = append(d.Warnings,
			fmt.Sprintf("components are nearly dependent: condition of the Gram matrix %.1e", m.fit.Condition))
	}
	return d
}
