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

// Joint returns the joint marginal of a set of variables, cell by cell, unnormalised:
//
//	M(x) = Σ_c h_c [z^c] Π_t p_t(z | x)
//
// over the pieces t that have variables of the set, where h is S contracted with all other pieces, computed once. The last variable changes
// fastest. Errors: those of Value; fault.OverBudget if the cells take too much.
func (f *Form) Joint(ctx context.Context, set []int) (Answer, error) {
	e := &evaluation{Form: f, ctx: ctx, ops: newOps(ctx)}
	const withDerivatives = true // h is one: of Z, by the product of the pieces of the set
	if err := f.checkMemory(withDerivatives); err != nil {
		return Answer{}, err
	}
	if err := f.computePolys(ctx, e.ops); err != nil {
		return Answer{}, err
	}
	j, err := e.newJoint(set)
	if err != nil {
		return Answer{}, err
	}

	h, err := j.othersPoly()
	if err != nil {
		return Answer{}, err
	}
	cells := 1
	for _, v := range set {
		cells *= f.net.Variables[v].Domain
	}
	marginal := make([]scaled.Number, cells)
	for cell := range marginal {
		p, err := j.cellPoly(cell)
		if err != nil {
			return Answer{}, err
		}
		marginal[cell] = countspace.Dot(h, p, e.ops).Mul(f.scale)
	}
	return Answer{Joint: marginal, MulAdds: e.ops.MulAdds}, ctx.Err()
}

// jointMarginal is a set of variables and the pieces that have them.
type jointMarginal struct {
	*evaluation
	set         []int       // variables
	links       []int       // by position in the set: the variable's link
	piecesOfSet []int       // pieces with a variable of the set
	terms       map[int]int // by link: the term in the present cell
}

// newJoint finds the pieces, connected parts of the network, that have the variables of a set. The cells of the joint marginal are computed
// one by one, each from the polynomials of these pieces. The error is over budget if that takes too many flops.
func (e *evaluation) newJoint(set []int) (*jointMarginal, error) {
	j := &jointMarginal{evaluation: e, set: set, terms: map[int]int{}}
	cells, mulAddsPerCell := 1.0, 0.0
	for _, v := range set {
		j.links = append(j.links, e.net.Variables[v].Link)
		cells *= float64(e.net.Variables[v].Domain)
	}
	for t := range e.pieces {
		if slices.ContainsFunc(e.pieces[t].links, func(k int) bool { return slices.Contains(j.links, k) }) {
			j.piecesOfSet = append(j.piecesOfSet, t)
			mulAddsPerCell += float64(e.polys[e.kindOf[t]].Size())
			if tables := e.kinds[e.kindOf[t]].tables; tables != nil {
				muladds, _ := tables.cost()
				mulAddsPerCell += muladds
			}
		}
	}
	price := mulAddsPerCell * (2 * cells) // 2 flops a multiply-add
	if price > policy.MostEnumerated {
		return nil, fault.New(fault.OverBudget,
			"counts: the joint marginal of %d variables takes %.3g flops, at most %.0g are done",
			len(set), price, policy.MostEnumerated)
	}
	return j, nil
}

// othersPoly returns h: S, the polynomial of the symmetric cores, contracted with all pieces that have no variable of the set. It is the
// derivative of Z by one factor, the product of the pieces that have one, over the box of that product. So it is computed as the derivative
// by the last factor of a product.
func (j *jointMarginal) othersPoly() (countspace.Poly, error) {
	// The pieces of the set are one factor, all others the factors of their kinds.
	powers := j.powers()
	productOfSet := countspace.Constant(j.countVariables, scaled.One)
	for _, t := range j.piecesOfSet {
		productOfSet = productOfSet.Mul(j.polys[j.kindOf[t]], j.ops)
		powers[j.kindOf[t]]--
	}
	otherPolys, otherPowers := []countspace.Poly{}, []int{}
	for k, n := range powers {
		if n > 0 {
			otherPolys, otherPowers = append(otherPolys, j.polys[k]), append(otherPowers, n)
		}
	}
	last := len(otherPolys)
	factors, factorPowers := append(otherPolys, productOfSet), append(otherPowers, 1)

	var h countspace.Poly
	isWanted := func(k int) bool { return k == last }
	_, err := j.sumProduct(factors, factorPowers, isWanted, func(_ int, derivative countspace.Poly) error {
		h = derivative
		return nil
	})
	return h, err
}

// cellPoly returns Π_t p_t(z | x) over the pieces t with variables of the set, for the values x of a cell. The last variable of the set
// changes fastest in the cell's number.
func (j *jointMarginal) cellPoly(cell int) (countspace.Poly, error) {
	for k := len(j.set) - 1; k >= 0; k-- {
		domain := j.net.Variables[j.set[k]].Domain
		j.terms[j.links[k]] = cell % domain
		cell /= domain
	}
	product := countspace.Constant(j.countVariables, scaled.One)
	for _, t := range j.piecesOfSet {
		p, err := j.piecePoly(t)
		if err != nil {
			return p, err
		}
		product = product.Mul(p, j.ops)
	}
	return product, nil
}

// piecePoly returns the polynomial of piece t if the variables of the set have the values of the present cell, one combination of values.
// j.terms has the links of these variables: link → the term of that value. The kind of a piece is its class of equal pieces.
func (j *jointMarginal) piecePoly(t int) (countspace.Poly, error) {
	kind := &j.kinds[j.kindOf[t]]
	links := j.pieces[t].links
	if kind.tables == nil { // then it is one link, and that of a variable of the set
		x := j.terms[links[0]]
		w := j.net.Links[links[0]].T.(*tensor.CP).Weights[x]
		return j.termPoly(links[0], x, j.ops).Scale(scaled.FromFloat(w)), j.ctx.Err()
	}
	fixedTerm := make([]int, len(links)) // by link: 1 + the term, 0 for all terms
	for i, link := range links {
		if x, ok := j.terms[link]; ok {
			fixedTerm[i] = x + 1
		}
	}

	// The plan of the kind's first piece has the same numbers, link by link.
	r := &tableRun{layout: j.layout, netPlan: kind.tables, ctx: j.ctx, ops: j.ops, fixedTerm: fixedTerm}
	return r.fillTables()
}
