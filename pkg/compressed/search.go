package compressed

// Search: the plan that truncates least within a budget.

import (
	"context"
	"math"
	"math/rand/v2"

	"github.com/basetensor/basetensor/pkg/btn"
	"github.com/basetensor/basetensor/pkg/einsum"
	"github.com/basetensor/basetensor/pkg/elimination"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/ordering"
)

// SearchOptions of a search. The zero value works.
type SearchOptions struct {
	Bond   int     // largest bond that the plan is to be used with; 0: 32
	Memory int64   // bytes of Cost.PeakBytes at that bond; 0: btn.DefaultMemory, 2 GiB
	Flops  float64 // what may be spent to truncate nothing; 0: 2e9
	Seed   uint64  // of everything random
	Moves  int64   // elementary operations of about a nanosecond; 0: 2^30, about a second
}

const (
	defaultFlops = 2e9
	defaultMoves = 1 << 30
	slowness     = 3 // nanoseconds of what the meter counts as a move
)

// Search looks for a plan whose peak with wires of at most Bond fits Memory. Among those it prefers exact ones that take
// at most Flops, then the fewest flops, with a little weight on Cost.Loss. It tries exact contraction trees of elimination orders and of ordering.Search, whose Loss is 0 where they fit, and
// greedy and spanning trees over several ways to write variables of high degree as chains of copies.
//
// The plan is a function of the arguments alone; different seeds give different plans where nothing exact fits.
// Errors: einsum.ErrOverBudget (fault.OverBudget), with the cheapest plan found; bad_input for an inconsistent
// hypergraph; the context's.
func Search(ctx context.Context, h elimination.Hypergraph, o SearchOptions) (Plan, Cost, error) {
	if err := checkShape(h); err != nil {
		return Plan{}, Cost{}, err
	}
	if o.Bond <= 0 {
		o.Bond = defaultBond
	}
	if o.Memory <= 0 {
		o.Memory = btn.DefaultMemory
	}
	if !(o.Flops > 0) {
		o.Flops = defaultFlops
	}
	if o.Moves <= 0 {
		o.Moves = defaultMoves
	}
	s := &search{ctx: ctx, h: h, f: newForm(h), o: o, rng: rand.New(rand.NewPCG(o.Seed, 0x7ee))}
	if err := s.exactTrees(); err != nil {
		return Plan{}, Cost{}, err
	}
	for s.moves < o.Moves && ctx.Err() == nil && !(s.found && s.cost.Loss == 0 && s.fits(s.cost)) {
		s.attempt()
	}
	if err := ctx.Err(); err != nil {
		return Plan{}, Cost{}, err
	}
	if !s.found || s.cost.PeakBytes > float64(o.Memory) {
		return s.best, s.cost, fault.New(fault.OverBudget, "%w: the best tree found needs %.4g bytes with bond %d, the budget is %d", einsum.ErrOverBudget, s.cost.PeakBytes, o.Bond, o.Memory)
	}
	return s.best, s.cost, nil
}

type search struct {
	ctx   context.Context
	h     elimination.Hypergraph
	f     *form
	o     SearchOptions
	rng   *rand.Rand
	moves int64
	tries int

	best  Plan
	cost  Cost
	found bool
}

func (s *search) fits(c Cost) bool {
	return c.PeakBytes <= float64(s.o.Memory) && c.Flops <= s.o.Flops
}

// better orders costs: those within memory, then within the flops, then exact ones, then by price.
func (s *search) better(a, b Cost) bool {
	memory := float64(s.o.Memory)
	if x, y := a.PeakBytes <= memory, b.PeakBytes <= memory; x != y {
		return x
	} else if !x {
		return a.PeakBytes < b.PeakBytes
	}
	if x, y := a.Flops <= s.o.Flops, b.Flops <= s.o.Flops; x != y {
		return x
	} else if x && (a.Loss == 0) != (b.Loss == 0) {
		return a.Loss == 0
	}
	return a.price() < b.price()
}

// lossBits is how much Loss is as bad as twice the flops. Measured on grids, random regular and complete graphs, trees
// of one bond: errors have a rank correlation with Loss of −0.1 to 0.5, with flops of −0.4 to 0.5, so that neither is
// worth much of the other; a tree of half the flops can be run with a larger bond.
const lossBits = 40

// price is what a search compares: log2 of the flops and a little for every truncation.
func (c Cost) price() float64 { return math.Log2(c.Flops+1) + c.Loss/lossBits }

// consider prices a plan and keeps it if it is better than all before.
func (s *search) consider(p Plan) {
	n, err := newNetwork(s.h, p)
	if err != nil {
		return
	}
	m := newMeter(n, s.o.Bond, defaultGauge)
	m.start(s.h)
	stopped := false
	err = m.run(p.Merges, func() bool {
		stopped = s.hopeless(m)
		return stopped
	})
	s.moves += slowness * m.moves
	if err != nil || stopped {
		return
	}
	if c := m.cost(); !s.found || s.better(c, s.cost) {
		s.best, s.cost, s.found = p, c, true
	}
}

// hopeless says whether a plan under way is worse than the best already.
func (s *search) hopeless(m *meter) bool {
	if m.flops > 1e300 {
		return true
	}
	return s.found && !s.better(m.cost(), s.cost)
}

// exactTrees considers the trees of exact contraction.
func (s *search) exactTrees() error {
	shape := s.f.shape()
	for _, order := range [][]int{elimination.Best(shape)} {
		t, err := ordering.FromOrder(shape, order)
		if err != nil {
			return err
		}
		s.consider(s.f.along(t))
		s.moves += int64(200 * len(shape.Edges))
	}
	if s.found && s.cost.Loss == 0 && s.fits(s.cost) && s.cost.Flops < cheap {
		return nil
	}
	p, err := ordering.Search(s.ctx, shape, ordering.Options{Seed: s.o.Seed, Memory: math.MaxInt64, Moves: s.o.Moves / 4})
	if err != nil {
		return err
	}
	s.moves += p.Moves
	if len(p.Slices) == 0 {
		s.consider(s.f.along(p.Tree))
	}
	return nil
}

