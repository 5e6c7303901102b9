package exchangeable

// The sum over all count vectors: their terms, and what is asked of their distribution.

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/base/pace"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
)

const (
	// maxVectors bounds the count vectors of a sum.
	maxVectors = 1 << 22
	// minInner is the number of vectors that the inner side has at least, if there are as many.
	minInner = 128
	// vectorBytes is what a count vector takes: a logarithm and a weight.
	vectorBytes = 24
)

// side is some of the classes: its vectors are all combinations of theirs, the last class fastest.
type side struct {
	classes []int
	sizes   []int
	size    int
}

// sideOf returns the side of some classes.
func sideOf(classes []int, lists []*list) side {
	s := side{classes: classes, size: 1}
	for _, c := range classes {
		s.sizes = append(s.sizes, lists[c].size)
		s.size *= lists[c].size
	}
	return s
}

// vectors sets to, by class, to the vectors of the side's classes in one of its own vectors.
func (s *side) vectors(vector int, to []int) {
	for k, c := range slices.Backward(s.classes) {
		to[c] = vector % s.sizes[k]
		vector /= s.sizes[k]
	}
}

// termSum is the terms of all count vectors of a share: the combinations of its outer vectors with all inner ones.
type termSum struct {
	lists                []*list
	outer, inner         side
	firstOuter, endOuter int       // the outer vectors of the share
	largest              logarithm // term; −Inf: all are 0
	ln                   []logarithm
	masses               []float64 // e^(ln − largest), by outer vector and inner vector
	sum                  float64   // of the masses
	roundings            float64   // of a term
}

// innerClasses divides the classes, whose numbers of vectors are given, between an inner side and an outer one. The inner side has the
// largest ones, until they have minInner vectors together.
func innerClasses(sizes []float64) (inner, outer []int) {
	sequence := make([]int, len(sizes))
	for c := range sizes {
		sequence[c] = c
	}
	slices.SortStableFunc(sequence, func(a, b int) int { return cmp.Compare(sizes[b], sizes[a]) })
	count, product := 0, 1.0
	for count < len(sequence) && (count == 0 || product < minInner) {
		product *= sizes[sequence[count]]
		count++
	}
	return sequence[:count], sequence[count:]
}

// basisBytes returns the bytes of sides.basis for an inner side with so many vectors.
func basisBytes(k *kinds, inner []int, vectors float64) float64 {
	monomials := map[string]bool{}
	for _, x := range slices.Concat(k.terms, k.forbidden) {
		var members []member
		for _, m := range x.members {
			if slices.Contains(inner, m.class) {
				members = append(members, m)
			}
		}
		if len(members) > 0 && len(members) < len(x.members) {
			monomials[fmt.Sprint(members)] = true
		}
	}
	return 8 * vectors * float64(len(monomials))
}

// sumOver computes the terms of all vectors of a share: the product of the lists' weights and the kinds' terms. If the form is maximal the
// weight of one assignment takes the place of the sum of all. Cost O(vectors · inner members of terms).
func sumOver(ctx context.Context, f *form, lists []*list, share *Sum, threads int) (*termSum, error) {
	t := &termSum{lists: lists, largest: impossible}
	sizes := make([]float64, len(lists))
	for c, l := range lists {
		sizes[c] = float64(l.size)
		t.roundings += l.roundings
	}
	inner, outer := innerClasses(sizes)
	t.inner, t.outer = sideOf(inner, lists), sideOf(outer, lists)
	t.firstOuter, t.endOuter = int(shareStart(t.outer.size, share.From)), int(shareStart(t.outer.size, share.To))
	if t.inner.size == 0 || t.firstOuter == t.endOuter {
		return t, nil
	}
	r, err := newSides(ctx, f.kinds, t, f.isMaximal)
	if err != nil {
		return nil, err
	}
	t.ln = make([]logarithm, t.inner.size*(t.endOuter-t.firstOuter))
	err = t.eachOuter(ctx, r, threads, func(w *outerWorker, o int) {
		w.fillTerms(t.firstOuter+o, f.fields.constant, t.ln[o*t.inner.size:(o+1)*t.inner.size])
	})
	if err != nil {
		return nil, err
	}
	for _, x := range t.ln {
		if x.isAbove(t.largest) {
			t.largest = x
		}
	}
	if t.largest.isImpossible() {
		return t, nil
	}
	t.masses = make([]float64, len(t.ln))
	rounding := 0.0
	for vector, x := range t.ln {
		if x.isImpossible() {
			continue
		}
		w := math.Exp(x.minus(t.largest).float())
		t.masses[vector] = w
		y := w - rounding // compensated (Kahan)
		next := t.sum + y
		rounding = (next - t.sum) - y
		t.sum = next
	}
	return t, ctx.Err()
}

