package exchangeable

// Proposals: classes that nobody declared.

import (
	"context"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/methods/proposal"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/pkg/query"
)

const (
	// minVariables is the number of variables below which elimination is cheap.
	minVariables = 12
	// partFlops is the work of a part, at least, without evidence; maxParts bounds the parts of a plan.
	partFlops = 2e7
	maxParts  = 64
)

// fewClasses is the slot of the result of hasFewClasses in a job's facts.
type fewClasses struct{ memory int64 }

// Propose proposes a sum over counts. It returns nil if the network has too many classes, or if the sum takes more than the exact way may.
// ask.Flops is the work of the best known elimination order, which the sum has to beat. If it is 0, no order is known, and the count
// vectors have to be so few that no order can be cheaper by much.
func Propose(ctx context.Context, j *proposal.Job, ask proposal.Ask) (*btn.Assignment, error) {
	if len(j.Net.Variables) < minVariables {
		return nil, nil
	}
	hasFew, err := proposal.Fact(ctx, j.Facts, fewClasses{j.Settings.Memory}, func() (bool, error) {
		return hasFewClasses(j.Net, j.Settings.Memory), nil
	})
	if !hasFew || err != nil {
		return nil, err
	}

	// Find the classes, or remember that there are none.
	makePlan := func(computing context.Context) (*btn.Plan, error) { return classesPlan(computing, j.Problem()) }
	plan, cacheState, err := j.Remember(ctx, "exchangeable", contractionorder.Hypergraph{}, makePlan)
	if err != nil || len(plan.Estimates) == 0 { // no estimates: there are no classes
		return nil, err
	}

	cost, err := priceUnderEvidence(ctx, j, ask, plan.Estimates[0].Parts[0].(*Sum))
	if cost == nil || err != nil {
		return nil, err
	}
	assignment := proposal.NewAssignment(plan, cacheState)
	assignment.Cost = cost
	return assignment, nil
}

// priceUnderEvidence returns the price of the whole sum that part belongs to, under the evidence of the job. It returns nil if no way to
// sum fits, if the sum takes more than an exact answer may, or if an elimination order is cheaper or, while none is known, may be.
func priceUnderEvidence(ctx context.Context, j *proposal.Job, ask proposal.Ask, part *Sum) (*query.Cost, error) {
	const isMaximal = false // the sum is wanted, not the most probable assignment
	f, err := formOf(ctx, j.Problem(), part, ask.Joint, isMaximal)
	if err != nil { // the network has no such form under this evidence, unless the context ended
		return nil, ctx.Err()
	}
	splits := f.needsSplit(ask.Marginals)
	cost := f.cost(splits, j.Settings.Memory)
	hasFewVectors := true // also if the sum is value by value or class by class, which lists no vectors of all classes together
	if listsVectors := f.checkSize(splits, j.Settings.Memory) == nil; listsVectors {
		hasFewVectors = f.hasFewVectors(splits)
	} else if len(ask.Joint) > 0 { // a joint marginal needs the terms of all count vectors
		return nil, nil
	}

	noWayFits := cost.Flops == 0 || cost.Bytes > float64(j.Settings.Memory)
	isOverLimit := policy.ExactRate*cost.Flops > proposal.ExactFlopLimit(j.Settings)
	isOrderCheaper := ask.Flops > 0 && cost.Flops >= ask.Flops
	mayOrderBeCheaper := ask.Flops == 0 && !hasFewVectors // no order is known
	if noWayFits || isOverLimit || isOrderCheaper || mayOrderBeCheaper {
		return nil, nil
	}
	return &cost, nil
}

// classesPlan returns the plan of a sum over the counts of a network's classes, in parts of about partFlops each. It has no price, which
// depends on the evidence. If there are too many classes, the plan has no estimates.
func classesPlan(ctx context.Context, p *problem.Problem) (*btn.Plan, error) {
	classes, flops, err := findClasses(ctx, p)
	if classes == nil {
		return &btn.Plan{Method: query.MethodExact}, err
	}
	count := int64(max(1, min(maxParts, flops/partFlops)))
	var parts []btn.Part
	for k := range count {
		parts = append(parts, &Sum{Classes: classes, From: WholeShare * k / count, To: WholeShare * (k + 1) / count})
	}
	return proposal.ExactPlan(query.Cost{}, parts...), err
}

// cost returns the cost of a sum in the way that evaluate takes: over all count vectors, value by value, or class by class. The flops are 0
// if no way fits. With splits a vector has the counts of every group of a class, the variables with the same weights.
func (f *form) cost(splits bool, memory int64) query.Cost {
	if f.checkSize(splits, memory) == nil {
		vectors := f.vectorCount(splits)
		return query.Cost{Flops: max(1, f.sumFlops(splits)), Bytes: vectorBytes * vectors, Counts: math.Round(vectors)}
	}
	if byValue := f.valueByValue(); byValue != nil {
		states := float64(len(byValue.functions) * byValue.states)
		return query.Cost{Flops: byValue.flops(), Bytes: 32 * states, Counts: states} // a weight and a sum of 16 bytes for each state
	}
	elimination := f.eliminationWithin(splits, memory)
	if elimination == nil {
		return query.Cost{}
	}
	// About 60 for an entry of a table and 12 for each term. A term is in the table of one class, so a table has the mean number of terms.
	flopsOfEntry := 60 + 12*float64(len(f.kinds.terms)+len(f.kinds.forbidden))/float64(len(elimination.order))
	return query.Cost{
		Flops: f.listFlops(splits) + flopsOfEntry*elimination.size,
		Bytes: vectorBytes * elimination.size, Counts: math.Round(elimination.size),
	}
}

