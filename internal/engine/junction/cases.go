package junction

// Cases: many sets of observations, whose likelihoods and gradients are wanted as sums.

import (
	"context"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/base/floats"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/lower"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// Numbers is a network written with its own numbers: entries that are 0 keep their places, because they have derivatives, too.
type Numbers struct {
	Net        *btn.Network
	Expression *sumproduct.Expression // of Net, without evidence
	IsWanted   []bool                 // by table of Expression: derivatives by its entries are wanted
}

// CaseTree is a Tree with derivatives by the entries of its tables. It does not change, and may be used by several goroutines.
type CaseTree struct {
	*Tree
	net      *btn.Network
	first    []int   // by leaf: where its derivatives begin in CaseSum.By; −1 if none are wanted
	exps     []int64 // by leaf: an entry is 2^exp times that of the expression
	isNeeded []bool  // by table: derivatives by its entries are wanted, or those of a leaf below it
	count    int     // number of derivatives
}

// Case is a case with observations. Values has one per variable of the network, −1 if it is not observed. Weight is how often it counts.
type Case struct {
	Values []int
	Weight float64
}

// CaseSum is a sum over cases.
type CaseSum struct {
	Ln float64 // Σ weight · ln Z, nats
	// Gradient is Σ weight · ∂ ln Z/∂θ by the entries θ of the wanted tables of Numbers, table after table; nil unless it is asked for.
	Gradient []float64
	Flops    float64
	// Lossy lists the cases that are not in the sums, because digits of their numbers may be lost on the way. Impossible lists those
	// whose Z is 0, which are in no sum either. Both are in ascending sequence.
	Lossy, Impossible []int
}

// CaseShape returns the hypergraph of the leaves of a case tree, over which a contraction tree for CompileCases is made. ok is false as in
// Shape, and if a variable has weights other than 1.
func CaseShape(n Numbers) (h contractionorder.Hypergraph, ok bool) {
	t, ok := newCaseLeavesOnly(n)
	if !ok {
		return contractionorder.Hypergraph{}, false
	}
	return t.shape(), true
}

// CompileCases makes the tree for the cases of a network along a contraction tree over its CaseShape, and computes all tables without
// observations. ok is false as in Compile.
func CompileCases(n Numbers, tree contractionorder.Tree) (t *CaseTree, ok bool) {
	t, ok = newCaseLeavesOnly(n)
	if !ok || tree.Leaves != len(t.leaves) || tree.Validate() != nil {
		return nil, false
	}
	scopes := t.addMerges(tree)
	t.addProducts(scopes)
	t.isNeeded = make([]bool, len(t.leaves)+len(t.merges))
	for k, first := range t.first {
		t.isNeeded[k] = first >= 0
	}
	for k, m := range t.merges {
		t.isNeeded[t.outputOf(k)] = t.isNeeded[m.left] || t.isNeeded[m.right]
	}
	return t, t.computeBase(n.Net)
}

// newCaseLeavesOnly returns a case tree that has its leaves and the weights of its variables, and no merges. ok is false as in CaseShape.
func newCaseLeavesOnly(n Numbers) (t *CaseTree, ok bool) {
	e := n.Expression
	if e.Scale.IsZero() || e.Unfit != "" {
		return nil, false
	}
	template := &lower.Template{Dims: e.Dims, Scale: e.Scale}
	if template.Weights, ok = onesOfVariables(n); !ok {
		return nil, false
	}
	t = &CaseTree{net: n.Net}
	t.addTables(n, template)

	// A run multiplies Z by the network's scale as well, so the tree's is without it.
	template.Scale = template.Scale.Div(n.Net.Scale)
	t.Tree = &Tree{dims: e.Dims, scale: template.Scale}
	if !t.addLeaves(template) {
		return nil, false
	}
	t.placeWeights(template)
	for len(t.first) < len(t.leaves) { // leaves of ones that placeWeights has added
		t.first, t.exps = append(t.first, -1), append(t.exps, 0)
	}
	return t, len(t.leaves) > 0 && len(t.leaves) <= MaxLeaves
}

// onesOfVariables returns the weights of the variables without observations. ok is false unless all of them are 1.
func onesOfVariables(n Numbers) (list []lower.Weights, ok bool) {
	for v, variable := range n.Net.Variables {
		weights := lower.LinkWeights(n.Net, variable.Link)
		if slices.ContainsFunc(weights, func(w float64) bool { return w != 1 }) {
			return nil, false
		}
		list = append(list, lower.Weights{Link: variable.Link, WithoutEvidence: weights, Index: n.Expression.Variables[v]})
	}
	return list, true
}

// addTables adds the tables of the leaves to a template, each divided by a power of two, by which the scale is multiplied. It sets, by
// leaf, where its derivatives begin (t.first) and the exponent of leaf entry / entry of the expression (t.exps). A table of ones over one
// index only holds a place for the weights of a variable. If a table with wanted derivatives has the index, that table takes the weights,
// and the one of ones is left out. Otherwise it stays: perhaps no other table has the index.
func (t *CaseTree) addTables(n Numbers, template *lower.Template) {
	e := n.Expression
	isInWanted := make([]bool, len(e.Dims)) // by index: a table with wanted derivatives has it
	for k, table := range e.Tables {
		for _, i := range table.Scope {
			isInWanted[i] = isInWanted[i] || n.IsWanted[k]
		}
	}
	for k, table := range e.Tables {
		isWeights := !n.IsWanted[k] && len(table.Scope) == 1 && isOnes(table.Data)
		if isWeights && isInWanted[table.Scope[0]] {
			continue
		}
		first := -1 // no derivatives are wanted
		if n.IsWanted[k] {
			first = t.count
			t.count += len(table.Data)
		}
		data := slices.Clone(table.Data)
		exp := floats.Normalise(data).Exp // divides data by 2^exp
		template.Scale = template.Scale.Mul(scaled.Make(1, exp))
		template.Tables = append(template.Tables, sumproduct.Table{Scope: table.Scope, Data: data})
		t.first, t.exps = append(t.first, first), append(t.exps, -exp)
	}
}

// isOnes reports whether all entries of data are 1.
func isOnes(data []float64) bool {
	return !slices.ContainsFunc(data, func(x float64) bool { return x != 1 })
}

// addMerges adds the merges of a contraction tree with the best root (reroot), and returns the scopes of all tables. It appends the leaf
// of the single entry 1 that the merges use: merged with a table alone, it sums out the indices that only this table has.
func (t *CaseTree) addMerges(tree contractionorder.Tree) (scopes [][]int) {
	h := t.shape()
	_, flops := planMerges(h, tree) // by table; they decide the root
	p, _ := planMerges(h, reroot(tree, flops, t.leaves))
	t.leaves = append(t.leaves, leaf{data: []float64{1}})
	t.first, t.exps = append(t.first, -1), append(t.exps, 0) // no derivatives by it are wanted; it is not scaled
	t.merges = p.merges
	return p.scopes
}

// The cases are divided into shares, each with a sum of its own. The number of shares does not depend on the number of threads.
const (
	shareCases   = 256     // cases of a share, about
	shareNumbers = 1 << 21 // bound of the derivatives of all shares together
	maxShares    = 16
)

// Sum sums up cases, with their gradients or without. It divides them into shares of about shareCases in a row, sums each share, and adds
// these sums in their sequence. So the same cases in the same sequence give the same bits, for any number of threads.
// The error is the context's. Time: Price of a query with marginals for each case, or less.
func (t *CaseTree) Sum(ctx context.Context, cases []Case, hasGradients bool, o Options) (CaseSum, error) {
	shares := max(1, min((len(cases)+shareCases-1)/shareCases, shareNumbers/max(1, t.count), maxShares))
	threads := sumproduct.Threads(o.Threads)
	if o.Memory > 0 {
		threads = max(1, min(threads, int(o.Memory/(2*Lanes*t.bytes())))) // each has tables and derivatives in all lanes
	}
	sums := make([]CaseSum, shares)
	err := sumproduct.RunChunks(ctx, threads, shares, func(_, k int) error {
		first, end := len(cases)*k/shares, len(cases)*(k+1)/shares
		return t.addCases(ctx, cases[first:end], first, hasGradients, &sums[k])
	})

	total := sums[0]
	for _, s := range sums[1:] {
		total.Ln += s.Ln
		total.Flops += s.Flops
		for k, x := range s.Gradient {
			total.Gradient[k] += x
		}
		total.Lossy = append(total.Lossy, s.Lossy...)
		total.Impossible = append(total.Impossible, s.Impossible...)
	}
	return total, err
}

// addCases adds cases to a sum, which is empty before. first is the position of the first of them among all cases.
func (t *CaseTree) addCases(ctx context.Context, cases []Case, first int, hasGradients bool, sum *CaseSum) error {
	r := t.getRun()
	defer t.putRun(r)
	r.ctx = ctx
	a := &adder{run: r, tree: t, sum: sum}
	if hasGradients {
		sum.Gradient, a.gradient = make([]float64, t.count), make([]float64, t.count)
	}
	for k := range a.nets { // by lane: the network, to which each case adds its observations
		a.nets[k] = btn.NewObserved(t.net)
	}
	for start := 0; start < len(cases); start += Lanes {
		if err := a.addBatch(first+start, cases[start:min(start+Lanes, len(cases))]); err != nil {
			return err
		}
	}
	return nil
}

// adder adds cases to a sum, a batch of at most Lanes at a time.
type adder struct {
	*run
	tree     *CaseTree
	sum      *CaseSum
	nets     [Lanes]*btn.Observed // by lane: the network under its observations
	gradient []float64            // of the current batch; nil if gradients are not wanted
	weight   [Lanes]float64       // by lane: the weight of its case; 0 if its Z is 0
}

// addBatch adds a batch to the sum. first is the position of its first case among all cases. If digits may be lost, the cases are added one
// by one, and a case that loses digits alone is listed as Lossy.
func (a *adder) addBatch(first int, batch []Case) error {
	answers, isPrecise, err := a.computeBatch(batch)
	if err != nil {
		return err
	}
	if !isPrecise && len(batch) > 1 { // it is not known which case loses digits
		for k := range batch {
			if err := a.addBatch(first+k, batch[k:k+1]); err != nil {
				return err
			}
		}
		return nil
	}
	for lane, answer := range answers {
		a.sum.Flops += answer.Flops
		switch {
		case !isPrecise:
			a.sum.Lossy = append(a.sum.Lossy, first+lane)
			continue
		case answer.Z.IsZero():
			a.sum.Impossible = append(a.sum.Impossible, first+lane)
			continue
		}
		a.sum.Ln += batch[lane].Weight * answer.Z.LogAbs()
	}
	if isPrecise { // else the only case of the batch is lossy, and its gradient is left out
		for k, x := range a.gradient {
			a.sum.Gradient[k] += x
		}
	}
	return nil
}

// computeBatch computes Z of each case of a batch, and if gradients are wanted, the weighted sum of those of ln Z in a.gradient. isPrecise
// is false if digits may be lost or a number is beyond float64.
func (a *adder) computeBatch(batch []Case) (answers []Answer, isPrecise bool, err error) {
	queries := make([]Query, len(batch))
	for lane, c := range batch {
		queries[lane].Net = a.nets[lane].Observe(c.Values)
	}
	a.setQueries(queries) // not read: whether all lanes are faster; several cases always use all
	answers = make([]Answer, len(batch))
	hasGradients := a.gradient != nil
	a.forward(answers, hasGradients)
	if err := a.ctx.Err(); err != nil {
		return nil, false, err
	}

	isPrecise = true
	for lane, answer := range answers {
		isPrecise = isPrecise && answer.Z.IsFinite()
		a.weight[lane] = 0
		if !answer.Z.IsZero() {
			a.weight[lane] = batch[lane].Weight
		}
	}
	if hasGradients {
		isPrecise = a.sumGradients(answers) && isPrecise
	}
	lanesOfBatch := lanes(1<<len(batch) - 1) // the lanes behind have no case
	return answers, isPrecise && a.lossy&lanesOfBatch == 0, a.ctx.Err()
}

// sumGradients sets a.gradient to the weighted sum of the gradients of ln Z in all lanes. It goes through the merges from the root, where
// ∂Z/∂root = 1, to the leaves, and releases all tables. isFinite is false if a factor weight/Z is beyond float64, or if the context has
// ended. A lane is one of the cases that are computed side by side.
func (a *adder) sumGradients(answers []Answer) (isFinite bool) {
	clear(a.gradient)
	r := a.run
	isFinite = true
	root := len(r.derivatives) - 1
	var z [Lanes]scaled.Number // by lane: Z without factor, which Z and its derivatives have in common
	for lane := range answers {
		z[lane] = scaled.Make(r.tables[root].at(0, lane), r.tables[root].exp[lane])
	}
	r.derivatives[root] = table{data: append(r.pool.get(1)[:0], 1)}
	for k := len(r.merges) - 1; k >= 0; k-- {
		m, p, out := &r.merges[k], &r.products[k], r.outputOf(k)
		if r.isCancelled(m) {
			return false
		}
		if a.tree.isNeeded[out] {
			// The derivatives by the left and by the right input, each from that by the output and from the other input.
			isFinite = a.differentiate(answers, &z, m.flops, out, m.left, m.right, &p.toLeft) && isFinite
			isFinite = a.differentiate(answers, &z, m.flops, out, m.right, m.left, &p.toRight) && isFinite
			r.pool.put(r.derivatives[out].data)
		}
		r.releaseTable(out)
	}
	for k := range r.leaves {
		r.releaseTable(k)
	}
	return isFinite
}

// differentiate computes ∂Z/∂input = Σ ∂Z/∂out · sibling by the product p, where a merge has made the table out of input and sibling. It
// does nothing if the derivative is not needed. If input is a leaf, it adds the derivative to the gradient and releases it. isFinite is
// false as in addToGradient.
func (a *adder) differentiate(
	answers []Answer, z *[Lanes]scaled.Number, flops float64, out, input, sibling int, p *product,
) (isFinite bool) {
	if !a.tree.isNeeded[input] {
		return true
	}
	r := a.run
	r.multiply(&r.derivatives[input], &r.derivatives[out], &r.tables[sibling], p)
	for lane := range answers {
		answers[lane].Flops += flops
	}
	isLeaf := input < len(r.leaves)
	if !isLeaf {
		return true
	}
	// Gradients are sums of products of an entry and its derivative, of which only the bounds are needed here.
	r.lossy |= new(table).setProductBounds(&r.tables[input], &r.derivatives[input], len(r.leaves[input].data))
	isFinite = a.addToGradient(input, z)
	r.pool.put(r.derivatives[input].data)
	return isFinite
}

// laneFactors returns weight/Z by lane, with the exponent of the derivative by a leaf, and 0 for lanes that do not count. isFinite is false
// if a factor is beyond float64, or so small that digits are lost. A lane is one of the cases that are computed side by side.
func (a *adder) laneFactors(leaf int, z *[Lanes]scaled.Number) (factor [Lanes]float64, isFinite bool) {
	isFinite = true
	for lane := range a.queries {
		if a.weight[lane] == 0 {
			continue
		}
		x := scaled.Make(a.weight[lane], a.run.derivatives[leaf].exp[lane]+a.tree.exps[leaf]).Div(z[lane])
		factor[lane] = math.Ldexp(x.Mant, int(max(-2000, min(2000, x.Exp))))      // beyond ±2000 the result is 0 or infinite anyway
		isNormal := math.Abs(factor[lane]) >= math.SmallestNonzeroFloat64*(1<<53) // 2^-1021: it has all 53 bits
		isFinite = isFinite && isNormal && !math.IsInf(factor[lane], 0)
	}
	return factor, isFinite
}

// addToGradient adds the derivatives by the entries of a leaf to a.gradient: the sum over the lanes of weight · ∂Z/∂entry / Z. z has Z by
// lane. Derivatives by entries that the observations exclude are 0, since the derivative is multiplied by the weights first. isFinite is
// false if a factor weight/Z is beyond float64. A lane is one of the cases that are computed side by side.
func (a *adder) addToGradient(leaf int, z *[Lanes]scaled.Number) (isFinite bool) {
	derivative := &a.run.derivatives[leaf]
	for _, v := range a.leaves[leaf].weighted {
		if a.changed[leaf] != 0 { // else no case observes a variable of the leaf, and all weights are 1
			a.multiplyWeights(derivative, &a.weights[v])
		}
	}

	factor, isFinite := a.laneFactors(leaf, z)
	gradient := a.gradient[a.tree.first[leaf]:][:len(a.leaves[leaf].data)]
	if !derivative.isWide {
		for k, x := range derivative.data {
			gradient[k] += factor[0] * x
		}
		return isFinite
	}
	for k := range gradient {
		entry := (*[Lanes]float64)(derivative.data[k*Lanes:])
		gradient[k] += factor[0]*entry[0] + factor[1]*entry[1] + factor[2]*entry[2] + factor[3]*entry[3] +
			(factor[4]*entry[4] + factor[5]*entry[5] + factor[6]*entry[6] + factor[7]*entry[7])
	}
	return isFinite
}
