package learned

// Whole plans: monotone, consistent with materialised tensors, recovering planted components.

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/methods/closed"
	"github.com/basetensor/basetensor/internal/network/bp"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/reparam"
	"github.com/basetensor/basetensor/internal/testing/modeltest"
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// most is work that small problems do not reach.
const most = 1e12

// learned learns at two levels, with all the work it takes.
func learned(t *testing.T, net *btn.Network, e effort) *btn.Plan {
	t.Helper()
	e.work = most
	d, err := learn(context.Background(), net, countspace.TwoLevels(net.Dims), e)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestLearnedPlans: for all forms of cores, with and without counts and maps, the reported figures agree with
// materialised tensors, weights are not negative, and the certificate holds.
func TestLearnedPlans(t *testing.T) {
	cases(t, func(t *testing.T, rng *rand.Rand, net *btn.Network) {
		b := materialise(net)
		z := partition(net, b)
		for name, levels := range map[string]countspace.Levels{"two levels": countspace.TwoLevels(net.Dims), "rank one": oneLevel(net)} {
			for _, maps := range []bool{false, true} {
				d, err := learn(context.Background(), net, levels, effort{components: 3, sweeps: 8, starts: 1, maps: maps, work: most})
				if err != nil {
					t.Fatal(err)
				}
				checkPlan(t, name, net, b, z, d)
				for _, a := range d.Estimates[0].Alpha {
					if a.Sign() < 0 {
						t.Errorf("%s: weight %v", name, a.Float64())
					}
				}
			}
		}
	})
}

// TestSweepsExplainMore: the explained fraction never falls from sweep to sweep or component to component.
func TestSweepsExplainMore(t *testing.T) {
	cases(t, func(t *testing.T, rng *rand.Rand, net *btn.Network) {
		sp, err := newSpace(net, countspace.TwoLevels(net.Dims))
		if err != nil {
			t.Fatal(err)
		}
		norm2, err := sp.setRounding(net)
		if err != nil {
			t.Fatal(err)
		}
		l := newLearner(sp, norm2, effort{maps: true, work: most}, 0)
		for range 3 {
			before := l.fit.Explained
			if err := l.addComponent(context.Background()); err != nil {
				t.Fatal(err)
			}
			for range 4 {
				if l.fit.Explained.Cmp(before) < 0 {
					t.Errorf("fell from %v to %v", before, l.fit.Explained)
				}
				before = l.fit.Explained
				if err := l.sweep(context.Background()); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

// TestLearningEndsWithItsWork: it says so, and a network that one sweep is too much for has components of rank one.
func TestLearningEndsWithItsWork(t *testing.T) {
	net := pairwise(100)
	d, err := Learn(context.Background(), net, query.Settings{Components: 8, Budget: 1e8})
	if err != nil {
		t.Fatal(err)
	}
	n, said := len(d.Estimates[0].Parts), strings.Join(d.Warnings, " ")
	if n == 8 || frameOf(d).Levels.D != 2 || !strings.Contains(said, "of 8 components") {
		t.Errorf("%d components at %d levels, %q", n, frameOf(d).Levels.D, d.Warnings)
	}
	if d, err = Learn(context.Background(), net, query.Settings{Components: 8, Budget: 1e6}); err != nil {
		t.Fatal(err)
	}
	if frameOf(d).Levels.D != 1 || len(d.Estimates[0].Parts) == 0 {
		t.Errorf("%d levels", frameOf(d).Levels.D)
	}
}

func checkPlan(t *testing.T, name string, net *btn.Network, b []float64, z float64, d *btn.Plan) {
	t.Helper()
	quality := d.Estimates[0].Quality
	approx := materialiseSum(net.Dims, d)
	norm := inner(b, b)
	rho := distanceSq(b, approx) / norm
	near(t, name+": ρ", quality.Residual, rho, 1e-11, 1)
	near(t, name+": ln(1−ρ)", quality.LnExplained, math.Log(1-rho), 1e-9, 1+1/(1-rho))
	near(t, name+": ln‖B‖", quality.LnNormB, math.Log(norm)/2, 1e-11, 1)
	if bound := math.Exp(quality.LnNormError); bound < math.Sqrt(distanceSq(b, approx))*(1-1e-12) {
		t.Errorf("%s: ‖B−B̃‖ is reported as %v and is %v", name, bound, math.Sqrt(distanceSq(b, approx)))
	}
	links := 1.0
	for _, link := range net.Links {
		sum := 0.0
		indices(link.T.Dims(), func(x []int) { sum += entry(link.T, x) * entry(link.T, x) })
		links *= math.Sqrt(sum)
	}
	if got, bound := math.Abs(partition(net, approx)-z), math.Exp(quality.LnNormError)*links; got > bound {
		t.Errorf("%s: |Z−Z̃| = %v exceeds the certificate %v", name, got, bound)
	}
}

// TestResidualFallsWithComponents: more components explain more, from the same seed.
func TestResidualFallsWithComponents(t *testing.T) {
	last := 1.0
	for r := 1; r <= 6; r++ {
		d := learned(t, complete(4, 1), effort{components: r, starts: 1, sweeps: 20})
		if d.Estimates[0].Quality.Residual >= last {
			t.Errorf("%d components: ρ = %v, one less had %v", r, d.Estimates[0].Quality.Residual, last)
		}
		last = d.Estimates[0].Quality.Residual
	}
}

// TestManyLegs: over 1,000 legs the best rank-one tensor of a product of matrices is the product of
// their first singular vectors; symmetry-rank-one, which contains it, gets there too. ρ prints as 1
// and ln(1−ρ) does not.
func TestManyLegs(t *testing.T) {
	net := pairwise(1000)
	want := 0.0
	for _, core := range net.Cores {
		e, f := entry(core.T, []int{0, 0}), entry(core.T, []int{0, 1}) // singular values e+f and |e−f|
		want += 2*math.Log(math.Max(e+f, math.Abs(e-f))) - math.Log(2*e*e+2*f*f)
	}
	for levels, off := range map[int]float64{1: 1e-4, 2: 2e-2} {
		sweeps := map[int]int{1: 8, 2: 2}[levels]
		d, err := learn(context.Background(), net, map[int]countspace.Levels{1: oneLevel(net), 2: countspace.TwoLevels(net.Dims)}[levels],
			effort{components: 1, sweeps: sweeps, starts: 1, work: most})
		if err != nil {
			t.Fatal(err)
		}
		if got := d.Estimates[0].Quality.LnExplained; got < want-off || levels == 1 && got > want+1e-9 {
			t.Errorf("%d levels: ln(1−ρ) = %v, want %v", levels, got, want)
		}
		if d.Estimates[0].Quality.Residual != 1 {
			t.Errorf("ρ = %v", d.Estimates[0].Quality.Residual)
		}
	}
}

// complete is the Ising model on K_n with cores = factors, J uniform in ±delta and no fields.
func complete(n int, delta float64) *btn.Network {
	rng := rand.New(rand.NewPCG(uint64(n), 3))
	net := &btn.Network{Scale: scaled.One}
	uses := make([][]int, n)
	for i := range n {
		for j := range i {
			c := delta * (2*rng.Float64() - 1)
			e, f := math.Exp(c), math.Exp(-c)
			l := len(net.Dims)
			net.Dims = append(net.Dims, 2, 2)
			net.Cores = append(net.Cores, btn.Core{
				Legs: []int{l, l + 1},
				T:    &tensor.Dense{Shape: []int{2, 2}, Data: []float64{e, f, f, e}},
			})
			uses[i], uses[j] = append(uses[i], l), append(uses[j], l+1)
		}
	}
	for _, legs := range uses {
		shape := make([]int, len(legs))
		for i := range shape {
			shape[i] = 2
		}
		net.Links = append(net.Links, btn.Link{
			Legs: legs,
			T:    &tensor.CP{Shape: shape, Weights: []float64{1, 1}, Vectors: make([][]float64, len(legs))},
		})
	}
	return net
}

// TestK4WithTwentyFourComponents: one component is far from enough, 24 nearly are (with 100 sweeps ρ
// is 0.002).
func TestK4WithTwentyFourComponents(t *testing.T) {
	if testing.Short() {
		t.Skip("two seconds")
	}
	net := complete(4, 1)
	b := materialise(net)
	z := partition(net, b)
	for _, c := range []struct {
		r           int
		above, most float64
	}{{1, 0.3, 0.9}, {24, 0, 0.03}} {
		d := learned(t, net, effort{components: c.r, starts: 1, sweeps: 10})
		if d.Estimates[0].Quality.Residual < c.above || d.Estimates[0].Quality.Residual > c.most {
			t.Errorf("%d components: ρ = %v", c.r, d.Estimates[0].Quality.Residual)
		}
		checkPlan(t, fmt.Sprint(c.r), net, b, z, d)
	}
}

// plantedNetwork is one symmetry-CP core of the given rank over n binary legs, with random links of
// 1 to 3 legs.
func plantedNetwork(seed uint64, n, rank int) *btn.Network {
	rng := rand.New(rand.NewPCG(seed, 1))
	dims, legs := make([]int, n), make([]int, n)
	for i := range dims {
		dims[i], legs[i] = 2, i
	}
	core := &tensor.SymmetryCP{Shape: dims, Levels: countspace.TwoLevels(dims)}
	for range rank {
		r := make([][]float64, n)
		for i := range r {
			r[i] = normal(rng, 2)
		}
		core.Terms = append(core.Terms, tensor.SymmetryRankOne{
			Alpha: 1,
			S:     scaled.Vector{Mant: normal(rng, n+1)},
			R:     r,
		})
	}
	net := randomNetwork(rng, dims, []int{n}, 0)
	net.Cores[0] = btn.Core{Legs: legs, T: core}
	return net
}

// TestPlantedSymmetryCPIsRecovered: ρ < 1e-7 and ln Z to 1e-5. Greedy order alone does not do it,
// joint sweeps do; a start may end in another minimum, so there are several.
func TestPlantedSymmetryCPIsRecovered(t *testing.T) {
	for _, c := range []struct{ legs, rank, seeds int }{{6, 2, 8}, {10, 3, 8}} {
		for seed := range uint64(c.seeds) {
			net := plantedNetwork(seed, c.legs, c.rank)
			for form, core := range map[string]tensor.Tensor{"symmetry-cp": net.Cores[0].T, "dense": nil} {
				if core == nil {
					if seed > 0 || c.legs > 6 {
						continue
					}
					core = &tensor.Dense{Shape: net.Dims, Data: materialise(net)}
				}
				net.Cores[0].T = core
				d := learned(t, net, effort{components: c.rank, sweeps: 300, starts: 24, seed: seed})
				b := materialise(net)
				approx := materialiseSum(net.Dims, d)
				if rho := distanceSq(b, approx) / inner(b, b); rho > 1e-7 ||
					d.Estimates[0].Quality.Residual > 1e-7 {
					t.Errorf("%d legs, rank %d, %s, seed %d: ρ = %g, reported %g",
						c.legs, c.rank, form, seed, rho, d.Estimates[0].Quality.Residual)
					continue
				}
				near(t, fmt.Sprintf("ln|Z|, seed %d", seed), math.Log(math.Abs(partition(net, approx))),
					math.Log(math.Abs(partition(net, b))), 1e-5, 1)
			}
		}
	}
}

// TestPlantedRotationsAreFound: a symmetric tensor behind an orthogonal map on every leg. With maps
// learned one symmetric component is all of it, and Z in the network's own gauge is unchanged;
// without, it explains a fraction.
func TestPlantedRotationsAreFound(t *testing.T) {
	for seed := range uint64(6) {
		rng := rand.New(rand.NewPCG(seed, 12))
		dims := []int{2, 2, 2, 2, 2}
		frame := &btn.Frame{Levels: countspace.TwoLevels(dims)}
		q := &closed.SymmetryRankOne{
			Frame: frame,
			S:     countspace.Poly{Shape: []int{6}, Coef: scaled.Vector{Mant: []float64{3, 0, 0, 0, 0, 2}}},
		}
		table := materialisePart(dims, q)
		for leg, d := range dims {
			table = rotate(table, dims, leg, randomRotation(rng, d))
		}
		net := randomNetwork(rng, dims, []int{5}, 0)
		net.Cores[0] = btn.Core{Legs: []int{0, 1, 2, 3, 4}, T: &tensor.Dense{Shape: dims, Data: table}}
		e := effort{components: 1, sweeps: 200, starts: 8, seed: seed}
		without := learned(t, net, e)
		e.maps = true
		d := learned(t, net, e)
		if frameOf(d).Rotations == nil || d.Estimates[0].Quality.Residual > 1e-10 ||
			without.Estimates[0].Quality.Residual < 1e-2 {
			t.Errorf("seed %d: ρ = %g with maps, %g without",
				seed, d.Estimates[0].Quality.Residual, without.Estimates[0].Quality.Residual)
		}
		approx := materialiseSum(dims, d)
		near(t, "ρ", d.Estimates[0].Quality.Residual, distanceSq(table, approx)/inner(table, table), 1e-12, 1)
		near(t, "Z", partition(net, approx), partition(net, table), 1e-6, math.Abs(partition(net, table)))
	}
}

// TestCertificateIsTight: with links parallel to the error B − B̃, |Z − Z̃| equals ‖B−B̃‖·Π‖L‖.
func TestCertificateIsTight(t *testing.T) {
	// B = e00 + 0.5 e11: the best rank-one tensor is e00, the error 0.5·e11 is a product, and so can
	// be the links.
	net := &btn.Network{Dims: []int{2, 2}, Scale: scaled.One,
		Cores: []btn.Core{{
			Legs: []int{0, 1},
			T:    &tensor.Dense{Shape: []int{2, 2}, Data: []float64{1, 0, 0, 0.5}},
		}},
		Links: []btn.Link{
			{Legs: []int{0}, T: &tensor.Dense{Shape: []int{2}, Data: []float64{0, 3}}},
			{Legs: []int{1}, T: &tensor.Dense{Shape: []int{2}, Data: []float64{0, 2}}},
		}}
	d, err := learn(context.Background(), net, oneLevel(net), effort{components: 1, sweeps: 200, starts: 2, work: most})
	if err != nil {
		t.Fatal(err)
	}
	b := materialise(net)
	gap := math.Abs(partition(net, b) - partition(net, materialiseSum(net.Dims, d)))
	bound := math.Exp(d.Estimates[0].Quality.LnNormError) * 6
	near(t, "|Z−Z̃|", gap, 3, 1e-6, 1)
	near(t, "certificate", bound, gap, 1e-6, 1)
	if bound < gap {
		t.Errorf("the certificate %v is below %v", bound, gap)
	}
}

func TestTrivialBaseTensors(t *testing.T) {
	empty := &btn.Network{Scale: scaled.One}
	number := &btn.Network{Scale: scaled.One, Cores: []btn.Core{
		{T: &tensor.Dense{Shape: []int{}, Data: []float64{-3}}},
		{T: &tensor.Dense{Shape: []int{}, Data: []float64{2}}}}}
	zero := &btn.Network{
		Scale: scaled.One,
		Dims:  []int{2},
		Cores: []btn.Core{{Legs: []int{0}, T: &tensor.Dense{Shape: []int{2}, Data: []float64{0, 0}}}},
	}
	single := &btn.Network{
		Scale: scaled.One,
		Dims:  []int{1},
		Cores: []btn.Core{{Legs: []int{0}, T: &tensor.Dense{Shape: []int{1}, Data: []float64{5}}}},
	}
	for _, c := range []struct {
		name  string
		net   *btn.Network
		alpha float64
		exact bool
	}{{"no cores", empty, 1, true}, {"numbers", number, -6, true}, {"zero", zero, 0, true},
		{"one value", single, 5, false}} {
		d := learned(t, c.net, effort{components: 4, sweeps: 20, starts: 2})
		if d.Exact() != c.exact || d.Estimates[0].Quality.Residual != 0 || len(d.Estimates[0].Parts) == 0 {
			t.Errorf("%s: exact %v, ρ = %v, %d components",
				c.name, d.Exact(), d.Estimates[0].Quality.Residual, len(d.Estimates[0].Parts))
		}
		near(t, c.name, math.Abs(materialiseSum(c.net.Dims, d)[0]), math.Abs(c.alpha), 1e-14, 1)
	}
}

// TestRedundantComponents: a second component explains nothing of a tensor that the first is, and is left out.
func TestRedundantComponents(t *testing.T) {
	net := pairwise(2)
	d := learned(t, net, effort{components: 3, starts: 2, sweeps: 40})
	if len(d.Estimates[0].Parts) != 1 || d.Estimates[0].Quality.ConditionGram != 1 || d.Estimates[0].Quality.Residual > 1e-12 {
		t.Errorf("%d components, condition %v, ρ = %v",
			len(d.Estimates[0].Parts), d.Estimates[0].Quality.ConditionGram, d.Estimates[0].Quality.Residual)
	}
}

func TestSameSeedSameBits(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	net := randomNetwork(rng, []int{2, 3, 2, 2, 3, 2}, []int{3, 2, 1}, 1)
	e := effort{components: 3, sweeps: 4, starts: 2, seed: 9, maps: true}
	a := learned(t, net, e)
	if !reflect.DeepEqual(a, learned(t, net, e)) {
		t.Error("two runs differ")
	}
	e.seed = 10
	if reflect.DeepEqual(a, learned(t, net, e)) {
		t.Error("the seed changes nothing")
	}
}

// ending is a context that is done after some looks at it.
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

func TestLearningStopsWithItsContext(t *testing.T) {
	for _, looks := range []int{0, 1, 100} {
		c := &ending{context.Background(), looks}
		_, err := Learn(c, complete(5, 1), query.Settings{Components: 2, Budget: 1e9})
		if !errors.Is(err, context.Canceled) || c.looks != -1 {
			t.Errorf("%v, %d looks later", err, -1-c.looks)
		}
	}
}

func TestLevels(t *testing.T) {
	for _, c := range []struct {
		dims []int
		work float64
		d    int
	}{{nil, most, 2}, {[]int{2, 2}, most, 2}, {[]int{3, 3, 3}, most, 3}, {[]int{2, 3}, most, 2}, {[]int{1, 1}, most, 1},
		{repeated(3, 500), most, 2}, {repeated(4, 60), most, 2}, {repeated(4, 20), most, 4}, {repeated(3, 500), 1e7, 1}} {
		if got := levelsOf(&btn.Network{Dims: c.dims}, c.work).D; got != c.d {
			t.Errorf("%d legs of %v: %d levels, want %d", len(c.dims), c.dims[:min(2, len(c.dims))], got, c.d)
		}
	}
}

// TestGaugeHasTwoLevels: in the gauge of belief propagation symmetric parts tell value 0 from the
// rest, for all domains.
func TestGaugeHasTwoLevels(t *testing.T) {
	m := modeltest.Small(rand.New(rand.NewPCG(1, 7)), modeltest.SmallOptions{
		MinDomain: 3,
		MaxDomain: 3,
		Variables: 4,
		Factors:   3,
		Kinds:     []modeltest.Kind{modeltest.Dense},
	})
	for maps, want := range map[query.MapKind]int{query.MapIdentity: 3, query.MapBP: 2} {
		net, err := reparam.Build(context.Background(), m, reparam.Options{})
		if maps == query.MapBP {
			net, err = bp.GaugedNetwork(context.Background(), m, query.CoresAreFactors, bp.Options{})
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := levelsOf(net, most).D; got != want {
			t.Errorf("maps %s: %d levels, want %d", maps, got, want)
		}
	}
}

func repeated(d, n int) []int {
	dims := make([]int, n)
	for i := range dims {
		dims[i] = d
	}
	return dims
}

func TestNetworksThatDoNotFit(t *testing.T) {
	table := &tensor.Dense{Shape: []int{2, 2}, Data: []float64{1, 2, 3, 4}}
	for _, c := range []struct {
		net  *btn.Network
		want string
	}{
		{&btn.Network{
			Dims:  []int{2, 2, 2},
			Cores: []btn.Core{{Legs: []int{0, 1}, T: table}},
		}, "leg 2 is in no core"},
		{&btn.Network{
			Dims:  []int{2, 2},
			Cores: []btn.Core{{Legs: []int{0, 0}, T: table}},
		}, "leg 0 is in core 0 and in core 0"},
		{&btn.Network{
			Dims:  []int{2, 2},
			Cores: []btn.Core{{Legs: []int{0, 5}, T: table}},
		}, "core 0 names leg 5, there are 2"},
		{&btn.Network{
			Dims:  []int{2, 3},
			Cores: []btn.Core{{Legs: []int{0, 1}, T: table}},
		}, "core 0 has dimension 2 on leg 1, the leg has 3"},
		{&btn.Network{
			Dims:  []int{2},
			Cores: []btn.Core{{Legs: []int{0}, T: table}},
		}, "core 0 is a tensor of order 2 on 1 legs"},
		{&btn.Network{
			Dims:  []int{2, 2},
			Cores: []btn.Core{{Legs: []int{0, 1}, T: &tensor.Dense{Shape: []int{2, 2}, Data: []float64{1}}}},
		}, "core 0"},
		{&btn.Network{Dims: []int{2, 2}, Cores: []btn.Core{{Legs: []int{0, 1}}}}, "core 0"},
	} {
		if _, err := Learn(context.Background(), c.net, query.Settings{}.WithDefaults()); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
		if _, err := NormSq(c.net); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("norm: got %v, want %q", err, c.want)
		}
	}
}
