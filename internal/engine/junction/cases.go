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
	net    *btn.Network
	first  []int   // by leaf: where its derivatives begin in CaseSum.By; −1: none are wanted
	exps   []int64 // by leaf: an entry is 2^exp of that of the expression
	needed []bool  // by table
	total  int     // number of derivatives
}

// Case is a case with observations. Values has one per variable of the network, −1 if it is not observed. Weight is how often it counts.
type Case struct {
	Values []int
	Weight float64
}

// CaseSum is a sum over cases.
type CaseSum struct {
	Ln float64 // Σ weight · ln Z, nats
	// By is Σ weight · ∂ ln Z/∂θ by the entries θ of the wanted tables of Numbers, table after table; nil unless it is asked for.
	By    []float64
	Flops float64
	// Beyond lists the cases that are not in the sums, because digits of their numbers may be lost on the way. Impossible lists those
	// whose Z is 0, which are in no sum either. Both are in ascending sequence.
	Beyond, Impossible []int
}

// CaseShape returns the hypergraph of the leaves of a case tree. ok is false as in Shape, and if a variable has weights other than 1.
func CaseShape(n Numbers) (h contractionorder.Hypergraph, ok bool) {
	t, ok := beginCases(n)
	if !ok {
		return contractionorder.Hypergraph{}, false
	}
	return t.shape(), true
}

// CompileCases makes the tree for the cases of a network along a contraction tree over its CaseShape. ok is false as in Compile.
func CompileCases(n Numbers, tree contractionorder.Tree) (t *CaseTree, ok bool) {
	t, ok = beginCases(n)
	if !ok || tree.Leaves != len(t.leaves) || tree.Validate() != nil {
		return nil, false
	}
	scopes := t.lay(tree)
	t.connect(scopes)
	t.needed = make([]bool, len(t.leaves)+len(t.merges))
	for k, first := range t.first {
		t.needed[k] = first >= 0
	}
	for k := range t.merges {
		t.needed[len(t.leaves)+k] = t.needed[t.merges[k].left] || t.needed[t.merges[k].right]
	}
	return t, t.calibrate(n.Net)
}

// beginCases returns a case tree that has only its leaves. The second result is false as in CaseShape.
func beginCases(n Numbers) (*CaseTree, bool) {
	e := n.Expression
	if e.Scale.IsZero() || e.Unfit != "" {
		return nil, false
	}
	template := &lower.Template{Dims: e.Dims, Scale: e.Scale}
	for v, place := range n.Net.Variables {
		weights := lower.WeightsAt(n.Net, place.Link)
		if slices.ContainsFunc(weights, func(w float64) bool { return w != 1 }) {
			return nil, false
		}
		template.Weights = append(template.Weights, lower.Weights{Link: place.Link, Own: weights, Index: e.Variables[v]})
	}
	t := &CaseTree{net: n.Net}
	isUsed := make([]bool, len(e.Dims))
	for k, table := range e.Tables {
		for _, i := range table.Scope {
			isUsed[i] = isUsed[i] || n.IsWanted[k]
		}
	}
	for k, table := range e.Tables {
		if !n.IsWanted[k] && len(table.Scope) == 1 && isUsed[table.Scope[0]] && isOnes(table.Data) {
			continue // the weights of a variable
		}
		first := -1
		if n.IsWanted[k] {
			first = t.total
			t.total += len(table.Data)
		}
		data := slices.Clone(table.Data)
		exp := floats.Normalise(data).Exp
		template.Scale = template.Scale.Mul(scaled.Make(1, exp))
		template.Tables = append(template.Tables, sumproduct.Table{Scope: table.Scope, Data: data})
		t.first, t.exps = append(t.first, first), append(t.exps, -exp)
	}
	// Z of a run has the network's scale beside that of its tree.
	template.Scale = template.Scale.Div(n.Net.Scale)
	t.Tree = &Tree{dims: e.Dims, scale: template.Scale}
	if !t.addLeaves(template) {
		return nil, false
	}
	t.placeWeights(template)
	for len(t.first) < len(t.leaves) {
		t.first, t.exps = append(t.first, -1), append(t.exps, 0)
	}
	return t, len(t.leaves) > 0 && len(t.leaves) <= MostLeaves
}

// isOnes reports whether all entries are 1.
func isOnes(data []float64) bool {
	return !slices.ContainsFunc(data, func(x float64) bool { return x != 1 })
}

