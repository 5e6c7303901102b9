package learned

// One step at a time against least squares on materialised tensors.

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/basetensor/basetensor/internal/methods/closed"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// newModel draws some parts and fits their weights.
func newModel(
	t *testing.T, rng *rand.Rand, net *btn.Network, levels countspace.Levels, rot [][]float64, parts int,
) *model {
	t.Helper()
	sp, err := newSpace(net, levels)
	if err != nil {
		t.Fatal(err)
	}
	copy(sp.rot, rot)
	norm2, err := sp.normSq()
	if err != nil {
		t.Fatal(err)
	}
	m := &model{sp: sp, norm2: norm2}
	for range parts {
		p := &part{s: countspace.New(sp.shape), r: make([][]float64, len(net.Dims))}
		for leg, d := range net.Dims {
			p.r[leg] = normal(rng, d)
		}
		c := make([]int, len(sp.shape))
		for range p.s.Size() {
			p.s.Set(c, scaled.FromFloat(rng.NormFloat64()))
			advanceIndex(c, sp.shape)
		}
		m.appendPart(p)
	}
	if err := m.system(); err != nil {
		t.Fatal(err)
	}
	return m
}

// entries lists the entries of a part, for the brute-force side.
func (m *model) entries(p *part) []float64 {
	frame := &btn.Frame{Levels: m.sp.levels}
	return materialisePart(m.sp.dims, &closed.SymmetryRankOne{Frame: frame, S: p.s, R: p.r})
}

// rest materialises B less the components other than i, in the learned coordinates.
func (m *model) rest(net *btn.Network, i int) []float64 {
	out := materialise(net)
	for leg, o := range m.sp.rot {
		out = rotate(out, net.Dims, leg, transposed(o, net.Dims[leg]))
	}
	for k, p := range m.parts {
		if k != i {
			for x, q := range m.entries(p) {
				out[x] -= m.fit.Alpha[k].Float64() * q
			}
		}
	}
	return out
}

func transposed(o []float64, d int) []float64 {
	if o == nil {
		return nil
	}
	t := make([]float64, len(o))
	for x := range d {
		for y := range d {
			t[y*d+x] = o[x*d+y]
		}
	}
	return t
}

// oneLevel counts nothing.
func oneLevel(net *btn.Network) countspace.Levels {
	return countspace.Levels{D: 1, Of: zeroLevels(net.Dims)}
}

// randomLevels maps the values of every leg to d levels at random.
func randomLevels(rng *rand.Rand, dims []int, d int) countspace.Levels {
	l := countspace.Levels{D: d}
	for _, n := range dims {
		of := make([]uint8, n)
		for x := range of {
			of[x] = uint8(rng.IntN(d))
		}
		l.Of = append(l.Of, of)
	}
	return l
}

// forEachSetting runs f for all forms of cores, levels with D = 1, 2 and 3, with and without maps.
func forEachSetting(t *testing.T, f func(t *testing.T, rng *rand.Rand, net *btn.Network, m *model)) {
	cases(t, func(t *testing.T, rng *rand.Rand, net *btn.Network) {
		for _, levels := range []countspace.Levels{
			oneLevel(net), countspace.TwoLevels(net.Dims), randomLevels(rng, net.Dims, 3),
		} {
			for _, rotated := range []bool{false, true} {
				var rot [][]float64
				if rotated {
					rot = make([][]float64, len(net.Dims))
					for leg, d := range net.Dims {
						rot[leg] = randomRotation(rng, d)
					}
				}
				f(t, rng, net, newModel(t, rng, net, levels, rot, 3))
			}
		}
	})
}

