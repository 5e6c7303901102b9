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
	"github.com/basetensor/basetensor/pkg/fault"
)

const (
	// mostVectors bounds the count vectors of a sum.
	mostVectors = 1 << 22
	// leastInner is the number of vectors of the inner side, if there are so many.
	leastInner = 128
	// vectorBytes is what a count vector takes: a logarithm and a weight.
	vectorBytes = 24
)

// side is some of the classes: its vectors are all combinations of theirs, the last class fastest.
type side struct {
	classes []int
	sizes   []int
	size    int
}

func sideOf(classes []int, lists []*list) side {
	s := side{classes: classes, size: 1}
	for _, c := range classes {
		s.sizes = append(s.sizes, lists[c].size)
		s.size *= lists[c].size
	}
	return s
}

// vectors returns the vector of every class, by class, of one of the side's.
func (s *side) vectors(vector int, to []int) {
	for k, c := range slices.Backward(s.classes) {
		to[c] = vector % s.sizes[k]
		vector /= s.sizes[k]
	}
}

// total is the terms of all count vectors: e^(ln + largest) each, in units of e^largest.
type total struct {
	lists        []*list
	outer, inner side
	largest      logarithm // −Inf: all terms are 0
	ln           []logarithm
	weights      []float64 // outer vector by outer vector
	sum          float64   // of the weights
	steps        float64   // roundings of a term
	flops        float64
}

// flopsOf is the work of a sum over so many vectors, with so many terms and lists.
func flopsOf(k *kinds, lists []*list) float64 {
	n := 1.0
	for _, l := range lists {
		n *= float64(l.size)
	}
	return n * (40 + 12*float64(len(k.terms)+len(k.forbidden)))
}

// sumOver computes the terms of all vectors: Π of the lists' weights times the kinds' terms. maximal has the weight of one assignment in
// place of the sum of all. Cost O(vectors · inner members of terms). Over budget if there are more vectors than mostVectors.
func sumOver(ctx context.Context, k *kinds, lists []*list, constant logarithm, maximal bool, threads int) (*total, error) {
	t := &total{lists: lists, largest: impossible}
	sequence := make([]int, len(lists))
	n := 1.0
	for c, l := range lists {
		sequence[c] = c
		n *= float64(l.size)
		t.steps += l.steps
	}
	if n > mostVectors {
		return nil, fault.New(fault.OverBudget, "exchangeable: %.3g count vectors, at most %d are added up", n, mostVectors)
	}
	slices.SortStableFunc(sequence, func(a, b int) int { return cmp.Compare(lists[b].size, lists[a].size) })
	cut, size := 0, 1
	for cut < len(sequence) && (cut == 0 || size < leastInner) {
		size *= lists[sequence[cut]].size
		cut++
	}
	t.inner, t.outer = sideOf(sequence[:cut], lists), sideOf(sequence[cut:], lists)
	t.flops = flopsOf(k, lists)
	if t.inner.size == 0 || t.outer.size == 0 {
		return t, nil
	}
	r, err := newSides(ctx, k, t, maximal)
	if err != nil {
		return nil, err
	}
	t.ln = make([]logarithm, t.inner.size*t.outer.size)
	err = t.each(ctx, r, threads, func(w *outerWorker, o int) {
		w.fill(o, constant, t.ln[o*t.inner.size:(o+1)*t.inner.size])
	})
	if err != nil {
		return nil, err
	}
	for _, x := range t.ln {
		if x.above(t.largest) {
			t.largest = x
		}
	}
	if t.largest.isImpossible() {
		return t, nil
	}
	t.weights = make([]float64, len(t.ln))
	rounding := 0.0
	for vector, x := range t.ln {
		if x.isImpossible() {
			continue
		}
		w := math.Exp(x.minus(t.largest).float())
		t.weights[vector] = w
		y := w - rounding // compensated (Kahan)
		next := t.sum + y
		rounding = (next - t.sum) - y
		t.sum = next
	}
	return t, ctx.Err()
}

// each calls f for every outer vector, with a worker for each thread.
func (t *total) each(ctx context.Context, r *sides, threads int, f func(w *outerWorker, o int)) error {
	threads = sumproduct.Threads(threads)
	workers := make([]*outerWorker, threads)
	return sumproduct.Share(ctx, threads, t.outer.size, func(w, o int) error {
		if workers[w] == nil {
			workers[w] = r.worker()
		}
		f(workers[w], o)
		return nil
	})
}

// lnZ is ln Z.
func (t *total) lnZ() logarithm {
	if t.largest.isImpossible() {
		return impossible
	}
	return t.largest.plus(logarithmOf(t.sum, 0))
}

// sides are the kinds' terms, divided between an inner and an outer side.
type sides struct {
	*total
	maximal   bool
	isBare    bool        // the outer lists' weights are left out
	basis     [][]float64 // by monomial and inner vector: the ways to choose its members
	inner     []logarithm // by inner vector: its lists' weights and its own terms
	alone     []term      // terms of outer members alone, and forbidden ones
	forbidden []term
	mixed     []mixedTerm
	barred    []mixedTerm
}

// mixedTerm is a term with members of both sides.
type mixedTerm struct {
	monomial int
	outer    term
}

