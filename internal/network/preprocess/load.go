package preprocess

// Loading: the expression given becomes one under reduction.

import (
	"fmt"
	"slices"

	"github.com/basetensor/basetensor/internal/base/pace"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
)

// load returns original in the form that the rules of simplification change, with all its tables and indices on the agenda, the queues of
// what the rules have yet to look at. It shares the entries of the tables with original. Errors are those of Run.
func load(original *sumproduct.Expression, o Options, p *pace.Pace) (*expression, error) {
	if err := original.ValidateShape(); err != nil {
		return nil, err
	}

	e := &expression{
		tables:     make([]*table, 0, len(original.Tables)),
		indexMasks: make([]uint64, 0, len(original.Tables)),
		scale:      original.Scale,
	}

	// Indices: the marginals of all of them are needed (o.Marginals), or those of o.Keep.
	e.addIndices(original.Dims, o.Marginals)
	for _, i := range o.Keep {
		if i < 0 || i >= len(e.dims) {
			return nil, fmt.Errorf("%w: index %d is to be kept, there are %d",
				sumproduct.ErrExpression, i, len(e.dims))
		}
		e.origins.isNeeded[i] = true
	}

	// The scale.
	if !original.Scale.IsFinite() {
		return nil, fmt.Errorf("%w: the scale", sumproduct.ErrNotFinite)
	}

	if original.Scale.IsZero() {
		const noIndex = -1
		e.report.Zero = newReason(noIndex, nil) // no table is to blame
	}

	e.report.Before = countExpression(original)
	e.isSigned = original.Signed()
	if err := e.loadTables(original, o.Roundings, p); err != nil {
		return nil, err
	}
	for i := range e.dims { // addTable has queued the indices of the tables; the others are in no table
		e.agenda.indices.push(i)
	}
	return e, nil
}

// loadTables adds the tables of original to e. It returns an error if an entry is not finite, or if the context ends. roundings has, for
// the first tables, a bound on the relative error of every entry, in units of 2^-53.
func (e *expression) loadTables(original *sumproduct.Expression, roundings []float64, p *pace.Pace) error {
	for n, t := range original.Tables {
		if p.Over(int64(ruleWork + len(t.Data))) {
			return p.Err()
		}
		if err := original.CheckFinite(n); err != nil {
			return err
		}

		errorBound := 0.0 // nothing was rounded
		switch {
		case n < len(roundings):
			errorBound = roundings[n]
		case t.Rounded && !arePowersOfTwo(t.Data): // a power of two is exact
			errorBound = 1 // every entry was rounded once
		}
		e.addTable(&table{scope: slices.Clone(t.Scope), data: t.Data, source: &source{number: n}, err: errorBound})
	}
	return nil
}
