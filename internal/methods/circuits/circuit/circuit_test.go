package circuit_test

import (
	"context"
	"errors"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/basetensor/basetensor/internal/methods/circuits/circuit"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// spans are exponents of weights: such as float64 has, and such as it has not.
var spans = []int{3, 300, 5000}

func TestEvaluateIsTheSumOfTerms(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		d := draw(t, rng)
		w := d.weigh(rng, spans[seed%3])
		z := exactly(0)
		d.terms(w, func(_ []int, term *big.Float) { z.Add(z, term) })
		got, err := d.circuit.Evaluate(ctx, w)
		if err != nil {
			t.Fatal(err)
		}
		near(t, "Z", got, z)
	}
}

func TestDerivativesAreSumsOfTheOthersWeights(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 2))
		d := draw(t, rng)
		w := d.weigh(rng, spans[seed%3])
		_, got, err := d.circuit.Derivatives(ctx, w)
		if err != nil {
			t.Fatal(err)
		}
		for v, n := range d.domains {
			for a := range n {
				clamped := slices.Clone(w)
				for b := range n {
					clamped[d.circuit.FirstWeight(v)+b] = scaled.Number{}
				}
				clamped[d.circuit.FirstWeight(v)+a] = scaled.One
				want := exactly(0)
				d.terms(clamped, func(_ []int, term *big.Float) { want.Add(want, term) })
				near(t, "∂Z/∂λ", got[d.circuit.FirstWeight(v)+a], want)
			}
		}
	}
}

func TestMarginalsAndJointsAreShares(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 3))
		d := draw(t, rng)
		w := d.weigh(rng, spans[seed%3])
		set := rng.Perm(len(d.domains))[:1+rng.IntN(len(d.domains))]
		cell := func(x []int) (k int) {
			for _, v := range set {
				k = k*d.domains[v] + x[v]
			}
			return k
		}
		cells := 1
		for _, v := range set {
			cells *= d.domains[v]
		}
		z, by, joint := exactly(0), make([]float64, len(w)), make([]float64, cells)
		d.terms(w, func(_ []int, term *big.Float) { z.Add(z, term) })
		if z.Sign() > 0 {
			d.terms(w, func(x []int, term *big.Float) {
				p, _ := new(big.Float).Quo(term, z).Float64()
				for v, a := range x {
					by[d.circuit.FirstWeight(v)+a] += p
				}
				joint[cell(x)] += p
			})
		}
		got, gotBy, err := d.circuit.Marginals(ctx, w)
		if err != nil {
			t.Fatal(err)
		}
		near(t, "Z", got, z)
		gotJoint, err := d.circuit.Joint(ctx, w, set)
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range by {
			if math.Abs(gotBy[i].Div(got).Float64()-want) > 1e-12 && z.Sign() > 0 || z.Sign() == 0 && !gotBy[i].IsZero() {
				t.Fatalf("seed %d: marginals %v, want %v", seed, gotBy, by)
			}
		}
		for i, want := range joint {
			if math.Abs(gotJoint[i].Div(got).Float64()-want) > 1e-12 && z.Sign() > 0 || z.Sign() == 0 && !gotJoint[i].IsZero() {
				t.Fatalf("seed %d: the joint marginal of %v is %v, want %v", seed, set, gotJoint, joint)
			}
		}
	}
}

func TestMaximumFindsAllThatAreClose(t *testing.T) {
	several := 0
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 4))
		d := draw(t, rng)
		w := d.weigh(rng, spans[seed%3])
		if seed%2 == 0 {
			w = d.circuit.UnitWeights() // ties
		}
		if ok, err := d.circuit.IsDeterministic(ctx); !ok || err != nil {
			t.Fatalf("seed %d: a circuit of decisions is not deterministic: %v", seed, err)
		}
		got, err := d.circuit.Maximum(ctx, w, 0.9, 1000)
		if err != nil {
			t.Fatal(err)
		}
		top := exactly(0)
		d.terms(w, func(_ []int, term *big.Float) {
			if term.Cmp(top) > 0 {
				top = term
			}
		})
		near(t, "the largest term", got.Top, top)
		var want [][]int
		floor := new(big.Float).Mul(top, exactly(0.1*(1-1e-12)))
		d.terms(w, func(x []int, term *big.Float) {
			if top.Sign() > 0 && term.Cmp(floor) >= 0 {
				want = append(want, slices.Clone(x))
			}
		})
		if len(want) > 0 {
			d.terms(w, func(x []int, term *big.Float) {
				if slices.Equal(x, got.Values[0]) {
					near(t, "the term of the first assignment", got.Top, term)
				}
			})
		}
		for k, x := range got.Values {
			d.terms(w, func(y []int, term *big.Float) {
				if slices.Equal(x, y) {
					near(t, "the term of an assignment", scaled.FromBig(got.Terms[k]), term)
				}
			})
		}
		slices.SortFunc(got.Values, slices.Compare[[]int])
		if !got.All || !slices.EqualFunc(got.Values, want, slices.Equal[[]int]) {
			t.Fatalf("seed %d: %v, want %v", seed, got.Values, want)
		}
		if len(want) > 3 {
			several++
			few, err := d.circuit.Maximum(ctx, w, 0.9, 2)
			if err != nil || few.All || len(few.Values) != 2 {
				t.Fatalf("seed %d: two of %d: %+v, %v", seed, len(want), few, err)
			}
		}
	}
	if several < 20 {
		t.Errorf("%d circuits have several close terms", several)
	}
}

