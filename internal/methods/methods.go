// Package methods lists all methods: the table from which exact answers come, those that requests ask for by name, the classes of their
// parts, and the judges of their estimates. Importing it makes classes and judges known. What a method is: package proposal, method.go.
//
// The classes of parts and their costs, n legs, k links L^(j) of n_j legs:
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
//	junction            C = B, exactly, along a contraction tree of the network without evidence, for several queries at a time
//	slices, groups      C = B, exactly, along trees over the simplified network
//	circuit             C = B, exactly, as an arithmetic circuit, Σ_x C(x) Π_v w_v(x_v): linear in its edges;
//	                    with derivatives where all parameters are weights
//	weighted-count      C = B, exactly, Z alone: a search that makes no circuit
//	adjoints            C = B, exactly, along an elimination order, with derivatives by all parameters
//	cases               C = B, exactly, under each of many cases: the sum of ln Z, with derivatives by all parameters
//	descent             C = B: assignments, and no share of Z
//	search              the most probable assignment and a bound of all, and no share of Z
//	exchangeable        Σ_c over the counts of classes of variables that may be swapped, found in plain tables (Lemmas 3 and 4)
//	parity              Σ_s over the values of parities that depend on each other, of factors that are functions of parities
//	structured          Σ_m α_m C ∘ R_m over the nodes of few linear statistics that the tables of pairs are a function of, or, where these
//	                    are integers, the histogram of their sums
//	product             C = B, exactly, as the product of the network's connected parts
//	truncated           C = B with truncated legs, one slice, along a tree or a sweep
//	regions             regions of one slice, in the BP gauge: Value.Region
//	sampled             weights of components drawn at random: Value.Weights
//	bound               C = B: what ln Z lies between, and no share of Z: Value.Bound
//
// Learned maps O_ℓ (Frame.Rotations) act on the leg weights:
// W_ℓ[x, a] = Σ_{y: λ(y)=a} O_ℓ[x, y] v_ℓ[y].
package methods

import (
	"slices"

	"github.com/basetensor/basetensor/internal/methods/assignments"
	"github.com/basetensor/basetensor/internal/methods/bounding"
	"github.com/basetensor/basetensor/internal/methods/circuits"
	"github.com/basetensor/basetensor/internal/methods/closed"
	"github.com/basetensor/basetensor/internal/methods/counts"
	"github.com/basetensor/basetensor/internal/methods/descent"
	"github.com/basetensor/basetensor/internal/methods/elimination"
	"github.com/basetensor/basetensor/internal/methods/estimates"
	"github.com/basetensor/basetensor/internal/methods/exact"
	"github.com/basetensor/basetensor/internal/methods/exchangeable"
	"github.com/basetensor/basetensor/internal/methods/gradients"
	"github.com/basetensor/basetensor/internal/methods/judge"
	"github.com/basetensor/basetensor/internal/methods/learned"
	"github.com/basetensor/basetensor/internal/methods/parity"
	"github.com/basetensor/basetensor/internal/methods/proposal"
	"github.com/basetensor/basetensor/internal/methods/regions"
	"github.com/basetensor/basetensor/internal/methods/sampled"
	"github.com/basetensor/basetensor/internal/methods/search"
	"github.com/basetensor/basetensor/internal/methods/structured"
	"github.com/basetensor/basetensor/internal/methods/truncated"
	"github.com/basetensor/basetensor/internal/methods/truncated/ladder"
	"github.com/basetensor/basetensor/internal/network/btn"
)

// Exact lists the exact methods in the sequence in which they are asked; the first proposal is taken. Optional ones are asked before an
// elimination order is looked for. Those after elimination are asked if no order is cheap: none of at most policy.HeavyFlops is known.
var Exact = proposal.Table{
	{Name: "counts", Propose: counts.Propose, IsOptional: true,
		Reason: "elimination would begin with a long chain of counters for a symmetric core"},
	{Name: "exchangeable", Propose: exchangeable.Propose, IsOptional: true,
		Reason: "count vectors of variables that may be swapped are few, and tables over all of them large"},
	{Name: "parity", Propose: parity.Propose, IsOptional: true,
		Reason: "parities that depend on each other are few, and orders for them large"},
	{Name: "structured", Propose: structured.Propose, IsOptional: true,
		Reason: "a crowded network has no cheap order, and may depend on few linear statistics"},
	{Name: "structured, of any size", Propose: structured.ProposeCrowded, When: isHopelesslyCrowded,
		Reason: "a search for an order of a crowded network would take long"},
	{Name: "elimination", Propose: elimination.Propose, When: wantsNoJoint,
		Reason: "one tree or order serves all evidence, and most networks have a cheap one"},
	{Name: "exchangeable", Propose: exchangeable.Propose, Reason: "it takes fewer flops than the order"},
	{Name: "parity", Propose: parity.Propose, Reason: "it takes fewer flops than the order"},
	{Name: "structured", Propose: structured.Propose, Reason: "it takes fewer flops than the order"},
	{Name: "circuit", Propose: circuits.Propose, Reason: "zeros make a search short where tables are large"},
	{Name: "contraction tree", Propose: exact.Propose,
		Reason: "no other way is cheaper: the network is simplified for the evidence, and cut in slices if need be"},
}

