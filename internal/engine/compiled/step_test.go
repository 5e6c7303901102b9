package compiled

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/basetensor/basetensor/internal/network/contractionorder"
)

// entries returns a table with zeros and both signs.
func entries(rng *rand.Rand, size int) []float64 {
	data := make([]float64, size)
	for i := range data {
		if rng.IntN(8) > 0 {
			data[i] = 2*rng.Float64() - 0.5
		}
	}
	return data
}

func volume(dims, scope []int) int {
	n := 1
	for _, i := range scope {
		n *= dims[i]
	}
	return n
}

// at is where values of the indices are in a table over a scope.
func at(dims, scope, x []int) int {
	n := 0
	for _, i := range scope {
		n = n*dims[i] + x[i]
	}
	return n
}

// assignments calls yield for all values of all indices.
func assignments(dims []int, yield func(x []int)) {
	x := make([]int, len(dims))
	for {
		yield(x)
		i := len(x) - 1
		for i >= 0 && x[i] == dims[i]-1 {
			x[i] = 0
			i--
		}
		if i < 0 {
			return
		}
		x[i]++
	}
}

// terms adds up a table's terms, and their absolute values: the size of its rounding.
type terms struct{ sum, size []float64 }

func newTerms(n int) terms { return terms{make([]float64, n), make([]float64, n)} }

func (t terms) add(i int, f float64) {
	t.sum[i] += f
	t.size[i] += math.Abs(f)
}

func (t terms) check(tb testing.TB, what string, got []float64) {
	tb.Helper()
	if len(got) != len(t.sum) {
		tb.Fatalf("%s: %d entries, want %d", what, len(got), len(t.sum))
	}
	for i := range got {
		if !(math.Abs(got[i]-t.sum[i]) <= 1e-12*t.size[i]) {
			tb.Fatalf("%s, entry %d: %v, want %v", what, i, got[i], t.sum[i])
		}
	}
}

// product multiplies all tables but one.
func product(dims []int, h contractionorder.Hypergraph, tables [][]float64, but int, x []int) float64 {
	f := 1.0
	for t, scope := range h.Edges {
		if t != but {
			f *= tables[t][at(dims, scope, x)]
		}
	}
	return f
}

