package region

// Balls: the indices within some steps of an index.

import (
	"context"
	"slices"
)

// balls makes one region per index: the indices within some steps of it, through tables, and all
// legs among them, cut to the parts of the 2-core. A ball whose contraction is too wide shrinks;
// one too wide at radius 1 is dropped.
type balls struct {
	w     *worker
	step  []int32 // 1 + distance of an index; 0: not in the ball
	met   []bool  // tables
	index []int32
	legs  []int32
}

// addBalls adds the parts of all balls to s. Cost: per index, the ball and a min-fill order of it.
func (f *Family) addBalls(ctx context.Context, w *worker, s *store, left *moves) error {
	b := &balls{w: w, step: make([]int32, len(w.g.dims)), met: make([]bool, len(w.g.edges))}
	for i := range w.g.dims {
		for radius := f.Options.Size; radius > 0; radius-- {
			narrow, err := b.add(ctx, s, int32(i), radius, f.Options.MaxWidth)
			if err != nil {
				return err
			}
			if err := left.spend(buildMoves * len(b.legs)); err != nil {
				return err
			}
			if narrow {
				break
			}
		}
	}

	return nil
}

// add adds the parts of one ball, if none is too wide.
func (b *balls) add(ctx context.Context, s *store, i int32, radius, width int) (narrow bool, err error) {
	var parts [][]int32
	narrow = true
	if core := b.w.cut.core(b.ball(i, radius)); len(core) > 0 {
		b.w.cut.split(core, func(part []int32) {
			narrow = narrow && (s.has(part) || b.w.narrow(ctx, part, width))
			parts = append(parts, slices.Clone(part))
		})
	}

	if !narrow {
		return false, nil
	}
	for _, part := range parts {
		if _, _, err := s.add(part); err != nil {
			return false, err
		}
	}
	return true, nil
}

// ball returns the legs of the indices within radius steps of i, ascending.
func (b *balls) ball(i int32, radius int) []int32 {
	g := b.w.g
	b.index, b.legs = append(b.index[:0], i), b.legs[:0]
	b.step[i] = 1
	for k := 0; k < len(b.index); k++ {
		i := b.index[k]
		b.legs = append(b.legs, g.legsOf(i)...)
		if int(b.step[i]) > radius {
			continue
		}
		for _, leg := range g.legsOf(i) {
			t := g.table[leg]
			if b.met[t] {
				continue
			}
			b.met[t] = true
			for _, j := range g.index[g.first[t]:g.first[t+1]] {
				if b.step[j] == 0 {
					b.step[j] = b.step[i] + 1
					b.index = append(b.index, j)
				}
			}
		}
	}

	for _, i := range b.index {
		b.step[i] = 0
	}
	for _, leg := range b.legs {
		b.met[g.table[leg]] = false
	}

	slices.Sort(b.legs)
	return b.legs
}
