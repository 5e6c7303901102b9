package preprocess

// Loading: the expression given becomes one under reduction.

import (
	"fmt"
	"slices"

	"github.com/basetensor/basetensor/internal/base/pace"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
)

// load returns original as an expression under reduction, with all its tables and indices on the agenda. It shares the entries of the
// tables with original. Errors are those of Run.
func load(original *sumproduct.Expression, o Options, p *pace.Pace) (*expression, error) {
	if err := original.ValidateShape(); err != nil {
		return nil, err
	}

	e := &expression{
		tables:     make([]*table, 0, len(original.Tables)),
		indexMasks: make([]uint64, 0, len(original.Tables)),
		scale:      original.Scale,
	}

	// Indices, and whose marginals are needed.
	e.addIndices(original.Dims, o.Marginals)
	for _, i := range o.Keep {
		if i < 0 || i >= len(e.dims) {
			return nil, fmt.Errorf("%w: index %d is to be kept, there are %d",
				sumproduct.ErrExpression, i, len(e.dims))
		}
		e.origins.isNeeded[i] = true
	}

	if !original.Scale.IsFinite() {
		return nil, fmt.Errorf("%w: the scale", sumproduct.ErrNotFinite)
	}

	e.report.Before = countExpression(original)
	e.isSigned = original.Signed()
	if original.Scale.IsZero() {
		const noIndex = -1
		e.report.Zero = newReason(noIndex, nil) // no table is to blame
	}

	// Tables. err bounds the relative error of every entry, in units of 2^-53.
	for n, t := range original.Tables {
		if p.Over(int64(ruleWork + len(t.Data))) {
			return nil, p.Err()
		}
		if err := original.CheckFinite(n); err != nil {
			return nil, err
		}

		err := 0.0 // nothing was rounded
		switch {
		case n < len(o.Roundings):
			err = o.Roundings[n]
		case t.Rounded && !arePowersOfTwo(t.Data):
			err = 1 // every entry was rounded once
		}
		e.addTable(&table{scope: slices.Clone(t.Scope), data: t.Data, source: &source{number: n}, err: err})
	}

	for i := range e.dims {
		e.agenda.indices.push(i)
	}
	return e, nil
}
