package structured

// Contraction of a share of the nodes: Z, marginals, joint marginals.

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/methods/exact"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contraction"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

const (
	// blockNodes is the number of nodes that one goroutine takes at a time: sums are by block, so that bits do not depend on threads.
	blockNodes = 64
	// leftOut bounds the quadrature's error and that of the nodes that are left out, relative to the sum without phases.
	leftOut = 3e-16
)

// formSlot is the slot of forms in a problem's memory.
type formSlot struct{}

// form is a fit under a problem's evidence, with the region of the nodes that matter. A node is a point of the quadrature. Its component is
// the model in which each statistic is replaced by a field on the variables, for that point.
type form struct {
	*evaluator
	variables []int   // by variable of the fit: that of the network. Statistics that are variables have none.
	region    *region // nil if isZero
}

// formKey tells the forms of a problem apart. Forms of a fit with leaves differ by joint marginal, because the leaves of a joint marginal
// become variables of the rest.
type formKey struct {
	fit   *Fit
	joint string // the joint marginal's variables as text; empty for fits without leaves
}

// formOf returns a fit under a problem's evidence. Leaves, the variables that are summed out, become variables of the fit again if they are
// in joint, the variables of a wanted joint marginal, or if the evidence changed their weights. joint is nil if no joint marginal is
// wanted. The problem keeps the form, one for each fit and joint marginal.
func formOf(ctx context.Context, p *problem.Problem, f *Fit, joint []int) (*form, error) {
	key := formKey{fit: f}
	if len(f.Leaves) > 0 {
		key.joint = fmt.Sprint(joint)
	}
	return problem.Form(ctx, p, formSlot{}, key, func() (*form, error) {
		weights, err := weightsOf(p.Net)
		if err != nil {
			return nil, err
		}
		restored, err := f.restoreLeaves(ctx, weights, joint)
		if err != nil {
			return nil, err
		}
		form := &form{variables: restored.networkVariables()}
		fitWeights := make([][]float64, len(form.variables)) // by variable of the fit
		for u, v := range form.variables {
			fitWeights[u] = weights[v]
		}
		if form.evaluator, err = newEvaluator(restored, fitWeights); err != nil || form.isZero {
			return form, err // a Z of 0 needs no nodes
		}
		form.region, err = form.findRegion(ctx, contractWork)
		return form, err
	})
}

// weightsOf returns the weights of a network's variables under the evidence, by variable and value. It returns an error if a weight is
// below 0, or if the link of a variable is no list of weights.
func weightsOf(net *btn.Network) ([][]float64, error) {
	weights := make([][]float64, len(net.Variables))
	for v, variable := range net.Variables {
		cp, ok := net.Links[variable.Link].T.(*tensor.CP)
		if !ok {
			return nil, fault.New(fault.Internal, "structured: the link of variable %d is no list of weights", v)
		}
		for x, w := range cp.Weights {
			if !(w >= 0) {
				return nil, fault.New(fault.Unsupported, "structured: weights of at least 0 are needed, value %d of variable %d has %v", x, v, w)
			}
		}
		weights[v] = cp.Weights
	}
	return weights, nil
}

// Contract implements contraction.Contractor: it sums the components of the part's share of the nodes, the points of a quadrature. The sum
// is exact up to rounding and Fit.LnError. If a statistic has λ < 0, terms cancel, and the value states how many digits that leaves.
func (p *Nodes) Contract(ctx context.Context, problem *problem.Problem, want btn.Want) (btn.Value, error) {
	j, err := contraction.Begin(ctx, problem, want)
	if err != nil {
		return btn.Value{}, err
	}
	if p.Fit.Integers != nil {
		return p.contractHistogram(ctx, j, problem.Memory, want)
	}

	f, err := formOf(ctx, problem, p.Fit, want.Joint)
	if err != nil {
		return btn.Value{}, err
	}
	if p.Ask != "" {
		return p.drawAssignments(j, f, want)
	}

	// Z and its rounding.
	nodes, err := f.nodesOf(ctx, p)
	if err != nil {
		return btn.Value{}, err
	}
	s, err := f.sumNodes(ctx, nodes, j.Threads, want.Marginals, nil) // nil: every value is allowed
	if err != nil {
		return btn.Value{}, err
	}
	scale := j.Net.Scale.Mul(scaled.FromLog(p.Fit.Ln))
	value := btn.Value{Z: s.inUnits(s.z).Mul(scale), Flops: s.flops}
	value.Rounding = f.errorBound(&s, len(nodes), want.Marginals, scale)
	if f.isComplex && s.sumOfSizes > 0 {
		// The second result, the doubt that cancellation leaves, is not used: shares of several parts may cancel with one another.
		value.Digits, _ = exact.CancelledDigits(value.Z, s.inUnits(s.sumOfSizes).Mul(scale), value.Rounding)
	}

	if j.Marginals != nil {
		if err := f.addMarginals(ctx, nodes, j, &s, scale, &value); err != nil {
			return btn.Value{}, err
		}
	}
	if j.Joint != nil {
		if err := f.addJoint(ctx, nodes, j, scale, &value); err != nil {
			return btn.Value{}, err
		}
	}
	return value, nil
}

