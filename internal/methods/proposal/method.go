package proposal

// What a method is: a way to answer demands, in a room of its own under internal/methods.
//
// A method consists of four things, and a stranger to it needs to know no other:
//
//   - a Proposer, which prices the method for a demand and makes its plan, or declines;
//   - its parts (btn.Part, registered by class), which are written, sent and cached, and describe themselves by btn.Part.About;
//   - contraction.Contractor, by which a part computes its value;
//   - if its plans grow, a judge.Judge, which states how far its estimates are off.
//
// Package methods lists all of them: Exact is the table from which exact answers come, and Requested are those that requests ask for by
// name. What method auto answers with otherwise is divided by package estimates.

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

// Ask is a question to a method: what is wanted under the evidence of a job, and what is known of other ways.
type Ask struct {
	btn.Want
	// Again reports whether the network was asked about before, or will be again.
	Again bool
	// Flops is the price of the cheapest elimination order under the evidence; 0 before one was looked for.
	Flops float64
	// Refused is the first reason why an optional method declined; nil if none gave one.
	Refused error
	// Next returns the proposal of the methods after this one in the table. It may take as long as all of them together.
	Next func(context.Context) (*btn.Assignment, error)
	// Exact returns the proposal of the exact way, for a method that has an exact answer as cheaply, or adds its parts to one.
	Exact func(context.Context, Ask) (*btn.Assignment, error)
}

// Proposer proposes a plan that provides what is wanted (Take and Priced make an assignment of a plan). It returns nil if the method is not
// for this job. A proposal that is over the budget is nil, too, or an error of code fault.OverBudget with the price, or TooDear. Other
// errors end the query.
//
// A plan goes through Job.Remember, under settings that begin with a name of the method's own. The key has the digest of the
// network, so that the plan must not depend on the evidence unless the settings or the shape do. The price is
// looked at before anything expensive is made: at most Limit flops and Settings.Memory bytes.
type Proposer func(ctx context.Context, j *Job, ask Ask) (*btn.Assignment, error)

// Row is a method at its place in a table.
type Row struct {
	Name    string // for people
	Propose Proposer
	// When reports whether the method is asked at all; nil: always.
	When func(*Job, Ask) bool
	// IsOptional reports whether an error of the method is no error of the table: the next one is asked.
	IsOptional bool
	// Reason is why the method stands at this place, for people.
	Reason string
}

// Table is methods in the sequence in which they are asked. The first proposal is taken.
type Table []Row

// Propose returns the first proposal of the table. It is over the budget if there is none.
func (t Table) Propose(ctx context.Context, j *Job, ask Ask) (*btn.Assignment, error) {
	for k, row := range t {
		if row.When != nil && !row.When(j, ask) {
			continue
		}
		ask.Next = func(ctx context.Context) (*btn.Assignment, error) { return t[k+1:].Propose(ctx, j, ask) }
		found, err := row.Ask(ctx, j, ask)
		var dear TooDear
		switch {
		case errors.As(err, &dear):
			ask.Flops = dear.Flops
		case err != nil && !row.IsOptional:
			return nil, err
		case err != nil:
			if ask.Refused == nil {
				ask.Refused = err
			}
		case found != nil:
			return found, nil
		}
	}
	return nil, fault.New(fault.OverBudget, "plan: no exact way fits")
}

// Ask asks the method of a row for its proposal, and notes its offer.
func (r Row) Ask(ctx context.Context, j *Job, ask Ask) (*btn.Assignment, error) {
	found, err := r.Propose(ctx, j, ask)
	r.note(ctx, found, err)
	return found, err
}

// TooDear declines a demand with the price of an elimination order. Later methods of the table have to be cheaper.
type TooDear struct{ Flops float64 }

func (e TooDear) Error() string {
	return fmt.Sprintf("%.3g flops: other ways are asked above %.0e", e.Flops, policy.HeavyFlops)
}

// Method is a method that requests ask for by name.
type Method struct {
	Name    query.Method
	Propose Proposer // it returns nil if the exact way is as cheap
	// Parametric is the proposal for derivatives by the numbers of a model. A method with it is exact: it answers joint marginals and finds
	// assignments, too.
	Parametric Proposer
	ReadsMaps  bool // the network has maps on its legs
	IsGlobal   bool // the decomposition is of the whole network, with the weights of its variables: not of a relevant part
	Grows      bool // plans are estimates that judge each other
	Weighs     bool // samples have weights
}

// IsExact reports whether a method answers exactly.
func (m *Method) IsExact() bool { return m.Parametric != nil }

// Finder is a part of exact plans whose method finds assignments along the same plan, too.
type Finder interface {
	btn.Part
	// Finding returns the parts that answer a question beside those of an estimate, of which this is the first. It returns none if the plan
	// has no answer.
	Finding(ctx context.Context, j *Job, parts []btn.Part, ask btn.Ask) ([]btn.Part, error)
}

// Take returns the assignment of a remembered plan. hit is the state of the cache for it.
func Take(plan *btn.Plan, hit string) *btn.Assignment {
	return &btn.Assignment{Plan: plan, Cache: hit, LnLinks: math.Inf(-1)}
}

// Priced is Take if the price of the plan's first estimate is that under the evidence, too.
func Priced(plan *btn.Plan, hit string) *btn.Assignment {
	a := Take(plan, hit)
	cost := plan.Estimates[0].Cost
	a.Cost = &cost
	return a
}
