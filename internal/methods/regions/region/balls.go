package region

// Balls: the indices within some steps of an index.

import (
	"context"
	"slices"
)

// ballBuilder makes balls. The ball of radius r around an index consists of all legs of the indices within r steps of it. A step goes
// from an index through a table to another index.
type ballBuilder struct {
	worker    *worker
	depth     []int32 // by index: 1 + its distance from the centre, or 0 if it is not in the ball; all 0 between calls
	isCrossed []bool  // by table: the search went through it; all false between calls
	indices   []int32 // of the current ball, by distance from the centre
	legs      []int32 // of the current ball
}

// addBalls adds a ball around each index to s: the connected parts of its 2-core. The radius is the largest up to Options.Size at which the
// contraction of no part has a table of more than 2^MaxWidth entries. An index without such a radius ≥ 1 has no ball. Cost: per index, the
// ball and a min-fill order of it. The 2-core is what remains after indices and tables with a single leg have been removed, again and
// again. A leg is one index of one table.
func (f *Family) addBalls(ctx context.Context, w *worker, s *store, remaining *moves) error {
	b := &ballBuilder{worker: w, depth: make([]int32, len(w.graph.dims)), isCrossed: make([]bool, len(w.graph.edges))}
	for i := range w.graph.dims {
		for radius := f.Options.Size; radius > 0; radius-- {
			isNarrow, err := b.addIfNarrow(ctx, s, int32(i), radius, f.Options.MaxWidth)
			if err != nil {
				return err
			}
			if err := remaining.spend(buildMoves * len(b.legs)); err != nil {
				return err
			}
			if isNarrow {
				break
			}
		}
	}

	return nil
}

// addIfNarrow adds the connected parts of the 2-core of a ball to s, if all of them are narrow: no table of their contraction has more than
// 2^maxWidth entries. isNarrow is true if they are. A ball without cycles has no parts and counts as narrow. The 2-core is what remains
// after indices and tables with a single leg have been removed, again and again.
func (b *ballBuilder) addIfNarrow(ctx context.Context, s *store, centre int32, radius, maxWidth int) (isNarrow bool, err error) {
	var parts [][]int32
	isNarrow = true
	cut := b.worker.cut
	if core := cut.core(b.ball(centre, radius)); len(core) > 0 {
		cut.split(core, func(part []int32) {
			isNarrow = isNarrow && (s.contains(part) || b.worker.isNarrow(ctx, part, maxWidth))
			parts = append(parts, slices.Clone(part))
		})
	}

	if !isNarrow {
		return false, nil
	}
	for _, part := range parts {
		if _, _, err := s.add(part); err != nil {
			return false, err
		}
	}
	return true, nil
}

// ball returns all legs of the indices within radius steps of centre, ascending. It is valid until the next call. A leg is one index of one
// table, and a step leads from an index to another one of the same table.
func (b *ballBuilder) ball(centre int32, radius int) []int32 {
	g := b.worker.graph
	b.indices, b.legs = append(b.indices[:0], centre), b.legs[:0]
	b.depth[centre] = 1
	for k := 0; k < len(b.indices); k++ { // breadth first; addNeighbours appends to b.indices
		i := b.indices[k]
		b.legs = append(b.legs, g.legsOf(i)...)
		if distance := int(b.depth[i]) - 1; distance < radius {
			b.addNeighbours(i)
		}
	}

	// Clear the marks for the next call.
	for _, i := range b.indices {
		b.depth[i] = 0
	}
	for _, leg := range b.legs {
		b.isCrossed[g.tableOf[leg]] = false
	}

	slices.Sort(b.legs)
	return b.legs
}

// addNeighbours adds the indices that share a table with i and are not yet in the ball. They are one step further than i.
func (b *ballBuilder) addNeighbours(i int32) {
	g := b.worker.graph
	for _, leg := range g.legsOf(i) {
		t := g.tableOf[leg]
		if b.isCrossed[t] {
			continue
		}
		b.isCrossed[t] = true
		for _, j := range g.indicesOf(t) {
			if b.depth[j] == 0 {
				b.depth[j] = b.depth[i] + 1
				b.indices = append(b.indices, j)
			}
		}
	}
}
