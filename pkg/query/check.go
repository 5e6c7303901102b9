package query

import (
	"errors"
	"fmt"
	"math"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
)

// fieldError names the wrong field and its query.
type fieldError struct {
	query int    // position in the request
	field string // as a message has it: evid, evidence.h[1], evidence.s[0], joint, over
	err   error
}

func (e *fieldError) Error() string { return fmt.Sprintf("query %d: %s: %v", e.query, e.field, e.err) }

// first keeps an error, unless one was found before.
func (e *fieldError) first(field string, err error) {
	if e.err == nil {
		e.field, e.err = field, err
	}
}

func (e *fieldError) Unwrap() error { return e.err }

// Field returns the query's position, the field and the reason.
func (e *fieldError) Field() (query int, field string, reason error) { return e.query, e.field, e.err }

// Check validates queries for a model with these domains: at least one query, evidence in increasing order of variable, in range, with
// weights that are finite and at least 0; targets in range and distinct; at most MaxBest assignments, beside MPE; information about
// variables that are not observed; joint marginals as CheckJoint; ratios as CheckOver.
// Errors have the code bad_input and name the wrong field by Field() (query int, field string, reason error);
// two observations of one variable wrap factorgraph.ErrContradictory as well. Time linear in the queries' size.
func Check(domains []int, queries []Query) error { return check(domains, true, queries) }

// CheckForm is Check for queries whose model is not known yet: it finds the errors that hold for every model.
func CheckForm(queries []Query) error { return check(nil, false, queries) }

// CheckJoint checks the variables of a joint marginal against the domains of a model: in range, each once, at most MaxJointCells cells.
// Errors have the code bad_input and name the variable. Linear time.
func CheckJoint(domains, set []int) error {
	return fault.Wrap(fault.BadInput, checkJoint(domains, true, set))
}

// CheckSet checks the variables of a marginal MAP assignment: in range, each once. Errors have the code bad_input and name the variable.
func CheckSet(domains, set []int) error {
	return fault.Wrap(fault.BadInput, checkTargets(domains, true, set))
}

// CheckSamples checks a number of assignments to draw of some variables: at least 0, at most MaxSampled values together.
func CheckSamples(variables, samples int) error {
	return fault.Wrap(fault.BadInput, checkSamples(variables, samples))
}

func checkSamples(variables, samples int) error {
	if samples < 0 || samples > MaxSampled/max(1, variables) {
		return fmt.Errorf("%d samples of %d variables: 0 to %d values together", samples, variables, MaxSampled)
	}
	return nil
}

// checkBest checks the number of most probable assignments of some variables.
func checkBest(variables int, q *Query) error {
	switch {
	case q.Best == 0:
	case !q.MPE:
		return errors.New("it lists the most probable explanations of all variables: mpe is needed beside it")
	case q.Best < 1 || q.Best > MaxBest || q.Best > max(1, MaxSampled/max(1, variables)):
		return fmt.Errorf("%d assignments of %d variables: 1 to %d, of %d values together", q.Best, variables, MaxBest, MaxSampled)
	}
	return nil
}

// CheckOver checks the field Over of query i of a request: 0, or 1 + the position of another one of the n.
// Errors have the code bad_input.
func CheckOver(over, i, n int) error {
	switch {
	case over < 0 || over > n:
		return fault.New(fault.BadInput, "%d names no query: 0, or 1 + the position of one of %d", over, n)
	case over == i+1:
		return fault.New(fault.BadInput, "%d is the query itself", over)
	}
	return nil
}

// check checks queries, against the domains where known says that they are the model's.
func check(domains []int, known bool, queries []Query) error {
	if len(queries) == 0 {
		return fault.New(fault.BadInput, "a request needs at least one query")
	}
	for i := range queries {
		q := &queries[i]
		f := fieldError{query: i}
		f.first(checkEvidence(domains, known, q.Evidence))
		if q.Evid != "" && !q.Evidence.IsEmpty() {
			f.first("evid", errors.New("both evid and evidence are given"))
		}
		if q.Named != nil {
			f.first(q.Named.check(q))
		}
		f.first("over", CheckOver(q.Over, i, len(queries)))
		if q.Cases != nil {
			f.first(checkCases(domains, known, q))
		}
		f.first("sensitivity", checkSensitivity(domains, known, q.Sensitivity))
		f.first("joint", checkJoint(domains, known, q.Joint))
		f.first("targets", checkTargets(domains, known, q.Targets))
		f.first("map", checkTargets(domains, known, q.Map))
		f.first("samples", checkSamples(len(domains), q.Samples))
		f.first("best", checkBest(len(domains), q))
		if q.Information != nil {
			f.first(checkAsk(domains, known, q))
		}
		if f.err != nil {
			wrong := f // f itself stays off the heap
			return fault.Wrap(fault.BadInput, &wrong)
		}
	}
	return nil
}

