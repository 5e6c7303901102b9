package pairwise

// Slices one after the other, or several at the same time.

import (
	"slices"

	"github.com/basetensor/basetensor/internal/base/arena"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// window is the number of slices whose values wait to be added in their sequence, if slices are computed at the same time.
const window = 1 << 12

// runSlices computes all slices and returns the accumulator of their values. If onSlice is not nil, it is called after every slice with its
// value, and slices are computed one after the other. Otherwise they are computed on several threads, as many as there is memory for.
func (r *run) runSlices(p *program, onSlice func(value scaled.Number)) (accumulator, error) {
	var sum accumulator
	sliceEntries := p.peak - p.liveAtSlices                               // of one slice
	threads := int(min(int64(r.threads), (r.to-r.from)/2))                // at least two slices each
	for threads > 1 && float64(threads-1)*sliceEntries > r.spareEntries { // the peak of the program has the tables of one thread
		threads--
	}

	if onSlice == nil && threads >= 2 {
		err := r.runParallel(p, threads, int(sliceEntries), &sum)
		return sum, err
	}
	for n := r.from; n < r.to; n++ {
		value, err := r.runSlice(p, n)
		if err != nil {
			return sum, err
		}
		sum.add(value)
		if onSlice != nil {
			onSlice(value)
		}
	}
	return sum, nil
}

// runParallel computes all slices on some threads, each with tables of at most the given number of entries. It goes on by windows of
// slices: the threads compute the slices of a window in any sequence, and then their values are added to sum in the sequence of the slices.
// So the sum does not depend on the threads.
func (r *run) runParallel(p *program, threads, entries int, sum *accumulator) error {
	team := make([]*run, threads)
	for i := range team {
		team[i] = r.fork(entries)
	}

	values := make([]scaled.Number, min(window, r.to-r.from))
	for from := r.from; from < r.to; from += window {
		windowValues := values[:min(window, r.to-from)]
		err := sumproduct.RunChunks(r.ctx, threads, len(windowValues), func(w, n int) (err error) {
			windowValues[n], err = team[w].runSlice(p, from+int64(n))
			return err
		})
		if err != nil {
			return err
		}
		for _, v := range windowValues {
			sum.add(v)
		}
	}

	teamPeak := 0 // entries
	for _, member := range team {
		r.stats.Flops += member.stats.Flops
		r.stats.Merges += member.stats.Merges
		r.stats.Slices += member.stats.Slices
		r.stats.Lost = r.stats.Lost || member.stats.Lost
		r.missingBound = r.missingBound.Add(member.missingBound)
		teamPeak += member.arena.Peak
	}
	// Tables alive before the slices are counted in r's arena, whose own peak may have been before the slices.
	r.parallelEntries = max(0, r.arena.Live+teamPeak-r.arena.Peak)
	return nil
}

// fork returns a run for one thread that computes slices, with at most some entries of its own. It shares the tables of r that are the same
// for all slices.
func (r *run) fork(entries int) *run {
	return &run{
		ctx:          r.ctx,
		shape:        r.shape,
		threads:      1,
		inputs:       slices.Clone(r.inputs),
		common:       r.common, // the scale, and the factors taken out of tables before the slices
		signed:       r.signed, // whether an entry is below 0
		slicedValues: make([]int, len(r.slicedValues)),
		buffers:      slices.Clone(r.buffers),
		arena:        arena.Arena{Limit: entries},
	}
}
