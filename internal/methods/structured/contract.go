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

// slot is the place of a fit under the evidence among the forms of a problem.
type slot struct{}

// form is a fit under a problem's evidence, with the region of the nodes that matter.
type form struct {
	*evaluator
	variables []int // the network's of each of the fit, without statistics
	region    *region
}

// variant is a fit with the variables of a joint marginal, if it has leaves: those become variables.
type variant struct {
	of    *Fit
	joint string
}

// formOf returns the fit under the problem's evidence, for a joint marginal.
func formOf(ctx context.Context, p *problem.Problem, f *Fit, joint []int) (*form, error) {
	key := variant{of: f}
	if len(f.Leaves) > 0 {
		key.joint = fmt.Sprint(joint)
	}
	return problem.Form(ctx, p, slot{}, key, func() (*form, error) {
		weights, err := weightsOf(p.Net)
		if err != nil {
			return nil, err
		}
		own, err := f.under(ctx, weights, joint)
		if err != nil {
			return nil, err
		}
		form := &form{variables: own.variables()}
		of := make([][]float64, len(form.variables))
		for u, v := range form.variables {
			of[u] = weights[v]
		}
		if form.evaluator, err = newEvaluator(own, of); err != nil || form.zero {
			return form, err
		}
		form.region, err = form.evaluator.region(ctx, contractWork)
		return form, err
	})
}

