package bounding

// The judge of bounds: ln Z lies between them, and they have no value.

import (
	"fmt"
	"math"

	"github.com/basetensor/basetensor/internal/methods/judge"
)

// boundsJudge judges bounds.
type boundsJudge struct {
	judge.Defaults
	*judge.Sequence
}

// NewJudge returns the judge of bounds.
func NewJudge(s *judge.Sequence) judge.Judge { return boundsJudge{Sequence: s} }

// AcceptsMissingParts implements judge.Judge: each bound holds without the others.
func (boundsJudge) AcceptsMissingParts() bool { return true }

// Add implements judge.Judge: it adds the bounds of all parts of an estimate to the bounds of the sequence.
func (j boundsJudge) Add(e *judge.Estimate) error {
	e.IsBound = true
	for i, v := range e.Parts {
		if v.Bound == nil {
			return fmt.Errorf("component %d says no bound", i)
		}
		least := math.Inf(-1) // no least value is known
		if v.Bound.Least != nil {
			least = *v.Bound.Least
		}
		j.Bounds.AddProved(v.Bound.Lower, v.Bound.Upper, least, e.Plan.Parts[i].About().Result.Kind)
	}
	return nil
}

// MakeStatement implements judge.Judge: bounds have no value to state.
func (boundsJudge) MakeStatement() judge.Statement { return judge.Statement{} }

// Marginals implements judge.Judge: bounds have none.
func (boundsJudge) Marginals(*judge.Estimate) judge.Marginals { return judge.Marginals{} }
