// Package contraction has the code that the contractions of all methods share: the checks before one, the collection of marginals, and
// errors.
package contraction

// Contractions: parts that contract themselves, and the checks before.

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// ErrMemory states that a part needs more memory than the budget.
var ErrMemory = errors.New("contract: over the memory budget")

// ErrNoJoint states that parts of a class have no joint marginal.
var ErrNoJoint = errors.New("contract: a joint marginal needs a contraction tree or a closed form")

// ErrNoDerivatives states that parts of a class have no derivatives by parameters.
var ErrNoDerivatives = errors.New("contract: derivatives need an elimination of their own")

// Contractor is a part that contracts itself. If it derives something from a problem that other parts of the same plan need, too, it
// keeps that as a form of the problem (problem.Form).
type Contractor interface {
	btn.Part
	// Contract returns Z(T^Q) · Scale, without the part's weight α, and the other results that want asks for. The part has to fit the
	// network.
	Contract(ctx context.Context, p *problem.Problem, want btn.Want) (btn.Value, error)
}

// Batcher is a part that can contract itself for several problems of one network without evidence. That takes less time than one by one,
// and gives the same bits.
type Batcher interface {
	Contractor
	// Lanes returns how many problems are contracted side by side, so that their tables are in memory at the same time.
	Lanes() int
	// ContractAll returns a value or an error for every problem. err is the context's.
	ContractAll(ctx context.Context, problems []*problem.Problem, wants []btn.Want) (values []btn.Value, errs []error, err error)
}

// Priced is a part whose cost for Z alone is known before any of the work. Its flops are within a small factor of
// Value.Flops and grow like them. For a part that is not Priced, the cost is its share of the cost of its estimate.
type Priced interface {
	Cost(p *problem.Problem) query.Cost
}

// Loader is a part that reads its bytes when it is first used. It reads them once, and again if the context ended the reading.
type Loader interface{ Load(context.Context) }

// Part contracts a part of a plan and returns its value. The network of the problem is valid, and conditioned on the query's evidence
// already. The classes of parts and their costs are listed in package methods.
//
// If marginals are wanted, Value.Marginals has w_v(x) ∂Z/∂w_v(x) of every variable v and value x, by one pass back over the computation of
// Z. For parts of rank one the pass makes the products of all links but one; for symmetric parts it makes correlations down the product
// tree; for exact contractions it makes derivatives step by step. There is no division.
//
// The same arguments give the same bits. The context is checked between links and between products.
// Errors: btn.ErrPart if the part does not fit the network, ErrNoVariables if the network has no variables
// to have marginals, ErrNoJoint, ErrMemory (with the bytes needed; fault.OverBudget), those of
// tensor.CountPoly, and ctx's.
func Part(
	ctx context.Context, p *problem.Problem, part btn.Part, want btn.Want,
) (btn.Value, error) {
	want, err := checkPart(ctx, p, part, want)
	if err != nil {
		return btn.Value{}, err
	}
	value, err := part.(Contractor).Contract(ctx, p, want) // checkPart has found that it is a Contractor
	if err != nil {
		return btn.Value{}, wrapError(part, err)
	}
	return value, ctx.Err() // numbers of arithmetic that ended with the context are void
}

// Parts returns the value, or the error, of one part for each of several problems of one network without evidence, as Part does for one
// problem. If every problem fits the part, they are contracted together; otherwise one by one, so that each gets its own value or error.
// err is the context's.
func Parts(
	ctx context.Context, problems []*problem.Problem, part Batcher, wants []btn.Want,
) (values []btn.Value, errs []error, err error) {
	for k, p := range problems {
		if wants[k], err = checkPart(ctx, p, part, wants[k]); err != nil { // Part finds this error again below
			break
		}
	}

	// Together, if all problems fit the part.
	if err == nil {
		values, errs, err = part.ContractAll(ctx, problems, wants)
		for k := range errs {
			if errs[k] != nil {
				errs[k] = wrapError(part, errs[k])
			}
		}
		return values, errs, cmp.Or(err, ctx.Err())
	}

	// One by one.
	values, errs = make([]btn.Value, len(problems)), make([]error, len(problems))
	for k, p := range problems {
		if values[k], errs[k] = Part(ctx, p, part, wants[k]); ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
	}
	return values, errs, nil
}

