package counts

// The joint marginal of a set of variables, unnormalised.

import (
	"context"
	"slices"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// Joint returns the joint marginal of a set, cell by cell,
//
//	M(x) = Σ_c h_c [z^c] Π_t p_t(z | x)
//
// over the pieces t that have the set, where h is S contracted with all other pieces, once. Errors: as of
// Value; fault.OverBudget where the cells take too much.
func (f *Form) Joint(ctx context.Context, set []int) (Answer, error) {
	e := &evaluation{Form: f, ctx: ctx, ops: newOps(ctx)}
	if err := f.fits(true); err != nil {
		return Answer{}, err
	}
	if err := f.fill(ctx, e.ops); err != nil {
		return Answer{}, err
	}
	j, err := e.jointOf(set)
	if err != nil {
		return Answer{}, err
	}

	h, err := j.others()
	if err != nil {
		return Answer{}, err
	}
	cells := 1
	for _, v := range set {
		cells *= f.net.Variables[v].Domain
	}
	out := make([]scaled.Number, cells)
	for cell := range out {
		p, err := j.cell(cell)
		if err != nil {
			return Answer{}, err
		}
		out[cell] = countspace.Dot(h, p, e.ops).Mul(f.scale)
	}
	return Answer{Joint: out, MulAdds: e.ops.MulAdds}, ctx.Err()
}

// joint is a set of variables and the pieces that have them.
type joint struct {
	*evaluation
	set    []int
	link   []int // by place in the set
	pieces []int
	terms  map[int]int // by link: the term of the cell in view
}

// jointOf finds the pieces of a set.
func (e *evaluation) jointOf(set []int) (*joint, error) {
	j := &joint{evaluation: e, set: set, terms: map[int]int{}}
	cells, price := 1.0, 0.0
	for _, v := range set {
		j.link = append(j.link, e.net.Variables[v].Link)
		cells *= float64(e.net.Variables[v].Domain)
	}
	for t := range e.piece {
		if slices.ContainsFunc(e.piece[t].links, func(k int) bool { return slices.Contains(j.link, k) }) {
			j.pieces = append(j.pieces, t)
			price += float64(e.polys[e.of[t]].Size())
			if w := e.kinds[e.of[t]].wired; w != nil {
				m, _ := w.cost()
				price += m
			}
		}
	}
	if price *= 2 * cells; price > policy.MostEnumerated {
		return nil, fault.New(fault.OverBudget,
			"counts: the joint marginal of %d variables takes %.3g flops, at most %.0g are done",
			len(set), price, policy.MostEnumerated)
	}
	return j, nil
}

// others returns S contracted with all pieces that have nothing of the set, over the box of the product of
// those that have.
func (j *joint) others() (countspace.Poly, error) {
	polys, powers := slices.Clone(j.polys), j.powers()
	own := countspace.Constant(j.vars, scaled.One)
	for _, t := range j.pieces {
		own = own.Mul(j.polys[j.of[t]], j.ops)
		powers[j.of[t]]--
	}
	left, at := []countspace.Poly{}, []int{}
	for k, n := range powers {
		if n > 0 {
			left, at = append(left, polys[k]), append(at, n)
		}
	}
	last := len(left)
	left, at = append(left, own), append(at, 1)
	var h countspace.Poly
	_, err := j.total(left, at, func(k int) bool { return k == last }, func(_ int, d countspace.Poly) error {
		h = d
		return nil
	})
	return h, err
}

// cell returns Π_t p_t(z | x) for a cell.
func (j *joint) cell(cell int) (countspace.Poly, error) {
	for k := len(j.set) - 1; k >= 0; k-- {
		domain := j.net.Variables[j.set[k]].Domain
		j.terms[j.link[k]] = cell % domain
		cell /= domain
	}
	out := countspace.Constant(j.vars, scaled.One)
	for _, t := range j.pieces {
		p, err := j.given(t)
		if err != nil {
			return p, err
		}
		out = out.Mul(p, j.ops)
	}
	return out, nil
}

// given returns the polynomial of a piece with the terms of the cell.
func (j *joint) given(t int) (countspace.Poly, error) {
	kind := &j.kinds[j.of[t]]
	links := j.piece[t].links
	if kind.wired == nil {
		x := j.terms[links[0]]
		w := j.net.Links[links[0]].T.(*tensor.CP).Weights[x]
		return j.term(links[0], x, j.ops).Scale(scaled.FromFloat(w)), j.ctx.Err()
	}
	only := make([]int, len(links)) // 1 + the term, 0 for all
	for i, link := range links {
		if x, ok := j.terms[link]; ok {
			only[i] = x + 1
		}
	}
	// The numbers of the piece are its kind's, link by link.
	r := &run{layout: j.layout, net: kind.wired, ctx: j.ctx, ops: j.ops, only: only}
	return r.up()
}