// lay lists the merges of a tree, and returns the scopes of all its tables.
func (t *CaseTree) lay(tree contractionorder.Tree) (scopes [][]int) {
	h := t.shape()
	_, price := follow(h, tree)
	p, _ := follow(h, reroot(tree, price, t.leaves))
	t.leaves = append(t.leaves, leaf{data: []float64{1}})
	t.first, t.exps = append(t.first, -1), append(t.exps, 0)
	t.merges = p.merges
	return p.scopes
}

// The cases are divided into shares, each with a sum of its own. The number of shares does not depend on the number of threads.
const (
	shareCases   = 256     // cases of a share, about
	shareNumbers = 1 << 21 // bound of the derivatives of all shares together
	maxShares    = 16
)

// Sum sums up cases, with their gradients or without. The same cases in the same sequence give the same bits, for any number of threads.
// The error is the context's. Time: Price of a query with marginals for each case, or less.
func (t *CaseTree) Sum(ctx context.Context, cases []Case, hasGradients bool, o Options) (CaseSum, error) {
	shares := max(1, min((len(cases)+shareCases-1)/shareCases, shareNumbers/max(1, t.total), maxShares))
	threads := sumproduct.Threads(o.Threads)
	if o.Memory > 0 {
		threads = max(1, min(threads, int(o.Memory/(2*Lanes*t.bytes()))))
	}
	sums := make([]CaseSum, shares)
	err := sumproduct.Share(ctx, threads, shares, func(_, k int) error {
		first, end := len(cases)*k/shares, len(cases)*(k+1)/shares
		return t.add(ctx, cases[first:end], first, hasGradients, &sums[k])
	})
	total := sums[0]
	for _, s := range sums[1:] {
		total.Ln += s.Ln
		total.Flops += s.Flops
		for k, x := range s.By {
			total.By[k] += x
		}
		total.Beyond = append(total.Beyond, s.Beyond...)
		total.Impossible = append(total.Impossible, s.Impossible...)
	}
	return total, err
}

// add adds cases to a sum. first is the position of the first of them among all cases.
func (t *CaseTree) add(ctx context.Context, cases []Case, first int, hasGradients bool, to *CaseSum) error {
	r := t.take()
	defer t.give(r)
	r.ctx = ctx
	a := &adder{run: r, tree: t, to: to}
	if hasGradients {
		to.By, a.by = make([]float64, t.total), make([]float64, t.total)
	}
	for k := range a.nets {
		a.nets[k] = btn.NewObserved(t.net)
	}
	for start := 0; start < len(cases); start += Lanes {
		if err := a.add(first+start, cases[start:min(start+Lanes, len(cases))]); err != nil {
			return err
		}
	}
	return nil
}

// adder adds cases to a sum, a batch of at most Lanes at a time.
type adder struct {
	*run
	tree   *CaseTree
	to     *CaseSum
	nets   [Lanes]*btn.Observed // by lane: the network under its observations
	by     []float64            // the gradient of the current batch; nil if gradients are not wanted
	weight [Lanes]float64       // of the case in each lane; 0 if its Z is 0
}

// add adds a batch. first is the position of its first case among all cases. If digits may be lost, the cases are added one by one, and a
// case that loses digits alone is listed as Beyond.
func (a *adder) add(first int, batch []Case) error {
	answers, isWhole, err := a.computeBatch(batch)
	if err != nil {
		return err
	}
	if !isWhole && len(batch) > 1 {
		for k := range batch {
			if err := a.add(first+k, batch[k:k+1]); err != nil {
				return err
			}
		}
		return nil
	}
	for lane, answer := range answers {
		a.to.Flops += answer.Flops
		switch {
		case !isWhole:
			a.to.Beyond = append(a.to.Beyond, first+lane)
			continue
		case answer.Z.IsZero():
			a.to.Impossible = append(a.to.Impossible, first+lane)
			continue
		}
		a.to.Ln += batch[lane].Weight * answer.Z.LogAbs()
	}
	if isWhole {
		for k, x := range a.by {
			a.to.By[k] += x
		}
	}
	return nil
}