// addMarginals adds the marginals of the sum s over nodes, times scale, to a value. s.shares are sums with a variable fixed to a value.
// Those of leaves whose neighbours depend on each other are added to s first, which takes more sums. If s has no terms, the marginals stay
// 0.
func (f *form) addMarginals(
	ctx context.Context, nodes []node, j contraction.Contraction, s *sum, scale scaled.Number, value *btn.Value,
) error {
	if s.shares != nil {
		if err := f.addDependentLeaves(ctx, nodes, j.Threads, s); err != nil {
			return err
		}
		value.Flops = s.flops
		f.collectMarginals(s, j.Marginals)
	}
	if err := j.Marginals.CheckFinite(); err != nil {
		return err
	}
	value.Marginals = j.Marginals.Result(scale)
	return nil
}

// addJoint adds the joint marginal of the variables j.Joint, times scale, to a value.
func (f *form) addJoint(ctx context.Context, nodes []node, j contraction.Contraction, scale scaled.Number, value *btn.Value) error {
	cells, flops, err := f.jointCells(ctx, nodes, j)
	if err != nil {
		return err
	}
	for c := range cells {
		cells[c] = cells[c].Mul(scale)
		if !cells[c].IsFinite() {
			return fmt.Errorf("%w: cell %d of the joint marginal", tensor.ErrNotFinite, c)
		}
	}
	value.Flops += flops
	value.Joint = j.JointOf(cells)
	return nil
}

// collectMarginals copies the shares of a sum to the marginals of the network's variables. A share is z with one variable fixed to one
// value. Shares are by value of the fit's variables, then of its leaves, the variables that were summed out.
func (f *form) collectMarginals(s *sum, marginals *contraction.Collected) {
	copyShares := func(v, firstShare, d int) { // of variable v of the network, of d values
		for x := range d {
			marginals.At[marginals.Offset[v]+x] = s.inUnits(s.shares[firstShare+x])
		}
	}
	for u, v := range f.variables {
		copyShares(v, f.firstValue[u], f.fit.Domains[u])
	}
	for k, l := range f.program.leaves {
		copyShares(f.fit.Leaves[k].Variable, l.firstValue, l.values)
	}
}

// errorBound bounds the error of scale · z for the sum z over nodes. No partial sum exceeds S, the sum without the phases that statistics
// with λ < 0 give to terms. The bound is the sum of three: of the roundings, each 2^−53 of S; of the quadrature and the nodes left out,
// leftOut · S; and of the fit, whose factor e^LnError changes |z| by at most |z| (e^LnError − 1). With hasMarginals it bounds the errors of
// the shares, too.
func (f *form) errorBound(s *sum, nodes int, hasMarginals bool, scale scaled.Number) *scaled.Number {
	roundings := s.roundings
	if hasMarginals { // a share may be large although the sum of its variable's weights cancels
		roundings = s.withoutPhases * f.roundingsOfProduct(len(f.program.cliqueOf), f.program.roundings)
	}
	blocks := (nodes + blockNodes - 1) / blockNodes
	additions := float64(min(nodes, blockNodes) + blocks)                 // within a block, and over blocks
	roundings += s.withoutPhases * (2*additions + math.Abs(f.fit.Ln) + 8) // e^Ln has |Ln| roundings, and a few more
	sumError := math.Ldexp(roundings, -53) + leftOut*s.withoutPhases
	bound := s.inUnits(sumError).Add(s.inUnits(math.Abs(s.z) * math.Expm1(f.fit.LnError))).Mul(scale.Abs())
	return &bound
}