func TestSamplesHaveTheirShares(t *testing.T) {
	const draws = 2000
	stream := func(i int) *rand.Rand { return rand.New(rand.NewPCG(9, uint64(i))) }
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 5))
		d := draw(t, rng)
		w := d.weigh(rng, 2)
		_, got, err := d.circuit.Sample(ctx, w, draws, stream)
		if err != nil {
			t.Fatal(err)
		}
		counts, z := map[string]int{}, exactly(0)
		for i := range len(got) / len(d.domains) {
			counts[string(bytesOf(got[i*len(d.domains):][:len(d.domains)]))]++
		}
		d.terms(w, func(_ []int, term *big.Float) { z.Add(z, term) })
		if (z.Sign() > 0) != (len(got) > 0) {
			t.Fatalf("seed %d: %d values drawn, Z = %v", seed, len(got), z)
		}
		if z.Sign() == 0 {
			continue
		}
		d.terms(w, func(x []int, term *big.Float) {
			q, _ := new(big.Float).Quo(term, z).Float64()
			n := counts[string(bytesOf(x))]
			if off := math.Abs(float64(n) - draws*q); off > 6*math.Sqrt(draws*q*(1-q))+1 || q == 0 && n > 0 {
				t.Fatalf("seed %d: %v in %d of %d draws, with probability %v", seed, x, n, draws, q)
			}
		})
		_, few, err := d.circuit.Sample(ctx, w, 10, stream)
		if err != nil || !slices.Equal(few, got[:len(few)]) {
			t.Fatalf("seed %d: the first ten draws depend on how many there are: %v", seed, err)
		}
	}
}

func bytesOf(x []int) []byte {
	b := make([]byte, len(x))
	for i, a := range x {
		b[i] = byte(a)
	}
	return b
}

func TestBuilderFoldsAndShares(t *testing.T) {
	b := circuit.NewBuilder([]int{2, 3}, 0)
	x, y := b.Leaf(0, 1), b.Leaf(1, 2)
	two, three := b.Number(scaled.FromFloat(2)), b.Number(scaled.FromFloat(3))
	for _, c := range []struct {
		what      string
		got, want circuit.Node
	}{
		{"the same leaf", b.Leaf(0, 1), x},
		{"the same number", b.Number(scaled.FromFloat(2)), two},
		{"the number 1", b.Number(scaled.One), circuit.One},
		{"the number 0", b.Number(scaled.Number{}), circuit.Zero},
		{"a product in another sequence", b.Product(y, x), b.Product(x, y)},
		{"numbers multiplied", b.Product(two, x, three), b.Product(x, b.Number(scaled.FromFloat(6)))},
		{"numbers that multiply to 1", b.Product(two, b.Number(scaled.FromFloat(0.5)), x), x},
		{"a product with 0", b.Product(x, circuit.Zero), circuit.Zero},
		{"no product", b.Product(), circuit.One},
		{"a sum with 0", b.Sum(circuit.Zero, x), x},
		{"no sum", b.Sum(), circuit.Zero},
		{"a sum in another sequence", b.Sum(b.Leaf(1, 0), y), b.Sum(y, b.Leaf(1, 0))},
		{"all values", b.SumOfValues(1, nil), b.Sum(y, b.Leaf(1, 0), b.Leaf(1, 1))},
		{"some values", b.SumOfValues(1, []int{2}), y},
	} {
		if c.got != c.want {
			t.Errorf("%s: node %d, want %d", c.what, c.got, c.want)
		}
	}
}