// TestStepsAgreeWithEnumeration: the output of one step, and the derivatives by its operands, for any
// scopes, numbers of operands, of sums and of entries, and for derivatives needed only in part.
func TestStepsAgreeWithEnumeration(t *testing.T) {
	const seed = 1
	var rows, blocks, severalBlocks, severalSums, lacking, scalars int
	byOperands := map[int]int{}
	for round := range 600 {
		rng := rand.New(rand.NewPCG(seed, uint64(round)))
		var dims []int
		for total := 1; len(dims) < 1+rng.IntN(8) && total < 3000; {
			d := 1 + rng.IntN([]int{2, 4, 50}[rng.IntN(3)])
			total *= d
			dims = append(dims, d)
		}
		perm := rng.Perm(len(dims))
		sums := min(len(perm), rng.IntN(4))
		s := &contractionorder.Step{Sum: perm[:sums], Out: perm[sums:], FullSize: float64(volume(dims, perm))}
		s.Size = float64(volume(dims, s.Out))
		h := contractionorder.Hypergraph{Dims: dims}
		for k := range 1 + rng.IntN(6) {
			scope := rng.Perm(len(dims))
			if k > 0 || rng.IntN(4) == 0 { // one has all, as a rule
				scope = scope[:rng.IntN(len(dims)+1)]
			}
			h.Edges = append(h.Edges, scope)
			s.In = append(s.In, k)
		}
		needed := make([]bool, len(h.Edges))
		for k := range needed {
			needed[k] = rng.IntN(3) > 0
		}
		needed[rng.IntN(len(needed))] = true

		p := New(h, []*contractionorder.Step{s}, slices.Clone(needed))
		var m Memory
		m.Prepare(p, true)
		for k, scope := range h.Edges {
			m.Tables[k] = entries(rng, volume(dims, scope))
			if m.Derivatives[k] != nil {
				m.Derivatives[k][0] = math.NaN() // stale entries
			}
		}
		p.Forward(&m, 0)
		out := len(h.Edges)
		want := newTerms(int(s.Size))
		assignments(dims, func(x []int) {
			want.add(at(dims, s.Out, x), product(dims, h, m.Tables, -1, x))
		})
		want.check(t, "the output", m.Tables[out])

		copy(m.Derivatives[out], entries(rng, int(s.Size)))
		p.Backward(&m, 0)
		for k, scope := range h.Edges {
			if !needed[k] {
				if m.Derivatives[k] != nil {
					t.Errorf("round %d: memory for a derivative that nobody needs", round)
				}
				continue
			}
			want := newTerms(volume(dims, scope))
			assignments(dims, func(x []int) {
				f := m.Derivatives[out][at(dims, s.Out, x)] * product(dims, h, m.Tables, k, x)
				want.add(at(dims, scope, x), f)
			})
			want.check(t, "a derivative", m.Derivatives[k])
			lacking += len(dims) - len(scope)
			scalars += max(0, 1-len(scope))
		}

		c := &p.Steps[0]
		byOperands[min(len(s.In), 4)]++
		if c.isInRows {
			rows++
		} else {
			blocks++
		}
		severalBlocks += min(1, c.Size/c.blockSize-1)
		severalSums += min(1, max(0, sums-1))
		if flops := float64(len(s.In)) * s.FullSize; p.Flops != flops || p.Entries != c.Size {
			t.Errorf("round %d: %v flops and %d entries, want %v and %d", round, p.Flops, p.Entries, flops, c.Size)
		}
	}
	for what, n := range map[string]int{
		"in rows": rows, "in blocks": blocks, "in several blocks": severalBlocks, "of several sums": severalSums,
		"of one operand": byOperands[1], "of two": byOperands[2], "of three": byOperands[3],
		"of more": byOperands[4], "without an axis": lacking, "of a number": scalars,
	} {
		if n < 30 {
			t.Errorf("%d steps %s: too few to say anything", n, what)
		}
	}
}

