package trees

// Random trees: drawn afresh, drawn like the best so far, or the best so far from some merge on.

import (
	"math"
)

// draw is how a random tree is made.
type draw struct {
	order int // of chains: a kind of ranks
	// sites: what is merged first:
	// 1 the copy tensors of small variables, 2 tables with their copy tensors, 0 nothing
	sites int
	span  bool // a spanning tree; else greedy by rule
	rule  rule
}

const firstDraws = 8 // trees before what was found guides the next

// draw returns new settings or, half of the time,
// those of the best plan with one of them changed a little.
func (s *search) draw() draw {
	r := s.rng
	if s.tries > firstDraws && s.found && r.IntN(2) == 0 {
		d := s.drawn
		switch r.IntN(4) {
		case 0:
			d.order = r.IntN(chainOrders)
		case 1:
			d.rule.alpha = max(0, d.rule.alpha+0.2*r.NormFloat64())
		case 2:
			d.rule.temperature *= math.Exp2(r.NormFloat64())
		default:
			d.rule.centre *= math.Exp2(r.NormFloat64())
		}
		return d
	}

	d := draw{order: r.IntN(chainOrders), sites: []int{1, 2, 0, 1}[s.tries%4], span: s.tries%4 < 2}
	d.rule = rule{alpha: 1.2 * r.Float64(), temperature: math.Exp2(float64(r.IntN(6) - 6))}

	if r.IntN(2) == 0 {
		d.rule.centre = math.Exp2(float64(r.IntN(6) - 2))
	}
	return d
}

// attempt considers one random tree.
func (s *search) attempt() {
	s.tries++
	if s.tries > firstDraws && s.found && s.cost.Loss > 0 && s.rng.IntN(3) == 0 {
		s.resume()
		return
	}
	d := s.draw()
	ranks, err := s.ranks(d.order)
	if err != nil {
		return // the context's: the search ends
	}
	p := s.f.chains(ranks)
	s.complete(p, d, func(m *meter) [][2]int {
		var merges [][2]int
		switch d.sites {
		case 1:
			merges = sites(m, p)
		case 2:
			merges = crossings(m, p)
		}
		return simplify(m, merges)
	})
}

// resume keeps the merges of the best plan up to some place and draws the others.
func (s *search) resume() {
	d := s.draw()
	p := s.best
	kept := p.Merges[:s.rng.IntN(len(p.Merges)+1)]
	s.complete(p, d, func(m *meter) [][2]int {
		for _, pair := range kept {
			if _, err := m.merge(int32(pair[0]), int32(pair[1]), nil); err != nil {
				return nil
			}
		}
		return kept[:len(kept):len(kept)]
	})
}

// complete considers p with the merges that begin makes, followed by drawn ones.
func (s *search) complete(p Plan, d draw, begin func(*meter) [][2]int) {
	n, err := newNetwork(s.h, p)
	if err != nil {
		s.moves = s.o.Moves
		return
	}

	m := newMeter(n, s.o.Bond, 0)
	m.start(s.h)

	memory := float64(s.o.Memory)
	most := math.Inf(1) // flops, gauges not counted, from which nothing can be won
	if s.found && s.cost.PeakBytes <= memory {
		most = max(2*s.cost.Flops, s.o.Flops)
	}
	stop := func() bool { return m.peak*8 > 4*memory || m.flops > most || s.ctx.Err() != nil }

	merges := begin(m)
	ok := true
	root := s.root(n)
	switch {
	case root < 0:
	case d.span:
		merges, ok = span(m, merges, root, s.rng, stop)
	case d.rule.centre > 0:
		merges, ok = greedy(m, merges, d.rule, n.distances(root), s.rng, stop)
	default:
		merges, ok = greedy(m, merges, d.rule, nil, s.rng, stop)
	}

	s.moves += slowness * (m.moves + int64(200*len(n.node)))
	if !ok {
		return
	}

	p.Merges = merges
	if s.consider(p) {
		s.drawn = d
	}
}