func newSides(ctx context.Context, k *kinds, t *total, maximal bool) (*sides, error) {
	r := &sides{total: t, maximal: maximal, inner: make([]logarithm, t.inner.size)}
	isInner := make([]bool, len(t.lists))
	for _, c := range t.inner.classes {
		isInner[c] = true
	}
	counts, vectors := make([][]int32, len(t.lists)), make([]int, len(t.lists))
	look := pace.New(ctx)
	eachInner := func(members []member, f func(vector int, ways float64)) {
		for vector := range r.inner {
			if look.Over(8) {
				return
			}
			t.inner.vectors(vector, vectors)
			for _, c := range t.inner.classes {
				counts[c] = t.lists[c].count(vectors[c])
			}
			f(vector, ways(members, counts))
		}
	}
	eachInner(nil, func(vector int, _ float64) {
		for _, c := range t.inner.classes {
			r.inner[vector] = r.inner[vector].plus(r.lnOf(c, vectors[c]))
		}
	})
	known := map[string]int{}
	monomial := func(members []member) int {
		key := fmt.Sprint(members)
		place, ok := known[key]
		if !ok {
			place = len(r.basis)
			known[key] = place
			row := make([]float64, len(r.inner))
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
			r.alone = append(r.alone, x)
		case len(outside) == 0:
			eachInner(inside, func(vector int, ways float64) { r.inner[vector] = r.inner[vector].plus(x.ln.times(ways)) })
		default:
			r.mixed = append(r.mixed, mixedTerm{monomial(inside), term{outside, x.ln}})
		}
	}
	for _, x := range k.forbidden {
		switch inside, outside := divide(x); {
		case len(inside) == 0:
			r.forbidden = append(r.forbidden, x)
		case len(outside) == 0:
			eachInner(inside, func(vector int, ways float64) {
				if ways > 0 {
					r.inner[vector] = impossible
				}
			})
		default:
			r.barred = append(r.barred, mixedTerm{monomial(inside), term{outside, impossible}})
		}
	}
	return r, ctx.Err()
}

// lnOf is ln of a vector's weight.
func (r *sides) lnOf(class, vector int) logarithm {
	if r.maximal {
		return r.lists[class].best[vector]
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
}

func (r *sides) worker() *outerWorker {
	return &outerWorker{
		r, make([]int, len(r.lists)), make([][]int32, len(r.lists)), make([]logarithm, len(r.basis)), make([]logarithm, len(r.inner)),
	}
}

// fill sets the logarithms of the terms of an outer vector.
func (w *outerWorker) fill(vector int, constant logarithm, to []logarithm) {
	w.outer.vectors(vector, w.vectors)
	ln := constant
	for _, c := range w.outer.classes {
		if !w.isBare {
			ln = ln.plus(w.lnOf(c, w.vectors[c]))
		}
		w.counts[c] = w.lists[c].count(w.vectors[c])
	}
	for _, x := range w.alone {
		ln = ln.plus(x.ln.times(ways(x.members, w.counts)))
	}
	for _, x := range w.forbidden {
		if ways(x.members, w.counts) > 0 {
			ln = impossible
		}
	}
	if ln.isImpossible() {
		for i := range to {
			to[i] = impossible
		}
		return
	}
	for i, x := range w.sides.inner {
		to[i] = x.plus(ln)
	}
	clear(w.factors)
	for _, x := range w.mixed {
		if n := ways(x.outer.members, w.counts); n > 0 {
			w.factors[x.monomial] = w.factors[x.monomial].plus(x.outer.ln.times(n))
		}
	}
	for m, factor := range w.factors {
		if factor == (logarithm{}) {
			continue
		}
		for i, n := range w.basis[m] {
			if n != 0 {
				to[i] = to[i].plus(factor.times(n))
			}
		}
	}
	for _, x := range w.barred {
		if ways(x.outer.members, w.counts) > 0 {
			for i, n := range w.basis[x.monomial] {
				if n > 0 {
					to[i] = impossible
				}
			}
		}
	}
}

// distributions returns the probabilities of every class's vectors.
func (t *total) distributions() [][]float64 {
	inner, outer := make([]float64, t.inner.size), make([]float64, t.outer.size)
	for o := range outer {
		sum := 0.0
		for i, w := range t.weights[o*len(inner) : (o+1)*len(inner)] {
			inner[i] += w
			sum += w
		}
		outer[o] = sum
	}
	out := make([][]float64, len(t.lists))
	for c, l := range t.lists {
		out[c] = make([]float64, l.size)
	}
	vectors := make([]int, len(t.lists))
	for _, s := range []struct {
		side
		weights []float64
	}{{t.inner, inner}, {t.outer, outer}} {
		for vector, w := range s.weights {
			s.vectors(vector, vectors)
			for _, c := range s.classes {
				out[c][vectors[c]] += w / t.sum
			}
		}
	}
	return out
}

// over returns the probabilities of the vectors of some classes together, the last class fastest.
func (t *total) over(classes []int) []float64 {
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
	for o, from := range outer {
		for i, w := range t.weights[o*len(inner) : (o+1)*len(inner)] {
			out[from+inner[i]] += w / t.sum
		}
	}
	return out
}