// computeBatch computes the likelihoods of a batch, and the sum of their gradients in a.by. isWhole is true if no digits are lost.
func (a *adder) computeBatch(batch []Case) (answers []Answer, isWhole bool, err error) {
	queries := make([]Query, len(batch))
	for lane, c := range batch {
		queries[lane].Net = a.nets[lane].Observe(c.Values)
	}
	a.begin(queries)
	answers = make([]Answer, len(batch))
	a.forward(answers, a.by != nil)
	if err := a.ctx.Err(); err != nil {
		return nil, false, err
	}
	isWhole = true
	for lane, answer := range answers {
		isWhole = isWhole && answer.Z.IsFinite()
		a.weight[lane] = 0
		if !answer.Z.IsZero() {
			a.weight[lane] = batch[lane].Weight
		}
	}
	if a.by != nil {
		isWhole = a.backward(answers) && isWhole
	}
	return answers, isWhole && a.lost&(1<<len(batch)-1) == 0, a.ctx.Err()
}

// backward sums up the gradients of a batch in a.by. isWhole is false if one of them is beyond float64.
func (a *adder) backward(answers []Answer) (isWhole bool) {
	clear(a.by)
	r := a.run
	isWhole = true
	root := len(r.by) - 1
	var z [Lanes]scaled.Number // without the factors that Z and its derivatives have in common
	for lane := range answers {
		z[lane] = scaled.Make(r.tables[root].at(0, lane), r.tables[root].exp[lane])
	}
	r.by[root] = table{data: append(r.pool.take(1)[:0], 1)}
	for k := len(r.merges) - 1; k >= 0; k-- {
		m, p, out := &r.merges[k], &r.products[k], len(r.leaves)+k
		if r.isOver(m) {
			return false
		}
		if a.tree.needed[out] {
			isWhole = a.differentiate(answers, &z, m.flops, out, m.left, m.right, &p.toLeft) && isWhole
			isWhole = a.differentiate(answers, &z, m.flops, out, m.right, m.left, &p.toRight) && isWhole
			r.pool.give(r.by[out].data)
		}
		r.release(out)
	}
	for k := range r.leaves {
		r.release(k)
	}
	return isWhole
}

// differentiate computes the derivative by one of the two tables of a merge from that by its output, if it is needed, and adds up that of a
// leaf.
func (a *adder) differentiate(answers []Answer, z *[Lanes]scaled.Number, flops float64, out, by, other int, p *product) bool {
	if !a.tree.needed[by] {
		return true
	}
	r := a.run
	r.multiply(&r.by[by], &r.by[out], &r.tables[other], p)
	for lane := range answers {
		answers[lane].Flops += flops
	}
	if by >= len(r.leaves) {
		return true
	}
	r.lost |= new(table).bound(&r.tables[by], &r.by[by], len(r.leaves[by].data))
	isWhole := a.gather(by, z)
	r.pool.give(r.by[by].data)
	return isWhole
}

// gather adds the derivatives by the entries of a leaf to a.by: the sum over the lanes of weight · derivative / Z. Derivatives by entries
// that the observations exclude are 0. It returns false if a factor weight/Z is beyond float64.
func (a *adder) gather(leaf int, z *[Lanes]scaled.Number) (isWhole bool) {
	t := &a.run.by[leaf]
	for _, v := range a.leaves[leaf].weighted {
		if a.changed[leaf] != 0 {
			a.multiplyWeights(t, &a.weights[v])
		}
	}
	isWhole = true
	var factor [Lanes]float64
	for lane := range a.queries {
		if a.weight[lane] == 0 {
			continue
		}
		x := scaled.Make(a.weight[lane], t.exp[lane]+a.tree.exps[leaf]).Div(z[lane])
		factor[lane] = math.Ldexp(x.Mant, int(max(-2000, min(2000, x.Exp))))
		isWhole = isWhole && math.Abs(factor[lane]) >= math.SmallestNonzeroFloat64*(1<<53) && !math.IsInf(factor[lane], 0)
	}
	to := a.by[a.tree.first[leaf]:][:len(a.leaves[leaf].data)]
	if !t.isWide {
		for k, x := range t.data {
			to[k] += factor[0] * x
		}
		return isWhole
	}
	for k := range to {
		entry := (*[Lanes]float64)(t.data[k*Lanes:])
		to[k] += factor[0]*entry[0] + factor[1]*entry[1] + factor[2]*entry[2] + factor[3]*entry[3] +
			(factor[4]*entry[4] + factor[5]*entry[5] + factor[6]*entry[6] + factor[7]*entry[7])
	}
	return isWhole
}
