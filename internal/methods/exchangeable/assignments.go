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

// findBest returns the most probable assignment: one of the largest term of all count vectors. It returns nil if Z is 0. Of equally
// probable assignments it is the smallest one in the order of the variables that are no leaves, among those of the first maxTies count
// vectors.
func (c *summedForm) findBest(ctx context.Context) (*btn.Found, error) {
	if c.largest.isImpossible() {
		return nil, nil
	}
	slack := tieTolerance * (1 + math.Abs(c.largest.High))
	found := &btn.Found{Weight: c.largest.number(), Unique: true, Close: slack}
	vectors := make([]int, len(c.lists))
	ties := 0
	for vector, ln := range c.ln {
		if !(c.largest.minus(ln).float() <= slack) {
			continue
		}
		if ties++; ties > maxTies {
			break
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		c.vectors(vector, vectors)
		values := make([]int, len(c.weights))
		unique := true
		for class, l := range c.lists {
			for k, g := range l.groups {
				counts := l.ofGroup(vectors[class], k)
				unique = unique && slices.Contains(counts, int32(len(g.variables)))
				c.assignSmallest(g.variables, slices.Clone(counts), values)
			}
		}
		unique = c.maximiseLeaves(values, slack) && unique
		if found.Values != nil {
			unique = false
			if slices.Compare(values, found.Values) > 0 {
				values = found.Values
			}
		}
		found.Values, found.Unique = values, found.Unique && unique
	}
	return found, nil
}

// assignSmallest gives each variable in turn its smallest value of which counts, by the class's value, have one left. It uses counts up.
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

// leafLogs returns the logarithms of the weights of a leaf's values, given the values of its neighbours.
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

// maximiseLeaves sets each leaf to its most probable value given its neighbours. unique is false if a leaf has two such values, up to
// slack.
func (f *form) maximiseLeaves(values []int, slack float64) (unique bool) {
	unique = true
	for v, l := range f.interactions.leafOf {
		if l == nil {
			continue
		}
		list := f.leafLogs(l, values)
		best := 0
		for x, y := range list {
			if y.minus(list[best]).float() > slack || list[best].isImpossible() {
				best = x
			}
		}
		for x, y := range list {
			unique = unique && (x == best || !(list[best].minus(y).float() <= slack))
		}
		values[v] = best
	}
	return unique
}

// draw draws assignments: a count vector of all classes by its share of Z, then the rest by drawAll. It returns nil if Z is 0.
func (c *summedForm) draw(ctx context.Context, want btn.Want) (*btn.Drawn, error) {
	if c.largest.isImpossible() {
		return nil, query.CheckSamples(len(c.weights), want.Samples)
	}
	upTo := make([]float64, len(c.masses))
	sum := 0.0
	for vector, w := range c.masses {
		sum += w
		upTo[vector] = sum
	}
	return c.drawAll(ctx, want, c.lists, c.lnZ(), func(stream *rand.Rand, to []int) {
		u := stream.Float64() * sum
		vector := min(sort.Search(len(upTo), func(k int) bool { return upTo[k] > u }), len(upTo)-1)
		for c.masses[vector] == 0 {
			vector--
		}
		c.vectors(vector, to)
	})
}

// draw draws assignments: the vectors of the classes one after the other, then the rest by drawAll. It returns nil if Z is 0.
func (e *eliminated) draw(ctx context.Context, want btn.Want) (*btn.Drawn, error) {
	if e.ln.isImpossible() {
		return nil, query.CheckSamples(len(e.weights), want.Samples)
	}
	return e.drawAll(ctx, want, e.lists, e.ln, e.drawVectors)
}

// drawAll draws want.Samples assignments, each with a random stream of its own: the vectors of all classes by draw, then the members of
// each group that have a value, then the leaves. ln is ln Z.
func (f *form) drawAll(
	ctx context.Context, want btn.Want, lists []*list, ln logarithm, draw func(stream *rand.Rand, to []int),
) (*btn.Drawn, error) {
	n := len(f.weights)
	if err := query.CheckSamples(n, want.Samples); err != nil {
		return nil, err
	}
	drawn := &btn.Drawn{Weight: ln.number(), Values: make([]int, n*want.Samples)}
	vectors := make([]int, len(lists))
	for s := range want.Samples {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		stream := rand.New(rand.NewPCG(want.Seed, uint64(s)))
		draw(stream, vectors)
		values := drawn.Values[s*n : (s+1)*n]
		for class, l := range lists {
			for k, g := range l.groups {
				f.assignShuffled(stream, g.variables, l.ofGroup(vectors[class], k), values)
			}
		}
		for v, l := range f.interactions.leafOf {
			if l != nil {
				values[v] = pick(stream, f.leafLogs(l, values))
			}
		}
	}
	return drawn, nil
}

// assignShuffled gives variables values in a random sequence, so that as many have a value as counts, by the class's value, states.
func (f *form) assignShuffled(stream *rand.Rand, variables []int32, counts []int32, values []int) {
	list := make([]int, 0, len(variables))
	for x, c := range counts {
		for range c {
			list = append(list, x)
		}
	}
	stream.Shuffle(len(list), func(a, b int) { list[a], list[b] = list[b], list[a] })
	for k, v := range variables {
		for x := range f.weights[v] {
			if f.partition.canonical(v, x) == list[k] {
				values[v] = x
				break
			}
		}
	}
}

// pick draws a place with a probability proportional to its weight. lns are the logarithms of the weights; at least one weight is above 0.
func pick(stream *rand.Rand, lns []logarithm) int {
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
	last := 0
	for x, w := range weights {
		if w > 0 {
			last = x
			if u -= w; u < 0 {
				return x
			}
		}
	}
	return last
}
