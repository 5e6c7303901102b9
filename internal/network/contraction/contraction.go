// Package contraction has the common code of all families' contractions: the checks before one, the collection of marginals, and errors.
package contraction

// Contractions: which part contracts itself, and what it is asked for.

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

// ErrMemory says that a part needs more memory than the budget.
var ErrMemory = errors.New("contract: over the memory budget")

// ErrNoJoint says that parts of a class have no joint marginal.
var ErrNoJoint = errors.New("contract: a joint marginal needs a contraction tree or a closed form")

// ErrNoDerivatives says that parts of a class have no derivatives by parameters.
var ErrNoDerivatives = errors.New("contract: derivatives need an elimination of their own")

// Contractor is a part that contracts itself. What it makes of a problem that other parts of the same plan need, too, is a
// form of the problem.
type Contractor interface {
	btn.Part
	// Contract returns Z(T^Q) · Scale, without the part's weight α, and what is wanted. The part fits the network.
	Contract(ctx context.Context, p *problem.Problem, want btn.Want) (btn.Value, error)
}

// Batcher is a part that contracts itself for several problems, all of one network without evidence, in less time together than one by
// one, with the same bits. A problem that fails has its error; err is the context's.
type Batcher interface {
	Contractor
	// Lanes is the number of problems whose tables are held at a time, where there are as many.
	Lanes() int
	ContractAll(ctx context.Context, of []*problem.Problem, wants []btn.Want) (values []btn.Value, errs []error, err error)
}

// Priced is a part whose cost for Z alone is known beforehand, without any of the work. Its flops are within a small factor of
// Value.Flops and grow like them. The cost of other parts is a share of their estimate's.
type Priced interface {
	Cost(p *problem.Problem) query.Cost
}

// Loader is a part that reads its bytes when it is first used: once, and again after the context's end.
type Loader interface{ Load(context.Context) }

// Part returns the value of a part of a plan. The network is valid, and
// conditioned on the query's evidence already. The classes and their costs are listed in package methods.
//
// With btn.Want.Marginals, Value.Marginals holds w_v(x) ∂Z/∂w_v(x) of every variable and value,
// by one pass back over what gave Z: products without one link for the classes of rank one,
// correlations down the product tree for the symmetric ones, derivatives step by step for exact
// contractions. Nothing is divided by.
//
// The same arguments give the same bits. ctx is looked at between links and between products.
// Errors: btn.ErrPart where part and network disagree, ErrNoVariables where there are no variables
// to have marginals, ErrNoJoint, ErrMemory (with the bytes needed; fault.OverBudget), those of
// tensor.CountPoly, and ctx's.
func Part(
	ctx context.Context, p *problem.Problem, part btn.Part, want btn.Want,
) (btn.Value, error) {
	want, err := check(ctx, p, part, want)
	if err != nil {
		return btn.Value{}, err
	}
	value, err := part.(Contractor).Contract(ctx, p, want)
	if err != nil {
		return btn.Value{}, failed(part, err)
	}
	return value, ctx.Err() // numbers of arithmetic that ended with the context are void
}

// Parts returns the values of one part for several problems of one network without evidence, as Part does for each. err is the context's.
func Parts(
	ctx context.Context, of []*problem.Problem, part Batcher, wants []btn.Want,
) (values []btn.Value, errs []error, err error) {
	for k, p := range of {
		if wants[k], err = check(ctx, p, part, wants[k]); err != nil {
			break
		}
	}
	if err == nil {
		values, errs, err = part.ContractAll(ctx, of, wants)
		for k := range errs {
			if errs[k] != nil {
				errs[k] = failed(part, errs[k])
			}
		}
		return values, errs, cmp.Or(err, ctx.Err())
	}
	values, errs = make([]btn.Value, len(of)), make([]error, len(of))
	for k, p := range of {
		if values[k], errs[k] = Part(ctx, p, part, wants[k]); ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
	}
	return values, errs, nil
}

// failed names the class of a part in an error.
func failed(part btn.Part, err error) error {
	return fmt.Errorf("contract: a part of class %s: %w", part.Class(), err)
}

// check refuses a part that does not fit a problem or has not what is wanted. It returns what is wanted of the part.
func check(ctx context.Context, p *problem.Problem, part btn.Part, want btn.Want) (btn.Want, error) {
	if part == nil {
		return want, fault.New(fault.BadInput, "contract: there is no part")
	}
	if _, ok := part.(Contractor); !ok {
		return want, failed(part, fault.New(fault.BadInput, "it cannot be contracted"))
	}
	if q, ok := part.(Loader); ok {
		q.Load(ctx)
	}
	if err := ctx.Err(); err != nil {
		return want, err
	}
	if err := part.Fits(p.Net); err != nil {
		return want, failed(part, fault.Wrap(fault.BadInput, err))
	}
	if len(want.Joint) > 0 {
		if err := query.CheckJoint(Domains(p.Net), want.Joint); err != nil {
			return want, err
		}
	}
	about := part.About()
	if about.Finds != "" { // it has no share of Z
		want.Derivatives, want.Target = false, nil
	}
	if (want.Derivatives || want.Target != nil) && !about.Differentiates {
		return want, failed(part, fault.Wrap(fault.Unsupported, ErrNoDerivatives))
	}
	return want, nil
}

// Flops predicts what part i of an estimate takes for Z alone.
// It is 0 for a part that is not there or does not fit.
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

// Domains lists the domain sizes of the network's variables.
func Domains(net *btn.Network) []int {
	d := make([]int, len(net.Variables))
	for v := range d {
		d[v] = net.Variables[v].Domain
	}
	return d
}

// Contraction is one contraction of one part.
type Contraction struct {
	Ctx     context.Context
	Problem *problem.Problem
	Net     *btn.Network
	Ops     *countspace.Ops // counts the multiply-adds in count space, and ends with the context
	Memory  int64           // bytes
	Threads int
	M       *Collected // nil: no marginals
	Joint   []int      // nil: no joint marginal
}

// Begin returns the contraction of a part of a problem.
func Begin(ctx context.Context, p *problem.Problem, want btn.Want) (Contraction, error) {
	j := Contraction{
		Ctx:     ctx,
		Problem: p,
		Net:     p.Net,
		Ops:     &countspace.Ops{Stop: func() bool { return ctx.Err() != nil }},
		Memory:  p.Memory,
		Threads: p.Threads,
	}

	if len(want.Joint) > 0 {
		j.Joint = want.Joint
	}

	if !want.Marginals {
		return j, nil
	}

	var err error
	j.M, err = newCollected(p.Net)
	return j, err
}

// NoJoint refuses joint marginals.
func NoJoint(w btn.Want) error {
	if len(w.Joint) == 0 {
		return nil
	}
	return fault.Wrap(fault.Unsupported, ErrNoJoint)
}
