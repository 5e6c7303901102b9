package region

// Loops: cycles and their unions.

import (
	"context"
	"slices"
)

// loops holds sets of indices, ascending, each a union of overlapping cycles.
type loops struct {
	*store
	at     [][]int32 // index → cycles that have it
	cycles int       // the first so many sets are cycles
}

// addLoops adds to s, for all unions of overlapping cycles with at most o.Size indices, the legs among these indices. What
// is left out begins at loops of o.Size+1 indices, whatever their form; families of cycles leave out smaller ones that are
// no cycles. Cost: unions times the cycles that each meets.
func (f *Family) addLoops(ctx context.Context, w *worker, s *store) error {
	o := f.Options
	l := &loops{store: newStore(o.MaxRegions), at: make([][]int32, len(w.g.dims))}
	var set []int32
	err := eachCycle(ctx, w.g, o.Size, func(path []int32) error {
		set = set[:0]
		for k := 0; k < len(path); k += 2 {
			set = append(set, w.g.index[path[k]])
		}
		slices.Sort(set)
		_, _, err := l.add(set)
		return err
	})
	if err != nil {
		return err
	}
	l.cycles = l.len()
	for c := range l.cycles {
		for _, i := range l.region(c) {
			l.at[i] = append(l.at[i], int32(c))
		}
	}
	for u := 0; u < l.len(); u++ {
		if u%64 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if err := l.unite(slices.Clone(l.region(u)), o.Size); err != nil {
			return err
		}
	}
	for u := range l.len() {
		if err := f.addAmong(w, s, l.region(u)); err != nil {
			return err
		}
	}
	return nil
}

// unite adds the unions of a set with the cycles that it meets, up to a size.
func (l *loops) unite(set []int32, size int) error {
	if len(set) == size {
		return nil
	}
	met := map[int32]bool{}
	var union []int32
	for _, i := range set {
		for _, c := range l.at[i] {
			if met[c] {
				continue
			}
			met[c] = true
			union = append(append(union[:0], set...), l.region(int(c))...)
			slices.Sort(union)
			union = slices.Compact(union)
			if len(union) == len(set) || len(union) > size {
				continue
			}
			if _, _, err := l.add(union); err != nil {
				return err
			}
		}
	}
	return nil
}
