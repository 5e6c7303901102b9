// Evidence: normalising a person's observations, and checking them against a model.

package factorgraph

import (
	"cmp"
	"errors"
	"maps"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/base/decimal"
	"github.com/basetensor/basetensor/pkg/fault"
)

// ErrEvidence is wrapped by every error about evidence.
var ErrEvidence = errors.New("invalid evidence")

// ErrContradictory is wrapped, beside ErrEvidence, when one variable is observed at two values.
var ErrContradictory = errors.New("contradictory")

func evidenceError(format string, args ...any) error {
	return fault.New(fault.BadInput, "%w: "+format, append([]any{ErrEvidence}, args...)...)
}

// NewEvidence puts observations and likelihoods into the normal form: both in increasing order of Var, each Var once.
// An observation stated twice is kept once; at two different values it is ErrContradictory. Likelihoods of the same
// variable are multiplied value by value. The arguments are not changed. Ranges are checked by Validate.
func NewEvidence(hard []Observation, soft []Likelihood) (Evidence, error) {
	var e Evidence
	sorted := slices.Clone(hard)
	slices.SortStableFunc(sorted, func(a, b Observation) int { return cmp.Compare(a.Var, b.Var) })
	for _, o := range sorted {
		if n := len(e.Hard); n > 0 && e.Hard[n-1].Var == o.Var {
			if e.Hard[n-1].Value != o.Value {
				return Evidence{}, evidenceError("%w: variable %d observed at %d and at %d",
					ErrContradictory, o.Var, e.Hard[n-1].Value, o.Value)
			}
			continue
		}
		e.Hard = append(e.Hard, o)
	}
	likes := slices.Clone(soft)
	slices.SortStableFunc(likes, func(a, b Likelihood) int { return cmp.Compare(a.Var, b.Var) })
	for _, l := range likes {
		n := len(e.Soft)
		if n == 0 || e.Soft[n-1].Var != l.Var {
			e.Soft = append(e.Soft, Likelihood{Var: l.Var, Weights: slices.Clone(l.Weights)})
			continue
		}
		w := e.Soft[n-1].Weights
		if len(w) != len(l.Weights) {
			return Evidence{}, evidenceError("variable %d: likelihoods of %d and of %d weights", l.Var, len(w), len(l.Weights))
		}
		for x := range w {
			product := w[x] * l.Weights[x]
			if w[x] != 0 && l.Weights[x] != 0 && math.Abs(product) < decimal.Least {
				return Evidence{}, evidenceError("variable %d: the weights %v and %v of value %d: their product %w",
					l.Var, w[x], l.Weights[x], x, decimal.ErrRange)
			}
			w[x] = product
		}
	}
	return e, nil
}

// Observe returns the evidence that every variable of values has the given value.
func Observe(values map[int]int) Evidence {
	var e Evidence
	for _, v := range slices.Sorted(maps.Keys(values)) {
		e.Hard = append(e.Hard, Observation{Var: v, Value: values[v]})
	}
	return e
}

// IsEmpty reports whether e says nothing.
func (e Evidence) IsEmpty() bool { return len(e.Hard) == 0 && len(e.Soft) == 0 }

// Validate checks e against m: the order NewEvidence makes, variables and values in range, one finite weight
// of at least 0 per value. A variable may have an observation and a likelihood: their weights multiply. A
// likelihood of zeros only is allowed and makes Z = 0.
//
// Errors wrap ErrEvidence (and ErrContradictory), carry fault.BadInput and name the variable.
func (e Evidence) Validate(m *Model) error {
	for i, o := range e.Hard {
		if o.Var < 0 || o.Var >= len(m.Domains) {
			return evidenceError("observation %d: variable %d, the model has %d", i, o.Var, len(m.Domains))
		}
		if o.Value < 0 || o.Value >= m.Domains[o.Var] {
			return evidenceError("observation %d: variable %d at value %d, its domain is 0 to %d",
				i, o.Var, o.Value, m.Domains[o.Var]-1)
		}
		if i == 0 || e.Hard[i-1].Var < o.Var {
			continue // in increasing order, as it should be
		}
		if prev := e.Hard[i-1]; prev.Var == o.Var && prev.Value != o.Value {
			return evidenceError("%w: variable %d observed at %d and at %d", ErrContradictory, o.Var, prev.Value, o.Value)
		}
		return evidenceError("observation %d: variable %d after variable %d, increasing order is needed",
			i, o.Var, e.Hard[i-1].Var)
	}
	for i, l := range e.Soft {
		if l.Var < 0 || l.Var >= len(m.Domains) {
			return evidenceError("likelihood %d: variable %d, the model has %d", i, l.Var, len(m.Domains))
		}
		if i > 0 && e.Soft[i-1].Var >= l.Var {
			return evidenceError("likelihood %d: variable %d after variable %d, increasing order is needed",
				i, l.Var, e.Soft[i-1].Var)
		}
		if len(l.Weights) != m.Domains[l.Var] {
			return evidenceError("likelihood %d: %d weights, variable %d has %d values",
				i, len(l.Weights), l.Var, m.Domains[l.Var])
		}
		for x, w := range l.Weights {
			if math.IsNaN(w) || math.IsInf(w, 0) || w < 0 {
				return evidenceError("likelihood %d: variable %d: weight %v of value %d, a finite number of at least 0 is needed",
					i, l.Var, w, x)
			}
		}
	}
	return nil
}
