package frobenius

// The same steps in several variables: multiplying by, and contracting with, polynomials of few
// coefficients. A leg's polynomial over D levels has D of them in a box of 2^(D−1).

import (
	"github.com/basetensor/basetensor/pkg/countspace"
)

// mostTerms is the number of non-zero coefficients up to which adding shifted copies beats a sum per
// coefficient.
const mostTerms = 16

// placed is a non-zero coefficient and its place.
type placed struct {
	mant float64
	exp  int64
	at   []int
}

// fewTerms lists the non-zero coefficients of q, false if they are many or q is not canonical.
func fewTerms(q countspace.Poly) ([]placed, bool) {
	if len(q.Coef.Exp) != len(q.Coef.Mant) {
		return nil, false
	}
	var terms []placed
	c := make([]int, len(q.Shape))
	for i, m := range q.Coef.Mant {
		if m != 0 {
			if len(terms) == mostTerms {
				return nil, false
			}
			terms = append(terms, placed{m, q.Coef.Exp[i], append([]int(nil), c...)})
		}
		advanceIndex(c, q.Shape)
	}
	return terms, true
}

// multiplyBox returns p·q as Σ of p shifted by the terms of q.
func multiplyBox(p countspace.Poly, shape []int, terms []placed, ops *countspace.Ops) countspace.Poly {
	wide := make([]int, len(shape))
	for a := range wide {
		wide[a] = p.Shape[a] + shape[a] - 1
	}
	out := countspace.New(wide)
	origin := make([]int, len(wide))
	for _, t := range terms {
		addBox(out, t.at, p, origin, p.Shape, t)
		ops.Add(p.Size())
	}
	return out
}

// correlateBox returns h[k] = Σ_j q[j] s[k+j].
func correlateBox(s countspace.Poly, shape []int, terms []placed, ops *countspace.Ops) countspace.Poly {
	narrow := make([]int, len(shape))
	for a := range narrow {
		narrow[a] = s.Shape[a] - shape[a] + 1
	}
	out := countspace.New(narrow)
	origin := make([]int, len(narrow))
	for _, t := range terms {
		addBox(out, origin, s, t.at, narrow, t)
		ops.Add(out.Size())
	}
	return out
}

// addBox adds t·src[from+c] to dst[to+c] for all c of a box, row after row of the last variable.
func addBox(dst countspace.Poly, to []int, src countspace.Poly, from, box []int, t placed) {
	last := len(box) - 1
	c := make([]int, last)
	rows := 1
	for _, side := range box[:last] {
		rows *= side
	}

	for range rows {
		i, j := 0, 0
		for a, k := range c {
			i = (i + to[a] + k) * dst.Shape[a+1]
			j = (j + from[a] + k) * src.Shape[a+1]
		}
		i, j = i+to[last], j+from[last]
		dm, de := dst.Coef.Mant[i:i+box[last]], dst.Coef.Exp[i:i+box[last]]
		sm, se := src.Coef.Mant[j:j+box[last]], src.Coef.Exp[j:j+box[last]]
		for k := range dm {
			dm[k], de[k] = addTwo(dm[k], de[k], sm[k]*t.mant, se[k]+t.exp)
		}
		advanceIndex(c, box[:last])
	}
}
