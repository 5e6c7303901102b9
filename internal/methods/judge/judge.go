// Package judge is the interface between the aggregator and the methods whose estimates grow: how an estimate follows from its parts, and
// what the estimates of a method state together about ln Z.
//
// The aggregator evaluates the estimates of a plan in their sequence. It hands each to the judge of its rule, asks all judges for their
// statements, lets each reconsider its own beside the others, and chooses the answer. It knows no method:
//
//	judges := judge.New(sequence)
//	err := judges.Of(estimate.Plan.Rule).Add(estimate)   // for each estimate whose values are there
//	statement := j.State()                               // for each judge: its best estimate, and how far it is off
//	j.Reconsider(&statement, others)
//
// A method registers its judge for a btn.Rule, and lives in its own package. Defaults has what most judges have in common.
package judge

import "github.com/basetensor/basetensor/internal/network/btn"

// Judge judges the estimates of one rule among those of one query.
type Judge interface {
	// Add evaluates an estimate from the values of its parts and from the estimates that were added before. It fills in Z, Rounding and
	// the method's fields of the answer. If the estimate is a bound, it fills in IsBound instead. The error is the reason why the
	// estimate has no value. Linear time in the values.
	Add(e *Estimate) error
	// MakeStatement returns the statement that follows from the estimates added so far. Its Best is nil if none of the rule has a value.
	MakeStatement() Statement
	// Reconsider changes the judge's statement (own), or those of the other methods, after all methods have made theirs.
	Reconsider(own *Statement, others []*Statement)
	// Marginals returns the marginals that an estimate of the rule has, and how far they may be off.
	Marginals(e *Estimate) Marginals
	// Samples returns up to n weighted samples among those that an estimate has drawn. It returns none if it has not drawn any.
	Samples(e *Estimate, n int, seed uint64) Samples
	// Warnings returns what the method adds to the warnings of an answer, for people. best is the estimate of the answer, which may be by
	// another method, or nil if there is none. uncertainty is that of the answer, nil if it is not known.
	Warnings(best *Estimate, uncertainty *float64) []string
	// AcceptsMissingParts reports whether an estimate can be made from any of its parts, if no more values will come.
	AcceptsMissingParts() bool
}

// Defaults is embedded by judges and implements what most of them have in common: a statement does not change, there are no samples and no
// warnings, and an estimate needs all its parts.
type Defaults struct{}

// Reconsider implements Judge.
func (Defaults) Reconsider(*Statement, []*Statement) {}

// Samples implements Judge.
func (Defaults) Samples(*Estimate, int, uint64) Samples { return Samples{} }

// Warnings implements Judge.
func (Defaults) Warnings(*Estimate, *float64) []string { return nil }

// AcceptsMissingParts implements Judge.
func (Defaults) AcceptsMissingParts() bool { return false }

// Statement is what the estimates of one method state together about ln Z.
type Statement struct {
	Best        *Estimate // the best estimate of the method; nil if none has a value
	Uncertainty *float64  // how far ln Z of Best may be off, nats; nil if that is not known
	Unknown     string    // why Uncertainty is nil, for people; "" if the reason is only that there is nothing to compare Best with
	// IsComplete reports whether Best dropped nothing above rounding. It is the answer then, whatever other methods state.
	IsComplete bool
	// MaySettle reports whether the sequence may end with this statement once its uncertainty is small enough.
	MaySettle bool
	// IsCredible reports whether the uncertainty also covers what the method has not seen. If it does not, the statement is no evidence
	// against those of other methods.
	IsCredible bool
	// MissesWeight reports whether ln Z of Best is mostly too low, by more than its uncertainty shows.
	MissesWeight bool
}

// Marginals are the marginals of an estimate.
type Marginals struct {
	P           [][]float64 // P[i][x] for variable i, or for target i of the query; nil if there are none
	Uncertainty *float64    // the largest error of one of the probabilities; nil if that is not known
	Warning     string      // why there are none, for people; "" if there is nothing to tell
}

// Samples are weighted assignments of values to all variables.
type Samples struct {
	Values  [][]int   // a value for each variable, by sample
	Weights []float64 // by sample, with the sum 1; nil if there are no samples
	Warning string    // what is missing, for people; "" if nothing is
}

// registration is a rule with the function that returns a new judge of its estimates.
type registration struct {
	rule     btn.Rule
	newJudge func(*Sequence) Judge
}

// registrations are the rules with a judge, in the sequence in which judges make their statements. If two state the same uncertainty, the
// aggregator takes the first one.
var registrations []registration

// Register makes the judge of a rule known. It is called while packages are initialised, in the sequence in which statements are made.
func Register(rule btn.Rule, newJudge func(*Sequence) Judge) {
	registrations = append(registrations, registration{rule, newJudge})
}

// Judges are the judges of one query, one for each rule.
type Judges struct {
	All    []Judge // in the sequence in which statements are made
	byRule map[btn.Rule]Judge
}

// New returns the judges of a query, which share the sequence s and have no estimates yet.
func New(s *Sequence) Judges {
	judges := Judges{byRule: map[btn.Rule]Judge{}}
	for _, r := range registrations {
		j := r.newJudge(s)
		judges.All = append(judges.All, j)
		judges.byRule[r.rule] = j
	}
	return judges
}

// ForRule returns the judge of a rule, nil if none is registered for it.
func (j Judges) ForRule(rule btn.Rule) Judge { return j.byRule[rule] }