// shareStart returns the outer vector at which a share begins.
func shareStart(vectors int, share int64) int64 { return int64(vectors) * share / WholeShare }

// eachOuter calls f for every outer vector of the share, numbered from 0, with a worker for each thread.
func (t *termSum) eachOuter(ctx context.Context, r *sides, threads int, f func(w *outerWorker, o int)) error {
	threads = sumproduct.Threads(threads)
	workers := make([]*outerWorker, threads)
	return sumproduct.Share(ctx, threads, t.endOuter-t.firstOuter, func(w, o int) error {
		if workers[w] == nil {
			workers[w] = r.worker(ctx)
		}
		f(workers[w], o)
		return workers[w].look.Err()
	})
}

// vectors sets to, by class, to the vectors of the classes in a term.
func (t *termSum) vectors(term int, to []int) {
	t.outer.vectors(t.firstOuter+term/t.inner.size, to)
	t.inner.vectors(term%t.inner.size, to)
}

// lnZ returns ln of the sum.
func (t *termSum) lnZ() logarithm {
	if t.largest.isImpossible() {
		return impossible
	}
	return t.largest.plus(logarithmOf(t.sum))
}

// sides are the kinds' terms, divided between an inner and an outer side.
type sides struct {
	*termSum
	maximal bool
	isBare  bool        // the outer lists' weights are left out
	basis   [][]float64 // by monomial and inner vector: the ways to choose its members
	innerLn []logarithm // by inner vector: its lists' weights and the terms of inner members alone

	outerTerms, outerForbidden []term // of outer members alone
	mixedTerms, mixedForbidden []mixedTerm
}

// mixedTerm is a term with members of both sides.
type mixedTerm struct {
	monomial int
	outer    term
}

// newSides divides the kinds' terms between the sides of a sum and computes what depends on the inner vector alone.
func newSides(ctx context.Context, k *kinds, t *termSum, maximal bool) (*sides, error) {
	r := &sides{termSum: t, maximal: maximal, innerLn: make([]logarithm, t.inner.size)}
	isInner := make([]bool, len(t.lists))
	for _, c := range t.inner.classes {
		isInner[c] = true
	}
	counts, vectors := make([][]int32, len(t.lists)), make([]int, len(t.lists))
	look := pace.New(ctx)
	eachInner := func(members []member, f func(vector int, ways float64)) {
		for vector := range r.innerLn {
			if look.Over(8) {
				return
			}
			t.inner.vectors(vector, vectors)
			for _, c := range t.inner.classes {
				counts[c] = t.lists[c].count(vectors[c])
			}
			f(vector, countWays(members, counts))
		}
	}
	eachInner(nil, func(vector int, _ float64) {
		for _, c := range t.inner.classes {
			r.innerLn[vector] = r.innerLn[vector].plus(r.lnWeight(c, vectors[c]))
		}
	})
	known := map[string]int{}
	monomial := func(members []member) int {
		key := fmt.Sprint(members)
		place, ok := known[key]
		if !ok {
			place = len(r.basis)
			known[key] = place
			row := make([]float64, len(r.innerLn))
			eachInner(members, func(vector int, ways float64) { row[vector] = ways })
			r.basis = append(r.basis, row)
		}
		return place
	}
	divide := func(x term) (inside, outside []member) {
		for _, m := range x.members {
			if isInner[m.class] {
				inside = append(inside, m)
			} else {
				outside = append(outside, m)
			}
		}
		return inside, outside
	}
	for _, x := range k.terms {
		switch inside, outside := divide(x); {
		case len(inside) == 0:
			r.outerTerms = append(r.outerTerms, x)
		case len(outside) == 0:
			eachInner(inside, func(vector int, ways float64) { r.innerLn[vector] = r.innerLn[vector].plus(x.ln.times(ways)) })
		default:
			r.mixedTerms = append(r.mixedTerms, mixedTerm{monomial(inside), term{outside, x.ln}})
		}
	}
	for _, x := range k.forbidden {
		switch inside, outside := divide(x); {
		case len(inside) == 0:
			r.outerForbidden = append(r.outerForbidden, x)
		case len(outside) == 0:
			eachInner(inside, func(vector int, ways float64) {
				if ways > 0 {
					r.innerLn[vector] = impossible
				}
			})
		default:
			r.mixedForbidden = append(r.mixedForbidden, mixedTerm{monomial(inside), term{outside, impossible}})
		}
	}
	return r, ctx.Err()
}