// TestUnitsOfLargeSteps: units of a step for several goroutines, in any sequence, agree with enumeration; none adds to an entry that
// another adds to, and the memory beside tables is as priced, and small.
func TestUnitsOfLargeSteps(t *testing.T) {
	const seed = 3
	divided, crowded := 0, 0
	for round := range 8 {
		rng := rand.New(rand.NewPCG(seed, uint64(round)))
		var dims []int
		for total := 1; total < sharedWork; total *= dims[len(dims)-1] {
			dims = append(dims, 2+rng.IntN(3))
		}
		perm := rng.Perm(len(dims))
		sums := 1 + round
		s := &contractionorder.Step{Sum: perm[:sums], Out: perm[sums:], FullSize: float64(volume(dims, perm))}
		s.Size = float64(volume(dims, s.Out))
		h := contractionorder.Hypergraph{Dims: dims}
		for k := range 1 + rng.IntN(4) {
			scope := rng.Perm(len(dims))
			if k > 0 {
				scope = scope[:len(dims)-rng.IntN(3)]
			}
			h.Edges, s.In = append(h.Edges, scope), append(s.In, k)
		}
		p := New(h, []*contractionorder.Step{s}, slices.Repeat([]bool{true}, len(s.In)))
		var m Memory
		m.Prepare(p, true)
		for k, scope := range h.Edges {
			m.Tables[k] = make([]float64, volume(dims, scope))
			for i := range m.Tables[k] {
				m.Tables[k][i] = 0.5 + rng.Float64()
			}
		}
		back := m.Derivatives[len(h.Edges)]
		for i := range back {
			back[i] = 0.5 + rng.Float64()
		}
		c := &p.Steps[0]
		if c.Blocks%c.Unit != 0 {
			t.Errorf("round %d: %d blocks, units of %d", round, c.Blocks, c.Unit)
		}
		beside, bytes := m.WithOwnScratch(p), 4*len(c.blockStart)
		for _, in := range c.In {
			bytes += 4 * (len(in.outer) + len(in.inner))
		}
		bytes += 8 * len(beside.scratch)
		if priced := Bytes(dims, []*contractionorder.Step{s}); priced != float64(bytes) {
			t.Errorf("round %d: %d bytes beside tables, %v are priced", round, bytes, priced)
		}
		if tables := 8 * (p.derivativeEntries + p.Entries); bytes > tables/4 {
			t.Errorf("round %d: %d bytes beside derivatives and the output of %d", round, bytes, tables)
		}
		if c.Blocks > c.Unit {
			divided++
		}
		if c.blockSize*c.Sums > maxInner {
			crowded++
		}
		of := make([][]int, len(h.Edges)) // by entry: 1 + the part that has added to it
		for k := range of {
			of[k] = make([]int, len(m.Derivatives[k]))
			clear(m.Derivatives[k])
		}
		units := c.Blocks / c.Unit
		parts := min(units, 7) // which divides few numbers: parts begin anywhere
		for _, part := range rng.Perm(parts) {
			before := make([][]float64, len(of))
			for k := range of {
				before[k] = slices.Clone(m.Derivatives[k])
			}
			beside = m.WithOwnScratch(p)
			p.BackwardBlocks(&beside, 0, part*units/parts*c.Unit, (part+1)*units/parts*c.Unit)
			for k := range of {
				for i, x := range m.Derivatives[k] {
					if x == before[k][i] {
						continue
					}
					if of[k][i] != 0 {
						t.Fatalf("round %d: parts %d and %d add to entry %d of operand %d", round, of[k][i]-1, part, i, k)
					}
					of[k][i] = part + 1
				}
			}
		}
		want := make([]terms, len(h.Edges))
		for k := range want {
			want[k] = newTerms(len(m.Derivatives[k]))
		}
		assignments(dims, func(x []int) {
			d := back[at(dims, s.Out, x)]
			for k, scope := range h.Edges {
				want[k].add(at(dims, scope, x), d*product(dims, h, m.Tables, k, x))
			}
		})
		for k := range want {
			want[k].check(t, "a derivative", m.Derivatives[k])
		}
	}
	if divided < 4 || crowded < 2 {
		t.Errorf("%d steps in several units, %d of many terms: too few to say anything", divided, crowded)
	}
}

