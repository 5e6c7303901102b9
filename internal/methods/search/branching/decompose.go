package branching

import (
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/engine/minibuckets"
	"github.com/basetensor/basetensor/internal/methods/search/andor"
)

// Mini-buckets take as much work as the search has done each time that it has doubled: their entries take a quarter of the time of others.
// The search with their bound takes as much again where the bound is one part in closer as far from the best assignment as the open nodes'
// is; less or more, up to mostTimes as much, with the square of that. Larger mini-buckets take no more than it.
// Measured: 1.8 to 16 parts where that search ends (CSP_13, linkage_23, Grids_17), 1 to 2 of radio links and linkage_11, where it does not.
const (
	closer    = 4.0
	mostTimes = 8
)

// decomposition is the network at the root, as a search along its separators sees it.
type decomposition struct {
	search *andor.Search // nil: there is no order yet
	base   int64         // of the bound
	open   []int32       // variables
	live   [][]int32     // their values
	work   int64         // of the search that is counted
	times  float64       // what it takes of the work
	tables []minibuckets.Costs
}

// decompose searches for the best assignment along the separators of the network at the root for a part of the work so far, where
// mini-buckets show that this is of use. It begins again with larger ones, and with what was found.
func decompose(s *solver) {
	if s.count > 1 || s.isNodewise || s.over() || len(s.open) == 0 {
		return
	}
	if s.parts == nil {
		s.parts = atRoot(s)
	}
	p := s.parts
	if p.tables == nil {
		return
	}
	most := int64(math.MaxInt64)
	if s.most > 0 {
		most = s.most - s.work
	}
	room := min(int64(float64(s.work)*min(p.times, 1)), most)
	if p.search == nil {
		dims := make([]int, len(p.live))
		for i := range dims {
			dims[i] = len(p.live[i])
		}
		var err error
		if p.search, err = andor.New(s.ctx, dims, p.tables, s.room, room/4); err != nil || p.search == nil {
			p.search = nil
			s.work += room / 4
			return
		}
	}
	defer func() { s.work, p.work = s.work+p.search.Work-p.work, p.search.Work }()
	wider, err := p.search.Widen(s.ctx, room)
	if err != nil {
		return
	}
	if wider {
		p.offer(s, p.search.Dive())
	}
	s.below = max(s.below, p.base+p.search.Bound)
	if s.below < s.ub {
		most -= p.search.Work - p.work
		nearer := float64(s.ub-s.open[0].bound) / closer / float64(s.ub-s.below)
		p.times = min(nearer*nearer, mostTimes)
		room = min(max(most, 1), int64(float64(s.work)*p.times))
		nodes := p.search.Nodes
		if values := p.search.Solve(s.ctx, s.ub-p.base, room); values != nil {
			p.offer(s, values)
		}
		s.stats.Decomposed += p.search.Nodes - nodes
		s.below = max(s.below, p.base+p.search.Bound)
	}
}

// offer offers the solver an assignment of the variables that are open at the root.
func (p *decomposition) offer(s *solver, values []int) {
	s.certain()
	for i, x := range p.open {
		s.values[x] = int(p.live[i][values[i]])
	}
	s.cheapest()
	s.offer(s.values)
	s.improve(s.values)
	s.offer(s.values)
}

// atRoot is the network of the open variables: their functions under the costs moved, over live values. Combinations that cost too much
// are forbidden.
func atRoot(s *solver) *decomposition {
	p := &decomposition{base: s.mem[s.bound], times: 1}
	room := s.ub - p.base
	at := make([]int, len(s.vars))
	unary := func(x, a int32) int64 { return s.mem[s.vars[x].unary+int(a)] }
	for x := range s.vars {
		if !s.isOpen(int32(x)) {
			continue
		}
		at[x] = len(p.open)
		live := slices.Clone(s.alive(int32(x)))
		slices.Sort(live)
		p.open, p.live = append(p.open, int32(x)), append(p.live, live)
		f := minibuckets.Costs{Scope: []int{at[x]}}
		for _, a := range live {
			f.Of = append(f.Of, unary(int32(x), a))
		}
		p.tables = append(p.tables, f)
	}
	// add adds a function of open variables: its cost at values, by place in the scope.
	add := func(scope []int32, cost func(values []int32) int64) {
		f := minibuckets.Costs{}
		size := 1
		for _, x := range scope {
			f.Scope = append(f.Scope, at[x])
			size *= len(p.live[at[x]])
		}
		f.Of = make([]int64, size)
		values := make([]int32, len(scope))
		for k := range f.Of {
			rest, alone := k, int64(0)
			for i := len(scope) - 1; i >= 0; i-- {
				live := p.live[f.Scope[i]]
				values[i] = live[rest%len(live)]
				rest /= len(live)
				alone += unary(scope[i], values[i])
			}
			if f.Of[k] = cost(values); f.Of[k]+alone >= room {
				f.Of[k] = minibuckets.Forbidden
			}
		}
		s.work += int64(size)
		p.tables = append(p.tables, f)
	}
	for k := 0; k < len(s.arcs); k += 2 {
		e, r := &s.arcs[k], &s.arcs[k+1]
		if s.mem[e.on] != 0 {
			add([]int32{e.from, e.to}, func(v []int32) int64 {
				return e.table[int(v[0])*s.vars[e.to].d+int(v[1])] - s.mem[e.moved+int(v[0])] - s.mem[r.moved+int(v[1])]
			})
		}
	}
	for k := range s.wides {
		w := &s.wides[k]
		if s.mem[w.on] == 0 {
			continue
		}
		var scope []int32
		var places []int
		from, moved := 0, int64(0)
		for i, x := range w.scope {
			if s.isOpen(x) {
				scope, places = append(scope, x), append(places, i)
			} else {
				from += int(s.vars[x].live[0] * w.stride[i])
				moved += s.mem[w.moved[i]+int(s.vars[x].live[0])]
			}
		}
		add(scope, func(v []int32) int64 {
			at, cost := from, -moved
			for j, i := range places {
				at += int(v[j] * w.stride[i])
				cost -= s.mem[w.moved[i]+int(v[j])]
			}
			return w.table[at] + cost
		})
	}
	if room > minibuckets.Forbidden/4 {
		p.tables = nil
	}
	return p
}
