package counts_test

import (
	"context"
	"errors"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/methods/counts"
	"github.com/basetensor/basetensor/internal/models/generate"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/reparam"
	"github.com/basetensor/basetensor/internal/testing/nightly"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// oneCore is a network of one symmetric factor with ln S_c and unary weights.
func oneCore(t testing.TB, lnS func(c int) float64, weights [][]float64) *btn.Network {
	t.Helper()
	n := len(weights)
	m := &factorgraph.Model{Domains: make([]int, n)}
	scope := make([]int, n)
	for v := range scope {
		scope[v] = v
		m.Domains[v] = 2
		m.Factors = append(m.Factors, factorgraph.Factor{Scope: []int{v},
			Table: &tensor.Dense{Shape: []int{2}, Data: weights[v]}})
	}
	ln := make([]float64, n+1)
	for c := range ln {
		ln[c] = lnS(c)
	}
	s, err := factorgraph.CardinalityLog(m.Domains, ln)
	if err != nil {
		t.Fatal(err)
	}
	m.Factors = append(m.Factors, factorgraph.Factor{Scope: scope, Table: s})
	net, err := reparam.Build(context.Background(), m, reparam.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return net
}

func whole() *counts.Counts { return &counts.Counts{Cores: []int{0}, Terms: []int{0}} }

func value(t testing.TB, net *btn.Network) counts.Answer {
	t.Helper()
	f, err := counts.NewForm(context.Background(), net, whole(), counts.Options{Memory: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	a, err := f.Value(context.Background(), true)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// off is |a/b − 1|, 0 for two zeros.
func off(a, b scaled.Number) float64 {
	if a == b {
		return 0
	}
	return math.Abs(a.Div(b).Sub(scaled.One).Float64())
}

// TestWindowsAgainstTheWhole: terms outside windows change neither Z nor a marginal, where S has one hump, two
// far apart, a single count, and weights span thousands of bits.
func TestWindowsAgainstTheWhole(t *testing.T) {
	const n = 16_000
	rng := rand.New(rand.NewPCG(5, 5))
	for name, lnS := range map[string]func(c int) float64{
		"field":   func(c int) float64 { return 0.3 * float64(c) },
		"ordered": func(c int) float64 { m := float64(2*c - n); return 1.5 * m * m / (2 * n) },
		"steep":   func(c int) float64 { m := float64(2*c - n); return -m * m },
		"one":     func(c int) float64 { return map[bool]float64{true: 0, false: math.Inf(-1)}[c == 77] },
		"ends":    func(c int) float64 { return map[bool]float64{true: 0, false: math.Inf(-1)}[c == 0 || c == n] },
	} {
		if !nightly.On() && name != "ordered" && name != "ends" {
			continue // make nightly takes them all
		}
		groups := [][]float64{{1, 1}, {1, 3}, {1e-20, 1}, {1, 1e-25}, {1, 0}, {0.2, 0.7}}
		if name == "one" || name == "ends" {
			groups = [][]float64{{1, 1}, {1, 3}, {1, 1e-25}, {1, 0}, {0.2, 0.7}}
		}
		weights := make([][]float64, n)
		for v := range weights {
			if v < 500 { // as many different ones
				weights[v] = []float64{1, math.Exp(rng.NormFloat64())}
			} else {
				weights[v] = groups[rng.IntN(len(groups))]
			}
		}
		net := oneCore(t, lnS, weights)
		f, err := counts.NewForm(context.Background(), net, whole(), counts.Options{Memory: 1 << 30})
		if err != nil {
			t.Fatal(err)
		}
		narrow, err := f.WindowedFlops(context.Background(), false)
		if err != nil {
			t.Fatal(err)
		}
		if all := f.Cost(false).Flops; all/2 < policy.WindowFrom {
			t.Fatalf("%s: %.3g flops are done whole", name, all)
		} else {
			t.Logf("%s: %.3g of %.3g flops", name, narrow, all)
		}
		got := value(t, net)
		want, err := counts.Whole(context.Background(), f)
		if err != nil {
			t.Fatal(err)
		}
		if got.MulAdds >= want.MulAdds {
			t.Errorf("%s: %d multiply-adds, %d without windows", name, got.MulAdds, want.MulAdds)
		}
		if e := off(got.Z, want.Z); e > 1e-13 {
			t.Errorf("%s: Z is off by %.3g", name, e)
		}
		for i, x := range want.Marginals {
			if x.Div(want.Z).Float64() < 0x1p-1000 {
				continue
			}
			if e := off(got.Marginals[i], x); !(e <= 1e-12) {
				t.Fatalf("%s: marginal %d of %d is %v, want %v", name, i, len(want.Marginals), got.Marginals[i], x)
			}
		}
	}
}

// TestCurieWeissClosedForm: Z = Σ_c C(n, c) S_c w^c with 300 bits, and the mean count from the same terms.
func TestCurieWeissClosedForm(t *testing.T) {
	const n, w = 30_000, 1.01
	lnS := func(c int) float64 { m := float64(2*c - n); return 0.9 * m * m / (2 * n) }
	weights := make([][]float64, n)
	for v := range weights {
		weights[v] = []float64{1, w}
	}
	got := value(t, oneCore(t, lnS, weights))

	f := func(x float64) *big.Float { return new(big.Float).SetPrec(300).SetFloat64(x) }
	term, z, mean := f(1), f(0), f(0)
	for c := range n + 1 {
		s := scaled.FromLog(lnS(c))
		x := f(s.Mant)
		x.SetMantExp(x, int(s.Exp))
		x.Mul(x, term)
		z.Add(z, x)
		mean.Add(mean, x.Mul(x, f(float64(c))))
		term.Mul(term, f(w)).Mul(term, f(float64(n-c))).Quo(term, f(float64(c+1)))
	}
	mean.Quo(mean, f(n)) // the marginal of every leg, times Z
	if e := off(got.Z, scaled.FromBig(z)); e > 1e-13 {
		t.Errorf("Z is off by %.3g", e)
	}
	for v := range n {
		if e := off(got.Marginals[2*v+1], scaled.FromBig(mean)); e > 1e-13 {
			t.Fatalf("marginal of leg %d is off by %.3g", v, e)
		}
	}
}

// TestImpossible: Z is 0, and so are all marginals.
func TestImpossible(t *testing.T) {
	weights := make([][]float64, 9000)
	for v := range weights {
		weights[v] = []float64{1, 0}
	}
	got := value(t, oneCore(t, func(c int) float64 {
		return map[bool]float64{true: 0, false: math.Inf(-1)}[c == 5]
	}, weights))
	for _, x := range append(got.Marginals, got.Z) {
		if !x.IsZero() {
			t.Fatalf("%v", x)
		}
	}
}

// different is a network of legs that are all different.
func different(t testing.TB, n int) *btn.Network {
	weights := make([][]float64, n)
	rng := rand.New(rand.NewPCG(6, 6))
	for v := range weights {
		weights[v] = []float64{1, rng.Float64()}
	}
	return oneCore(t, func(c int) float64 { return float64(c%7) * float64(n-c) }, weights)
}

// TestMemory: a value that does not fit is refused with the bytes.
func TestMemory(t *testing.T) {
	net := different(t, 2000)
	f, err := counts.NewForm(context.Background(), net, whole(), counts.Options{Memory: 1 << 18})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Value(context.Background(), true); fault.CodeOf(err) != fault.OverBudget {
		t.Errorf("got %v", err)
	}
}

// ending is a context that ends when it has been looked at so many times.
type ending struct {
	context.Context
	looks int
}

func (c *ending) Err() error {
	if c.looks--; c.looks < 0 {
		return context.Canceled
	}
	return nil
}

// TestCancelled: wherever a context ends it is an error or a right answer, and unfinished results are not kept: windows of many
// different legs, one large power, two symmetric factors that overlap, three levels, a tree.
func TestCancelled(t *testing.T) {
	tables := func(net *btn.Network) *counts.Counts {
		part := &counts.Counts{}
		for k, core := range net.Cores {
			if counts.AsSymmetricTerms(core.T) != nil {
				part.Cores, part.Terms = append(part.Cores, k), append(part.Terms, 0)
			}
		}
		return part
	}
	for name, m := range map[string]*factorgraph.Model{
		"legs":    mustGenerate(generate.Potts{Size: 2500, Values: 2, Groups: 1, Coupling: 1, Field: 0.3}.Model()),
		"power":   mustGenerate(generate.DefaultFriends(10_000).Model()),
		"overlap": mustGenerate(generate.Potts{Size: 60, Values: 2, Groups: 2, Shared: 20, Coupling: 1, Field: 0.3}.Model()),
		"levels":  mustGenerate(generate.Potts{Size: 30, Values: 3, Groups: 1, Coupling: 1, Field: 0.3}.Model()),
		"tree":    mustGenerate(generate.Leaves(600, 0)),
	} {
		net, err := reparam.Build(context.Background(), m, reparam.Options{})
		if err != nil {
			t.Fatal(err)
		}
		newForm := func() *counts.Form {
			f, err := counts.NewForm(context.Background(), net, tables(net), counts.Options{Memory: 1 << 30})
			if err != nil {
				t.Fatal(err)
			}
			return f
		}
		want, err := newForm().Value(context.Background(), true)
		if err != nil {
			t.Fatal(err)
		}
		f := newForm()
		ended := 0
		after := func(looks int) bool { // reports whether there is an answer
			got, err := f.Value(&ending{context.Background(), looks}, true)
			if err != nil {
				if ended++; !errors.Is(err, context.Canceled) {
					t.Fatalf("%s: %v", name, err)
				}
				return false
			}
			if got.Z != want.Z || !slices.Equal(got.Marginals, want.Marginals) {
				t.Fatalf("%s: another answer where the context ends after %d looks", name, looks)
			}
			return true
		}
		enough := 1
		for !after(enough) {
			enough *= 2
		}
		looks := enough/2 + sort.Search(enough/2, func(k int) bool { return after(enough/2 + k) })
		for k := range min(looks, 10) {
			after(looks - 1 - k) // close to the end
		}
		if ended < 10 {
			t.Errorf("%s: %d contexts ended before the answer", name, ended)
		}
	}
}

// TestLeavesOfATree: a cardinality factor over the leaves of a tree, against sums over the assignments of its inner
// nodes with counts of the leaves below them carried in big floats.
func TestLeavesOfATree(t *testing.T) {
	const n = 200
	m := mustGenerate(generate.Leaves(n, 0))
	net, err := reparam.Build(context.Background(), m, reparam.Options{})
	if err != nil {
		t.Fatal(err)
	}
	part := &counts.Counts{Cores: []int{len(net.Cores) - 1}, Terms: []int{0}}
	f, err := counts.NewForm(context.Background(), net, part, counts.Options{Memory: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	if !f.HasTables() {
		t.Fatal("the tree has no tables")
	}
	got, err := f.Value(context.Background(), true)
	if err != nil {
		t.Fatal(err)
	}

	// below returns, by value of v, the weight of v's subtree with every count of leaves at 1.
	var below func(v int) [2][]*big.Float
	zero := func() *big.Float { return new(big.Float).SetPrec(200) }
	below = func(v int) (out [2][]*big.Float) {
		one := zero().SetInt64(1)
		if v >= n-1 {
			return [2][]*big.Float{{one, zero()}, {zero(), one}}
		}
		for x := range 2 {
			out[x] = []*big.Float{one}
			for _, child := range []int{2*v + 1, 2*v + 2} {
				sub := below(child)
				table := m.Factors[child-1].Table.(*tensor.Dense).Data
				next := make([]*big.Float, len(out[x])+len(sub[0])-1)
				for k := range next {
					next[k] = zero()
				}
				for i, a := range out[x] {
					for j := range sub[0] {
						for y := range 2 {
							w := zero().SetFloat64(table[2*x+y])
							next[i+j].Add(next[i+j], w.Mul(w, a).Mul(w, sub[y][j]))
						}
					}
				}
				out[x] = next
			}
		}
		return out
	}
	root := below(0)
	var want [2]*big.Float
	for x := range want {
		want[x] = zero()
		for c := n / 3; c <= n/2; c++ {
			want[x].Add(want[x], root[x][c])
		}
		if e := off(got.Marginals[x].Mul(net.Scale), scaled.FromBig(want[x])); !(e <= 1e-12) {
			t.Errorf("marginal of the root, value %d, is off by %.3g", x, e)
		}
	}
	if e := off(got.Z.Mul(net.Scale), scaled.FromBig(want[0].Add(want[0], want[1]))); !(e <= 1e-12) {
		t.Errorf("Z is off by %.3g", e)
	}
}