// lnWeight returns ln of the weight of a class's vector.
func (r *sides) lnWeight(class, vector int) logarithm {
	if r.maximal {
		return r.lists[class].lnOne[vector]
	}
	return r.lists[class].ln[vector]
}

// outerWorker computes the terms of one outer vector after the other.
type outerWorker struct {
	*sides
	vectors []int
	counts  [][]int32
	factors []logarithm // by monomial
	row     []logarithm // room for the terms of an outer vector
	look    *pace.Pace
}

// worker returns a worker.
func (r *sides) worker(ctx context.Context) *outerWorker {
	return &outerWorker{
		r, make([]int, len(r.lists)), make([][]int32, len(r.lists)), make([]logarithm, len(r.basis)), make([]logarithm, len(r.innerLn)),
		pace.New(ctx),
	}
}

// fillTerms sets to the logarithms of the terms of an outer vector, by inner vector.
func (w *outerWorker) fillTerms(vector int, constant logarithm, to []logarithm) {
	w.outer.vectors(vector, w.vectors)
	ln := constant
	for _, c := range w.outer.classes {
		if !w.isBare {
			ln = ln.plus(w.lnWeight(c, w.vectors[c]))
		}
		w.counts[c] = w.lists[c].count(w.vectors[c])
	}
	for _, x := range w.outerTerms {
		ln = ln.plus(x.ln.times(countWays(x.members, w.counts)))
	}
	for _, x := range w.outerForbidden {
		if countWays(x.members, w.counts) > 0 {
			ln = impossible
		}
	}
	if ln.isImpossible() {
		for i := range to {
			to[i] = impossible
		}
		return
	}
	for i, x := range w.innerLn {
		to[i] = x.plus(ln)
	}
	clear(w.factors)
	for _, x := range w.mixedTerms {
		if n := countWays(x.outer.members, w.counts); n > 0 {
			w.factors[x.monomial] = w.factors[x.monomial].plus(x.outer.ln.times(n))
		}
	}
	for m, factor := range w.factors {
		if factor == (logarithm{}) || w.look.Over(int64(len(to))) {
			continue
		}
		for i, n := range w.basis[m] {
			if n != 0 {
				to[i] = to[i].plus(factor.times(n))
			}
		}
	}
	for _, x := range w.mixedForbidden {
		if countWays(x.outer.members, w.counts) > 0 {
			for i, n := range w.basis[x.monomial] {
				if n > 0 {
					to[i] = impossible
				}
			}
		}
	}
}

// distributions returns, by class, the probabilities of its vectors.
func (t *termSum) distributions() [][]float64 {
	innerMasses, outerMasses := make([]float64, t.inner.size), make([]float64, t.outer.size)
	for o := range t.endOuter - t.firstOuter {
		sum := 0.0
		for i, w := range t.masses[o*len(innerMasses) : (o+1)*len(innerMasses)] {
			innerMasses[i] += w
			sum += w
		}
		outerMasses[t.firstOuter+o] = sum
	}
	distributions := make([][]float64, len(t.lists))
	for c, l := range t.lists {
		distributions[c] = make([]float64, l.size)
	}
	vectors := make([]int, len(t.lists))
	for _, s := range []struct {
		side
		weights []float64
	}{{t.inner, innerMasses}, {t.outer, outerMasses}} {
		for vector, w := range s.weights {
			s.vectors(vector, vectors)
			for _, c := range s.classes {
				distributions[c][vectors[c]] += w / t.sum
			}
		}
	}
	return distributions
}

// jointOf returns the probabilities of the vectors of some classes together, the last class fastest.
func (t *termSum) jointOf(classes []int) []float64 {
	size := 1
	stride := make([]int, len(t.lists))
	for _, c := range slices.Backward(classes) {
		stride[c] = size
		size *= t.lists[c].size
	}
	vectors := make([]int, len(t.lists))
	places := func(s *side) []int {
		list := make([]int, s.size)
		for vector := range list {
			s.vectors(vector, vectors)
			for _, c := range s.classes {
				list[vector] += stride[c] * vectors[c]
			}
		}
		return list
	}
	inner, outer := places(&t.inner), places(&t.outer)
	out := make([]float64, size)
	for o, from := range outer[t.firstOuter:t.endOuter] {
		for i, w := range t.masses[o*len(inner) : (o+1)*len(inner)] {
			out[from+inner[i]] += w / t.sum
		}
	}
	return out
}
