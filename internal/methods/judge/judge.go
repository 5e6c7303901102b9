// Package judge is the interface between the aggregator and the methods whose estimates grow: what an estimate is worth, and what the
// estimates of a method state together.
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
	// Add evaluates an estimate from the values of its parts, and of the estimates that were added before. It fills in Z, Rounding and the
	// method's fields of the answer, or IsBound. The error is the reason why the estimate has no value. Linear time in the values.
	Add(e *Estimate) error
	// State returns what the estimates so far say of ln Z.
	State() Statement
	// Reconsider changes the judge's own statement, or another one, by what the other methods state.
	Reconsider(own *Statement, others []*Statement)
	// Marginals returns the marginals that an estimate of the rule has, and states how far they are off.
	Marginals(e *Estimate) Marginals
	// Samples returns up to n weighted samples that an estimate has drawn. It returns none if it has not drawn any.
	Samples(e *Estimate, n int, seed uint64) Samples
	// Warnings lists what a person should know about the answer, of which best is the estimate and uncertainty the statement.
	Warnings(best *Estimate, uncertainty *float64) []string
	// TakesAny reports whether any of the parts of an estimate make one by themselves, if no more values will come.
	TakesAny() bool
}

// Defaults is embedded by judges. A statement does not change, there are no samples and no warnings, and an estimate needs all its parts.
type Defaults struct{}

// Reconsider implements Judge.
func (Defaults) Reconsider(*Statement, []*Statement) {}

// Samples implements Judge.
func (Defaults) Samples(*Estimate, int, uint64) Samples { return Samples{} }

// Warnings implements Judge.
func (Defaults) Warnings(*Estimate, *float64) []string { return nil }

// TakesAny implements Judge.
func (Defaults) TakesAny() bool { return false }

// Statement is what the estimates of one method say of ln Z.
type Statement struct {
	Best        *Estimate // the best of them; nil if none has a value
	Uncertainty *float64  // how far ln Z of the best one may be off, nats; nil if that is not known
	Unknown     string    // why it is not known, for people; "" if there is nothing to compare with
	// IsComplete reports whether the best one dropped nothing above rounding. It is the answer then, whatever other methods state.
	IsComplete bool
	// MaySettle reports whether the sequence may end with this statement once its uncertainty is small enough.
	MaySettle bool
	// IsCredible reports whether the statement is about what the method has not seen, too. A statement that is not does not make others
	// less certain that disagree with it.
	IsCredible bool
	// MissesWeight reports whether ln Z of the best one is mostly too low, by more than its uncertainty shows.
	MissesWeight bool
}

// Marginals are those of an estimate.
type Marginals struct {
	P           [][]float64 // by variable, or by target; nil if there are none
	Uncertainty *float64    // of the least certain probability; nil if that is not known
	Warning     string      // why there are none; "" if nobody has to know
}

// Samples are weighted assignments of values to all variables.
type Samples struct {
	Values  [][]int
	Weights []float64 // they add up to 1; nil if there are no samples
	Warning string    // what is missing; "" for nothing
}

// entry is the judge of a rule.
type entry struct {
	rule btn.Rule
	make func(*Sequence) Judge
}

// entries are the registered judges, in the sequence in which statements are made. Of two that state the same the first one is taken.
var entries []entry

// Register makes the judge of a rule known. It is called while packages are initialised, in the sequence in which statements are made.
func Register(rule btn.Rule, newJudge func(*Sequence) Judge) {
	entries = append(entries, entry{rule, newJudge})
}

// Judges are those of one query, one for each rule.
type Judges struct {
	All []Judge // in the sequence in which statements are made
	of  map[btn.Rule]Judge
}

// New returns the judges of a query without any estimates.
func New(s *Sequence) Judges {
	judges := Judges{of: map[btn.Rule]Judge{}}
	for _, e := range entries {
		j := e.make(s)
		judges.All = append(judges.All, j)
		judges.of[e.rule] = j
	}
	return judges
}

// Of returns the judge of a rule, nil for a rule that nobody has registered.
func (j Judges) Of(rule btn.Rule) Judge { return j.of[rule] }
