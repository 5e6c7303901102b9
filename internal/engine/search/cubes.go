package search

import (
	"cmp"
	"container/heap"
	"context"
	"slices"

	"github.com/basetensor/basetensor/pkg/fault"
)

// A search is divided where there are cubeNodes open nodes for each cube, or after a part cubeWork of its work.
const (
	cubeNodes = 8
	cubeWork  = 1.0 / 8
)

// Begun is a search until it is divided: what its cubes have in common.
type Begun struct {
	s     *solver // nil: no assignment is possible
	cubes int
}

// Begin searches until there are enough open nodes to divide among so many cubes. Cubes of the same network and options, and contexts that
// do not end before, are the same wherever they begin.
//
// Errors: Solve's.
func Begin(ctx context.Context, n *Network, o Options, cubes int) (*Begun, error) {
	if err := n.check(); err != nil {
		return nil, err
	}
	if o.Start != nil && !n.has(o.Start) {
		return nil, fault.New(fault.BadInput, "search: the assignment to start from is none of the network")
	}
	if o.Open <= 0 {
		o.Open = 256 << 20
	}
	s, possible := newSolver(ctx, n)
	if !possible {
		return &Begun{}, nil
	}
	s.most, s.room, s.count = o.Work, o.Open, o.Best
	if o.Start != nil {
		s.offer(o.Start)
	}
	s.enter()
	if cubes > 1 {
		s.search(cubes)
	}
	return &Begun{s, cubes}, nil
}

// Ended reports whether the work or the context ended it. It is not divided then, and others may have begun otherwise.
func (b *Begun) Ended() bool { return b.s != nil && b.s.stopped }

// Cube searches one of the cubes, from 0. Every assignment that is open is in one of them; Bound is of those in this one and of all that
// was done before. Several may be searched at the same time.
func (b *Begun) Cube(ctx context.Context, cube int) *Result {
	if b.s == nil {
		return b.s.result()
	}
	s := b.s.clone()
	s.ctx = ctx
	if !s.stopped {
		s.divide(cube, b.cubes)
	}
	return s.result()
}

// divisible reports whether it is time to divide a search.
func (s *solver) divisible(cubes int) bool {
	return len(s.open) >= cubeNodes*cubes || s.most > 0 && float64(s.work) > cubeWork*float64(s.most)
}

// divide leaves the open nodes of one of so many cubes, the best ones dealt out in turn.
func (s *solver) divide(cube, cubes int) {
	s.divided = true
	all := slices.Clone(s.open)
	slices.SortFunc(all, func(a, b *node) int { return cmp.Or(cmp.Compare(a.bound, b.bound), cmp.Compare(a.serial, b.serial)) })
	s.open, s.used = s.open[:0], 0
	for k := cube; k < len(all); k += cubes {
		s.open = append(s.open, all[k])
		s.used += all[k].bytes()
	}
	heap.Init(&s.open)
}

// clone is a solver in the same state between two dives. Tables and open nodes, which do not change, are the same.
func (s *solver) clone() *solver {
	c := *s
	for _, cells := range []*[]int64{&c.mem, &c.weight, &c.p, &c.e, &c.u, &c.joins[0], &c.joins[1], &c.joins[2]} {
		*cells = slices.Clone(*cells)
	}
	for _, list := range []*[]int32{&c.order, &c.fixed, &c.hit, &c.refs} {
		*list = slices.Clone(*list)
	}
	for _, q := range []*queue{&c.lost, &c.raised, &c.check, &c.loose} {
		q.words = slices.Clone(q.words)
	}
	c.vars, c.arcs, c.wides = slices.Clone(s.vars), slices.Clone(s.arcs), slices.Clone(s.wides)
	for x := range c.vars {
		v := &c.vars[x]
		for _, list := range []*[]int32{&v.live, &v.place, &v.arcs, &v.wide} {
			*list = slices.Clone(*list)
		}
	}
	for k := range c.arcs {
		c.arcs[k].support = slices.Clone(c.arcs[k].support)
	}
	for k := range c.wides {
		w := &c.wides[k]
		w.support = slices.Clone(w.support)
		for i := range w.support {
			w.support[i] = slices.Clone(w.support[i])
		}
	}
	c.parts = nil
	c.trail, c.marks, c.list, c.path, c.frames = nil, nil, nil, nil, nil
	c.gone, c.values, c.best = slices.Clone(s.gone), slices.Clone(s.values), slices.Clone(s.best)
	c.top, c.open = slices.Clone(s.top), slices.Clone(s.open)
	return &c
}
