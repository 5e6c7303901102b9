package pairwise

// Slices one after the other, or several at the same time.

import (
	"slices"

	"github.com/basetensor/basetensor/internal/base/arena"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// window bounds the values of concurrent slices that wait to be added in their sequence.
const window = 1 << 12

// eachSlice computes all slices.
// each, when given, is called after every slice with its value, one at a time.
func (r *run) eachSlice(p *program, each func(value scaled.Number)) (accumulator, error) {
	var sum accumulator
	own := p.peak - p.shared // entries of one slice
	threads := int(min(int64(r.threads), (r.to-r.from)/2))
	for threads > 1 && float64(threads-1)*own > r.spare {
		threads--
	}

	if each != nil || threads < 2 {
		for n := r.from; n < r.to; n++ {
			value, err := r.slice(p, n)
			if err != nil {
				return sum, err
			}
			sum.add(value)
			if each != nil {
				each(value)
			}
		}
		return sum, nil
	}

	team := make([]*run, threads)
	for i := range team {
		team[i] = r.fork(int(own))
	}
	values := make([]scaled.Number, min(window, r.to-r.from))

	for from := r.from; from < r.to; from += window {
		part := values[:min(window, r.to-from)]
		err := sumproduct.Share(r.ctx, threads, len(part), func(w, n int) (err error) {
			part[n], err = team[w].slice(p, from+int64(n))
			return err
		})
		if err != nil {
			return sum, err
		}
		for _, v := range part {
			sum.add(v)
		}
	}

	for _, w := range team {
		r.stats.Flops += w.stats.Flops
		r.stats.Merges += w.stats.Merges
		r.stats.Slices += w.stats.Slices
		r.stats.Lost = r.stats.Lost || w.stats.Lost
		r.missing = r.missing.Add(w.missing)
		r.beside += w.arena.Peak
	}
	// Tables alive before the slices are counted in r's arena, and its peak may be from there.
	r.beside = max(0, r.arena.Live+r.beside-r.arena.Peak)
	return sum, nil
}

// fork returns a run for slices that reads r's results for all of them.
func (r *run) fork(entries int) *run {
	return &run{
		ctx:     r.ctx,
		shape:   r.shape,
		threads: 1,
		raw:     slices.Clone(r.raw),
		common:  r.common,
		signed:  r.signed,
		digits:  make([]int, len(r.digits)),
		buffers: slices.Clone(r.buffers),
		arena:   arena.Arena{Limit: entries},
	}
}
