package sumproduct

// A total of 0, held against the pattern of zeros: entries that are too small beside others vanish in float64.

import (
	"errors"

	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// ErrSpan: the terms of a total span more than float64 holds, and what was computed is not the total.
var ErrSpan = errors.New("einsum: the entries span more than float64 holds")

// ConfirmZero says whether e, for which a contraction found 0, has no term above 0. Within one table entries far below the largest
// become 0; where other tables exclude the large ones, nothing is left of a total that is not 0. contract is called with
// the same expression over 0 and 1, and Scale 1: it counts terms. It is not called where Scale is 0, nor where an entry is below 0,
// for then terms may cancel. Cost: at most one more contraction. Errors: ErrSpan (fault.Unsupported), those of contract.
func ConfirmZero(e *Expression, contract func(*Expression) (scaled.Number, error)) error {
	pattern, ok := e.pattern()
	if !ok {
		return nil
	}
	terms, err := contract(pattern)
	if err != nil {
		return err
	}
	if !terms.IsZero() {
		return fault.New(fault.Unsupported, "%w: about 10^%.1f terms of the total are above 0, and all of them were lost", ErrSpan, terms.Log10Abs())
	}
	return nil
}

// pattern returns e with 1 for every entry above 0. It says no when e is known to be 0 or has an entry below 0.
func (e *Expression) pattern() (*Expression, bool) {
	if e.Scale.IsZero() {
		return nil, false
	}
	p := *e
	p.Scale, p.Tables = scaled.One, make([]Table, len(e.Tables))
	for t, table := range e.Tables {
		data := make([]float64, len(table.Data))
		for k, x := range table.Data {
			switch {
			case x < 0:
				return nil, false
			case x > 0:
				data[k] = 1
			}
		}
		p.Tables[t] = Table{Scope: table.Scope, Data: data}
	}
	return &p, true
}
