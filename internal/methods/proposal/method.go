package proposal

// What a method is: a way to answer demands, in a room of its own under internal/methods.
//
// A method consists of four things, which are all that other packages need to know:
//
//   - a Proposer, which prices the method for a demand and makes its plan, or declines;
//   - its parts (btn.Part, registered by class), which are written, sent and cached, and describe themselves by btn.Part.About;
//   - contraction.Contractor, by which a part computes its value;
//   - if its plans grow, a judge.Judge, which states how far its estimates are off.
//
// Package methods lists all of them: Exact is the table from which exact answers come, and Requested are those that requests ask for by
// name. Package estimates divides the budget of method auto between the methods whose estimates grow.

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// Ask is what a Proposer is asked: what is wanted under the evidence of a job, and what is known of other methods.
type Ask struct {
	btn.Want
	// IsRepeated reports whether the network was asked about before, or will be again.
	IsRepeated bool
	// Flops is the price of the cheapest elimination order under the evidence; 0: none was searched for yet.
	Flops float64
	// Refused is the first reason why an optional method declined; nil if none gave one.
	Refused error
	// Next returns the first proposal of the methods after this one in the table. It may take as long as all of them together.
	Next func(context.Context) (*btn.Assignment, error)
	// Accepts reports whether a proposal will do; nil: every one does. After one that will not do the table asks the next method.
	Accepts func(*btn.Assignment) bool
	// Exact returns the proposal of the exact methods. It is for a method that may find them as cheap, or adds its parts to theirs.
	Exact func(context.Context, Ask) (*btn.Assignment, error)
}

// Proposer proposes a plan that provides what is wanted (NewAssignment and NewPricedAssignment make an assignment of a plan). It returns
// nil if the method is not for this job. If the plan would be over the budget, it returns nil, TooExpensive, or an error of code
// fault.OverBudget with the price. Other errors end the query.
//
// A Proposer makes its plan through Job.Remember, under settings that begin with the name of the method. The key contains the digest of the
// network without evidence, so that the plan must not depend on the evidence unless the settings or the shape do. The Proposer checks the
// price before it makes anything expensive: at most ExactFlopLimit flops and Settings.Memory bytes.
type Proposer func(ctx context.Context, j *Job, ask Ask) (*btn.Assignment, error)

// Row is a method with its position in a table of methods.
type Row struct {
	Name    string // for people
	Propose Proposer
	// When reports whether the method is asked; nil: always.
	When func(*Job, Ask) bool
	// IsOptional states that after an error of this method the table asks the next one. Otherwise the error is that of the table.
	IsOptional bool
	// Reason states why the method has this position in the table, for people.
	Reason string
}

// Table is methods in the sequence in which they are asked. The first proposal is taken.
type Table []Row

// Propose asks the methods of the table in sequence and returns the first proposal that ask accepts. If there is none, the error has the
// code fault.OverBudget. A method without a proposal returns nil or an error. After nil the next method is asked. After an error:
//
//   - TooExpensive: the next method is asked, and later methods are told the price (Ask.Flops).
//   - Another error of an optional method: the next method is asked, and later methods are told the first such error (Ask.Refused).
//   - Another error of a method that is not optional ends the sequence, and is returned.
func (t Table) Propose(ctx context.Context, j *Job, ask Ask) (*btn.Assignment, error) {
	for k, row := range t {
		if row.When != nil && !row.When(j, ask) {
			continue
		}
		ask.Next = func(ctx context.Context) (*btn.Assignment, error) { return t[k+1:].Propose(ctx, j, ask) }
		assignment, err := row.Ask(ctx, j, ask)
		var expensive TooExpensive
		switch {
		case errors.As(err, &expensive):
			ask.Flops = expensive.Flops
		case err != nil && !row.IsOptional:
			return nil, err
		case err != nil:
			if ask.Refused == nil {
				ask.Refused = err
			}
		case assignment != nil && (ask.Accepts == nil || ask.Accepts(assignment)):
			return assignment, nil
		}
	}
	return nil, fault.New(fault.OverBudget, "plan: no exact way fits")
}

// Ask returns the proposal of the row's method, and adds a line about it to the offers for people, if ctx collects them.
func (r Row) Ask(ctx context.Context, j *Job, ask Ask) (*btn.Assignment, error) {
	assignment, err := r.Propose(ctx, j, ask)
	r.addOffer(ctx, assignment, err)
	return assignment, err
}

// TooExpensive is the error of a method that declines because its cheapest elimination order takes Flops. Later methods of the table have
// to be cheaper.
type TooExpensive struct{ Flops float64 }

func (e TooExpensive) Error() string {
	return fmt.Sprintf("%.3g flops: other ways are asked above %.0e", e.Flops, policy.HeavyFlops)
}

// Method is a method that requests may name.
type Method struct {
	Name    query.Method
	Propose Proposer // returns nil if the exact methods are as cheap
	// Parametric proposes plans for derivatives by the numbers of a model. nil: the method is not exact. An exact method also answers joint
	// marginals and finds assignments.
	Parametric           Proposer
	ReadsMaps            bool // needs a network with maps on its legs
	IsGlobal             bool // decomposes the complete network with the weights of its variables, never only its relevant part
	Grows                bool // plans are estimates that judge each other
	DrawsWeightedSamples bool // samples have weights
}

// IsExact reports whether a method answers exactly.
func (m *Method) IsExact() bool { return m.Parametric != nil }

// Finder is a part of an exact plan whose method also finds assignments along that plan.
type Finder interface {
	btn.Part
	// FindingParts returns the parts that answer ask, in addition to the parts of the estimate of which this is the first. It returns none
	// if ask has no answer along the plan.
	FindingParts(ctx context.Context, j *Job, parts []btn.Part, ask btn.Ask) ([]btn.Part, error)
}

// NewAssignment returns the assignment of a plan, without a price. cacheState is the state of the cache for the plan.
func NewAssignment(plan *btn.Plan, cacheState string) *btn.Assignment {
	return &btn.Assignment{Plan: plan, Cache: cacheState, LnLinks: math.Inf(-1)}
}

// NewPricedAssignment returns the assignment of a plan with the price of its first estimate. It is for plans whose price is the same
// under any evidence.
func NewPricedAssignment(plan *btn.Plan, cacheState string) *btn.Assignment {
	a := NewAssignment(plan, cacheState)
	cost := plan.Estimates[0].Cost
	a.Cost = &cost
	return a
}