// isHopelesslyCrowded reports whether a network has so many tables for its variables (structured.IsCrowded) that an order for it is not
// looked for at once. It is false if a joint marginal is wanted. It is also false under evidence, or if many factors are logical:
// observed values and zeros may leave less of the network.
func isHopelesslyCrowded(j *proposal.Job, ask proposal.Ask) bool {
	return wantsNoJoint(j, ask) && j.Evidence.IsEmpty() && structured.IsCrowded(j.Net) && !circuits.HasLogic(j)
}

// wantsNoJoint reports whether no joint marginal is wanted. Trees of the simplified network have one as an index of their own.
func wantsNoJoint(_ *proposal.Job, ask proposal.Ask) bool { return len(ask.Joint) == 0 }

// Proposers for what is not Z, marginals or a joint marginal by an exact method.
var (
	Derivatives proposal.Proposer = gradients.Propose   // by the numbers of a model, and the sum over many cases
	Assignments proposal.Proposer = assignments.Propose // of values to variables, and samples
	Estimates   proposal.Proposer = estimates.Propose   // that grow with the budget
)

// First assigns the value of belief propagation, without any planning: see estimates.First.
var First = estimates.First

// HasTree reports whether a network has one contraction tree for all evidence.
var HasTree = elimination.HasTree

// Requested are the methods that requests ask for by name. The planner's own are exact and auto.
var Requested = []*proposal.Method{&learned.Method, &ladder.Method, &regions.Method, &circuits.Method, &sampled.Method}

// Named are the options of a request that methods read.
var Named = slices.Concat(truncated.Settings, learned.Settings)

func init() {
	judge.Register(btn.Linear, truncated.NewJudge)
	judge.Register(btn.LogLinear, regions.NewJudge)
	judge.Register(btn.Pooled, sampled.NewJudge)
	judge.Register(btn.Bounding, bounding.NewJudge)
	for class, newPart := range map[btn.Class]func() btn.Part{
		btn.ClassRankOne:         func() btn.Part { return new(closed.RankOne) },
		btn.ClassCP:              func() btn.Part { return new(closed.CP) },
		btn.ClassSymmetric:       func() btn.Part { return new(closed.SymmetryRankOne) },
		btn.ClassSymmetryRankOne: func() btn.Part { return new(closed.SymmetryRankOne) },
		btn.ClassCounts:          func() btn.Part { return new(counts.Counts) },
		btn.ClassProduct:         func() btn.Part { return new(exact.Product) },
		btn.ClassElimination:     func() btn.Part { return new(exact.Elimination) },
		btn.ClassJunction:        func() btn.Part { return new(exact.Junction) },
		btn.ClassSlices:          func() btn.Part { return new(exact.Slices) },
		btn.ClassGroups:          func() btn.Part { return new(exact.Groups) },
		btn.ClassAdjoints:        func() btn.Part { return new(gradients.Adjoints) },
		btn.ClassCases:           func() btn.Part { return new(gradients.Cases) },
		btn.ClassDescent:         func() btn.Part { return new(descent.Descent) },
		btn.ClassCircuit:         func() btn.Part { return new(circuits.Circuit) },
		btn.ClassWeightedCount:   func() btn.Part { return new(circuits.WeightedCount) },
		btn.ClassTruncated:       func() btn.Part { return new(truncated.Truncated) },
		btn.ClassRegions:         func() btn.Part { return new(regions.Regions) },
		btn.ClassSampled:         func() btn.Part { return new(sampled.Sampled) },
		btn.ClassBound:           func() btn.Part { return new(bounding.Bound) },
		btn.ClassStructured:      func() btn.Part { return new(structured.Nodes) },
		btn.ClassParity:          func() btn.Part { return new(parity.Parities) },
		btn.ClassExchangeable:    func() btn.Part { return new(exchangeable.Sum) },
		btn.ClassSearch:          func() btn.Part { return new(search.Search) },
	} {
		btn.Register(class, newPart)
	}
}