// TestObjectiveAgainstMaterialisedTensors: ‖B‖², G, b, and ρ within its rounding.
func TestObjectiveAgainstMaterialisedTensors(t *testing.T) {
	forEachSetting(t, func(t *testing.T, rng *rand.Rand, net *btn.Network, m *model) {
		b := materialise(net)
		norm := inner(b, b)
		near(t, "‖B‖²", m.norm2.Float64(), norm, 1e-12, norm)
		var all [][]float64
		for _, p := range m.parts {
			q := m.entries(p)
			for leg, o := range m.sp.rot {
				q = rotate(q, net.Dims, leg, o)
			}
			all = append(all, q)
		}
		sum := make([]float64, len(b))
		for i, q := range all {
			near(t, fmt.Sprintf("b[%d]", i), m.b[i].Float64(), inner(b, q), 1e-12, math.Sqrt(norm*inner(q, q)))
			for j, p := range all {
				near(t, fmt.Sprintf("G[%d][%d]", i, j), m.g[i][j].Float64(), inner(q, p), 1e-12, math.Sqrt(inner(p, p)*inner(q, q)))
			}
			for x := range q {
				sum[x] += m.fit.Alpha[i].Float64() * q[x]
			}
		}
		if want := distanceSq(b, sum) / norm; math.Abs(m.fit.Residual-want) > m.fit.Rounding {
			t.Errorf("ρ is off by %g, its rounding bound says %g", math.Abs(m.fit.Residual-want), m.fit.Rounding)
		}
	})
}

// cases are small networks of all forms, dimensions 1 to 4, with signs.
func cases(t *testing.T, f func(t *testing.T, rng *rand.Rand, net *btn.Network)) {
	for i, c := range []struct{ dims, cores []int }{
		{[]int{2, 2, 2, 2}, []int{2, 2}},
		{[]int{2, 3, 2, 4, 3}, []int{2, 3}},
		{[]int{3, 3, 3, 3}, []int{1, 3}},
		{[]int{2, 1, 2, 3, 2, 2}, []int{3, 2, 1}},
		{[]int{2, 2, 2, 2, 2, 2, 2}, []int{4, 3}},
	} {
		for form := range 4 {
			t.Run(fmt.Sprintf("%v/form=%d", c.dims, form), func(t *testing.T) {
				rng := rand.New(rand.NewPCG(uint64(i), uint64(form)))
				f(t, rng, randomNetwork(rng, c.dims, c.cores, form))
			})
		}
	}
}

// randomRotation is a random reflection: orthogonal, any dimension.
func randomRotation(rng *rand.Rand, d int) []float64 {
	u := normal(rng, d)
	norm := inner(u, u)
	o := make([]float64, d*d)
	for x := range d {
		for y := range d {
			o[x*d+y] = -2 * u[x] * u[y] / norm
			if x == y {
				o[x*d+y]++
			}
		}
	}
	return o
}

// TestSymmetricStepIsTheProjectionOnCountClasses: S_c = P_c/N_c with both sums over all entries, up
// to one common factor.
func TestSymmetricStepIsTheProjectionOnCountClasses(t *testing.T) {
	forEachSetting(t, func(t *testing.T, rng *rand.Rand, net *btn.Network, m *model) {
		for i, p := range m.parts {
			p.r[0][0] = 0 // a hole: some N_c may vanish
			q, err := m.products(i)
			if err != nil {
				t.Fatal(err)
			}
			got := m.symmetricStep(i, q)
			rest := m.rest(net, i)
			top, bottom := make([]float64, got.Size()), make([]float64, got.Size())
			at := 0
			indices(net.Dims, func(x []int) {
				r := 1.0
				for leg, v := range p.r {
					r *= v[x[leg]]
				}
				c := countPlace(m.sp.levels, x)
				top[c] += rest[at] * r
				bottom[c] += r * r
				at++
			})
			size := 0.0
			for c := range top {
				if bottom[c] > 0 {
					size += top[c] * top[c] / bottom[c]
				}
			}
			for c := range top {
				if bottom[c] == 0 {
					if !got.Coef.At(c).IsZero() {
						t.Errorf("part %d: S[%d] = %v where N is 0", i, c, got.Coef.At(c).Float64())
					}
					continue
				}
				weight := math.Sqrt(bottom[c]) // compare the coefficient's effect, not its bare value
				near(t, fmt.Sprintf("part %d, S[%d]", i, c), got.Coef.At(c).Float64()*weight,
					top[c]/bottom[c]/math.Sqrt(size)*weight, 1e-11, 1)
			}
		}
	})
}

