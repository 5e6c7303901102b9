package region

// Loops: cycles and their unions.

import (
	"slices"
)

// loops holds sets of indices, ascending, each a union of overlapping cycles.
type loops struct {
	*store
	at     [][]int32 // index → cycles that have it
	cycles int       // the first so many sets are cycles
	met    []int32   // cycle → 1 + the last set that it was united with
	in     []bool    // of the current set
	set    []int32
	union  []int32
	left   *moves
}

// keepMoves is the work to put an index of a set in order and look it up.
// Measured: a cycle of eight of a complete model takes 1 µs.
const keepMoves = 30

// addLoops adds to s, for all unions of overlapping cycles with at most o.Size indices, the legs
// among these indices. The omitted terms begin at loops of o.Size+1 indices, of any form. Cost:
// unions times the cycles that each meets.
func (f *Family) addLoops(w *worker, s *store, left *moves) error {
	o := f.Options
	l := &loops{
		store: newStore(o.MaxRegions),
		at:    make([][]int32, len(w.g.dims)),
		in:    make([]bool, len(w.g.dims)),
		left:  left,
	}
	var set []int32
	err := eachCycle(left, w.g, o.Size, func(path []int32) error {
		set = set[:0]
		for k := 0; k < len(path); k += 2 {
			set = append(set, w.g.index[path[k]])
		}
		slices.Sort(set)
		if err := left.spend(keepMoves * len(set)); err != nil {
			return err
		}
		_, _, err := l.add(set)
		return err
	})

	if err != nil {
		return err
	}
	l.cycles = l.len()
	l.met = make([]int32, l.cycles)
	for c := range l.cycles {
		for _, i := range l.region(c) {
			l.at[i] = append(l.at[i], int32(c))
		}
	}

	for u := 0; u < l.len(); u++ {
		if err := l.unite(u, o.Size); err != nil {
			return err
		}
	}

	for u := range l.len() {
		if err := left.spend(keepMoves * len(l.region(u))); err != nil {
			return err
		}
		if err := f.addAmong(w, s, l.region(u)); err != nil {
			return err
		}
	}
	return nil
}

// unite adds the unions of a set, the u-th, with the cycles that it meets, up to a size.
func (l *loops) unite(u, size int) error {
	l.set = append(l.set[:0], l.region(u)...)
	if len(l.set) == size {
		return nil
	}
	for _, i := range l.set {
		l.in[i] = true
	}
	defer func() {
		for _, i := range l.set {
			l.in[i] = false
		}
	}()
	for _, i := range l.set {
		for _, c := range l.at[i] {
			if l.met[c] == int32(u+1) {
				continue
			}
			l.met[c] = int32(u + 1)
			cycle := l.region(int(c))
			if err := l.left.spend(len(cycle)); err != nil {
				return err
			}

			more := 0
			for _, j := range cycle {
				if !l.in[j] {
					more++
				}
			}

			if more == 0 || len(l.set)+more > size {
				continue
			}
			if err := l.left.spend(keepMoves * (len(l.set) + len(cycle))); err != nil {
				return err
			}
			l.union = append(append(l.union[:0], l.set...), cycle...)
			slices.Sort(l.union)
			if _, _, err := l.add(slices.Compact(l.union)); err != nil {
				return err
			}
		}
	}

	return nil
}