// roundingsOfProduct bounds the roundings of a product of several variables' sums of weights and of the rest, in units of 2^-53. sums is
// the number of variables, and restRoundings bounds those of the rest.
func (e *evaluator) roundingsOfProduct(sums int, restRoundings float64) float64 {
	return float64(sums)*e.sumRoundings + restRoundings
}

// sum is a sum over nodes. All numbers but lnUnit and flops are in units of e^lnUnit.
type sum struct {
	lnUnit        float64
	z             float64
	sumOfSizes    float64   // what z would be if nothing cancelled
	withoutPhases float64   // Σ of the nodes with the statistics of λ < 0 left out
	roundings     float64   // bounds the error of z by roundings, in 2^-53 of the unit
	shares        []float64 // by value, leaves last: z with the variable fixed to the value; nil without marginals, or if z has no terms
	flops         float64
}

// inUnits returns x · e^lnUnit.
func (s *sum) inUnits(x float64) scaled.Number {
	return scaled.FromFloat(x).Mul(scaled.FromLog(s.lnUnit))
}

// raiseUnit changes the unit of the sum's numbers to e^ln if that is larger than the present unit e^lnUnit, or if the sum has no terms yet.
func (s *sum) raiseUnit(ln float64) {
	if s.withoutPhases == 0 {
		s.lnUnit = ln
		return
	}
	if ln <= s.lnUnit {
		return
	}
	oldUnit := math.Exp(s.lnUnit - ln) // in new units
	s.z *= oldUnit
	s.sumOfSizes *= oldUnit
	s.withoutPhases *= oldUnit
	s.roundings *= oldUnit
	for x := range s.shares {
		s.shares[x] *= oldUnit
	}
	s.lnUnit = ln
}

// add adds the sum t to s, in the larger of their units e^lnUnit. The unit of s may be raised for that.
func (s *sum) add(t *sum) {
	s.flops += t.flops
	if t.withoutPhases == 0 { // t has no terms
		return
	}
	s.raiseUnit(t.lnUnit)
	unit := math.Exp(t.lnUnit - s.lnUnit) // of t, in units of s
	s.z += unit * t.z
	s.sumOfSizes += unit * t.sumOfSizes
	s.withoutPhases += unit * t.withoutPhases
	s.roundings += unit * t.roundings
	if t.shares != nil && s.shares == nil {
		s.shares = make([]float64, len(t.shares))
	}
	for x, y := range t.shares {
		s.shares[x] += unit * y
	}
}

// nodesOf lists the nodes of a part that matter. It returns none if no assignment is possible.
func (f *form) nodesOf(ctx context.Context, p *Nodes) ([]node, error) {
	if f.isZero {
		return nil, nil
	}
	return f.listNodes(ctx, f.region, p.From, p.To)
}

// sumNodes sums the weighted components of nodes, block by block, so that the result does not depend on the number of threads. isAllowed is
// by value, or nil: values where it is false have weight 0.
func (f *form) sumNodes(ctx context.Context, nodes []node, threads int, hasMarginals bool, isAllowed []bool) (sum, error) {
	blocks := (len(nodes) + blockNodes - 1) / blockNodes
	sums := make([]sum, blocks)
	workers := make([]*nodeWorker, max(1, sumproduct.Threads(threads)))
	err := sumproduct.RunChunks(ctx, len(workers), blocks, func(w, b int) error {
		if workers[w] == nil {
			workers[w] = f.newWorker(hasMarginals, isAllowed)
		}
		for _, n := range nodes[b*blockNodes : min((b+1)*blockNodes, len(nodes))] {
			workers[w].addNode(n, &sums[b])
		}
		return ctx.Err()
	})
	if err != nil {
		return sum{}, err
	}
	var total sum
	for b := range sums {
		total.add(&sums[b])
	}
	return total, nil
}