// wrapError returns err with the class of the part in its text.
func wrapError(part btn.Part, err error) error {
	return fmt.Errorf("contract: a part of class %s: %w", part.Class(), err)
}

// checkPart returns an error if the part does not fit the problem or cannot provide what is wanted. Otherwise it returns what is wanted of
// this part. Most parts compute a number that enters Z; for them this is want. A part that looks for assignments instead has no such
// number, so there is nothing to derive: want loses the derivatives and their target. checkPart loads a part that is not yet loaded.
func checkPart(ctx context.Context, p *problem.Problem, part btn.Part, want btn.Want) (btn.Want, error) {
	if part == nil {
		return want, fault.New(fault.BadInput, "contract: there is no part")
	}
	if _, isContractor := part.(Contractor); !isContractor {
		return want, wrapError(part, fault.New(fault.BadInput, "it cannot be contracted"))
	}
	if loader, isLoader := part.(Loader); isLoader {
		loader.Load(ctx) // fails only if the context ends
	}
	if err := ctx.Err(); err != nil {
		return want, err
	}

	// The network and what is wanted.
	if err := part.Fits(p.Net); err != nil {
		return want, wrapError(part, fault.Wrap(fault.BadInput, err))
	}
	if len(want.Joint) > 0 {
		if err := query.CheckJoint(Domains(p.Net), want.Joint); err != nil {
			return want, err
		}
	}
	about := part.About()
	findsAssignments := about.Finds != ""
	if findsAssignments {
		want.Derivatives, want.Target = false, nil
	}
	wantsDerivatives := want.Derivatives || want.Target != nil
	if wantsDerivatives && !about.Differentiates {
		return want, wrapError(part, fault.Wrap(fault.Unsupported, ErrNoDerivatives))
	}
	return want, nil
}

// Flops returns a prediction of the flops that part i of an estimate takes for Z alone: the part's own price, if it has one, or else an
// equal share of the cost of the estimate. It returns 0 if the estimate has no part i, or if the part does not fit the network.
func Flops(net *btn.Network, e *btn.Estimate, i int) float64 {
	if i < 0 || i >= len(e.Parts) {
		return 0
	}
	part := e.Parts[i]
	if part.Fits(net) != nil {
		return 0
	}
	if priced, ok := part.(Priced); ok {
		if cost := priced.Cost(problem.New(net, problem.Options{})); cost.Flops > 0 {
			return cost.Flops
		}
	}
	return e.Cost.Flops / float64(len(e.Parts))
}

// Domains returns the number of values of every variable of the network.
func Domains(net *btn.Network) []int {
	domains := make([]int, len(net.Variables))
	for v := range domains {
		domains[v] = net.Variables[v].Domain
	}
	return domains
}

// Contraction is the contraction of one part under way.
type Contraction struct {
	Ctx       context.Context
	Problem   *problem.Problem
	Net       *btn.Network
	Ops       *countspace.Ops // counts the multiply-adds in count space, and ends with the context
	Memory    int64           // bytes
	Threads   int             // goroutines, as problem.Options.Threads
	Marginals *Collected      // collects the marginals; nil: none are wanted
	Joint     []int           // the variables of the joint marginal; nil: none is wanted
}

// Begin returns the contraction of a part of a problem, before any work: what it works on, and the room for its results. Marginals are
// collected only if they are wanted, and Joint names the variables of the joint marginal, nil for none. It returns ErrNoVariables if
// marginals are wanted and the network has no variables.
func Begin(ctx context.Context, p *problem.Problem, want btn.Want) (Contraction, error) {
	contraction := Contraction{
		Ctx:     ctx,
		Problem: p,
		Net:     p.Net,
		Ops:     &countspace.Ops{Stop: func() bool { return ctx.Err() != nil }},
		Memory:  p.Memory,
		Threads: p.Threads,
	}

	if len(want.Joint) > 0 {
		contraction.Joint = want.Joint
	}

	if !want.Marginals {
		return contraction, nil
	}

	var err error
	contraction.Marginals, err = newCollected(p.Net)
	return contraction, err
}

// RefuseJoint returns ErrNoJoint if a joint marginal is wanted, else nil. It is for parts that have none.
func RefuseJoint(w btn.Want) error {
	if len(w.Joint) == 0 {
		return nil
	}
	return fault.Wrap(fault.Unsupported, ErrNoJoint)
}
