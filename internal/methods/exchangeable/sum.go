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

// side is some of the classes. Its vectors are all combinations of the classes' count vectors, numbered with the last class fastest.
type side struct {
	classes []int
	sizes   []int // by class of the side: the number of its count vectors
	size    int   // product of sizes
}

// sideOf returns the side of some classes, whose count vectors are in lists.
func sideOf(classes []int, lists []*list) side {
	s := side{classes: classes, size: 1}
	for _, c := range classes {
		s.sizes = append(s.sizes, lists[c].size)
		s.size *= lists[c].size
	}
	return s
}

// splitVector finds the count vectors of the side's classes that are combined in one of the side's vectors. It sets vectors, by class, for
// these classes.
func (s *side) splitVector(vector int, vectors []int) {
	for k, c := range slices.Backward(s.classes) {
		vectors[c] = vector % s.sizes[k]
		vector /= s.sizes[k]
	}
}

// termSum is the terms of all count vectors of a share: the combinations of its outer vectors with all inner ones.
type termSum struct {
	lists                []*list
	outer, inner         side
	firstOuter, endOuter int         // the share has outer vectors from firstOuter to endOuter − 1
	largest              logarithm   // of the terms; −Inf if all are 0
	ln                   []logarithm // of the terms, by outer vector of the share and inner vector
	masses               []float64   // e^(ln − largest)
	sum                  float64     // of the masses
	roundings            float64     // of a term
}

// innerClasses divides the classes between an inner side and an outer one: a sum goes over all combinations of the outer classes' count
// vectors, and for each over those of the inner classes. sizes are the numbers of their count vectors. The inner side has the largest
// classes, until they have minInner vectors together.
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

// basisBytes returns the bytes of sides.basis if the inner side has the classes inner and so many vectors. A term is a list of members,
// which are conditions on the counts of a class. sides.basis has a number of 8 bytes for each vector and each distinct list of inner
// members of a term that also has outer members.
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

