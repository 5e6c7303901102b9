package exchangeable

// The count vectors of a class, with the number of assignments of each times their weights.

import (
	"context"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/base/pace"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// list is the count vectors of a class: c_v of its variables have value v.
type list struct {
	values int // d
	groups []group
	size   int
	counts []int32 // of the class, by vector and value
	// split are the counts of every group, by vector, group and value: a vector for each way to divide the class's counts among groups. nil:
	// all ways are added up, or there is one group.
	split     []int32
	ln        []logarithm   // of Σ over assignments of Π of weights
	lnOne     []logarithm   // of the weight of one assignment; a merged list has none
	steps     []convolution // of a merged list
	roundings float64       // of a term
}

// count returns the counts of a vector, by value.
func (l *list) count(index int) []int32 { return l.counts[index*l.values : (index+1)*l.values] }

// ofGroup returns the counts of one group in a vector, by value. The list has to be split.
func (l *list) ofGroup(index, group int) []int32 {
	if len(l.groups) == 1 {
		return l.count(index)
	}
	from := (index*len(l.groups) + group) * l.values
	return l.split[from : from+l.values]
}

// isSplit reports whether the counts of every group are known.
func (l *list) isSplit() bool { return len(l.groups) == 1 || l.split != nil }

// compositions returns the number of ways to divide n among k values, C(n+k−1, k−1).
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

// splitSize returns the number of vectors of a split list.
func splitSize(groups []group) float64 {
	size := 1.0
	for _, g := range groups {
		size *= compositions(len(g.variables), len(g.support))
	}
	return size
}

// boxSize returns the number of entries of a box that has all vectors of a class, with the last count left out.
func boxSize(groups []group, values int) float64 {
	n := 0
	for _, g := range groups {
		n += len(g.variables)
	}
	return math.Pow(float64(n+1), float64(values-1))
}

// factorials are ln n! by n.
type factorials []logarithm

// factorialsUpTo returns the factorials up to n.
func factorialsUpTo(n int) factorials {
	f := make(factorials, n+1)
	for k := 2; k <= n; k++ {
		f[k] = f[k-1].plus(logarithmOf(float64(k)))
	}
	return f
}

// divisions calls f for every way to divide n among the values of a support, with the counts set by value.
func divisions(n int, support []int, counts []int32, f func()) {
	if len(support) == 0 {
		return
	}
	if len(support) == 1 {
		counts[support[0]] = int32(n)
		f()
		counts[support[0]] = 0
		return
	}
	for c := n; c >= 0; c-- {
		counts[support[0]] = int32(c)
		divisions(n-c, support[1:], counts, f)
	}
	counts[support[0]] = 0
}

// lnOfGroup returns, for counts by value, ln of the sum of the weights of all assignments of the group with these counts, and ln of the
// weight of one of them.
func (g *group) lnOfGroup(counts []int32, f factorials) (lnSum, lnOne logarithm) {
	for _, x := range g.support {
		count := counts[x]
		lnOne = lnOne.plus(g.field[x].times(float64(count)))
		lnSum = lnSum.minus(f[count])
	}
	return lnSum.plus(lnOne).plus(f[len(g.variables)]), lnOne
}

// splitList returns the list with a vector for each combination of the counts of all groups. Cost O(vectors · groups · values).
func splitList(ctx context.Context, groups []group, values int, f factorials) (*list, error) {
	l := &list{values: values, groups: groups, roundings: 8}
	if slices.ContainsFunc(groups, func(g group) bool { return len(g.support) == 0 }) {
		return l, nil // no assignment is possible
	}
	look := pace.New(ctx)
	current := make([]int32, len(groups)*values)
	var err error
	var walk func(index int, all, one logarithm)
	walk = func(index int, all, one logarithm) {
		if err != nil {
			return
		}
		if index < len(groups) {
			g := &groups[index]
			row := current[index*values : (index+1)*values]
			divisions(len(g.variables), g.support, row, func() {
				if look.Over(int64(len(current) + 16)) {
					err = look.Err()
				}
				if err == nil {
					a, o := g.lnOfGroup(row, f)
					walk(index+1, all.plus(a), one.plus(o))
				}
			})
			return
		}
		sum := make([]int32, values)
		for k, c := range current {
			sum[k%values] += c
		}
		l.counts = append(l.counts, sum...)
		if len(groups) > 1 {
			l.split = append(l.split, current...)
		}
		l.ln, l.lnOne = append(l.ln, all), append(l.lnOne, one)
		l.size++
	}
	walk(0, logarithm{}, logarithm{})
	return l, err
}

// convolution is a step of a merged list: the product of the groups before a group, by place in the box, and the group's vectors.
type convolution struct {
	input   box
	places  []int // of the group's vectors
	counts  []int32
	weights []scaled.Number
}

// box is a polynomial in the counts of all values but the last.
type box []scaled.Number

// mergedList returns the list with a vector for each combination of the class's counts. The polynomials of the groups are multiplied one
// after the other, which adds up all divisions of the counts among groups. Terms are of one sign. Cost O(box · vectors of the groups).
func mergedList(ctx context.Context, groups []group, values int, f factorials) (*list, error) {
	l := &list{values: values, groups: groups, roundings: 8}
	n := 0
	for _, g := range groups {
		n += len(g.variables)
	}
	strides := make([]int, values) // the last count has none
	size := 1
	for x := values - 2; x >= 0; x-- {
		strides[x] = size
		size *= n + 1
	}
	product := make(box, size)
	product[0] = scaled.One
	look := pace.New(ctx)
	largest := 0 // place of the product
	for k := range groups {
		g := &groups[k]
		c := convolution{input: product}
		counts := make([]int32, values)
		divisions(len(g.variables), g.support, counts, func() {
			place := 0
			for x, count := range counts {
				place += int(count) * strides[x]
			}
			ln, _ := g.lnOfGroup(counts, f)
			c.places, c.weights, c.counts = append(c.places, place), append(c.weights, ln.number()), append(c.counts, counts...)
		})
		next := make(box, size)
		top := 0
		for from := 0; from <= largest; from++ {
			y := product[from]
			if look.Over(int64(len(c.places) + 1)) {
				return nil, look.Err()
			}
			if y.IsZero() {
				continue
			}
			for index, place := range c.places {
				next[from+place] = next[from+place].Add(y.Mul(c.weights[index]))
			}
		}
		for _, place := range c.places {
			top = max(top, place)
		}
		l.steps = append(l.steps, c)
		l.roundings += float64(len(c.places)) + 8
		product, largest = next, largest+top
	}
	digits := make([]int32, values)
	for place, y := range product {
		if look.Over(int64(values)) {
			return nil, look.Err()
		}
		if y.IsZero() {
			continue
		}
		remainder, remaining := place, n
		for x := range values - 1 {
			digits[x] = int32(remainder / strides[x])
			remainder %= strides[x]
			remaining -= int(digits[x])
		}
		digits[values-1] = int32(remaining)
		l.counts = append(l.counts, digits...)
		l.ln = append(l.ln, logarithmOfNumber(y))
		l.size++
	}
	return l, nil
}

// groupMarginals returns P(value) of a variable of every group, given the weights of the class's vectors, which add up to 1. For a merged
// list it takes one pass back over the products. No term is below 0. Cost: that of the list.
func (l *list) groupMarginals(ctx context.Context, weights []float64) ([][]float64, error) {
	shares := make([][]float64, len(l.groups))
	for k := range shares {
		shares[k] = make([]float64, l.values)
	}
	if l.isSplit() {
		for index, w := range weights {
			for k := range shares {
				for x, c := range l.ofGroup(index, k) {
					shares[k][x] += w * float64(c)
				}
			}
		}
	} else if err := l.addMeanCounts(ctx, weights, shares); err != nil {
		return nil, err
	}
	for k, row := range shares {
		sum := 0.0
		for _, x := range row {
			sum += x
		}
		for x := range row {
			shares[k][x] /= sum
		}
	}
	return shares, nil
}

// addMeanCounts adds the mean counts of every group of a merged list to shares, by the derivatives of the products.
func (l *list) addMeanCounts(ctx context.Context, weights []float64, shares [][]float64) error {
	look := pace.New(ctx)
	n := 0
	for _, g := range l.groups {
		n += len(g.variables)
	}
	adjoint := make(box, len(l.steps[0].input))
	for index, w := range weights {
		place := 0
		for _, c := range l.count(index)[:l.values-1] {
			place = place*(n+1) + int(c)
		}
		adjoint[place] = scaled.FromFloat(w).Div(l.ln[index].number())
	}
	for k, c := range slices.Backward(l.steps) {
		next := make(box, len(adjoint))
		means := make([]scaled.Number, l.values)
		for from, y := range c.input {
			if look.Over(int64(len(c.places) + 1)) {
				return look.Err()
			}
			if y.IsZero() {
				continue
			}
			for index, place := range c.places {
				share := c.weights[index].Mul(adjoint[from+place])
				next[from] = next[from].Add(share)
				share = share.Mul(y)
				for x, count := range c.counts[index*l.values : (index+1)*l.values] {
					if count > 0 {
						means[x] = means[x].Add(share.Mul(scaled.FromFloat(float64(count))))
					}
				}
			}
		}
		for x, y := range means {
			shares[k][x] += y.Float64()
		}
		adjoint = next
	}
	return nil
}