// nodeWorker evaluates one node after the other and adds it to a sum.
type nodeWorker struct {
	evaluator    *evaluator
	hasMarginals bool
	isAllowed    []bool // by value; nil: all are
	plain        *elimination[plain]
	phase        *elimination[phase] // nil if no λ is below 0
	flops        float64             // of a node
}

// newWorker returns a worker that adds nodes to sums. isAllowed is that of sumNodes.
func (e *evaluator) newWorker(hasMarginals bool, isAllowed []bool) *nodeWorker {
	w := &nodeWorker{evaluator: e, hasMarginals: hasMarginals, isAllowed: isAllowed, flops: e.nodeFlops(hasMarginals)}
	w.plain = newElimination[plain](e.program, e.fit, e.firstValue, hasMarginals)
	if e.isComplex {
		w.phase = newElimination[phase](e.program, e.fit, e.firstValue, hasMarginals)
	}
	return w
}

// nodeFlops returns the flops of evaluating one node: of the weights of all values, and of the tables of all cliques, the eliminations of
// single variables, which have e.program.entries entries together. Marginals take a way back over the weights and the tables. The factors
// are estimates.
func (e *evaluator) nodeFlops(hasMarginals bool) float64 {
	values := float64(len(e.field))
	flopsOfValue := 4.0        // a product of tabulated factors
	if e.factors.base == nil { // without tables: an exponential, and a product for each statistic
		flopsOfValue = float64(60 + 2*len(e.axes))
	}
	flops := flopsOfValue*values + float64(6*e.program.entries)
	if hasMarginals {
		flops += 6*values + float64(9*e.program.entries)
		for k := range e.program.leaves {
			flops += float64(3 * len(e.program.leaves[k].conditional))
		}
	}
	if e.isComplex { // a complex product is four real ones
		flops *= 4
	}
	return flops
}

// addNode adds the component of a node, times its quadrature weight, to a sum. It also adds up the numbers that bound the roundings. If a
// statistic has λ < 0, the component is computed twice: as a plain number without such statistics, which bounds its size, and as a complex
// number with their phases. The total z is in units of e^ln · 2^exp. addComponent may raise the unit e^lnUnit of the sum, so unit, which
// converts to it, is computed afterwards.
func (w *nodeWorker) addNode(n node, nodeSum *sum) {
	e := w.evaluator
	ln := e.fillWeights(n, w.plain) + e.lnWeight(n)
	for x, allowed := range w.isAllowed {
		if !allowed {
			w.plain.weights[x] = 0
		}
	}
	nodeSum.flops += w.flops
	z, exp := w.plain.computeTotal()
	if z == 0 {
		return
	}
	if w.phase != nil {
		w.addPhases(n, ln, z, exp, nodeSum)
		return
	}
	addComponent(nodeSum, w.plain, ln, z, exp, w.hasMarginals, func(x plain) float64 { return float64(x) })
	unit := math.Exp(ln + float64(exp)*math.Ln2 - nodeSum.lnUnit)
	nodeSum.withoutPhases += unit * float64(z)
	nodeSum.roundings += unit * float64(z) * (unitRoundings(ln, exp) + e.roundingsOfProduct(len(w.plain.freeSums), e.program.roundings))
}

// addPhases adds the component of a node to a sum, with the numbers that bound its rounding. The component, turned, is a complex number:
// its terms have phases from the statistics of λ < 0. z is the same component without phases, the total of w.plain. turned and z are in
// units of e^ln · 2^exp.
func (w *nodeWorker) addPhases(n node, ln float64, z plain, exp int, nodeSum *sum) {
	e := w.evaluator
	e.fillPhases(n, w.plain.weights, w.phase)
	turned, turnedExp := w.phase.computeTotal()
	turned = turned.times(math.Ldexp(1, turnedExp-exp))
	addComponent(nodeSum, w.phase, ln, turned, exp, w.hasMarginals, func(x phase) float64 { return real(x) })
	unit := math.Exp(ln + float64(exp)*math.Ln2 - nodeSum.lnUnit)
	scale := w.roundingScale(turned, exp)
	nodeSum.sumOfSizes += unit * scale
	nodeSum.withoutPhases += unit * float64(z)
	// √2: the roundings of the unit are relative to the modulus of turned, which is at most √2 times turned.size().
	nodeSum.roundings += unit * (unitRoundings(ln, exp)*turned.size()*math.Sqrt2 + scale*(e.sumRoundings+e.program.roundings))
}