func TestBuilderKeepsItsLimit(t *testing.T) {
	const limit = 1 << 18
	domains := slices.Repeat([]int{2}, 40)
	b := circuit.NewBuilder(domains, limit)
	rng := rand.New(rand.NewPCG(6, 6))
	for range 1 << 20 {
		b.Product(b.Leaf(rng.IntN(20), 0), b.Leaf(20+rng.IntN(20), 1), b.Number(scaled.FromFloat(rng.Float64())))
		if b.Bytes() > limit {
			t.Fatalf("%d bytes, %d allowed", b.Bytes(), limit)
		}
		if b.IsFull() {
			break
		}
	}
	if !b.IsFull() || b.Leaf(1, 1) != circuit.Zero || b.Bytes() < limit/4 {
		t.Errorf("full %v at %d bytes of %d", b.IsFull(), b.Bytes(), limit)
	}
	if _, err := b.Finish(context.Background(), circuit.One); !errors.Is(err, circuit.ErrFull) {
		t.Errorf("got %v, want ErrFull", err)
	}
}

func TestFinishRefusesWhatIsNoCircuit(t *testing.T) {
	for name, build := range map[string]func(b *circuit.Builder) circuit.Node{
		"a variable twice": func(b *circuit.Builder) circuit.Node {
			return b.Product(b.Leaf(0, 0), b.SumOfValues(0, nil), b.Leaf(1, 0))
		},
		"not smooth": func(b *circuit.Builder) circuit.Node {
			return b.Sum(b.Product(b.Leaf(0, 1), b.Leaf(1, 0)), b.Leaf(0, 0))
		},
		"a variable missing": func(b *circuit.Builder) circuit.Node { return b.SumOfValues(1, nil) },
		"a value missing":    func(b *circuit.Builder) circuit.Node { return b.Leaf(1, 2) },
		"below 0":            func(b *circuit.Builder) circuit.Node { return b.Product(b.Number(scaled.FromFloat(-1)), b.Leaf(0, 0)) },
		"not a number":       func(b *circuit.Builder) circuit.Node { return b.Number(scaled.FromFloat(math.NaN())) },
		"no node":            func(*circuit.Builder) circuit.Node { return 99 },
	} {
		b := circuit.NewBuilder([]int{2, 2}, 0)
		if _, err := b.Finish(context.Background(), build(b)); !errors.Is(err, circuit.ErrCircuit) {
			t.Errorf("%s: got %v, want ErrCircuit", name, err)
		}
	}
}

func TestOverlapIsSeen(t *testing.T) {
	b := circuit.NewBuilder([]int{2, 2}, 0)
	// x + y as a sum of two terms that do not exclude each other
	root := b.Sum(b.Product(b.Leaf(0, 1), b.SumOfValues(1, nil)), b.Product(b.SumOfValues(0, nil), b.Leaf(1, 1)))
	c, err := b.Finish(context.Background(), root)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Maximum(ctx, c.UnitWeights(), 0, 1); !errors.Is(err, circuit.ErrOverlap) {
		t.Errorf("got %v, want ErrOverlap", err)
	}
	if z, err := c.Evaluate(ctx, c.UnitWeights()); err != nil || z != scaled.FromFloat(4) {
		t.Errorf("Z = %v, %v, want 4", z, err)
	}
}

// TestDecisionsBelowAreSeen: the children of a sum differ in a variable that neither has a leaf of.
func TestDecisionsBelowAreSeen(t *testing.T) {
	b := circuit.NewBuilder([]int{70, 2, 4, 2}, 0)
	low := b.Sum(b.Product(b.Leaf(2, 0), b.Leaf(3, 1)), b.Product(b.Leaf(2, 1), b.Leaf(3, 0)))
	high := b.Sum(b.Product(b.Leaf(2, 2), b.SumOfValues(3, nil)), b.Product(b.Leaf(2, 3), b.Leaf(3, 0)))
	two := b.Number(scaled.FromFloat(2))
	root := b.Sum(b.Product(b.Leaf(1, 0), b.Sum(b.Product(two, low), high)), b.Product(b.Leaf(1, 1), high))
	c, err := b.Finish(context.Background(), b.Product(root, b.SumOfValues(0, nil)))
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := c.IsDeterministic(ctx); !ok || err != nil {
		t.Errorf("deterministic %v, %v", ok, err)
	}
	if got, err := c.Maximum(ctx, c.UnitWeights(), 0, 1000); err != nil || got.Top != scaled.FromFloat(2) || len(got.Values) != 2*70 {
		t.Errorf("the largest term %v of %d assignments, %v", got.Top, len(got.Values), err)
	}
}

