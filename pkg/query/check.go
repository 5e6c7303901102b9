package query

import (
	"errors"
	"fmt"
	"math"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
)

// fieldError is an error in a field of a query.
type fieldError struct {
	query int    // position in the request
	field string // as a message has it: evid, evidence.h[1], evidence.s[0], joint, over
	err   error
}

// Error returns the query, the field and the reason.
func (e *fieldError) Error() string { return fmt.Sprintf("query %d: %s: %v", e.query, e.field, e.err) }

// keepFirst keeps an error with its field, unless one was kept before.
func (e *fieldError) keepFirst(field string, err error) {
	if e.err == nil {
		e.field, e.err = field, err
	}
}

// Unwrap returns the reason.
func (e *fieldError) Unwrap() error { return e.err }

// Field returns the query's position, the field and the reason.
func (e *fieldError) Field() (query int, field string, reason error) { return e.query, e.field, e.err }

// Check validates queries for a model with these domains: at least one query, evidence in increasing order of variable, in range, with
// weights that are finite and at least 0; targets in range and distinct; at most MaxBest assignments, beside MPE; information about
// variables that are not observed; joint marginals as CheckJoint; ratios as CheckOver.
// Errors have the code bad_input and name the wrong field by Field() (query int, field string, reason error);
// two observations of one variable wrap factorgraph.ErrContradictory as well. Time linear in the queries' size.
func Check(domains []int, queries []Query) error { return checkQueries(domains, true, queries) }

// CheckForm is Check for queries whose model is not known yet: it finds the errors that hold for every model.
func CheckForm(queries []Query) error { return checkQueries(nil, false, queries) }

// CheckOver checks the field Over of query i of a request with n queries: the query in the denominator of a ratio. It has to be 0 for none,
// or 1 + the position of another query. Errors have the code bad_input.
func CheckOver(over, i, n int) error {
	switch {
	case over < 0 || over > n:
		return fault.New(fault.BadInput, "%d names no query: 0, or 1 + the position of one of %d", over, n)
	case over == i+1:
		return fault.New(fault.BadInput, "%d is the query itself", over)
	}
	return nil
}

// checkQueries checks queries. If isModelKnown, domains are the model's, and variables and values have to be in their
// range.
func checkQueries(domains []int, isModelKnown bool, queries []Query) error {
	if len(queries) == 0 {
		return fault.New(fault.BadInput, "a request needs at least one query")
	}
	for i := range queries {
		q := &queries[i]
		f := fieldError{query: i}
		f.keepFirst(checkEvidence(domains, isModelKnown, q.Evidence))
		if q.Evid != "" && !q.Evidence.IsEmpty() {
			f.keepFirst("evid", errors.New("both evid and evidence are given"))
		}
		f.keepFirst("over", CheckOver(q.Over, i, len(queries)))
		for _, k := range kinds {
			switch {
			case k.isTwice != nil && q.Named != nil && k.isTwice(q, q.Named):
				f.keepFirst("named."+k.field, fmt.Errorf("both named.%s and %s are given", k.field, k.field))
			case k.check != nil:
				f.keepFirst(k.check(domains, isModelKnown, q))
			}
		}
		if f.err != nil {
			onHeap := f // so that f itself needs no allocation if nothing is wrong
			return fault.Wrap(fault.BadInput, &onHeap)
		}
	}
	return nil
}

// checkEvidence returns the first observation or likelihood that is wrong, as a field, and why. If isModelKnown,
// variables and values have to be in the range of domains. Every message with queries comes by here several times, so
// it allocates nothing unless something is wrong.
func checkEvidence(domains []int, isModelKnown bool, e factorgraph.Evidence) (field string, err error) {
	previous := -1 // the variable before
	for i, o := range e.Hard {
		switch {
		case i > 0 && o.Var == previous && o.Value != e.Hard[i-1].Value: // observed twice, at different values
			err = fmt.Errorf("%w: variable %d = %d after variable %d = %d",
				factorgraph.ErrContradictory, o.Var, o.Value, previous, e.Hard[i-1].Value)
		case o.Var <= previous || o.Value < 0:
			err = fmt.Errorf("variable %d = %d after variable %d", o.Var, o.Value, previous)
		case isModelKnown && (o.Var >= len(domains) || o.Value >= domains[o.Var]):
			err = fmt.Errorf("variable %d = %d is out of range", o.Var, o.Value)
		}
		if err != nil {
			return fmt.Sprintf("evidence.h[%d]", i), err
		}
		previous = o.Var
	}

	previous = -1
	for i, l := range e.Soft { // likelihoods
		if err := checkLikelihood(domains, isModelKnown, l, previous); err != nil {
			return fmt.Sprintf("evidence.s[%d]", i), err
		}
		previous = l.Var
	}
	return "", nil
}

// checkLikelihood checks one likelihood, which has to be of a variable above previous. If isModelKnown, it needs a weight
// of at least 0 for each value.
func checkLikelihood(domains []int, isModelKnown bool, l factorgraph.Likelihood, previous int) error {
	switch {
	case l.Var <= previous:
		return fmt.Errorf("variable %d after variable %d", l.Var, previous)
	case len(l.Weights) == 0:
		return fmt.Errorf("variable %d has no numbers", l.Var)
	case isModelKnown && (l.Var >= len(domains) || len(l.Weights) != domains[l.Var]):
		return fmt.Errorf("%d numbers for variable %d: one for each of its values", len(l.Weights), l.Var)
	}
	for x, w := range l.Weights {
		if math.IsNaN(w) || math.IsInf(w, 0) || isModelKnown && w < 0 {
			return fmt.Errorf("variable %d = %d has the weight %v", l.Var, x, w)
		}
	}
	return nil
}