// weightsOf lists the weights of a network's variables.
func weightsOf(net *btn.Network) ([][]float64, error) {
	weights := make([][]float64, len(net.Variables))
	for v, place := range net.Variables {
		cp, ok := net.Links[place.Link].T.(*tensor.CP)
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

// Contract implements contraction.Contractor. The sum over the nodes of a share is exact up to rounding and Fit.LnError; where a
// statistic has λ < 0 terms cancel, which is counted.
func (p *Nodes) Contract(ctx context.Context, of *problem.Problem, want btn.Want) (btn.Value, error) {
	j, err := contraction.Begin(ctx, of, want)
	if err != nil {
		return btn.Value{}, err
	}
	if p.Of.Integers != nil {
		return p.counted(ctx, j, of.Memory, want)
	}
	f, err := formOf(ctx, of, p.Of, want.Joint)
	if err != nil {
		return btn.Value{}, err
	}
	if p.Ask != "" {
		return p.drawn(j, f, want)
	}
	list, err := f.own(ctx, p)
	if err != nil {
		return btn.Value{}, err
	}
	s, err := f.share(ctx, list, j.Threads, want.Marginals, nil)
	if err != nil {
		return btn.Value{}, err
	}
	scale := j.Net.Scale.Mul(scaled.FromLog(p.Of.Ln))
	value := btn.Value{Z: s.number(s.z).Mul(scale), Flops: s.flops}
	value.Rounding = f.rounding(&s, len(list), want.Marginals, scale)
	if f.complex && s.abs > 0 {
		value.Digits, _ = exact.Cancelled(value.Z, s.number(s.abs).Mul(scale), value.Rounding) // shares cancel with one another
	}
	if j.M != nil {
		if s.shares != nil {
			if err := f.closeLeaves(ctx, list, j.Threads, &s); err != nil {
				return btn.Value{}, err
			}
			value.Flops = s.flops
			f.collect(&s, j.M)
		}
		if err := j.M.Finite(); err != nil {
			return btn.Value{}, err
		}
		value.Marginals = j.M.Result(scale)
	}
	if j.Joint == nil {
		return value, nil
	}
	cells, flops, err := f.cells(ctx, list, j)
	if err != nil {
		return btn.Value{}, err
	}
	for c := range cells {
		if cells[c] = cells[c].Mul(scale); !cells[c].IsFinite() {
			return btn.Value{}, fmt.Errorf("%w: cell %d of the joint marginal", tensor.ErrNotFinite, c)
		}
	}
	value.Flops += flops
	value.Joint = j.JointOf(cells)
	return value, nil
}

// collect takes the marginals from a sum.
func (f *form) collect(s *sum, to *contraction.Collected) {
	take := func(v, at, d int) {
		for x := range d {
			to.At[to.Offset[v]+x] = s.number(s.shares[at+x])
		}
	}
	for u, v := range f.variables {
		take(v, f.at[u], f.fit.Domains[u])
	}
	for k, l := range f.program.leaves {
		take(f.fit.Leaves[k].Variable, l.at, l.values)
	}
}

// rounding bounds the error of a sum over so many nodes, and of its shares with marginals: by roundings, the quadrature, and the fit.
func (f *form) rounding(s *sum, nodes int, marginals bool, scale scaled.Number) *scaled.Number {
	off := s.off
	if marginals { // a variable's share is not smaller where the sum of its weights is
		off = s.plain * f.steps(len(f.program.clique), f.program.roundings)
	}
	blocks := float64(min(nodes, blockNodes) + (nodes+blockNodes-1)/blockNodes)
	off += s.plain * (2*blocks + math.Abs(f.fit.Ln) + 8)
	off = math.Ldexp(off, -53) + leftOut*s.plain
	bound := s.number(off).Add(s.number(math.Abs(s.z) * math.Expm1(f.fit.LnError))).Mul(scale.Abs())
	return &bound
}

// steps bounds the roundings of a product of so many sums over weights, and of a rest with some of its own.
func (e *evaluator) steps(sums int, rest float64) float64 {
	return float64(sums)*e.own + rest
}

// sum is Σ over some nodes, in units of e^ln.
type sum struct {
	ln     float64
	z, abs float64 // abs: with no cancellation
	plain  float64 // without phases
	off    float64 // the error of z by roundings, in units of 2^-53
	shares []float64
	flops  float64
}

// number is x · e^ln.
func (s *sum) number(x float64) scaled.Number { return scaled.FromFloat(x).Mul(scaled.FromLog(s.ln)) }

// raise changes the unit to e^ln where that is larger.
func (s *sum) raise(ln float64) {
	if s.plain == 0 {
		s.ln = ln
		return
	}
	if ln <= s.ln {
		return
	}
	f := math.Exp(s.ln - ln)
	s.z *= f
	s.abs *= f
	s.plain *= f
	s.off *= f
	for x := range s.shares {
		s.shares[x] *= f
	}
	s.ln = ln
}

// add adds another sum.
func (s *sum) add(o *sum) {
	s.flops += o.flops
	if o.plain == 0 {
		return
	}
	s.raise(o.ln)
	f := math.Exp(o.ln - s.ln)
	s.z += f * o.z
	s.abs += f * o.abs
	s.plain += f * o.plain
	s.off += f * o.off
	if o.shares != nil && s.shares == nil {
		s.shares = make([]float64, len(o.shares))
	}
	for x, y := range o.shares {
		s.shares[x] += f * y
	}
}

// own returns the nodes of a share.
func (f *form) own(ctx context.Context, p *Nodes) ([]node, error) {
	if f.zero {
		return nil, nil
	}
	return f.nodes(ctx, f.region, p.From, p.To)
}

// share sums nodes, block by block. clamp, by value: what the weights are multiplied by; nil: 1.
func (f *form) share(ctx context.Context, list []node, threads int, marginals bool, clamp []bool) (sum, error) {
	blocks := (len(list) + blockNodes - 1) / blockNodes
	sums := make([]sum, blocks)
	workers := make([]*worker, max(1, sumproduct.Threads(threads)))
	err := sumproduct.Share(ctx, len(workers), blocks, func(w, b int) error {
		if workers[w] == nil {
			workers[w] = f.worker(marginals, clamp)
		}
		for _, at := range list[b*blockNodes : min((b+1)*blockNodes, len(list))] {
			workers[w].node(at, &sums[b])
		}
		return ctx.Err()
	})
	if err != nil {
		return sum{}, err
	}
	var all sum
	for b := range sums {
		all.add(&sums[b])
	}
	return all, nil
}

// worker computes one node after the other.
type worker struct {
	of        *evaluator
	marginals bool
	clamp     []bool
	plain     *elimination[plain]
	phase     *elimination[phase] // where a λ is below 0
	flops     float64             // of a node
}

func (e *evaluator) worker(marginals bool, clamp []bool) *worker {
	w := &worker{of: e, marginals: marginals, clamp: clamp, flops: e.flops(marginals)}
	w.plain = newElimination[plain](e.program, e.fit, e.at, marginals)
	if e.complex {
		w.phase = newElimination[phase](e.program, e.fit, e.at, marginals)
	}
	return w
}

// flops are those of one node: two for each exponential that the tables spare.
func (e *evaluator) flops(marginals bool) float64 {
	values := float64(len(e.field))
	each := 4.0
	if e.tables.base == nil {
		each = float64(60 + 2*len(e.axes))
	}
	flops := each*values + float64(6*e.program.entries)
	if marginals {
		flops += 6*values + float64(9*e.program.entries)
		for k := range e.program.leaves {
			flops += float64(3 * len(e.program.leaves[k].given))
		}
	}
	if e.complex {
		flops *= 4
	}
	return flops
}

// node adds a node to a sum.
func (w *worker) node(at node, to *sum) {
	e := w.of
	ln := e.real(at, w.plain) + e.lnWeight(at)
	for x, allowed := range w.clamp {
		if !allowed {
			w.plain.g[x] = 0
		}
	}
	to.flops += w.flops
	z, exp := w.plain.total()
	if z == 0 {
		return
	}
	roundings := 2 * math.Abs(ln+float64(exp)*math.Ln2) // of the unit, which goes through its logarithm
	if w.phase == nil {
		put(to, w.plain, ln, z, exp, w.marginals, func(x plain) float64 { return float64(x) })
		unit := math.Exp(ln + float64(exp)*math.Ln2 - to.ln)
		to.plain += unit * float64(z)
		to.off += unit * float64(z) * (roundings + e.steps(len(w.plain.sums), e.program.roundings))
		return
	}
	e.turned(at, w.plain.g, w.phase)
	turned, turnedExp := w.phase.total()
	turned = turned.times(math.Ldexp(1, turnedExp-exp))
	put(to, w.phase, ln, turned, exp, w.marginals, func(x phase) float64 { return real(x) })
	unit := math.Exp(ln + float64(exp)*math.Ln2 - to.ln)
	off := w.off(turned, exp)
	to.abs += unit * off
	to.plain += unit * float64(z)
	to.off += unit * (roundings*turned.size()*math.Sqrt2 + off*(e.own+e.program.roundings))
}

// off is the size of a component with phases, in units of 2^exp, that its roundings are relative to: the sum of a variable, or of a part
// of the rest, is off by a rounding of its terms' sizes, and the total by that times all others.
func (w *worker) off(turned phase, exp int) (off float64) {
	for u, own := range w.phase.sums {
		off += w.phase.others(turned, exp, u, own).size() * float64(w.plain.sums[u])
	}
	for r, c := range w.phase.roots {
		own, size := w.phase.messages[c][0], float64(w.plain.messages[c][0])
		shift := w.plain.exps[c]
		if own != 0 {
			shift -= w.phase.exps[c]
		}
		off += w.phase.others(turned, exp, len(w.phase.sums)+r, own).size() * size * math.Ldexp(1, shift)
	}
	return off
}

// put adds a node's total, z · 2^exp · e^ln, to a sum, and its shares.
func put[T number[T]](to *sum, e *elimination[T], ln float64, z T, exp int, marginals bool, part func(T) float64) {
	ln += float64(exp) * math.Ln2
	to.raise(ln)
	f := math.Exp(ln - to.ln)
	to.z += f * part(z)
	to.abs += f * z.size()
	if !marginals {
		return
	}
	e.marginals(z, exp)
	if to.shares == nil {
		to.shares = make([]float64, len(e.shares))
	}
	for x, y := range e.shares {
		to.shares[x] += f * part(y)
	}
}

// clamp allows every value, but for these variables one each.
func (f *form) clamp(variables, at []int) []bool {
	clamp := slices.Repeat([]bool{true}, len(f.field))
	for k, v := range variables {
		for x := range f.fit.Domains[v] {
			clamp[f.at[v]+x] = x == at[k]
		}
	}
	return clamp
}

// cells returns the joint marginal of the contraction's set: a sum per combination of values, the last variable fastest.
func (f *form) cells(ctx context.Context, list []node, j contraction.Contraction) ([]scaled.Number, float64, error) {
	count := 1
	for _, v := range j.Joint {
		count *= j.Net.Variables[v].Domain
	}
	cells := make([]scaled.Number, count)
	flops := 0.0
	if len(list) == 0 {
		return cells, 0, nil
	}
	places, at := make([]int, len(j.Joint)), make([]int, len(j.Joint))
	for k, v := range j.Joint {
		places[k] = slices.Index(f.variables, v)
	}
	for c := range cells {
		rest := c
		for k, u := range slices.Backward(places) {
			at[k] = rest % f.fit.Domains[u]
			rest /= f.fit.Domains[u]
		}
		s, err := f.share(ctx, list, j.Threads, false, f.clamp(places, at))
		if err != nil {
			return nil, 0, err
		}
		cells[c] = s.number(s.z)
		flops += s.flops
	}
	return cells, flops, nil
}
