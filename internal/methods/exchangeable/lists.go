package exchangeable

// The count vectors of a class, with the number of assignments of each times their weights.

import (
	"context"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/base/pace"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// list is the count vectors of a class: the number of its variables that have each value. A split list has a vector for each combination of
// the counts of all groups, a merged list one for each combination of the class's counts.
type list struct {
	values    int // of a variable
	groups    []group
	size      int           // number of vectors
	counts    []int32       // of the class, by vector and value
	split     []int32       // counts of every group, by vector, group and value; nil: the list is merged, or has one group
	ln        []logarithm   // by vector: ln of Σ over assignments of Π of weights
	lnOne     []logarithm   // by vector: ln of the weight of one assignment; a merged list has none
	steps     []convolution // of a merged list
	roundings float64       // of a term
}

// count returns the class's counts in a vector, by value.
func (l *list) count(index int) []int32 { return l.counts[index*l.values : (index+1)*l.values] }

// groupCounts returns the counts of one group in a vector, by value. The list is split or has one group.
func (l *list) groupCounts(index, group int) []int32 {
	if len(l.groups) == 1 {
		return l.count(index)
	}
	start := (index*len(l.groups) + group) * l.values
	return l.split[start : start+l.values]
}

// isSplit reports whether the counts of every group are known.
func (l *list) isSplit() bool { return len(l.groups) == 1 || l.split != nil }

// compositions returns the number of ways to divide n equal items among k values, C(n+k−1, k−1).
func compositions(n, k int) float64 {
	if k == 0 {
		return 0
	}
	c := 1.0
	for i := range min(n, k-1) {
		c = math.Round(c * float64(n+k-1-i) / float64(i+1))
	}
	return c
}

// splitSize returns the number of vectors of a split list: the product over the groups of the ways to divide each among its possible
// values.
func splitSize(groups []group) float64 {
	size := 1.0
	for _, g := range groups {
		size *= compositions(len(g.variables), len(g.support))
	}
	return size
}

// boxSize bounds the number of vectors of a merged list: (n+1)^(values−1) for n variables, since the last count follows from the others.
func boxSize(groups []group, values int) float64 {
	n := 0
	for _, g := range groups {
		n += len(g.variables)
	}
	return math.Pow(float64(n+1), float64(values-1))
}

// factorials are ln n! by n.
type factorials []logarithm

// factorialsUpTo returns ln k! for k from 0 to n.
func factorialsUpTo(n int) factorials {
	f := make(factorials, n+1)
	for k := 2; k <= n; k++ {
		f[k] = f[k-1].plus(logarithmOf(float64(k)))
	}
	return f
}

// eachDivision calls visit for every way to divide n among the values of a support. During the call counts has the count of each value.
// Counts of values that are not in the support stay as they are, the others are 0 at the end.
func eachDivision(n int, support []int, counts []int32, visit func()) {
	if len(support) == 0 {
		return
	}
	if len(support) == 1 {
		counts[support[0]] = int32(n)
		visit()
		counts[support[0]] = 0
		return
	}
	for c := n; c >= 0; c-- {
		counts[support[0]] = int32(c)
		eachDivision(n-c, support[1:], counts, visit)
	}
	counts[support[0]] = 0
}

// lnWeights returns, for counts of the group's variables by value, ln of the sum of the weights of all assignments with these counts, and
// ln of the weight of one of them: lnSum = lnOne + ln n! − Σ_x ln c_x!. f has the logarithms of factorials.
func (g *group) lnWeights(counts []int32, f factorials) (lnSum, lnOne logarithm) {
	for _, x := range g.support {
		count := counts[x]
		lnOne = lnOne.plus(g.field[x].times(float64(count)))
		lnSum = lnSum.minus(f[count])
	}
	return lnSum.plus(lnOne).plus(f[len(g.variables)]), lnOne
}

// splitList returns the split list of a class: a count vector for each combination of the counts of all groups. A group is the variables of
// the class with the same weights, and its support the values that these may have. Cost O(vectors · groups · values).
func splitList(ctx context.Context, groups []group, values int, f factorials) (*list, error) {
	l := &list{values: values, groups: groups, roundings: 8} // more than those of the exponential of a term
	if slices.ContainsFunc(groups, func(g group) bool { return len(g.support) == 0 }) {
		return l, nil // no assignment is possible
	}
	w := &splitWalk{list: l, factorials: f, look: pace.New(ctx), current: make([]int32, len(groups)*values)}
	w.divideGroups(0, logarithm{}, logarithm{}) // no group has counts yet, so the weights are 1
	return l, w.err
}

// splitWalk adds the vectors of a split list to it, one after the other.
type splitWalk struct {
	*list
	factorials factorials
	look       *pace.Pace
	current    []int32 // counts of the present vector, by group and value
	err        error   // of the context: once it is set, nothing is visited any more
}

// divideGroups adds the vectors in which the groups before index have the counts in w.current: it divides the variables of the groups from
// index on among the values in all ways. lnSum is ln of the weight of all assignments of the groups before with these counts, and lnOne is
// ln of the weight of one of these assignments.
func (w *splitWalk) divideGroups(index int, lnSum, lnOne logarithm) {
	if w.err != nil {
		return
	}
	if index == len(w.groups) {
		w.addVector(lnSum, lnOne)
		return
	}
	g := &w.groups[index]
	row := w.current[index*w.values : (index+1)*w.values] // the counts of g, which eachDivision sets
	eachDivision(len(g.variables), g.support, row, func() {
		if w.look.Over(int64(len(w.current) + 16)) { // about the operations of addVector
			w.err = w.look.Err()
		}
		if w.err == nil {
			sumOfGroup, oneOfGroup := g.lnWeights(row, w.factorials)
			w.divideGroups(index+1, lnSum.plus(sumOfGroup), lnOne.plus(oneOfGroup))
		}
	})
}

// addVector adds the vector in w.current, which has the counts of all groups, with the logarithms of its weights: lnSum of all assignments
// with these counts, and lnOne of one of them.
func (w *splitWalk) addVector(lnSum, lnOne logarithm) {
	sum := make([]int32, w.values) // of all groups
	for k, c := range w.current {
		sum[k%w.values] += c
	}
	l := w.list
	l.counts = append(l.counts, sum...)
	if len(l.groups) > 1 { // the counts of one group are those of the class
		l.split = append(l.split, w.current...)
	}
	l.ln, l.lnOne = append(l.ln, lnSum), append(l.lnOne, lnOne)
	l.size++
}

// convolution is a step of a merged list: the multiplication of the product of all groups before a group by the group's polynomial.
type convolution struct {
	input   box             // product of the groups before
	indices []int           // by vector of the group: its index in a box
	counts  []int32         // by vector of the group and value
	weights []scaled.Number // by vector of the group
}

// box is a polynomial in the counts of all values but the last. Its coefficients are the weights of count vectors: that of counts c, from 0
// to n each, has the index Σ_x c_x (n+1)^(values−2−x).
type box []scaled.Number

// newConvolution returns the multiplication of a product by a group's polynomial, whose coefficients are the weights of the group's count
// vectors. A box has a coefficient for each combination of counts. Counts c have the index Σ_x c_x strides[x] in it, so the indices of two
// count vectors add up to that of their sum.
func newConvolution(g *group, product box, strides []int, f factorials) convolution {
	c := convolution{input: product}
	counts := make([]int32, len(strides))
	eachDivision(len(g.variables), g.support, counts, func() {
		index := 0
		for x, count := range counts {
			index += int(count) * strides[x]
		}
		ln, _ := g.lnWeights(counts, f)
		c.indices, c.weights, c.counts = append(c.indices, index), append(c.weights, ln.number()), append(c.counts, counts...)
	})
	return c
}

// multiply returns the product of the input and the group's polynomial: product[i+shift] += input[i] · weight, for each coefficient i of
// the input and each count vector of the group, with the vector's weight and index (shift). Coefficients of the input above largestIndex
// are 0, so that i+shift stays within the box. The product is nil if the context ends.
func (c *convolution) multiply(largestIndex int, look *pace.Pace) box {
	product := make(box, len(c.input))
	for index, y := range c.input[:largestIndex+1] {
		if look.Over(int64(len(c.indices) + 1)) {
			return nil
		}
		if y.IsZero() {
			continue
		}
		for vector, shift := range c.indices {
			product[index+shift] = product[index+shift].Add(y.Mul(c.weights[vector]))
		}
	}
	return product
}

// mergedList returns the merged list of a class: a vector for each combination of the class's counts. The polynomials of the groups are
// multiplied one after the other, which adds up all divisions of the counts among groups. A group is the variables with the same weights;
// the coefficient of its polynomial at counts c is the weight of all its assignments with these counts. No term is below 0, so a
// coefficient of 0 means that the counts are impossible. Cost O(box · vectors of the groups).
func mergedList(ctx context.Context, groups []group, values int, f factorials) (*list, error) {
	l := &list{values: values, groups: groups, roundings: 8} // more than those of the exponential of a term
	n := 0
	for _, g := range groups {
		n += len(g.variables)
	}

	// Multiply the product by one group after the other.
	strides, size := boxStrides(n, values)
	product := make(box, size)
	product[0] = scaled.One
	look := pace.New(ctx) // counts operations, and is over once the context has ended
	largestIndex := 0     // of a coefficient of the product that is not 0
	for k := range groups {
		c := newConvolution(&groups[k], product, strides, f)
		product = c.multiply(largestIndex, look)
		if product == nil {
			return nil, look.Err()
		}
		largestShift := 0 // 0 too if the group has no vector
		for _, shift := range c.indices {
			largestShift = max(largestShift, shift)
		}
		largestIndex += largestShift
		l.steps = append(l.steps, c)
		l.roundings += float64(len(c.indices)) + 8 // of the sums, and of a weight of the group
	}

	if err := l.listCoefficients(product, n, strides, look); err != nil {
		return nil, err
	}
	return l, nil
}

// boxStrides returns the strides of a box, a list by counts c of n variables, and its size. The index of counts c is Σ_x c_x strides[x].
// The last count, which follows from the others, has stride 0.
func boxStrides(n, values int) (strides []int, size int) {
	strides = make([]int, values)
	size = 1
	for x := values - 2; x >= 0; x-- {
		strides[x] = size
		size *= n + 1
	}
	return strides, size
}

// listCoefficients adds a vector to a merged list for each coefficient of a product that is not 0. The index of the coefficient of counts c
// is Σ_x c_x strides[x]. The count of the last value follows from the others: all counts add up to n.
func (l *list) listCoefficients(product box, n int, strides []int, look *pace.Pace) error {
	counts := make([]int32, l.values)
	for index, y := range product {
		if look.Over(int64(l.values)) {
			return look.Err()
		}
		if y.IsZero() {
			continue
		}
		remainder, lastCount := index, n
		for x := range l.values - 1 {
			counts[x] = int32(remainder / strides[x])
			remainder %= strides[x]
			lastCount -= int(counts[x])
		}
		counts[l.values-1] = int32(lastCount)
		l.counts = append(l.counts, counts...)
		l.ln = append(l.ln, logarithmOfNumber(y))
		l.size++
	}
	return nil
}

// groupMarginals returns P(x) of a variable of every group, by group and value, given the probabilities of the class's vectors. It is the
// mean count of the value in the group over the number of its variables. A split list has the counts of every group; a merged list has
// those of the class alone and takes one pass back over the products of the groups' polynomials. Cost: that of the list.
func (l *list) groupMarginals(ctx context.Context, probabilities []float64) ([][]float64, error) {
	meanCounts := make([][]float64, len(l.groups))
	for k := range meanCounts {
		meanCounts[k] = make([]float64, l.values)
	}
	if l.isSplit() {
		for index, p := range probabilities {
			for k := range meanCounts {
				for x, c := range l.groupCounts(index, k) {
					meanCounts[k][x] += p * float64(c)
				}
			}
		}
	} else if err := l.addMeanCounts(ctx, probabilities, meanCounts); err != nil {
		return nil, err
	}
	normaliseRows(meanCounts) // to P(x): the mean counts of a group add up to the number of its variables
	return meanCounts, nil
}

// normaliseRows divides each row by its sum.
func normaliseRows(rows [][]float64) {
	for _, row := range rows {
		sum := 0.0
		for _, p := range row {
			sum += p
		}
		for x := range row {
			row[x] /= sum
		}
	}
}

// addMeanCounts adds the mean counts of every group of a merged list to meanCounts, by group and value. probabilities are those of the
// class's count vectors v. The weights of all v are the coefficients of a product of one polynomial for each group. It goes back over that
// product, group by group, with adjoint: the derivatives of Σ_v probability(v) · ln weight(v) by the coefficients of the product up to the
// group. A count vector of the group and one of the groups before it add up to one vector of the product. The probability of the two is the
// product of their weights and of the derivative by the coefficient of that vector.
func (l *list) addMeanCounts(ctx context.Context, probabilities []float64, meanCounts [][]float64) error {
	look := pace.New(ctx) // counts operations, and is over once the context has ended
	n := 0                // variables of the class
	for _, g := range l.groups {
		n += len(g.variables)
	}
	adjoint := make(box, len(l.steps[0].input)) // derivatives by the coefficients of the present product
	for vector, p := range probabilities {
		index := 0 // in a box: the counts of all values but the last, which follows from them, as digits to the base n+1
		for _, c := range l.count(vector)[:l.values-1] {
			index = index*(n+1) + int(c)
		}
		adjoint[index] = scaled.FromFloat(p).Div(l.ln[vector].number()) // the derivative of p · ln w by the weight w is p/w
	}

	for k, c := range slices.Backward(l.steps) {
		earlierAdjoint, means := c.goBack(adjoint, l.values, look)
		if means == nil {
			return look.Err()
		}
		for x, y := range means {
			meanCounts[k][x] += y.Float64()
		}
		adjoint = earlierAdjoint
	}
	return nil
}

// goBack returns the derivatives by the coefficients of the input, the product of the groups before, given those by the coefficients of the
// product with this group (adjoint). It also returns the mean counts of this group, by value. means is nil if the context ends.
func (c *convolution) goBack(adjoint box, values int, look *pace.Pace) (inputAdjoint box, means []scaled.Number) {
	inputAdjoint = make(box, len(adjoint))
	means = make([]scaled.Number, values)
	for index, y := range c.input {
		if look.Over(int64(len(c.indices) + 1)) {
			return nil, nil
		}
		if y.IsZero() {
			continue
		}
		for vector, shift := range c.indices { // coefficient index of the input and this vector add to coefficient index+shift
			summand := c.weights[vector].Mul(adjoint[index+shift]) // of the derivative by coefficient index of the input
			inputAdjoint[index] = inputAdjoint[index].Add(summand)
			probability := summand.Mul(y) // of this vector, together with these counts of the groups before
			for x, count := range c.counts[vector*values : (vector+1)*values] {
				if count > 0 {
					means[x] = means[x].Add(probability.Mul(scaled.FromFloat(float64(count))))
				}
			}
		}
	}
	return inputAdjoint, means
}
