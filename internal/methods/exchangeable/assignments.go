package exchangeable

// Assignments: the most probable one, and draws.

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"sort"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/query"
)

const (
	// tieTolerance is the difference of the logarithms of two weights, relative to 1 + |ln|, up to which they are equal.
	tieTolerance = 0x1p-48
	// maxTies bounds the count vectors of equal weight that are compared.
	maxTies = 256
)

// findBest returns the most probable assignment, which belongs to a largest term of all count vectors. It returns nil if Z is 0. Of equally
// probable assignments it is the smallest one in the order of the variables that are no leaves, among those of the first maxTies count
// vectors.
func (c *summedForm) findBest(ctx context.Context) (*btn.Found, error) {
	if c.largest.isImpossible() {
		return nil, nil
	}
	tolerance := tieTolerance * (1 + math.Abs(c.largest.High))
	best := &btn.Found{Weight: c.largest.number(), Unique: true, Close: tolerance} // weights within Close of each other are equal
	vectors := make([]int, len(c.lists))
	tieCount := 0
	for vector, ln := range c.ln {
		if isNearLargest := c.largest.minus(ln).float() <= tolerance; !isNearLargest {
			continue
		}
		if tieCount++; tieCount > maxTies { // Unique is false already
			break
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}

		c.splitVector(vector, vectors)
		values, isUnique := c.smallestOf(vectors, tolerance)

		// Keep the smaller one of several.
		if best.Values != nil {
			isUnique = false
			if slices.Compare(values, best.Values) > 0 {
				values = best.Values
			}
		}
		best.Values, best.Unique = values, best.Unique && isUnique
	}
	return best, nil
}

// smallestOf returns the smallest assignment with given count vectors of the classes, in which each leaf has its most probable value.
// isUnique reports whether there is only one: all variables of each group have one value, and no leaf has two most probable values, up to
// tolerance in ln.
func (c *summedForm) smallestOf(vectors []int, tolerance float64) (values []int, isUnique bool) {
	values = make([]int, len(c.weights))
	isUnique = true
	for class, l := range c.lists {
		for k, g := range l.groups {
			counts := l.groupCounts(vectors[class], k)
			isUnique = isUnique && slices.Contains(counts, int32(len(g.variables)))
			c.assignSmallest(g.variables, slices.Clone(counts), values)
		}
	}
	return values, c.maximiseLeaves(values, tolerance) && isUnique // maximiseLeaves sets the values of the leaves, too
}

// assignSmallest gives each variable in turn its smallest value that is left, and sets it in values. counts says how many variables may
// have each of the class's values, which canonical gives for the variables' own; it is 0 afterwards. The smallest value is that of the
// variable's own values, not of the class's.
func (f *form) assignSmallest(variables []int32, counts []int32, values []int) {
	for _, v := range variables {
		for x := range f.weights[v] {
			if value := f.partition.canonical(v, x); counts[value] > 0 {
				counts[value]--
				values[v] = x
				break
			}
		}
	}
}

// leafLogs returns the logarithms of the weights of a leaf's values, given the values of its neighbours. A leaf is a variable that was
// summed out. With two neighbours its conditional is among the interactions, with one or none among the fields.
func (f *form) leafLogs(l *leaf, values []int) []logarithm {
	m := f.interactions
	c := m.conditionals[l.variable]
	if len(l.neighbours) < 2 {
		c = f.fields.leaves[l.variable]
	}
	row := 0
	for _, v := range l.neighbours {
		row = row*m.domains[v] + values[v]
	}
	d := m.domains[l.variable]
	return c.table[row*d : (row+1)*d]
}

// maximiseLeaves sets each leaf, a variable that is no part of the counts, to its most probable value given its neighbours, whose values
// are set already. isUnique is false if a leaf has two such values, up to tolerance in ln.
func (f *form) maximiseLeaves(values []int, tolerance float64) (isUnique bool) {
	isUnique = true
	for v, l := range f.interactions.leafOf {
		if l == nil {
			continue
		}
		list := f.leafLogs(l, values)
		best := 0
		for x, y := range list {
			if y.minus(list[best]).float() > tolerance || list[best].isImpossible() {
				best = x
			}
		}
		for x, y := range list {
			isUnique = isUnique && (x == best || !(list[best].minus(y).float() <= tolerance))
		}
		values[v] = best
	}
	return isUnique
}