// TestVectorSweepIsLeastSquaresLegByLeg solves every leg by least squares on all entries, in the
// same order.
func TestVectorSweepIsLeastSquaresLegByLeg(t *testing.T) {
	forEachSetting(t, func(t *testing.T, rng *rand.Rand, net *btn.Network, m *model) {
		for i, p := range m.parts {
			r, q, err := m.vectorSweep(context.Background(), i)
			if err != nil {
				t.Fatal(err)
			}
			want := m.bruteSweep(net, i)
			for leg := range want {
				for x := range want[leg] {
					near(t, fmt.Sprintf("part %d leg %d value %d", i, leg, x), r[leg][x], want[leg][x], 1e-8, 1)
				}
			}
			m.parts[i] = &part{s: p.s, r: r}
			checkProducts(t, m, i, q)
			m.parts[i] = p
		}
	})
}

// system computes all of G and b by product trees and fits the weights.
func (m *model) system() error {
	for i, p := range m.parts {
		base, err := m.sp.basePoly(p.r)
		if err != nil {
			return err
		}
		m.b[i] = countspace.Dot(p.s, base, m.sp.ops)
		for k := 0; k <= i; k++ {
			m.g[i][k] = countspace.Dot(countspace.Hadamard(p.s, m.parts[k].s), m.sp.pairPoly(p.r, m.parts[k].r), m.sp.ops)
			m.g[k][i] = m.g[i][k]
		}
	}
	return m.refit()
}

func (m *model) bruteSweep(net *btn.Network, i int) [][]float64 {
	rest := m.rest(net, i)
	p := *m.parts[i]
	p.r = append([][]float64(nil), p.r...)
	for _, core := range net.Cores {
		for _, leg := range core.Legs {
			p.r[leg] = slices.Repeat([]float64{1}, net.Dims[leg]) // Q with weight 1 on this leg
			q := m.entries(&p)
			v, norm := make([]float64, net.Dims[leg]), 0.0
			den := make([]float64, len(v))
			at := 0
			indices(net.Dims, func(x []int) {
				v[x[leg]] += rest[at] * q[at]
				den[x[leg]] += q[at] * q[at]
				at++
			})
			for x := range v {
				v[x] /= den[x]
				norm += v[x] * v[x]
			}
			for x := range v {
				v[x] /= math.Sqrt(norm)
			}
			p.r[leg] = v
		}
	}
	return p.r
}

// checkProducts compares the passes' products with product trees over the final vectors.
func checkProducts(t *testing.T, m *model, i int, got products) {
	t.Helper()
	want, err := m.products(i)
	if err != nil {
		t.Fatal(err)
	}
	same := func(what string, a, b countspace.Poly) {
		size := 0.0
		for j := range b.Size() {
			size = math.Max(size, math.Abs(b.Coef.At(j).Float64()))
		}
		shape := a.Shape
		for c := range shape {
			shape[c] = max(shape[c], b.Shape[c])
		}
		d := countspace.Crop(a.Sub(b), shape)
		for j := range d.Size() {
			near(t, what, d.Coef.At(j).Float64(), 0, 1e-11, size)
		}
	}
	same("⟨B, R⟩", got.base, want.base)
	same("N", got.self, want.self)
	for k := range want.others {
		if k != i {
			same("pair", got.others[k], want.others[k])
		}
	}
}