const cheap = 1e7 // flops of an exact tree below which no other is looked for

// attempt considers one random tree.
func (s *search) attempt() {
	s.tries++
	p := s.f.chains(s.ranks())
	n, err := newNetwork(s.h, p)
	if err != nil {
		s.moves = s.o.Moves
		return
	}
	m := newMeter(n, s.o.Bond, 0)
	m.start(s.h)
	stop := func() bool { return m.peak*8 > 4*float64(s.o.Memory) || s.ctx.Err() != nil }
	var merges [][2]int
	if s.rng.IntN(2) == 0 {
		merges = sites(m, p)
	}
	merges, ok := simplify(m, merges), true
	p.Merges = merges
	root := s.root(n)
	switch {
	case root < 0:
	case s.tries%2 == 0:
		p.Merges, ok = span(m, merges, root, s.rng, stop)
	default:
		r := rule{alpha: 1.2 * s.rng.Float64(), temperature: math.Exp2(float64(s.rng.IntN(6) - 6))}
		var depth []float64
		if s.rng.IntN(2) == 0 {
			r.centre = math.Exp2(float64(s.rng.IntN(6) - 2))
			depth = n.distances(root)
		}
		p.Merges, ok = greedy(m, merges, r, depth, s.rng, stop)
	}
	s.moves += slowness * (m.moves + int64(200*len(n.node)))
	if ok {
		s.consider(p)
	}
}

// ranks draws a global order of the indices: by number, by elimination, breadth first from somewhere, or at random.
func (s *search) ranks() []int {
	rank := make([]int, len(s.h.Dims))
	order := s.rng.Perm(len(rank))
	switch s.rng.IntN(4) {
	case 0:
		for i := range order {
			order[i] = i
		}
	case 1:
		order = s.breadthFirst(order)
	case 2:
		eliminated := elimination.Restrict(s.order(), s.h)
		rest := make([]bool, len(rank))
		for _, i := range eliminated {
			rest[i] = true
		}
		for i := range rank {
			if !rest[i] {
				eliminated = append(eliminated, i)
			}
		}
		order = eliminated
	}
	for k, i := range order {
		rank[i] = k
	}
	return rank
}

func (s *search) order() []int { return elimination.MinFill(s.h) }

// breadthFirst lists the indices by distance from the first of a list.
func (s *search) breadthFirst(starts []int) []int {
	seen := make([]bool, len(starts))
	var out []int
	for _, start := range starts {
		if seen[start] {
			continue
		}
		seen[start] = true
		out = append(out, start)
		for k := len(out) - 1; k < len(out); k++ {
			for _, t := range s.f.tables[out[k]] {
				for _, j := range s.h.Edges[t] {
					if !seen[j] {
						seen[j] = true
						out = append(out, j)
					}
				}
			}
		}
	}
	return out
}

// simplify merges every node into a neighbour that does not grow by it.
func simplify(m *meter, merges [][2]int) [][2]int {
	n := m.n
	for again := true; again; {
		again = false
		for a := 0; a < len(n.node); a++ {
			if !n.node[a].alive || n.node[a].copy || len(n.node[a].legs) == 0 {
				continue
			}
			for _, b := range n.neighbours(int32(a)) {
				if n.estimate(int32(a), b.to, math.Inf(1)) > max(n.node[a].size, n.node[b.to].size) {
					continue
				}
				if _, err := m.merge(int32(a), b.to, nil); err != nil {
					return merges
				}
				merges = append(merges, [2]int{a, int(b.to)})
				again = true
				break
			}
		}
	}
	return merges
}

// root draws a node that has wires; −1 if none has.
func (s *search) root(n *network) int32 {
	var linked []int32
	for i, nd := range n.node {
		if nd.alive && len(nd.legs) > 0 {
			linked = append(linked, int32(i))
		}
	}
	if len(linked) == 0 {
		return -1
	}
	return linked[s.rng.IntN(len(linked))]
}

// distances are those of all nodes from one, in wires; 0 for what is not connected with it.
func (n *network) distances(root int32) []float64 {
	out := make([]float64, len(n.node))
	seen := make([]bool, len(n.node))
	seen[root] = true
	queue := []int32{root}
	for k := 0; k < len(queue); k++ {
		at := queue[k]
		for _, w := range n.node[at].legs {
			if o := n.wire[w].other(at); !seen[o] {
				seen[o], out[o] = true, out[at]+1
				queue = append(queue, o)
			}
		}
	}
	return out
}

const largestSite = 64 // entries

// sites merges the chain of copy tensors of every index into one, where that is small.
func sites(m *meter, p Plan) [][2]int {
	var merges [][2]int
	for c := 0; c < len(p.Copies); {
		end, size := c, float64(m.n.dimension(p.Tables+c)*m.n.dimension(p.Tables+c))
		for ; end < len(p.Copies) && p.Copies[end] == p.Copies[c]; end++ {
			size *= float64(m.n.dimension(p.Tables + c))
		}
		at := p.Tables + c
		for k := c + 1; k < end && size <= largestSite; k++ {
			id, err := m.merge(int32(at), int32(p.Tables+k), nil)
			if err != nil {
				return merges
			}
			merges = append(merges, [2]int{at, p.Tables + k})
			at = int(id)
		}
		c = end
	}
	return merges
}

// dimension is that of the wires of a copy tensor.
func (n *network) dimension(c int) int { return n.wire[n.node[c].legs[0]].dim }
