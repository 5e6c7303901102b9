package contractionorder

// Every kind of move leaves a valid tree with the right scopes.

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func someNetwork(seed uint64) (Hypergraph, *network) {
	r := rand.New(rand.NewPCG(seed, 7))
	h := someHypergraph(r, 5+r.IntN(40), 4+r.IntN(60), 4)
	return h, newSlicedNetwork(h, nil)
}

// TestWorkingAgreesWithEvaluate:
// the search's figures agree with the cost model, to the fixed point's precision.
func TestWorkingAgreesWithEvaluate(t *testing.T) {
	for seed := range uint64(60) {
		h, n := someNetwork(seed)
		merges := greedyTree(n, greedyRule{alpha: oneBit}, rand.NewPCG(seed, 1)).mergeRemaining()
		w := newWorkingTree(n, merges)
		s, err := newScopes(h, Tree{Leaves: len(h.Edges), Merges: merges}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for k := range merges {
			v := len(h.Edges) + k
			if d := bitsOf(w.size[v]) - s.log2Size(v); d > 1e-3 || d < -1e-3 {
				t.Fatalf("seed %d: table %d has 2^%v entries, want 2^%v",
					seed, v, bitsOf(w.size[v]), s.log2Size(v))
			}
			if got := pow2(w.unionSize[v]) / s.unionSize[k]; got < 0.999 || got > 1.001 {
				t.Fatalf("seed %d: union of merge %d is off by %v", seed, k, got)
			}
			var scope []int
			for _, x := range appendMembers(w.scopeOf(int32(v)), nil) {
				scope = append(scope, n.indexOf[x])
			}
			slices.Sort(scope)
			if !slices.Equal(scope, s.scope[v]) {
				t.Fatalf("seed %d: scope %v, want %v", seed, scope, s.scope[v])
			}
		}
	}
}

func TestRotationsKeepTheTree(t *testing.T) {
	for seed := range uint64(60) {
		_, n := someNetwork(seed)
		rng := rand.NewPCG(seed, 8)
		w := newWorkingTree(n, chainOf(len(n.edges)))
		scratch := make([]uint64, n.words)
		o := testObjectives["writes"]
		for _, temperature := range []log2Fixed{100 * oneBit, oneBit, 0} {
			before := w.clone()
			w.sweep(&o, temperature, rng, scratch)
			checkWorking(t, w)
			if temperature > oneBit && len(n.edges) > 10 && slices.Equal(before.left, w.left) {
				t.Errorf("seed %d: a sweep at a high temperature changed nothing", seed)
			}
		}
	}
}

func TestAnnealingNeverMakesItDearer(t *testing.T) {
	better := 0
	for seed := range uint64(30) {
		_, n := someNetwork(seed)
		for name, o := range testObjectives {
			w := newWorkingTree(n, chainOf(len(n.edges)))
			before := w.log2TotalPrice(&o)
			w.anneal(o, annealing{hot: oneBit, cold: oneBit / 10, sweeps: 60}, rand.NewPCG(seed, 9),
				noLimit)
			checkWorking(t, w)
			if after := w.log2TotalPrice(&o); after > before {
				t.Errorf("%s, seed %d: price 2^%v after 2^%v",
					name, seed, bitsOf(after), bitsOf(before))
			} else if after < before {
				better++
			}
		}
	}
	if better < 60 {
		t.Errorf("only %d of 90 chains got cheaper", better)
	}
}

func TestReconfigurationNeverMakesItDearer(t *testing.T) {
	for seed := range uint64(30) {
		_, n := someNetwork(seed)
		for name, o := range testObjectives {
			for _, k := range []int{3, 6, 8} {
				w := newWorkingTree(n, chainOf(len(n.edges)))
				before := w.log2TotalPrice(&o)
				newReconfigurer(w, o, k).run(noLimit)
				checkWorking(t, w)
				if after := w.log2TotalPrice(&o); after > before {
					t.Errorf("%s, seed %d: price 2^%v after 2^%v",
						name, seed, bitsOf(after), bitsOf(before))
				}
			}
		}
	}
}

func TestGreedyAndBisectionMakeTrees(t *testing.T) {
	for seed := range uint64(60) {
		_, n := someNetwork(seed)
		rng := rand.NewPCG(seed, 10)
		for _, rule := range []greedyRule{{}, {isLinear: true, alpha: oneBit},
			{alpha: oneBit / 2, temperature: oneBit},
			{isLinear: true, temperature: oneBit}} {
			checkWorking(t, newWorkingTree(n, greedyTree(n, rule, rng).mergeRemaining()))
		}
		for _, d := range []dissection{{pieceSize: 1}, {imbalance: 80, openCost: oneBit / 2, pieceSize: 8},
			{imbalance: 255, openCost: oneBit, pieceSize: 2}} {
			merges, _ := dissect(n, d, rng, nil)
			checkWorking(t, newWorkingTree(n, merges))
		}
	}
}

// TestReductionMakesNoTableLarger: every result is at most as large as the larger of its inputs,
// and the expanded tree is one over the whole network.
func TestReductionMakesNoTableLarger(t *testing.T) {
	for seed := range uint64(100) {
		h, n := someNetwork(seed)
		p := reduce(n)
		for k, m := range p.merges {
			if c := len(n.edges) + k; p.size[c] > max(p.size[m[0]], p.size[m[1]]) {
				t.Fatalf("seed %d: merge %d makes 2^%v of 2^%v and 2^%v",
					seed, k, bitsOf(p.size[c]), bitsOf(p.size[m[0]]), bitsOf(p.size[m[1]]))
			}
		}
		remaining, tables := p.remainingNetwork(h.Dims)
		tree, err := NewTree(len(h.Edges), p.expand(tables, chainOf(len(remaining.edges))))
		if err != nil {
			t.Fatal(err)
		}
		s, err := newScopes(h, tree, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i, table := range tables {
			var scope []int
			for _, v := range remaining.edges[i] {
				scope = append(scope, remaining.indexOf[v])
			}
			slices.Sort(scope)
			if !slices.Equal(scope, s.scope[table]) {
				t.Fatalf("seed %d: kernel tensor %d has %v, the table it stands for %v",
					seed, i, scope, s.scope[table])
			}
		}
	}
}

// TestReductionSolvesTrees: a chain of 10^5 tensors and a star need no search.
func TestReductionSolvesTrees(t *testing.T) {
	const n = 100000
	chain, star := Hypergraph{}, Hypergraph{}
	for i := range n {
		chain.Dims = append(chain.Dims, 2+i%3)
		star.Dims = append(star.Dims, 2)
		if i > 0 {
			chain.Edges = append(chain.Edges, []int{i - 1, i})
			star.Edges = append(star.Edges, []int{0, i}, []int{i})
		}
	}
	for _, h := range []Hypergraph{chain, star} {
		p := reduce(newSlicedNetwork(h, nil))
		if live := len(p.liveTables()); live != 1 {
			t.Errorf("%d tensors are left", live)
		}
		if p.movesSpent > 500*n {
			t.Errorf("%d moves for %d tensors", p.movesSpent, n)
		}
	}
}

func TestRefinementCountsItsCut(t *testing.T) {
	for seed := range uint64(60) {
		_, n := someNetwork(seed)
		d := &dissector{network: n, netOf: make([]int32, len(n.indexOf)), tensorCount: make([]int32, len(n.indexOf))}
		for i := range d.netOf {
			d.netOf[i] = none
		}
		var part []int32
		for i := range n.edges {
			part = append(part, int32(i))
		}
		g := d.partHypergraph(part)
		b := bisection{rng: rand.NewPCG(seed, 11), imbalance: 26}
		side := make([]uint8, len(part))
		for v := range side {
			side[v] = uint8(b.rng.Uint64() % 2)
		}
		cutOf := func() (cut log2Fixed) {
			for e, pins := range g.nets {
				if slices.ContainsFunc(pins,
					func(v int32) bool { return side[v] != side[pins[0]] }) {
					cut += g.cost[e]
				}
			}
			return cut
		}
		before := cutOf()
		f := newRefinement(g, side, b.maxSide(g), nil)
		balanced := f.excess() == 0
		for f.improve() {
			if f.cut != cutOf() {
				t.Fatalf("seed %d: the cut costs %d, recounted %d", seed, f.cut, cutOf())
			}
			for v := range side {
				if f.gain[v] != f.gainOf(int32(v)) {
					t.Fatalf("seed %d: gain of %d is %d, recounted %d",
						seed, v, f.gain[v], f.gainOf(int32(v)))
				}
			}
		}
		if f.excess() > 0 {
			t.Errorf("seed %d: a side is %d too heavy", seed, f.excess())
		}
		if balanced && cutOf() > before {
			t.Errorf("seed %d: the cut went from %d to %d", seed, before, cutOf())
		}
		side = b.split(g)
		if f := newRefinement(g, side, b.maxSide(g), nil); f.excess() > 0 || f.weight[0] == 0 ||
			f.weight[1] == 0 {
			t.Errorf("seed %d: sides of %v", seed, f.weight)
		}
	}
}

// TestBisectionOfAGrid: two halves of an 8×30 grid are cut along its short side.
func TestBisectionOfAGrid(t *testing.T) {
	const rows, columns = 8, 30
	g := &hypergraph{}
	for i := range rows * columns {
		g.weight = append(g.weight, 1)
		if i%columns+1 < columns {
			g.nets = append(g.nets, []int32{int32(i), int32(i + 1)})
		}
		if i+columns < rows*columns {
			g.nets = append(g.nets, []int32{int32(i), int32(i + columns)})
		}
	}
	for range g.nets {
		g.cost = append(g.cost, oneBit)
	}
	g.linkNets()
	for seed := range uint64(10) {
		b := bisection{rng: rand.NewPCG(seed, 12), imbalance: 26}
		f := newRefinement(g, b.split(g), b.maxSide(g), nil)
		if f.cut > (rows+2)*oneBit {
			t.Errorf("seed %d: %d edges are cut, 8 are enough", seed, f.cut>>fractionBits)
		}
	}
}

func TestSlicesAreTakenAndTakenBack(t *testing.T) {
	for seed := range uint64(40) {
		_, n := someNetwork(seed)
		w := newWorkingTree(n, greedyTree(n, greedyRule{alpha: oneBit}, rand.NewPCG(seed, 13)).mergeRemaining())
		if w.log2Largest() < 4*oneBit {
			continue
		}
		o := objective{log2Write: 4 * oneBit, limit: w.log2Largest() / 2, steepness: oneBit / 2}
		s := &slicedTree{wholeNetwork: n, tree: w}
		if !s.sliceToLimit(&o, 6, noLimit) || s.tree.log2Largest() > o.limit || len(s.sliced) == 0 {
			t.Fatalf("seed %d: %d slices, largest table 2^%v, limit 2^%v",
				seed, len(s.sliced), bitsOf(s.tree.log2Largest()), bitsOf(o.limit))
		}
		checkWorking(t, s.tree)
		before := s.log2Price(&o)
		s.exchangeSlices(&o, 6, noLimit)
		checkWorking(t, s.tree)
		s.removeSlices(&o)
		checkWorking(t, s.tree)
		if s.tree.log2Largest() > o.limit || s.log2Price(&o) > before {
			t.Errorf("seed %d: taking slices back made it worse", seed)
		}
		o.limit = noLimit
		s.removeSlices(&o)
		if len(s.sliced) > 0 && s.log2Price(&o) > before {
			t.Errorf("seed %d: %v stay sliced without a limit, price 2^%v after 2^%v",
				seed, s.sliced, bitsOf(s.log2Price(&o)), bitsOf(before))
		}
	}
}