// TestSweepKeepsEntriesWithoutEquation: a value whose level S never uses keeps its entry.
func TestSweepKeepsEntriesWithoutEquation(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	net := randomNetwork(rng, []int{2, 2, 2, 2}, []int{2, 2}, 0)
	m := newModel(t, rng, net, countspace.TwoLevels(net.Dims), nil, 1)
	s := countspace.New([]int{5})
	s.Set([]int{0}, scaled.One) // only the entry with all legs at 0
	m.parts[0].s = s
	if err := m.system(); err != nil {
		t.Fatal(err)
	}
	old := m.parts[0].r
	r, q, err := m.vectorSweep(context.Background(), 0)
	if err != nil {
		t.Fatal(err)
	}
	for leg := range old {
		if r[leg][1] == 0 {
			t.Errorf("leg %d: an entry without an equation became 0", leg)
		}
	}
	// The one entry was already fitted by α: the step may be refused for rounding, but not change
	// anything.
	if err := m.replacePart(0, &part{s: s, r: r}, q); err != nil {
		t.Fatal(err)
	}
	b := materialise(net)
	near(t, "explained", m.fit.Explained.Float64(), b[0]*b[0]/inner(b, b), 1e-13, 1)
}

// TestProcrustesSteps: ρ does not rise and agrees with materialised tensors, and the maps are
// orthogonal.
func TestProcrustesSteps(t *testing.T) {
	forEachSetting(t, func(t *testing.T, rng *rand.Rand, net *btn.Network, m *model) {
		before := m.fit.Residual
		if err := m.procrustes(context.Background()); err != nil {
			t.Fatal(err)
		}
		if m.fit.Residual > before+1e-14 {
			t.Errorf("ρ rose from %v to %v", before, m.fit.Residual)
		}
		d := m.plan()
		b := materialise(net)
		now := materialiseSum(net.Dims, d)
		near(t, "ρ", m.fit.Residual, distanceSq(b, now)/inner(b, b), 1e-12, 1)
		for leg, o := range m.sp.rot {
			if o == nil {
				continue // no part has a weight
			}
			n := net.Dims[leg]
			for x := range n {
				for y := range n {
					dot := 0.0
					for z := range n {
						dot += o[x*n+z] * o[y*n+z]
					}
					want := 0.0
					if x == y {
						want = 1
					}
					near(t, "OOᵀ", dot, want, 1e-13, 1)
				}
			}
		}
	})
}

// TestProcrustesStepIsOptimal: with one component no rotation or reflection of the leg visited last
// does better.
func TestProcrustesStepIsOptimal(t *testing.T) {
	for seed := range uint64(10) {
		rng := rand.New(rand.NewPCG(seed, 30))
		net := randomNetwork(rng, []int{2, 3, 2, 2}, []int{2, 2}, 0)
		last := net.Cores[1].Legs[1]
		if net.Dims[last] != 2 {
			continue
		}
		m := newModel(t, rng, net, countspace.TwoLevels(net.Dims), nil, 1)
		if m.fit.Alpha[0].IsZero() {
			m.parts[0].s = m.parts[0].s.Scale(scaled.FromFloat(-1))
			if err := m.system(); err != nil {
				t.Fatal(err)
			}
		}
		if err := m.procrustes(context.Background()); err != nil {
			t.Fatal(err)
		}
		b := materialise(net)
		q := m.entries(m.parts[0])
		for leg, o := range m.sp.rot {
			if leg != last {
				q = rotate(q, net.Dims, leg, o)
			}
		}
		best := 0.0
		for k := range 3600 {
			s, c := math.Sincos(2 * math.Pi * float64(k) / 3600)
			for _, o := range [][]float64{{c, -s, s, c}, {c, s, s, -c}} {
				best = math.Max(best, math.Abs(inner(b, rotate(q, net.Dims, last, o))))
			}
		}
		got := math.Abs(inner(b, rotate(q, net.Dims, last, m.sp.rot[last])))
		if got < best*(1-1e-12) || got > best*(1+1e-5) {
			t.Errorf("seed %d: ⟨B, B̃⟩ = %v, the best of 7200 maps has %v", seed, got, best)
		}
	}
}