// sumOver computes the terms of all count vectors of a share, and their sum. A count vector of a class says how many of its variables have
// each value; a term is for a combination of one vector of each class. It is the product of the weights of the vectors and of the
// interactions' terms in f.kinds. If the form is maximal, the weight of a vector is that of one assignment instead of the sum of all.
//
// The classes are divided in two sides: a term has an outer vector, the combination of those of the outer classes, and an inner one. A
// share is a range of outer vectors. Cost O(vectors · inner members of terms).
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
	sides, err := newSides(ctx, f.kinds, t, f.isMaximal)
	if err != nil {
		return nil, err
	}

	// The logarithms of the terms, and the largest.
	t.ln = make([]logarithm, t.inner.size*(t.endOuter-t.firstOuter))
	err = t.eachOuter(ctx, sides, threads, func(worker *outerWorker, o int) {
		worker.fillTerms(t.firstOuter+o, f.fields.constant, t.ln[o*t.inner.size:(o+1)*t.inner.size])
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

	t.addMasses()
	return t, ctx.Err()
}

// addMasses sets masses and their sum: the terms in units of the largest one, added with compensated rounding (Kahan).
func (t *termSum) addMasses() {
	t.masses = make([]float64, len(t.ln))
	rounding := 0.0
	for vector, x := range t.ln {
		if x.isImpossible() {
			continue
		}
		mass := math.Exp(x.minus(t.largest).float())
		t.masses[vector] = mass
		y := mass - rounding
		next := t.sum + y
		rounding = (next - t.sum) - y
		t.sum = next
	}
}

// shareStart returns the number of the first outer vector of a share. vectors is the number of all outer vectors, and the share begins
// after share/WholeShare of them.
func shareStart(vectors int, share int64) int64 { return int64(vectors) * share / WholeShare }

// eachOuter calls visit in parallel for every outer vector from firstOuter to endOuter−1, numbered from 0. An outer vector combines count
// vectors of the outer classes. Each thread has a worker of its own. The error is the context's.
func (t *termSum) eachOuter(ctx context.Context, sides *sides, threads int, visit func(worker *outerWorker, outer int)) error {
	threads = sumproduct.Threads(threads)
	workers := make([]*outerWorker, threads)
	return sumproduct.RunChunks(ctx, threads, t.endOuter-t.firstOuter, func(thread, o int) error {
		if workers[thread] == nil {
			workers[thread] = sides.newWorker(ctx)
		}
		visit(workers[thread], o)
		return workers[thread].look.Err()
	})
}

// splitVector finds the count vectors of all classes in a term. It sets vectors, by class.
func (t *termSum) splitVector(term int, vectors []int) {
	t.outer.splitVector(t.firstOuter+term/t.inner.size, vectors)
	t.inner.splitVector(term%t.inner.size, vectors)
}

// lnZ returns ln of the sum of the share's terms.
func (t *termSum) lnZ() logarithm {
	if t.largest.isImpossible() {
		return impossible
	}
	return t.largest.plus(logarithmOf(t.sum))
}

// sides are the kinds' terms, divided between an inner and an outer side.
type sides struct {
	*termSum
	isMaximal bool        // weights are those of one assignment
	isBare    bool        // the weights of the outer classes' vectors are left out
	basis     [][]float64 // by monomial, a set of inner members, and inner vector: the number of ways to choose the members
	innerLn   []logarithm // by inner vector: ln of its classes' weights and of the terms of inner members alone

	outerTerms, outerForbidden []term // of outer members alone
	mixedTerms, mixedForbidden []mixedTerm
}

// mixedTerm is a term with members of both sides.
type mixedTerm struct {
	monomial int  // number of the inner members in sides.basis
	outer    term // the outer members, with ln of the term
}

// newSides divides the terms of the interactions between the inner and the outer side of a sum, and computes what depends on the inner
// vector alone. A term is ln times the number of ways to choose its members among the variables with given counts. A member is a number of
// variables of a given class and value. If a term has members of both sides, its number of ways is that of its inner members times that of
// its outer ones. A set of inner members in such a term is a monomial, with a row of ways in sides.basis.
func newSides(ctx context.Context, k *kinds, t *termSum, isMaximal bool) (*sides, error) {
	r := &sides{termSum: t, isMaximal: isMaximal, innerLn: make([]logarithm, t.inner.size)}
	walk := &innerWalk{sum: t, look: pace.New(ctx), counts: make([][]int32, len(t.lists)), vectors: make([]int, len(t.lists))}

	// The weights of the inner classes' vectors. walk.vectors has the count vectors of the present inner vector.
	walk.each(nil, func(inner int, _ float64) { // nil: no members, so that no ways are counted
		for _, c := range t.inner.classes {
			r.innerLn[inner] = r.innerLn[inner].plus(r.lnWeight(c, walk.vectors[c]))
		}
	})

	monomials := map[string]int{} // by set of inner members, as text: the number of its row in the basis
	for _, x := range k.terms {
		r.addTerm(x, monomials, walk)
	}
	for _, x := range k.forbidden {
		r.addForbidden(x, monomials, walk)
	}
	return r, ctx.Err()
}

// addTerm adds a term by its members, which are conditions on the counts of classes: to outerTerms if all are on outer classes, to innerLn
// if all are on inner classes, and otherwise to mixedTerms. A term adds ln times the number of sets of variables that meet the conditions.
func (r *sides) addTerm(x term, monomials map[string]int, walk *innerWalk) {
	switch inside, outside := r.divide(x.members); {
	case len(inside) == 0:
		r.outerTerms = append(r.outerTerms, x)
	case len(outside) == 0:
		walk.each(inside, func(inner int, ways float64) { r.innerLn[inner] = r.innerLn[inner].plus(x.ln.times(ways)) })
	default:
		r.mixedTerms = append(r.mixedTerms, mixedTerm{r.monomial(inside, monomials, walk), term{outside, x.ln}})
	}
}

// addForbidden is addTerm for a forbidden term: a vector is impossible if, with its counts, some set of variables meets the conditions of
// the term, its members.
func (r *sides) addForbidden(x term, monomials map[string]int, walk *innerWalk) {
	switch inside, outside := r.divide(x.members); {
	case len(inside) == 0:
		r.outerForbidden = append(r.outerForbidden, x)
	case len(outside) == 0:
		walk.each(inside, func(inner int, ways float64) {
			if ways > 0 {
				r.innerLn[inner] = impossible
			}
		})
	default:
		r.mixedForbidden = append(r.mixedForbidden, mixedTerm{r.monomial(inside, monomials, walk), term{outside, impossible}})
	}
}

// divide divides the members of a term, its conditions on the counts of classes, into those on inner classes and those on outer ones.
func (t *termSum) divide(members []member) (inside, outside []member) {
	for _, m := range members {
		if slices.Contains(t.inner.classes, m.class) {
			inside = append(inside, m)
		} else {
			outside = append(outside, m)
		}
	}
	return inside, outside
}

// monomial returns the number of the row of the basis for a set of inner members. A member is a condition: so many variables of a class
// have a value. The row has, by inner vector, the number of ways to choose variables for all members. monomials has the numbers of the
// rows by the sets as text. If it does not have the set, the set is added to it, and its row to the basis.
func (r *sides) monomial(members []member, monomials map[string]int, walk *innerWalk) int {
	key := fmt.Sprint(members)
	number, ok := monomials[key]
	if !ok {
		number = len(r.basis)
		monomials[key] = number
		waysOf := make([]float64, len(r.innerLn))
		walk.each(members, func(inner int, ways float64) { waysOf[inner] = ways })
		r.basis = append(r.basis, waysOf)
	}
	return number
}

// innerWalk visits the inner vectors of a sum one after the other. If the context ends, it stops.
type innerWalk struct {
	sum     *termSum
	look    *pace.Pace
	counts  [][]int32 // by class: of the present inner vector; nil for outer classes
	vectors []int     // by class: the number of these counts in the class's list
}

// each calls visit for every inner vector, one combination of the count vectors of the inner classes. ways is the number of sets of
// variables that meet the conditions of all members, given its counts, and 1 if there are no members. It stops if the context ends.
func (w *innerWalk) each(members []member, visit func(inner int, ways float64)) {
	for inner := range w.sum.inner.size {
		if w.look.Over(8) { // about 8 operations; true if the context has ended
			return
		}
		w.sum.inner.splitVector(inner, w.vectors)
		for _, c := range w.sum.inner.classes {
			w.counts[c] = w.sum.lists[c].count(w.vectors[c])
		}
		visit(inner, countWays(members, w.counts))
	}
}

// lnWeight returns ln of the weight of a class's count vector: the sum over its assignments, or one of them if isMaximal.
func (r *sides) lnWeight(class, vector int) logarithm {
	if r.isMaximal {
		return r.lists[class].lnOne[vector]
	}
	return r.lists[class].ln[vector]
}

// outerWorker computes the terms of one outer vector after the other.
type outerWorker struct {
	*sides
	vectors []int       // by outer class: its count vector
	counts  [][]int32   // by outer class: the counts of its vector
	factors []logarithm // by monomial: what its ways are multiplied by
	row     []logarithm // room for the terms of an outer vector
	look    *pace.Pace
}

// newWorker returns a worker with room for one outer vector.
func (r *sides) newWorker(ctx context.Context) *outerWorker {
	return &outerWorker{
		sides: r, vectors: make([]int, len(r.lists)), counts: make([][]int32, len(r.lists)),
		factors: make([]logarithm, len(r.basis)), row: make([]logarithm, len(r.innerLn)), look: pace.New(ctx),
	}
}

// fillTerms sets row to the logarithms of the terms that combine one outer vector with every inner vector. A logarithm is the sum of
// constant, of those of the classes' weights, and of ln · ways for each term of the interactions: ways is the number of sets of variables
// that meet the conditions of the term, its members. If some set meets the conditions of a forbidden term, the logarithm is −Inf.
func (w *outerWorker) fillTerms(vector int, constant logarithm, row []logarithm) {
	ln := w.readOuter(vector, constant)
	if ln.isImpossible() {
		for i := range row {
			row[i] = impossible
		}
		return
	}
	for i, x := range w.innerLn {
		row[i] = x.plus(ln)
	}
	w.addMixedTerms(row)
	for _, x := range w.mixedForbidden {
		if countWays(x.outer.members, w.counts) > 0 {
			for i, ways := range w.basis[x.monomial] {
				if ways > 0 {
					row[i] = impossible
				}
			}
		}
	}
}

// readOuter sets w.vectors and w.counts for the outer classes to those of an outer vector. It returns the logarithm of what is common to
// all terms of that vector: constant, the weights of the outer classes' count vectors unless isBare is set, and the terms whose members
// are all of outer classes. A term has ln times the number of ways to choose its members.
func (w *outerWorker) readOuter(vector int, constant logarithm) logarithm {
	w.outer.splitVector(vector, w.vectors)
	ln := constant
	for _, c := range w.outer.classes {
		if !w.isBare { // otherwise the weights enter when the outer class is summed out
			ln = ln.plus(w.lnWeight(c, w.vectors[c]))
		}
		w.counts[c] = w.lists[c].count(w.vectors[c])
	}
	for _, x := range w.outerTerms {
		ln = ln.plus(x.ln.times(countWays(x.members, w.counts)))
	}
	for _, x := range w.outerForbidden {
		if countWays(x.members, w.counts) > 0 { // some set of variables meets the conditions of a forbidden term
			ln = impossible
		}
	}
	return ln
}

// addMixedTerms adds the terms with members of both sides to row, by inner vector. A term is ln · ways of its outer members · ways of its
// inner members. The inner members are a monomial, which many terms share. So the first two factors are added up by monomial (w.factors),
// and then multiplied by the ways of the monomial for each inner vector (w.basis).
func (w *outerWorker) addMixedTerms(row []logarithm) {
	clear(w.factors)
	for _, x := range w.mixedTerms {
		if ways := countWays(x.outer.members, w.counts); ways > 0 {
			w.factors[x.monomial] = w.factors[x.monomial].plus(x.outer.ln.times(ways))
		}
	}
	for m, factor := range w.factors {
		// A factor of 0 adds nothing. After the context has ended, row is void (eachOuter looks at look.Err).
		if factor == (logarithm{}) || w.look.Over(int64(len(row))) {
			continue
		}
		for i, ways := range w.basis[m] {
			if ways != 0 {
				row[i] = row[i].plus(factor.times(ways))
			}
		}
	}
}

// distributions returns, by class and count vector of the class, the probability of the vector: the sum of the terms with the vector, over
// the sum of all terms. The classes are on two sides, outer and inner. A term belongs to an outer vector, which combines count vectors of
// the outer classes, and to an inner vector. masses are the terms, by outer vector from firstOuter on, and then by inner vector.
func (t *termSum) distributions() [][]float64 {
	// The mass of each inner vector and of each outer vector.
	innerMasses, outerMasses := make([]float64, t.inner.size), make([]float64, t.outer.size)
	for o := range t.endOuter - t.firstOuter {
		sum := 0.0
		for i, w := range t.masses[o*len(innerMasses) : (o+1)*len(innerMasses)] {
			innerMasses[i] += w
			sum += w
		}
		outerMasses[t.firstOuter+o] = sum
	}

	// Add the mass of each side's vector to the count vectors of the classes that it combines.
	distributions := make([][]float64, len(t.lists))
	for c, l := range t.lists {
		distributions[c] = make([]float64, l.size)
	}
	vectors := make([]int, len(t.lists)) // by class: its count vector; splitVector sets those of the side's classes
	for _, s := range []struct {
		side
		weights []float64
	}{{t.inner, innerMasses}, {t.outer, outerMasses}} {
		for vector, w := range s.weights {
			s.splitVector(vector, vectors)
			for _, c := range s.classes {
				distributions[c][vectors[c]] += w / t.sum
			}
		}
	}
	return distributions
}

// jointOf returns the joint probabilities of the count vectors of some classes, the last class fastest. The probability of a combination is
// the sum of the terms that have it, over the sum of all terms. masses are the terms, by outer vector from firstOuter on, and then by inner
// vector.
func (t *termSum) jointOf(classes []int) []float64 {
	size := 1
	stride := make([]int, len(t.lists))
	for _, c := range slices.Backward(classes) {
		stride[c] = size
		size *= t.lists[c].size
	}

	// What each vector of a side adds to the index of the result. Classes that are not asked for have stride 0.
	vectors := make([]int, len(t.lists))
	offsetsOf := func(s *side) []int {
		offsets := make([]int, s.size)
		for vector := range offsets {
			s.splitVector(vector, vectors)
			for _, c := range s.classes {
				offsets[vector] += stride[c] * vectors[c]
			}
		}
		return offsets
	}
	innerOffsets, outerOffsets := offsetsOf(&t.inner), offsetsOf(&t.outer)

	probabilities := make([]float64, size)
	for o, outerOffset := range outerOffsets[t.firstOuter:t.endOuter] {
		for i, w := range t.masses[o*len(innerOffsets) : (o+1)*len(innerOffsets)] {
			probabilities[outerOffset+innerOffsets[i]] += w / t.sum
		}
	}
	return probabilities
}