// check checks that nothing is asked both by name and by position.
func (n *ByName) check(q *Query) (field string, err error) {
	switch {
	case len(n.Joint) > 0 && len(q.Joint) > 0:
		return "named.joint", errors.New("both named.joint and joint are given")
	case len(n.Targets) > 0 && len(q.Targets) > 0:
		return "named.targets", errors.New("both named.targets and targets are given")
	case len(n.Map) > 0 && len(q.Map) > 0:
		return "named.map", errors.New("both named.map and map are given")
	case n.Sensitivity != nil && q.Sensitivity != nil:
		return "named.sensitivity", errors.New("both named.sensitivity and sensitivity are given")
	case n.Information != nil && q.Information != nil:
		return "named.information", errors.New("both named.information and information are given")
	}
	return "", nil
}

// checkEvidence returns the first observation or likelihood that is wrong, and why. Every message with queries comes by here several
// times: nothing is allocated unless something is wrong.
func checkEvidence(domains []int, known bool, e factorgraph.Evidence) (field string, err error) {
	last := -1
	for i, o := range e.Hard {
		switch {
		case i > 0 && o.Var == last && o.Value != e.Hard[i-1].Value:
			err = fmt.Errorf("%w: variable %d = %d after variable %d = %d",
				factorgraph.ErrContradictory, o.Var, o.Value, last, e.Hard[i-1].Value)
		case o.Var <= last || o.Value < 0:
			err = fmt.Errorf("variable %d = %d after variable %d", o.Var, o.Value, last)
		case known && (o.Var >= len(domains) || o.Value >= domains[o.Var]):
			err = fmt.Errorf("variable %d = %d is out of range", o.Var, o.Value)
		}
		if err != nil {
			return fmt.Sprintf("evidence.h[%d]", i), err
		}
		last = o.Var
	}

	last = -1
	for i, l := range e.Soft {
		if err := checkLikelihood(domains, known, l, last); err != nil {
			return fmt.Sprintf("evidence.s[%d]", i), err
		}
		last = l.Var
	}
	return "", nil
}

// checkLikelihood checks one likelihood, which follows the one of variable last.
func checkLikelihood(domains []int, known bool, l factorgraph.Likelihood, last int) error {
	switch {
	case l.Var <= last:
		return fmt.Errorf("variable %d after variable %d", l.Var, last)
	case len(l.Weights) == 0:
		return fmt.Errorf("variable %d has no weights", l.Var)
	case known && (l.Var >= len(domains) || len(l.Weights) != domains[l.Var]):
		return fmt.Errorf("%d weights for variable %d", len(l.Weights), l.Var)
	}
	for x, w := range l.Weights {
		if math.IsNaN(w) || math.IsInf(w, 0) || known && w < 0 {
			return fmt.Errorf("weight %d of variable %d is %v", x, l.Var, w)
		}
	}
	return nil
}

// checkTargets checks that variables are distinct, and the model's where known says that the domains are.
func checkTargets(domains []int, known bool, targets []int) error {
	if len(targets) == 0 {
		return nil
	}
	seen := make(map[int]bool, len(targets))
	for _, v := range targets {
		switch {
		case v < 0 || known && v >= len(domains):
			return fmt.Errorf("variable %d, the model has %d", v, len(domains))
		case seen[v]:
			return fmt.Errorf("variable %d twice", v)
		}
		seen[v] = true
	}
	return nil
}

// checkJoint checks the variables of a joint marginal, against the domains where known says that they are the model's.
func checkJoint(domains []int, known bool, set []int) error {
	if len(set) == 0 {
		return nil
	}
	seen := make(map[int]bool, len(set))
	cells := 1
	for _, v := range set {
		switch {
		case v < 0 || known && v >= len(domains):
			return fmt.Errorf("joint marginal: variable %d, the model has %d", v, len(domains))
		case seen[v]:
			return fmt.Errorf("joint marginal: variable %d twice", v)
		case known && domains[v] > MaxJointCells/cells:
			return fmt.Errorf("joint marginal: more than %d cells with variable %d", MaxJointCells, v)
		}
		seen[v] = true
		if known {
			cells *= domains[v]
		}
	}
	return nil
}

// checkSensitivity checks the target of a sensitivity and its bounds; nil is none.
func checkSensitivity(domains []int, known bool, s *Sensitivity) error {
	switch {
	case s == nil:
	case s.Variable < 0 || s.Value < 0 || known && (s.Variable >= len(domains) || s.Value >= domains[s.Variable]):
		return fmt.Errorf("variable %d = %d is out of range", s.Variable, s.Value)
	case !(s.Range >= 0 && s.Range <= 1):
		return fmt.Errorf("numbers vary by a share of themselves between 0 and 1, not %v", s.Range)
	case s.Top < 0 || s.Top > MaxTop:
		return fmt.Errorf("%d numbers ranked, at most %d are", s.Top, MaxTop)
	}
	return nil
}