func TestEdgesOfCircuits(t *testing.T) {
	b := circuit.NewBuilder([]int{2}, 0)
	zero, err := b.Finish(context.Background(), circuit.Zero)
	if err != nil {
		t.Fatal(err)
	}
	if z, shares, err := zero.Marginals(ctx, zero.UnitWeights()); err != nil || !z.IsZero() || !shares[0].IsZero() {
		t.Errorf("the circuit 0: %v, %v, %v", z, shares, err)
	}
	b = circuit.NewBuilder(nil, 0)
	number, err := b.Finish(context.Background(), b.Number(scaled.Make(1.5, 7000)))
	if err != nil {
		t.Fatal(err)
	}
	if z, err := number.Evaluate(ctx, nil); err != nil || z != scaled.Make(1.5, 7000) {
		t.Errorf("a number: %v, %v", z, err)
	}
	b = circuit.NewBuilder([]int{1}, 0)
	leaf, err := b.Finish(context.Background(), b.Leaf(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	if z, by, err := leaf.Derivatives(ctx, circuit.Weights{scaled.FromFloat(5)}); err != nil || z != scaled.FromFloat(5) ||
		!slices.Equal(by, []scaled.Number{scaled.One}) {
		t.Errorf("a leaf: %v, %v, %v", z, by, err)
	}
	for _, w := range []circuit.Weights{nil, {scaled.FromFloat(-1)}, {scaled.FromFloat(math.Inf(1))}, {scaled.Make(1, 1<<40)}} {
		if _, err := leaf.Evaluate(ctx, w); !errors.Is(err, circuit.ErrWeights) {
			t.Errorf("weights %v: got %v, want ErrWeights", w, err)
		}
	}
	if _, err := leaf.Joint(ctx, leaf.UnitWeights(), []int{0, 0}); !errors.Is(err, circuit.ErrCircuit) {
		t.Errorf("a variable twice: got %v, want ErrCircuit", err)
	}
}

func TestCancelled(t *testing.T) {
	ended, end := context.WithCancel(ctx)
	end()
	d := draw(t, rand.New(rand.NewPCG(1, 7)))
	w := d.circuit.UnitWeights()
	stream := func(int) *rand.Rand { return rand.New(rand.NewPCG(1, 1)) }
	_, one := d.circuit.Evaluate(ended, w)
	_, _, two := d.circuit.Marginals(ended, w)
	_, three := d.circuit.Joint(ended, w, []int{0})
	_, four := d.circuit.Maximum(ended, w, 0, 1)
	_, _, five := d.circuit.Sample(ended, w, 1, stream)
	for k, err := range []error{one, two, three, four, five} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("call %d: %v", k, err)
		}
	}
}

// TestPassesDoNotAllocate: the memory of a pass is kept for the next one.
func TestPassesDoNotAllocate(t *testing.T) {
	d := draw(t, rand.New(rand.NewPCG(3, 7)))
	w := d.circuit.UnitWeights()
	if n := testing.AllocsPerRun(100, func() { _, _ = d.circuit.Evaluate(ctx, w) }); n > 2 {
		t.Errorf("%v allocations a pass", n)
	}
}

// looks is a context that ends when it has been looked at so often.
type looks struct {
	context.Context
	left int
}

func (c *looks) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

// TestBuildingStops: finishing, checking and lifting look at the context as they go, and a circuit that comes out is the whole one.
func TestBuildingStops(t *testing.T) {
	domains := slices.Repeat([]int{2}, 20000)
	build := func() (*circuit.Builder, circuit.Node) {
		b := circuit.NewBuilder(domains, 0)
		var free []circuit.Node
		for v := range domains {
			free = append(free, b.SumOfValues(v, nil))
		}
		return b, b.Product(free...)
	}
	b, root := build()
	whole, err := b.Finish(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	stands := make([][]int32, 2*len(domains))
	for l := range stands {
		stands[l] = []int32{int32(l)}
	}
	for name, run := range map[string]func(context.Context) error{
		"finish": func(ctx context.Context) error {
			b, root := build()
			_, err := b.Finish(ctx, root)
			return err
		},
		"check": whole.Check,
		"lift": func(ctx context.Context) error {
			_, err := whole.Lift(ctx, domains, stands, nil)
			return err
		},
	} {
		stopped := 0
		for left := range 40 {
			switch err := run(&looks{t.Context(), left}); {
			case errors.Is(err, context.Canceled):
				stopped++
			case err != nil:
				t.Errorf("%s after %d looks: %v", name, left, err)
			}
		}
		if stopped < 3 || stopped == 40 {
			t.Errorf("%s stopped at %d of 40 looks", name, stopped)
		}
	}
}
