// Reading one factor in any of its forms.

package modeljson

import (
	"fmt"
	"math"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// budget is what the forms of all factors of a file may still take together.
type budget struct {
	levels  int // values of the legs of factors with levels
	numbers int // numbers of factors of low rank, which are written out
}

// decodeTable returns the table of a factor of m, which has exactly one form. remaining is what the factors of the file may still have
// together, of values with levels and of numbers of low-rank factors; this factor's are subtracted.
func (f *factor) decodeTable(m *factorgraph.Model, remaining *budget) (tensor.Tensor, error) {
	// the domains of its scope
	dims := make([]int, len(f.Scope.positions))
	for position, v := range f.Scope.positions {
		if v < 0 || v >= len(m.Domains) {
			return nil, modelError("scope position %d: variable %d, the model has %d", position, v, len(m.Domains))
		}
		dims[position] = m.Domains[v]
	}

	// its form
	forms := 0
	for _, isThere := range []bool{f.Dense != nil, f.CP != nil, f.Symmetric != nil, f.SymmetryCP != nil, f.LowRank != nil} {
		if isThere {
			forms++
		}
	}
	switch {
	case forms != 1:
		return nil, syntaxError("%d of the forms dense, cp, symmetric, symmetry_cp, low_rank, one is needed", forms)
	case f.Dense != nil:
		if f.Dense.Values == nil {
			return nil, syntaxError("the field values is missing")
		}
		if err := f.Dense.Values.checkShape(dims, describeScope(m, f.Scope.positions)); err != nil {
			return nil, err
		}
		return &tensor.Dense{Shape: dims, Data: f.Dense.Values.values}, nil
	case f.CP != nil:
		return f.CP.tensor(dims)
	case f.LowRank != nil:
		return f.LowRank.tensor(dims, remaining)
	}

	// a form with levels
	for _, d := range dims {
		if remaining.levels -= d; remaining.levels < 0 {
			return nil, fmt.Errorf("%w: the variables of all symmetric factors have too many values together", ErrLimit)
		}
	}
	if f.Symmetric != nil {
		return f.Symmetric.tensor(dims)
	}
	return f.SymmetryCP.tensor(dims)
}

// tensor returns the factor as a tensor over variables with these domains.
func (c *cp) tensor(dims []int) (tensor.Tensor, error) {
	if c.Weights == nil || c.Vectors == nil {
		return nil, syntaxError("a cp factor needs weights and vectors")
	}
	t := &tensor.CP{Shape: dims, Weights: c.Weights, Vectors: make([][]float64, len(c.Vectors))}
	for position, rows := range c.Vectors {
		if rows == nil { // nil stays: identity vectors
			continue
		}
		t.Vectors[position] = []float64{}
		for i, row := range rows {
			if position >= len(dims) || len(row) != dims[position] {
				return nil, modelError("scope position %d: vector %d has %d entries, not the variable's domain", position, i, len(row))
			}
			t.Vectors[position] = append(t.Vectors[position], row...)
		}
	}
	return t, nil
}

// tensor returns e^{weight·s²/2} as a CP tensor over variables with these domains, where s is the sum of the entries of the vectors at the
// variables' values. It subtracts its numbers from those that the factors of the file may still have (remaining).
func (r *lowRank) tensor(dims []int, remaining *budget) (tensor.Tensor, error) {
	if r.Weight == nil || r.Vectors == nil {
		return nil, syntaxError("a low_rank factor needs a weight and vectors")
	}
	if len(r.Vectors) != len(dims) {
		return nil, modelError("%d vectors for %d variables", len(r.Vectors), len(dims))
	}
	v := make([][]float64, len(dims))
	for position, row := range r.Vectors {
		if len(row) != dims[position] {
			return nil, modelError("scope position %d: a vector of %d entries, not the variable's domain", position, len(row))
		}
		v[position] = row
	}
	t, err := tensor.ExpSquare(float64(*r.Weight), v)
	switch {
	case fault.CodeOf(err) == fault.OverBudget:
		return nil, fmt.Errorf("%w: %w", ErrLimit, err)
	case err != nil:
		return nil, modelError("%v", err)
	}
	for _, row := range t.Vectors {
		remaining.numbers -= len(row)
	}
	if remaining.numbers < 0 {
		return nil, fmt.Errorf("%w: factors of low rank have more than %d numbers together", ErrLimit, tensor.MostStatistic)
	}
	return t, nil
}

// tensor returns the factor as a tensor over variables with these domains.
func (s *symmetric) tensor(dims []int) (tensor.Tensor, error) {
	l, err := s.Levels.decode(dims)
	if err != nil {
		return nil, err
	}
	values, err := s.vector()
	if err != nil {
		return nil, err
	}
	return &tensor.Symmetric{Shape: dims, Levels: l, Values: values}, nil
}

// tensor returns the factor as a tensor over variables with these domains.
func (s *symmetryCP) tensor(dims []int) (tensor.Tensor, error) {
	if s.Terms == nil {
		return nil, syntaxError("the field terms is missing")
	}
	l, err := s.Levels.decode(dims)
	if err != nil {
		return nil, err
	}
	t := &tensor.SymmetryCP{Shape: dims, Levels: l, Terms: make([]tensor.SymmetryRankOne, len(s.Terms))}
	for i := range s.Terms {
		values, err := s.Terms[i].vector()
		if err != nil {
			return nil, fmt.Errorf("term %d: %w", i, err)
		}
		t.Terms[i] = tensor.SymmetryRankOne{Alpha: float64(s.Terms[i].Alpha), S: values}
		for _, v := range s.Terms[i].Vectors {
			t.Terms[i].R = append(t.Terms[i].R, v)
		}
	}
	return t, nil
}

// vector returns the values in the one notation that is there.
func (c counts) vector() (scaled.Vector, error) {
	notations := 0
	for _, isThere := range []bool{c.Values != nil, c.LogValues != nil, c.Scaled != nil} {
		if isThere {
			notations++
		}
	}
	if notations != 1 {
		return scaled.Vector{}, syntaxError("%d of the fields values, log_values, scaled, one is needed", notations)
	}

	// values, or mantissas and exponents
	if c.Values != nil {
		return scaled.Vector{Mant: c.Values}, nil
	}
	if c.Scaled != nil {
		if c.Scaled.Mantissas == nil || c.Scaled.Exponents == nil {
			return scaled.Vector{}, syntaxError("scaled needs mantissas and exponents")
		}
		return scaled.Vector{Mant: c.Scaled.Mantissas, Exp: c.Scaled.Exponents}, nil
	}

	// logarithms
	v := scaled.Vector{Mant: make([]float64, len(c.LogValues)), Exp: make([]int64, len(c.LogValues))}
	for i, l := range c.LogValues {
		switch {
		case l == nil: // the value 0
		case math.Abs(*l) > maxLog:
			return scaled.Vector{}, modelError("log_values: %v at position %d, at most ±%g", *l, i, float64(maxLog))
		default:
			n := scaled.FromLog(*l)
			v.Mant[i], v.Exp[i] = n.Mant, n.Exp
		}
	}
	return v, nil
}

// maxLog bounds log_values: beyond it a float64 logarithm leaves no digit of the value.
const maxLog = 1 << 36