// unitRoundings bounds the roundings of a unit e^ln · 2^exp that goes through its logarithm, in units of 2^−53.
func unitRoundings(ln float64, exp int) float64 {
	return 2 * math.Abs(ln+float64(exp)*math.Ln2)
}

// roundingScale returns the number, in units of 2^exp, that the roundings of a component with phases are relative to. The component is the
// complex number turned · 2^exp, a product of factors: sums over single variables (freeSums) and messages of roots. The rounding of a
// factor is relative to the sum of its terms' sizes, which is the same factor in w.plain. It shifts the product by that times all other
// factors. The result is the sum of these shifts over the factors.
func (w *nodeWorker) roundingScale(turned phase, exp int) (scale float64) {
	for s, factor := range w.phase.freeSums {
		scale += w.phase.totalWithout(turned, exp, s, factor).size() * float64(w.plain.freeSums[s])
	}
	for r, c := range w.phase.roots {
		factor, size := w.phase.messages[c][0], float64(w.plain.messages[c][0])
		shift := w.plain.exponents[c]
		if factor != 0 { // the total was divided by the factor without its exponent
			shift -= w.phase.exponents[c]
		}
		scale += w.phase.totalWithout(turned, exp, len(w.phase.freeSums)+r, factor).size() * size * math.Ldexp(1, shift)
	}
	return scale
}

// addComponent adds the total of elimination e, z · 2^exp · e^ln, to a sum, and with hasMarginals its shares, by value: the total with a
// variable fixed to the value. The unit of the sum may be raised. realPart returns the real part of a number.
func addComponent[T number[T]](nodeSum *sum, e *elimination[T], ln float64, z T, exp int, hasMarginals bool, realPart func(T) float64) {
	ln += float64(exp) * math.Ln2
	nodeSum.raiseUnit(ln)
	unit := math.Exp(ln - nodeSum.lnUnit) // of the total, in units of the sum
	nodeSum.z += unit * realPart(z)
	nodeSum.sumOfSizes += unit * z.size()
	if !hasMarginals {
		return
	}
	e.fillShares(z, exp)
	if nodeSum.shares == nil {
		nodeSum.shares = make([]float64, len(e.shares))
	}
	for x, y := range e.shares {
		nodeSum.shares[x] += unit * realPart(y)
	}
}

// allowOnly returns, by value of the fit's variables, whether the value is allowed: of each given variable only the given value, of all
// others every value.
func (f *form) allowOnly(variables, values []int) []bool {
	isAllowed := slices.Repeat([]bool{true}, len(f.field))
	for k, v := range variables {
		for x := range f.fit.Domains[v] {
			isAllowed[f.firstValue[v]+x] = x == values[k]
		}
	}
	return isAllowed
}

// jointCells returns the joint marginal of the variables j.Joint, and its flops. Each cell is a sum over the nodes with the cell's values
// fixed. The last variable changes fastest.
func (f *form) jointCells(ctx context.Context, nodes []node, j contraction.Contraction) ([]scaled.Number, float64, error) {
	cells := make([]scaled.Number, cellCount(j))
	flops := 0.0
	if len(nodes) == 0 {
		return cells, 0, nil
	}
	variables, values := make([]int, len(j.Joint)), make([]int, len(j.Joint)) // of the fit
	for k, v := range j.Joint {
		variables[k] = slices.Index(f.variables, v)
	}
	for c := range cells {
		remainder := c
		for k, u := range slices.Backward(variables) {
			values[k] = remainder % f.fit.Domains[u]
			remainder /= f.fit.Domains[u]
		}
		const hasMarginals = false
		s, err := f.sumNodes(ctx, nodes, j.Threads, hasMarginals, f.allowOnly(variables, values))
		if err != nil {
			return nil, 0, err
		}
		cells[c] = s.inUnits(s.z)
		flops += s.flops
	}
	return cells, flops, nil
}
