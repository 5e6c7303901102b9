package counts

import (
	"context"

	"github.com/basetensor/basetensor/pkg/countspace"
)

// Whole is Value with all marginals in one variable without windows.
func Whole(ctx context.Context, f *Form) (Answer, error) {
	e := &evaluation{Form: f, ctx: ctx, ops: new(countspace.Ops)}
	if err := f.computePolys(ctx, e.ops); err != nil {
		return Answer{}, err
	}
	derivatives := make([]countspace.Poly, len(f.kinds))
	z, err := newLine(ctx, f.polys, f.powers(), e.ops).sumWhole(f.spacePoly(), func(int) bool { return true },
		func(k int, h countspace.Poly) error {
			derivatives[k] = h
			return nil
		})
	if err != nil {
		return Answer{}, err
	}
	a := Answer{Z: z.Mul(f.scale)}
	a.Marginals, err = e.spreadMarginals(derivatives)
	a.MulAdds = e.ops.MulAdds
	return a, err
}