// draw draws want.Samples assignments: a term with the probability of its share of Z, which has a count vector of each class, then all else
// by drawAll. It returns nil if Z is 0.
func (c *summedForm) draw(ctx context.Context, want btn.Want) (*btn.Drawn, error) {
	if c.largest.isImpossible() {
		return nil, query.CheckSamples(len(c.weights), want.Samples)
	}
	cumulative := make([]float64, len(c.masses))
	sum := 0.0
	for vector, w := range c.masses {
		sum += w
		cumulative[vector] = sum
	}
	return c.drawAll(ctx, want, c.lists, c.lnZ(), func(stream *rand.Rand, vectors []int) {
		u := stream.Float64() * sum
		vector := min(sort.Search(len(cumulative), func(k int) bool { return cumulative[k] > u }), len(cumulative)-1)
		for c.masses[vector] == 0 { // only after roundings, at the end of the list
			vector--
		}
		c.splitVector(vector, vectors)
	})
}

// draw draws want.Samples assignments: a count vector of one class after the other, then all else by drawAll. It returns nil if Z is 0.
func (e *eliminated) draw(ctx context.Context, want btn.Want) (*btn.Drawn, error) {
	if e.ln.isImpossible() {
		return nil, query.CheckSamples(len(e.weights), want.Samples)
	}
	return e.drawAll(ctx, want, e.lists, e.ln, e.drawVectors)
}

// drawAll draws want.Samples assignments, each with a random stream of its own: the count vectors of all classes by drawVectors, then which
// variables of a group have which value, then the leaves, which were summed out. A group is the variables of a class with the same weights.
// ln is ln Z.
func (f *form) drawAll(
	ctx context.Context, want btn.Want, lists []*list, ln logarithm, drawVectors func(stream *rand.Rand, vectors []int),
) (*btn.Drawn, error) {
	n := len(f.weights)
	if err := query.CheckSamples(n, want.Samples); err != nil {
		return nil, err
	}
	samples := &btn.Drawn{Weight: ln.number(), Values: make([]int, n*want.Samples)}
	vectors := make([]int, len(lists))
	for s := range want.Samples {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		stream := rand.New(rand.NewPCG(want.Seed, uint64(s)))
		drawVectors(stream, vectors)
		values := samples.Values[s*n : (s+1)*n]
		for class, l := range lists {
			for k, g := range l.groups {
				f.assignShuffled(stream, g.variables, l.groupCounts(vectors[class], k), values)
			}
		}
		for v, l := range f.interactions.leafOf {
			if l != nil {
				values[v] = drawByLn(stream, f.leafLogs(l, values))
			}
		}
	}
	return samples, nil
}

// assignShuffled gives variables values in a random sequence, and sets them in values. counts says how many of them have each of the
// class's values. Each variable gets that value of its own whose class's value (canonical) was drawn.
func (f *form) assignShuffled(stream *rand.Rand, variables []int32, counts []int32, values []int) {
	drawnValues := make([]int, 0, len(variables))
	for x, c := range counts {
		for range c {
			drawnValues = append(drawnValues, x)
		}
	}
	stream.Shuffle(len(drawnValues), func(a, b int) { drawnValues[a], drawnValues[b] = drawnValues[b], drawnValues[a] })
	for k, v := range variables {
		for x := range f.weights[v] {
			if f.partition.canonical(v, x) == drawnValues[k] {
				values[v] = x
				break
			}
		}
	}
}

// drawByLn draws an index with a probability proportional to its weight. lns are the logarithms of the weights, of which at least one is
// above 0.
func drawByLn(stream *rand.Rand, lns []logarithm) int {
	largest := slices.MaxFunc(lns, func(a, b logarithm) int {
		if a.High < b.High {
			return -1
		}
		return 1
	})
	weights := make([]float64, len(lns))
	sum := 0.0
	for x, ln := range lns {
		if !ln.isImpossible() {
			weights[x] = math.Exp(ln.minus(largest).float())
		}
		sum += weights[x]
	}
	u := stream.Float64() * sum
	lastPossible := 0
	for x, w := range weights {
		if w > 0 {
			lastPossible = x
			if u -= w; u < 0 {
				return x
			}
		}
	}
	return lastPossible
}
