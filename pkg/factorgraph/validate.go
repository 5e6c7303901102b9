// Validation of a model: everything later stages rely on is checked once, here.

package factorgraph

import (
	"errors"
	"math"
	"slices"

	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// ErrModel is wrapped by every error about a model that is not a factor graph.
var ErrModel = errors.New("invalid model")

// modelError formats an error about a model: ErrModel, code bad_input.
func modelError(format string, args ...any) error {
	return fault.New(fault.BadInput, "%w: "+format, append([]any{ErrModel}, args...)...)
}

// Validate checks that m is a factor graph: every domain has at least one value, names (if any) pass NewLabels, every scope is
// within range and without repetition, and every table is a valid tensor whose dimensions are its scope's domains. Negative entries are
// allowed, the algebra does not mind them, unless the model is called a Bayesian network and the factor is a dense table: they are no
// probabilities. Time linear in the size of the model.
//
// Errors wrap ErrModel, carry fault.BadInput and name the variable or the factor.
func (m *Model) Validate() error {
	if m == nil {
		return modelError("no model")
	}
	for i, d := range m.Domains {
		if d < 1 {
			return modelError("variable %d: domain of size %d, at least 1 is needed", i, d)
		}
	}
	if _, err := m.Labels(); err != nil {
		return err
	}
	if n := len(m.Layout); n != 0 && n != 2*len(m.Domains) {
		return modelError("a layout of %d numbers, two for each of %d variables are needed", n, len(m.Domains))
	}
	lastFactor := make([]int, len(m.Domains)) // by variable: 1 + the last factor whose scope has it
	for j := range m.Factors {
		if err := m.validateFactor(j, lastFactor); err != nil {
			return err
		}
	}
	return m.validateProbabilities()
}

// validateProbabilities refuses negative entries of dense tables in a Bayesian network. Scopes and tables are valid.
func (m *Model) validateProbabilities() error {
	if !m.Bayes {
		return nil
	}
	for j := range m.Factors {
		t, ok := m.Factors[j].Table.(*tensor.Dense)
		if !ok {
			continue
		}
		if i := slices.IndexFunc(t.Data, func(p float64) bool { return p < 0 }); i >= 0 {
			mode := childMode(t, m.nodes(), j)
			return modelError("%s: entry %d%s is %v, and a probability is at least 0", m.describeFactor(j, mode), i, m.entrySuffix(j, i), t.Data[i])
		}
	}
	return nil
}

// spareValues is the number of values that the variables of a model may have beyond one per byte of its file.
const spareValues = 1 << 20

// Values returns the number of values of all variables together, and the largest number that a model read from so many bytes may have. A
// limit is needed because the cost of a model, above all of its marginals, has to follow the bytes of its file, not a number in it.
func (m *Model) Values(bytes int64) (count, limit int64) {
	for _, d := range m.Domains {
		if count += int64(d); count < 0 {
			return math.MaxInt64, bytes + spareValues
		}
	}
	return count, bytes + spareValues
}

// validateFactor checks the scope and the table of factor j. lastFactor[v] is 1 + the last factor with variable v in its scope, 0 if there
// is none; it is updated.
func (m *Model) validateFactor(j int, lastFactor []int) error {
	f := &m.Factors[j]
	for pos, v := range f.Scope {
		if v < 0 || v >= len(m.Domains) {
			return modelError("%s: scope position %d: variable %d, the model has %d", m.factorAndLine(j), pos, v, len(m.Domains))
		}
		if lastFactor[v] == j+1 {
			return modelError("%s: variable %d is twice in the scope", m.factorAndLine(j), v)
		}
		lastFactor[v] = j + 1
	}
	if f.Table == nil {
		return modelError("%s: no table", m.factorAndLine(j))
	}
	if err := tensor.Validate(f.Table); err != nil {
		return modelError("%s: %w", m.factorAndLine(j), err)
	}
	dims := f.Table.Dims()
	if len(dims) != len(f.Scope) {
		return modelError("%s: table of order %d over a scope of %d variables", m.factorAndLine(j), len(dims), len(f.Scope))
	}
	for pos, v := range f.Scope {
		if dims[pos] != m.Domains[v] {
			return modelError("%s: dimension %d at scope position %d, variable %d has a domain of %d",
				m.factorAndLine(j), dims[pos], pos, v, m.Domains[v])
		}
	}
	return nil
}
