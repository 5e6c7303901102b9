// Package baseline is a second implementation of annealed importance sampling, for comparison, on expressions with entries of at least 0.
package baseline

import (
	"math"

	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/fault"
)

// Result is an estimate or a bound.
type Result struct {
	LnZ       float64     // nats; −Inf for 0
	Marginals [][]float64 // per index of the expression; nil where the method has none
	Converged bool        // the last round changed nothing to speak of; true for methods without rounds
	Rounds    int         // sweeps, or rounds of optimisation, that were made
	Flops     float64     // multiplications and additions, about
}

// check returns the error of an expression the methods are not for.
func check(e *sumproduct.Expression) error {
	for t, table := range e.Tables {
		size := 1
		for _, i := range table.Scope {
			if i < 0 || i >= len(e.Dims) {
				return fault.New(fault.BadInput, "baseline: table %d has index %d of %d", t, i, len(e.Dims))
			}
			size *= e.Dims[i]
		}
		if size != len(table.Data) {
			return fault.New(fault.BadInput, "baseline: table %d has %d entries, its scope %d", t, len(table.Data), size)
		}
		for _, x := range table.Data {
			if !(x >= 0) || math.IsInf(x, 1) {
				return fault.New(fault.Unsupported,
					"baseline: table %d has the entry %v; only finite ones of at least 0 are possible", t, x)
			}
		}
	}

	if e.Scale.Mant < 0 || !e.Scale.IsFinite() {
		return fault.New(fault.Unsupported, "baseline: the scale is %v·2^%d; it must be at least 0",
			e.Scale.Mant, e.Scale.Exp)
	}
	return nil
}
