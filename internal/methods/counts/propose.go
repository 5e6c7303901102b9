package counts

// Proposals: B in count space, found by structure: symmetric cores of any size among cores of rank one. Nothing is
// learned, nothing has signs that the model has not, and nothing more expensive is looked at before it has
// been priced.

import (
	"context"
	"slices"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/methods/exact"
	"github.com/basetensor/basetensor/internal/methods/proposal"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/lower"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// Propose proposes the network's form in count space. It returns nil if there is none, and an error over budget, with the price, if the
// form takes more than the limit.
func Propose(ctx context.Context, j *proposal.Job, ask proposal.Ask) (*btn.Assignment, error) {
	form, err := formIn(ctx, j)
	if form == nil || err != nil {
		return nil, err
	}
	cost, err := costUnderEvidence(ctx, j, &form.Estimates[0], ask.Marginals)
	if err != nil {
		return nil, err
	}
	if limit := proposal.ExactFlopLimit(j.Settings); cost.Flops > limit {
		return nil, fault.New(fault.OverBudget,
			"plan: the form in count space takes %.3g flops, %s goes up to %.0g", cost.Flops, j.Settings.Method, limit)
	}
	// The plan depends on the network alone, so no shape tells plans apart.
	plan, cacheState, err := j.Remember(ctx, "counts", contractionorder.Hypergraph{}, func(context.Context) (*btn.Plan, error) {
		return form, nil
	})
	if err != nil {
		return nil, err
	}
	return proposal.NewAssignment(plan, cacheState), nil
}

// countFlops is the cost up to which products in count space are taken without a look at
// elimination, where more than one core is symmetric: a chain whose counters merge (parity, at
// most two) may be cheaper then.
// Chosen: a tenth of a second, at 1.2 ns a multiply-add (decision 2).
const countFlops = 1e8

// costUnderEvidence returns the price of an estimate in count space under the query's evidence, which may make equal pieces different. For
// small networks, and without evidence and marginals, it is the price that the estimate has.
func costUnderEvidence(ctx context.Context, j *proposal.Job, e *btn.Estimate, marginals bool) (query.Cost, error) {
	part, ok := e.Parts[0].(*Counts)
	legs := float64(len(j.Net.Dims))
	isUnchanged := j.Evidence.IsEmpty() && !marginals
	isSmall := legs*legs < countFlops // a product over all legs takes less than that
	if !ok || isUnchanged || isSmall {
		return e.Cost, nil
	}
	form, err := FormOf(ctx, j.Problem(), part)
	if err != nil {
		return query.Cost{}, err
	}
	cost, err := windowedCostOf(ctx, form, marginals)
	cost.Flops *= float64(len(e.Parts)) // the parts differ only in the terms of their cores: each is taken to cost as much as the first
	return cost, err
}

// countBytes is what a coefficient takes at the peak: a float64 and an int64, four times.
const countBytes = 64

// findForm returns the plan of a network in count space, in which symmetric cores are functions of the counts of their legs' values, with
// its flops and bytes. Each connected part of the network is contracted in count space if it has a symmetric core so large that its
// elimination would begin with a long chain of counters. All other parts together need a form in count space or a cheap elimination order.
// It returns nil if no core is so large or if a part has neither, and an error over budget, with the bytes, if a form does not fit the
// memory. Cost: one pass over the cores.
func findForm(ctx context.Context, net *btn.Network, memory int64) (*btn.Plan, error) {
	if !hasLongChain(net) {
		return nil, nil
	}
	for _, core := range net.Cores {
		if len(core.Legs) == 0 {
			return nil, nil // a number among the cores: only networks built directly have that
		}
	}

	// One part needs no product.
	parts, otherLinks := longParts(net)
	if len(parts) == 1 && !anyHasLegs(net, otherLinks) {
		return symmetricForm(ctx, net, memory)
	}
	if len(otherLinks) > 0 {
		parts = append(parts, otherLinks)
	}

	product := &exact.Product{}
	cost := query.Cost{}
	for _, links := range parts {
		part, _ := net.Subnetwork(links) // the numbers of its variables in net are not needed
		form, err := formOfPart(ctx, part, memory)
		if err != nil || form == nil {
			return nil, err
		}
		estimate := &form.Estimates[0]
		product.Factors = append(product.Factors, btn.ProductFactor{Links: links, Estimate: estimate})
		cost.Flops += estimate.Cost.Flops
		cost.Bytes = max(cost.Bytes, estimate.Cost.Bytes)
	}
	return proposal.ExactPlan(cost, product), nil
}

// longParts returns the links of each connected part that has a core with a long chain of counters (isLongChain), and the links of all
// other parts in one list.
func longParts(net *btn.Network) (longParts [][]int, otherLinks []int) {
	hasLongCore := make([]bool, len(net.Dims)) // by leg
	for _, core := range net.Cores {
		isLong := isLongChain(core)
		for _, leg := range core.Legs {
			hasLongCore[leg] = isLong
		}
	}

	for _, links := range net.ConnectedParts() {
		isLongPart := slices.ContainsFunc(links, func(k int) bool {
			return slices.ContainsFunc(net.Links[k].Legs, func(leg int) bool { return hasLongCore[leg] })
		})
		if isLongPart {
			longParts = append(longParts, links)
		} else {
			otherLinks = append(otherLinks, links...)
		}
	}
	slices.Sort(otherLinks)
	return longParts, otherLinks
}

// anyHasLegs reports whether some of the links have legs.
func anyHasLegs(net *btn.Network, links []int) bool {
	return slices.ContainsFunc(links, func(k int) bool { return len(net.Links[k].Legs) > 0 })
}

// formOfPart returns the plan of one part of a network: in count space, or along a cheap elimination order. It returns nil if there is
// neither. A form of several terms is taken only if no number of the part is below 0. Terms of both signs may cancel, and the caller, which
// multiplies the values of the parts, does not account for that.
func formOfPart(ctx context.Context, part *btn.Network, memory int64) (*btn.Plan, error) {
	form, err := symmetricForm(ctx, part, memory)
	if err != nil {
		return nil, err
	}
	if form != nil && (form.PartCount() == 1 || !HasNegativeNumber(part)) {
		return form, nil
	}
	if hasLongChain(part) { // an elimination would be expensive
		return nil, nil
	}

	shape, err := lower.Shape(ctx, part)
	if err != nil {
		return nil, err
	}
	order, err := contractionorder.MinFill(ctx, shape)
	if err != nil {
		return nil, err
	}

	cost, err := contractionorder.EvaluateOrder(ctx, shape, order)
	if err != nil {
		return nil, err
	}
	if cost.Flops > policy.HeavyFlops || cost.Bytes > float64(memory) {
		return nil, nil // worth a search of its own
	}
	return exact.EliminationPlan(order, cost), nil
}

// hasLongChain reports whether some core is symmetric and has a long chain of counters (isLongChain).
func hasLongChain(net *btn.Network) bool {
	return slices.ContainsFunc(net.Cores, isLongChain)
}

// longChainSize is the number of counters times legs above which a chain of counters costs more to
// derive than the count polynomials cost to multiply: a symmetric core over 64 binary legs.
// Derived: decision 3 has both ways side by side.
const longChainSize = 1 << 12

// isLongChain reports whether a core is symmetric and so large that its chain of counters costs more than its count polynomials.
func isLongChain(core btn.Core) bool {
	form := AsSymmetricTerms(core.T)
	return form != nil && countVectors(form)*float64(len(core.Legs)+1) >= longChainSize
}

// countVectors returns the number of count vectors of a symmetric core.
func countVectors(form *tensor.SymmetryCP) float64 {
	n := 1.0
	for _, side := range form.Levels.Shape() {
		n *= float64(side)
	}
	return n
}

// maxCountTerms bounds the components of a form in count space.
// A bound against absurd input: planted networks have up to 200, no reference model more than one.
const maxCountTerms = 1 << 10

// symmetricForm returns the plan of a network in count space: the cores are written as a sum Σ α (⊗_c S_c) ∘ R over some symmetric cores c.
// The sum has a component for each choice of one term in every such core, and the plan has a part for it. S_c depends on the counts of the
// core's legs only, and R are vectors on the legs. The cores c are those whose elimination would take a long chain of counters, or all
// symmetric cores if no core's would. All other cores of rank one become vectors on their legs. The rest stay tables.
//
// It returns nil if there are no such cores, if there are too many terms, or if there are several cores or tables and the form costs more
// than countFlops and than an elimination order.
func symmetricForm(ctx context.Context, net *btn.Network, memory int64) (*btn.Plan, error) {
	part, terms, coefficients := chooseCores(net)
	if part == nil {
		return nil, nil
	}
	// countBytes are four coefficients, for four polynomials over all count vectors. More than four terms need a polynomial each.
	if bytes := countBytes * coefficients * float64(max(1, terms/4)); bytes > float64(memory) {
		return nil, fault.New(fault.OverBudget,
			"plan: the symmetric factors have %.3g count vectors together, which takes %.3g bytes in "+
				"count space, the budget is %d bytes",
			coefficients, bytes, memory)
	}

	// Price the form, and compare it with an elimination order.
	form, err := NewForm(ctx, net, part, Options{Memory: memory})
	if err != nil {
		return nil, ignoreNoForm(err)
	}
	const hasMarginals = false
	cost, err := windowedCostOf(ctx, form, hasMarginals)
	if err != nil {
		return nil, ignoreNoForm(err)
	}
	cost.Flops *= float64(terms)
	if cost.Flops > countFlops && (len(part.Cores) > 1 || form.HasTables()) {
		cheaper, err := orderIsCheaper(ctx, net, cost.Flops, memory)
		if cheaper || err != nil {
			return nil, err
		}
	}
	if cost.Bytes > float64(memory) {
		return nil, fault.New(fault.OverBudget,
			"plan: the form in count space takes %.3g bytes, the budget is %d bytes", cost.Bytes, memory)
	}
	return countPlan(net, part, cost), nil
}

// chooseCores returns a part with the first term of each core that goes to count space: the symmetric cores with a long chain of counters
// (isLongChain), or all symmetric cores if none has one. terms is the number of choices of one term in every such core, and coefficients
// the number of count vectors of all these cores together. The part is nil if there is no such core, or if the number of choices is 0 or
// above maxCountTerms.
func chooseCores(net *btn.Network) (part *Counts, terms int, coefficients float64) {
	part = &Counts{}
	terms, coefficients = 1, 1.0
	onlyLongChains := hasLongChain(net)
	for c, core := range net.Cores {
		form := AsSymmetricTerms(core.T)
		if form == nil || onlyLongChains && !isLongChain(core) {
			continue
		}
		if len(form.Terms) == 0 || len(form.Terms) > maxCountTerms/terms {
			return nil, 0, 0
		}
		part.Cores = append(part.Cores, c)
		part.Terms = append(part.Terms, 0)
		terms *= len(form.Terms)
		coefficients *= countVectors(form)
	}
	if len(part.Cores) == 0 {
		return nil, 0, 0
	}
	return part, terms, coefficients
}

// ignoreNoForm returns nil if err says that a network has no form in count space, and otherwise err.
func ignoreNoForm(err error) error {
	if IsNoForm(err) {
		return nil
	}
	return err
}

// windowedCostOf returns the cost of a form's value, or of its value and marginals. If it is above countFlops, it is that of products cut
// to windows, the ranges of coefficients that matter for the value.
func windowedCostOf(ctx context.Context, form *Form, marginals bool) (query.Cost, error) {
	cost := form.Cost(marginals)
	if cost.Flops <= countFlops {
		return cost, nil
	}
	var err error
	cost.Flops, err = form.WindowedFlops(ctx, marginals)
	return cost, err
}

// orderIsCheaper reports whether the min-fill elimination order takes fewer flops than given, and fits the memory. An elimination whose
// shape is over budget is not cheaper.
func orderIsCheaper(ctx context.Context, net *btn.Network, flops float64, memory int64) (bool, error) {
	shape, err := lower.Shape(ctx, net)
	if fault.CodeOf(err) == fault.OverBudget && err != nil {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	_, cost, _, err := exact.MinFill(ctx, shape)
	return err == nil && cost.Flops < flops && cost.Bytes <= float64(memory), err
}

// countPlan returns the plan with a component for every choice of a term in every core of part, the term of the last core fastest. The
// coefficient α of a component is the product of those of its terms.
func countPlan(net *btn.Network, part *Counts, cost query.Cost) *btn.Plan {
	forms := make([][]tensor.SymmetryRankOne, len(part.Cores))
	for k, c := range part.Cores {
		forms[k] = AsSymmetricTerms(net.Cores[c].T).Terms
	}
	var parts []btn.Part
	var alphas []scaled.Number
	choice := slices.Clone(part.Terms) // all 0, the first choice
	for {
		alpha := scaled.One
		for k, i := range choice {
			alpha = alpha.Mul(scaled.FromFloat(forms[k][i].Alpha))
		}
		parts = append(parts, &Counts{Cores: part.Cores, Terms: slices.Clone(choice)})
		alphas = append(alphas, alpha)
		if !NextChoice(choice, forms) {
			plan := proposal.ExactPlan(cost, parts...)
			plan.Estimates[0].Alpha = alphas
			return plan
		}
	}
}

// formFactSlot is the slot of a network's form in count space under a memory budget.
type formFactSlot struct{ memory int64 }

// formFact is the result of findForm.
type formFact struct {
	plan *btn.Plan
	err  error
}

// formIn returns the plan and the error of findForm for the network of a job. It runs once for a network and a memory budget.
func formIn(ctx context.Context, j *proposal.Job) (*btn.Plan, error) {
	fact, err := proposal.Fact(ctx, j.Facts, formFactSlot{j.Settings.Memory}, func() (formFact, error) {
		plan, err := findForm(ctx, j.Net, j.Settings.Memory)
		return formFact{plan, err}, ctx.Err() // findForm's own error is a fact to remember, the context's is not
	})
	if err != nil {
		return nil, err
	}
	return fact.plan, fact.err
}

// NextChoice advances choice, which has an index into factors[c] for every c, to the next combination, the last c fastest. It returns false
// after the last combination.
func NextChoice[T any](choice []int, factors [][]T) bool {
	for k := len(choice) - 1; k >= 0; k-- {
		if choice[k]++; choice[k] < len(factors[k]) {
			return true
		}
		choice[k] = 0
	}
	return false
}

var _ proposal.Finder = (*Counts)(nil)

// FindingParts implements proposal.Finder: it returns a part that finds what ask says, for a plan of one component. It returns nil if the
// form cannot find it.
func (c *Counts) FindingParts(
	ctx context.Context, j *proposal.Job, parts []btn.Part, ask btn.Ask,
) ([]btn.Part, error) {
	if len(parts) > 1 {
		return nil, nil
	}
	form, err := FormOf(ctx, j.Problem(), c)
	if err == nil && form.CanFind(ask) {
		return []btn.Part{&Counts{Cores: c.Cores, Terms: c.Terms, Ask: ask}}, nil
	}
	return nil, err
}