// TestProgramsAgreeWithEnumeration: Z and its derivatives by all leaves, along both walks of any order,
// for networks of several parts, with numbers, with indices of dimension 1 and such that no table has.
func TestProgramsAgreeWithEnumeration(t *testing.T) {
	const seed = 2
	parts, several := 0, 0
	for round := range 400 {
		rng := rand.New(rand.NewPCG(seed, uint64(round)))
		var h contractionorder.Hypergraph
		for range 1 + rng.IntN(7) {
			h.Dims = append(h.Dims, 1+rng.IntN(3))
		}
		if round%10 == 0 { // two of many indices are summed in one step
			h.Dims = slices.Repeat([]int{2}, 12)
			h.Edges = append(h.Edges, rng.Perm(12))
		}
		for range rng.IntN(9) {
			h.Edges = append(h.Edges, rng.Perm(len(h.Dims))[:min(len(h.Dims), rng.IntN(4))])
		}
		walk := contractionorder.Walk
		if round%2 == 1 {
			walk = contractionorder.WalkPlainly
		}
		var steps []*contractionorder.Step
		if err := walk(t.Context(), h, rng.Perm(len(h.Dims)), func(s *contractionorder.Step) bool {
			steps = append(steps, s)
			several += min(1, max(0, len(s.Sum)-1))
			return true
		}); err != nil {
			t.Fatal(err)
		}

		needed := make([]bool, len(h.Edges))
		for k := range needed {
			needed[k] = rng.IntN(3) > 0
		}
		p := New(h, steps, slices.Clone(needed))
		var m Memory
		m.Prepare(p, true)
		numbers := []float64{1} // factors of Z beside the outputs of one entry
		used := make([]bool, len(h.Dims))
		for k, scope := range h.Edges {
			m.Tables[k] = entries(rng, volume(h.Dims, scope))
			if len(m.Tables[k]) == 1 {
				numbers[0] *= m.Tables[k][0]
			}
			for _, i := range scope {
				used[i] = true
			}
		}
		for i, d := range h.Dims {
			if !used[i] {
				numbers[0] *= float64(d)
			}
		}
		outputs := []int{-1}
		for n := range p.Steps {
			p.Forward(&m, n)
			if p.Steps[n].Size == 1 {
				numbers = append(numbers, m.Tables[p.Leaves+n][0])
				outputs = append(outputs, p.Leaves+n)
			}
		}
		parts += min(1, max(0, len(outputs)-2))
		z := newTerms(1)
		assignments(h.Dims, func(x []int) { z.add(0, product(h.Dims, h, m.Tables, -1, x)) })
		got := 1.0
		for _, f := range numbers {
			got *= f
		}
		z.check(t, "Z", []float64{got})

		for i, n := range outputs {
			if i == 0 || m.Derivatives[n] == nil {
				continue
			}
			m.Derivatives[n][0] = 1
			for j, f := range numbers {
				if j != i {
					m.Derivatives[n][0] *= f
				}
			}
		}
		for n := len(p.Steps) - 1; n >= 0; n-- {
			if m.Derivatives[p.Leaves+n] != nil {
				p.Backward(&m, n)
			}
		}
		for k, scope := range h.Edges {
			if !needed[k] || len(m.Tables[k]) == 1 {
				continue
			}
			want := newTerms(volume(h.Dims, scope))
			assignments(h.Dims, func(x []int) {
				want.add(at(h.Dims, scope, x), product(h.Dims, h, m.Tables, k, x))
			})
			want.check(t, "a derivative", m.Derivatives[k])
		}
	}
	if parts < 30 || several < 10 {
		t.Errorf("%d networks of several parts, %d steps of several sums: too few", parts, several)
	}
}

// TestMemoryIsUsedAgain: after another program a run has the same bits, and allocates nothing.
func TestMemoryIsUsedAgain(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	var programs []*Program
	var leaves [][][]float64
	for _, n := range []int{12, 7, 10} {
		h := contractionorder.Hypergraph{Dims: slices.Repeat([]int{2}, n)}
		order := make([]int, n)
		for i := range n {
			order[i] = i
			h.Edges = append(h.Edges, []int{i}, []int{i, (i + 1) % n}, []int{(i + 3) % n, i})
		}
		var steps []*contractionorder.Step
		if err := contractionorder.WalkPlainly(t.Context(), h, order, func(s *contractionorder.Step) bool {
			steps = append(steps, s)
			return true
		}); err != nil {
			t.Fatal(err)
		}
		p := New(h, steps, slices.Repeat([]bool{true}, len(h.Edges)))
		programs = append(programs, p)
		var own [][]float64
		for k := range h.Edges {
			own = append(own, entries(rng, p.sizes[k]))
		}
		leaves = append(leaves, own)
	}
	var m Memory
	run := func(k int) (z, d float64) {
		p := programs[k]
		m.Prepare(p, true)
		copy(m.Tables, leaves[k])
		for n := range p.Steps {
			p.Forward(&m, n)
		}
		last := p.Leaves + len(p.Steps) - 1
		m.Derivatives[last][0] = 1
		for n := len(p.Steps) - 1; n >= 0; n-- {
			p.Backward(&m, n)
		}
		return m.Tables[last][0], m.Derivatives[1][0]
	}
	z, d := run(0)
	run(1)
	run(2)
	if again, back := run(0); again != z || back != d || z == 0 || d == 0 {
		t.Errorf("%v and %v, before %v and %v", again, back, z, d)
	}
	if n := testing.AllocsPerRun(20, func() { run(1); run(0) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