// TestChainEnvironments: every environment equals the product of all other pieces contracted with S,
// in any number of variables.
func TestChainEnvironments(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 6))
		vars, n := rng.IntN(3), 1+rng.IntN(12)
		pieces := make([]countspace.Poly, n)
		box := make([]int, vars)
		for a := range box {
			box[a] = n + 1
		}
		for j := range pieces {
			row := normal(rng, vars+1)
			if vars > 0 && rng.IntN(4) == 0 {
				row[1+rng.IntN(vars)] = 0
			}
			pieces[j] = countspace.Linear(row)
		}
		s := countspace.New(box)
		c := make([]int, vars)
		for range s.Size() {
			s.Set(c, scaled.FromFloat(rng.NormFloat64()))
			advanceIndex(c, box)
		}
		ch, err := newChain(s, n, nil, func(j int) (countspace.Poly, error) { return pieces[j], nil })
		if err != nil {
			t.Fatal(err)
		}
		for j := range pieces {
			env, err := ch.legEnvironment(vars + 1)
			if err != nil {
				t.Fatal(err)
			}
			others := append(append([]countspace.Poly(nil), pieces[:j]...), pieces[j+1:]...)
			for a := range env {
				unit := make([]float64, vars+1)
				unit[a] = 1
				p := countspace.Product(vars, append(others, countspace.Linear(unit)), nil)
				near(t, fmt.Sprintf("seed %d piece %d level %d", seed, j, a), env[a].Float64(),
					countspace.Dot(s, p, nil).Float64(), 1e-9, 1)
			}
			// changes behind the walk must not matter to the legs ahead
			pieces[j] = countspace.Linear(normal(rng, vars+1))
			ch.advance(pieces[j])
		}
	}
}

// TestLargeCoresWalkLikeSmallOnes: the walks of CP and symmetric cores against the polynomials of
// one leg at a time.
func TestLargeCoresWalkLikeSmallOnes(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 9))
	dims := []int{2, 3, 2, 2, 3, 2, 2}
	for form := 1; form < 4; form++ {
		net := randomNetwork(rng, dims, []int{7}, form)
		for _, levels := range []countspace.Levels{oneLevel(net), countspace.TwoLevels(dims)} {
			sp, err := newSpace(net, levels)
			if err != nil {
				t.Fatal(err)
			}
			r := make([][]float64, len(dims))
			for leg, n := range dims {
				r[leg] = normal(rng, n)
			}
			box := sp.coreBox(0)
			env := countspace.New(box)
			for j := range env.Size() {
				c := []int{j}[:len(box)]
				env.Set(c, scaled.FromFloat(rng.NormFloat64()))
			}
			fast, err := sp.newCoreWalk(0, r, env)
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := fast.(*termWalk); !ok {
				t.Errorf("form %d, %d levels: %T", form, levels.D, fast)
			}
			slow := &polyWalk{sp: sp, core: 0, r: r, t: env}
			for _, leg := range net.Cores[0].Legs {
				x, err := fast.numerator()
				if err != nil {
					t.Fatal(err)
				}
				y, err := slow.numerator()
				if err != nil {
					t.Fatal(err)
				}
				for a := range x {
					near(t, "numerator", x[a].Float64(), y[a].Float64(), 1e-10, 1+math.Abs(y[a].Float64()))
				}
				r[leg] = normal(rng, dims[leg])
				fast.advance()
				slow.advance()
			}
		}
	}
}

// TestCoresWithoutLegsOfOtherLevels: a walk over a core of no legs, whose levels are not the problem's.
func TestCoresWithoutLegsOfOtherLevels(t *testing.T) {
	dims := []int{2, 2}
	net := randomNetwork(rand.New(rand.NewPCG(3, 10)), dims, []int{2}, 2)
	for _, counted := range []int{1, 2, 4} {
		net.Cores = append(net.Cores[:1], btn.Core{Legs: []int{}, T: &tensor.Symmetric{Shape: []int{},
			Levels: countspace.Levels{D: counted, Of: [][]uint8{}}, Values: scaled.Vector{Mant: []float64{2}}}})
		sp, err := newSpace(net, countspace.TwoLevels(dims))
		if err != nil {
			t.Fatal(err)
		}
		env := countspace.New(sp.coreBox(1))
		if _, err := sp.newCoreWalk(1, make([][]float64, len(dims)), env); err != nil {
			t.Errorf("%d levels: %v", counted, err)
		}
	}
}
