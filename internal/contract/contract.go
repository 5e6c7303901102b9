// Package contract computes the value Z(T^Q) of one part of a plan: the network with its base
// tensor replaced by Q = C ∘ R (Lemmas 2 to 4, and C = B exactly or with truncated legs). There is
// an engine per class of parts.
package contract

// Engines: what they are, and which one contracts which parts.

import (
	"context"
	"errors"
	"fmt"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/problem"
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

// Engine contracts parts of one class. What an engine makes of a problem
// that other parts of the same plan need, too, is kept in the problem.
type Engine interface {
	// Cost predicts what Contract takes for Z alone, without doing any of it; zero where only
	// the plan knows. Its flops are within a small factor of Value.Flops and grow like them.
	Cost(p *problem.Problem, part btn.Part) btn.Cost
	// Contract returns Z(T^Q) · Scale, without the part's weight α, and what is wanted.
	// The part fits the network.
	Contract(
		ctx context.Context, p *problem.Problem, part btn.Part, want problem.Want,
	) (btn.Value, error)
}

// planned is the price of parts whose cost only the plan knows: it is a share of their estimate's.
type planned struct{}

// Cost implements Engine.
func (planned) Cost(*problem.Problem, btn.Part) btn.Cost { return btn.Cost{} }

// engineOf returns the engine of a class, nil for none: a new family of parts is registered here.
func engineOf(class btn.Class) Engine {
	switch class {
	case btn.ClassRankOne, btn.ClassCP, btn.ClassSymmetric, btn.ClassSymmetryRankOne:
		return closedForms{}
	case btn.ClassCounts:
		return inCounts{}
	case btn.ClassElimination:
		return elimination{}
	case btn.ClassSlices:
		return slicedTree{}
	case btn.ClassGroups:
		return marginalGroups{}
	case btn.ClassAdjoints:
		return adjoints{}
	case btn.ClassDescent:
		return descents{}
	case btn.ClassCircuit:
		return circuits{}
	case btn.ClassCube:
		return cubes{}
	case btn.ClassProduct:
		return products{}
	case btn.ClassTruncated:
		return truncatedLegs{}
	case btn.ClassRegions:
		return regions{}
	case btn.ClassSampled:
		return sampled{}
	case btn.ClassBound:
		return bounds{}
	}
	return nil
}

// Part returns the value of a part of a plan by the engine of its class. The network is valid, and
// conditioned on the query's evidence already. The classes and their costs, n legs, k links L^(j)
// of n_j legs:
//
//	rank-one            Π_j ⟨L^(j), ⊗v_ℓ⟩
//	                    Lemma 2, O(Σ_j d^{n_j}), O(d·n_j) for links in CP form
//	cp                  Σ_t w_t Π_j ⟨L^(j), ⊗v_ℓt⟩
//	                    Lemma 2, the rank times as much
//	symmetric           Σ_c S_c [z^c] Π_j p_j(z), R = 1
//	                    Lemma 3, O(Σ_j d^{n_j} + n²) for two levels
//	symmetry-rank-one   the same with R absorbed into the links
//	                    Lemma 4, as Lemma 3
//	counts              the same for several cores, links joined by tables, and equal ones once
//	elimination         C = B, exactly, along an elimination order
//	slices, groups      C = B, exactly, along trees over the simplified network
//	circuit             C = B, exactly, as an arithmetic circuit, Σ_x C(x) Π_v w_v(x_v): linear in its edges;
//	                    with derivatives where all parameters are weights
//	adjoints            C = B, exactly, along an elimination order, with derivatives by all parameters
//	descent             C = B: assignments, and no share of Z
//	product             C = B, exactly, as the product of the network's connected parts
//	truncated           C = B with truncated legs, one slice, along a tree or a sweep
//	regions             regions of one slice, in the BP gauge: Value.Region
//	sampled             weights of components drawn at random: Value.Weights
//	bound               C = B: what ln Z lies between, and no share of Z: Value.Bound
//
// Learned maps O_ℓ (Frame.Rotations) act on the leg weights:
// W_ℓ[x, a] = Σ_{y: λ(y)=a} O_ℓ[x, y] v_ℓ[y].
//
// With problem.Want.Marginals, Value.Marginals holds w_v(x) ∂Z/∂w_v(x) of every variable and value,
// by one pass back over what gave Z: products without one link for the classes of rank one,
// correlations down the product tree for the symmetric ones, derivatives step by step for exact
// contractions. Nothing is divided by.
//
// The same arguments give the same bits. ctx is looked at between links and between products.
// Errors: btn.ErrPart where part and network disagree, ErrNoVariables where there are no variables
// to have marginals, ErrNoJoint, ErrMemory (with the bytes needed; fault.OverBudget), those of
// tensor.CountPoly, and ctx's.
func Part(
	ctx context.Context, p *problem.Problem, part btn.Part, want problem.Want,
) (btn.Value, error) {
	if part == nil {
		return btn.Value{}, fault.New(fault.BadInput, "contract: there is no part")
	}

	class := part.Class()
	fail := func(err error) (btn.Value, error) {
		return btn.Value{}, fmt.Errorf("contract: a part of class %s: %w", class, err)
	}

	engine := engineOf(class)
	if engine == nil {
		return fail(fault.New(fault.BadInput, "no engine contracts it"))
	}

	if q, ok := part.(*btn.Circuit); ok && q.Of != nil {
		_, _ = q.Of.Circuit(ctx) // Fits reads it too, and has no context; what is wrong with it Fits says
	}
	if err := ctx.Err(); err != nil {
		return btn.Value{}, err
	}
	if err := part.Fits(p.Net); err != nil {
		return fail(fault.Wrap(fault.BadInput, err))
	}

	if len(want.Joint) > 0 {
		if err := query.CheckJoint(domains(p.Net), want.Joint); err != nil {
			return btn.Value{}, err
		}
	}

	if btn.AskOf(part) != "" { // it has no share of Z
		want.Derivatives, want.Target = false, nil
	}
	if class != btn.ClassAdjoints && class != btn.ClassCircuit && (want.Derivatives || want.Target != nil) {
		return fail(fault.Wrap(fault.Unsupported, ErrNoDerivatives))
	}
	value, err := engine.Contract(ctx, p, part, want)
	if err != nil {
		return fail(err)
	}
	return value, nil
}

// Flops predicts what part i of an estimate takes for Z alone.
// It is 0 for what no engine can price.
func Flops(net *btn.Network, e *btn.Estimate, i int) float64 {
	if i < 0 || i >= len(e.Parts) {
		return 0
	}
	part := e.Parts[i]
	engine := engineOf(part.Class())
	if engine == nil || part.Fits(net) != nil {
		return 0
	}

	if cost := engine.Cost(problem.New(net, problem.Options{}), part); cost.Flops > 0 {
		return cost.Flops
	}
	return e.Cost.Flops / float64(len(e.Parts))
}

// domains lists the domain sizes of the network's variables.
func domains(net *btn.Network) []int {
	d := make([]int, len(net.Variables))
	for v := range d {
		d[v] = net.Variables[v].Domain
	}
	return d
}

// contraction is one contraction of one part.
type contraction struct {
	ctx     context.Context
	problem *problem.Problem
	net     *btn.Network
	ops     *countspace.Ops // counts the multiply-adds in count space
	memory  int64           // bytes
	threads int
	m       *collected // nil: no marginals
	joint   []int      // nil: no joint marginal
}

// begin returns the contraction of a part of a problem.
func begin(ctx context.Context, p *problem.Problem, want problem.Want) (contraction, error) {
	j := contraction{
		ctx:     ctx,
		problem: p,
		net:     p.Net,
		ops:     &countspace.Ops{},
		memory:  p.Memory,
		threads: p.Threads,
	}

	if len(want.Joint) > 0 {
		j.joint = want.Joint
	}

	if !want.Marginals {
		return j, nil
	}

	var err error
	j.m, err = newCollected(p.Net)
	return j, err
}

// noJoint refuses joint marginals.
func noJoint(w problem.Want) error {
	if len(w.Joint) == 0 {
		return nil
	}
	return fault.Wrap(fault.Unsupported, ErrNoJoint)
}