// hasFewVectors reports whether the count vectors are so few that no elimination order can be cheaper by much: at most the square root of
// the number of assignments of the variables that are no leaves, which are summed out. With splits a vector has the counts of every group
// of a class, the variables with the same weights.
func (f *form) hasFewVectors(splits bool) bool {
	log2Assignments := 0.0 // of the variables that are no leaves
	for v := range f.weights {
		if f.partition.classOf[v] >= 0 {
			possible := 0
			for _, w := range f.weights[v] {
				if w != 0 {
					possible++
				}
			}
			log2Assignments += math.Log2(float64(max(1, possible)))
		}
	}
	return math.Log2(f.vectorCount(splits)) <= log2Assignments/2
}

// findClasses returns the classes of a problem's network without evidence, and the flops of the sum over all their count vectors. classes
// is nil if there are too many classes, or too many vectors for every way to sum them.
func findClasses(ctx context.Context, p *problem.Problem) (classes *Classes, flops float64, err error) {
	f, err := factorsIn(ctx, p)
	if f == nil || err != nil {
		return nil, 0, err
	}
	const isMaximal = false // leaves are summed out
	interactions, err := interactionsIn(ctx, p, f, isMaximal)
	if interactions == nil || err != nil {
		return nil, 0, err
	}
	partition, err := divideIntoClasses(ctx, interactions)
	if partition == nil || err != nil {
		return nil, 0, err
	}
	k, _, err := kindsOf(ctx, interactions, partition) // nil: not all variables of a class have equal interactions
	if k == nil || err != nil || k.lnError > deviation {
		return nil, 0, err
	}

	// The numbers of count vectors, of each class and of all together.
	sizes := partition.sizes()
	vectors, allVectors := make([]float64, len(sizes)), 1.0
	for c, n := range sizes {
		vectors[c] = compositions(n, f.domains[slices.Index(partition.classOf, int32(c))])
		allVectors *= vectors[c]
	}

	// Class by class or value by value there may be fewer numbers to add up.
	canSumByClass := chooseElimination(k, vectors, nil).largest <= maxVectors // nil: no two classes have to be in one table
	canSumByValue := func() bool {
		return len(sizes) == 1 && separate(k, sizes[0], f.domains[slices.Index(partition.classOf, 0)]) != nil
	}
	if !canSumByClass && !canSumByValue() {
		return nil, 0, nil
	}
	if allVectors > maxVectors {
		allVectors = 1 // they are summed in another way, in one part
	}
	classes = &Classes{
		Count: partition.count, ClassOf: partition.classOf,
		RelabellingOf: partition.relabellingOf, Relabellings: partition.relabellings,
	}
	const vectorFlops, termFlops = 40, 12 // of a count vector, and of each of its terms
	return classes, allVectors * (vectorFlops + termFlops*float64(len(k.terms)+len(k.forbidden))), nil
}

var _ proposal.Finder = (*Sum)(nil)

// FindingParts implements proposal.Finder: it returns, for each part of a plan, one over the same range of count vectors that finds
// assignments as ask says. It returns nil, so that another method finds them, if the network has no form in counts, if the work is above
// proposal.ExactFlopLimit, or, for the most probable assignment, if there are too many count vectors.
func (p *Sum) FindingParts(
	ctx context.Context, j *proposal.Job, parts []btn.Part, ask btn.Ask,
) ([]btn.Part, error) {
	if ask != btn.AskMPE && ask != btn.AskSamples {
		return nil, nil
	}
	f, err := formOf(ctx, j.Problem(), p, nil, ask == btn.AskMPE)
	if err != nil {
		return nil, ctx.Err() // that there is no form under this evidence is no error here
	}
	const splits = true // assignments need the counts of every group
	work := f.cost(splits, j.Settings.Memory).Flops
	noWayFits := work == 0 // cost's sign that no way to sum fits the memory
	if noWayFits || policy.ExactRate*work > proposal.ExactFlopLimit(j.Settings) {
		return nil, nil
	}
	if ask == btn.AskMPE && f.checkSize(splits, j.Settings.Memory) != nil { // it is looked for among listed count vectors
		return nil, nil
	}
	var list []btn.Part
	for _, part := range parts {
		finding := *part.(*Sum) // the same classes and range
		finding.Ask = ask
		list = append(list, &finding)
	}
	return list, nil
}
