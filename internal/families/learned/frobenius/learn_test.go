package frobenius

// Whole plans: monotone, consistent with materialised tensors, recovering planted components.

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/basetensor/basetensor/internal/families/closed"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// TestLearnedPlans: for all forms of cores and several settings, the reported figures agree with
// materialised tensors, the explained fraction never falls from sweep to sweep or component to
// component, and the certificate holds.
func TestLearnedPlans(t *testing.T) {
	cases(t, func(t *testing.T, rng *rand.Rand, net *btn.Network) {
		b := materialise(net)
		z := partition(net, b)
		for name, opts := range map[string]Options{
			"default":      {},
			"maps":         {Settings: query.Settings{LearnMaps: true, Starts: 1}},
			"mixed":        {Classes: mixed},
			"rank-one":     {Classes: []btn.Class{btn.ClassRankOne}},
			"symmetric":    {Classes: []btn.Class{btn.ClassSymmetric}},
			"non-negative": {Settings: query.Settings{NonNegative: true}, Classes: mixed},
		} {
			opts.Components, opts.Sweeps = 3, 8
			last := map[int]float64{}
			opts.Progress = func(p Progress) {
				if before, ok := last[p.Start]; ok && p.LnExplained < before {
					t.Errorf("%s: ln(1−ρ) fell from %v to %v", name, before, p.LnExplained)
				}
				last[p.Start] = p.LnExplained
			}
			d, err := Learn(context.Background(), net, opts)
			if err != nil {
				t.Fatal(err)
			}
			checkPlan(t, name, net, b, z, d)
			for _, a := range d.Estimates[0].Alpha {
				if opts.NonNegative && a.Sign() < 0 {
					t.Errorf("%s: weight %v", name, a.Float64())
				}
			}
		}
	})
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
	net := complete(4, 1)
	last := 1.0
	for r := 1; r <= 6; r++ {
		d, err := Learn(context.Background(), net, Options{Settings: query.Settings{Components: r, Starts: 1}})
		if err != nil {
			t.Fatal(err)
		}
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
	opts := Options{
		Settings:  query.Settings{Components: 1, Sweeps: 8, Starts: 1},
		Classes:   []btn.Class{btn.ClassRankOne},
		Tolerance: 1e-12,
	}
	d, err := Learn(context.Background(), net, opts)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "ln(1−ρ), rank one", d.Estimates[0].Quality.LnExplained, want, 1e-4, 1)
	if d.Estimates[0].Quality.Residual != 1 {
		t.Errorf("ρ = %v", d.Estimates[0].Quality.Residual)
	}
	opts.Classes = nil
	opts.Sweeps = 2
	if d, err = Learn(context.Background(), net, opts); err != nil {
		t.Fatal(err)
	}
	if d.Estimates[0].Quality.LnExplained < want-2e-2 { // a few sweeps from a random start
		t.Errorf("ln(1−ρ) = %v with symmetry, %v without", d.Estimates[0].Quality.LnExplained, want)
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
		d, err := Learn(context.Background(), net, Options{Settings: query.Settings{
			Components: c.r, Starts: 1, Sweeps: 10,
		}})
		if err != nil {
			t.Fatal(err)
		}
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
				d, err := Learn(context.Background(), net, Options{Settings: query.Settings{
					Components: c.rank,
					Sweeps:     300,
					Starts:     24,
					Seed:       seed,
				}})
				if err != nil {
					t.Fatal(err)
				}
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
		opts := Options{
			Settings: query.Settings{Components: 1, Sweeps: 200, Starts: 8, Seed: seed},
			Classes:  []btn.Class{btn.ClassSymmetric},
		}
		without, err := Learn(context.Background(), net, opts)
		if err != nil {
			t.Fatal(err)
		}
		opts.LearnMaps = true
		d, err := Learn(context.Background(), net, opts)
		if err != nil {
			t.Fatal(err)
		}
		if frameOf(d).Rotations == nil || d.Estimates[0].Quality.Residual > 1e-10 ||
			without.Estimates[0].Quality.Residual < 1e-2 {
			t.Errorf("seed %d: ρ = %g with maps, %g without",
				seed, d.Estimates[0].Quality.Residual, without.Estimates[0].Quality.Residual)
		}
		approx := materialiseSum(dims, d)
		near(t, "ρ", d.Estimates[0].Quality.Residual, distanceSq(table, approx)/inner(table, table), 1e-12, 1)
		near(t, "Z", partition(net, approx), partition(net, table), 1e-8, math.Abs(partition(net, table)))
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
	d, err := Learn(context.Background(), net, Options{
		Settings: query.Settings{Components: 1, Sweeps: 200},
		Classes:  []btn.Class{btn.ClassRankOne},
	})
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
		d, err := Learn(context.Background(), c.net, Options{Settings: query.Settings{}})
		if err != nil {
			t.Fatal(err)
		}
		if d.Exact() != c.exact || d.Estimates[0].Quality.Residual != 0 || len(d.Estimates[0].Parts) == 0 {
			t.Errorf("%s: exact %v, ρ = %v, %d components",
				c.name, d.Exact(), d.Estimates[0].Quality.Residual, len(d.Estimates[0].Parts))
		}
		near(t, c.name, math.Abs(materialiseSum(c.net.Dims, d)[0]), math.Abs(c.alpha), 1e-14, 1)
	}
}

// TestRedundantComponents: a second component with all-ones R explains nothing that the first does
// not; it is left out, and the sweeps go on without it.
func TestRedundantComponents(t *testing.T) {
	net := complete(3, 1)
	opts := Options{
		Classes:  []btn.Class{btn.ClassSymmetric},
		Settings: query.Settings{Components: 3, Starts: 1},
	}
	d, err := Learn(context.Background(), net, opts)
	if err != nil {
		t.Fatal(err)
	}
	if len(d.Estimates[0].Parts) != 1 || d.Estimates[0].Quality.ConditionGram != 1 {
		t.Errorf("%d symmetric components, condition %v",
			len(d.Estimates[0].Parts), d.Estimates[0].Quality.ConditionGram)
	}
	opts.Classes = []btn.Class{btn.ClassSymmetryRankOne, btn.ClassSymmetric, btn.ClassSymmetric}
	sweeps := 0
	opts.Progress = func(p Progress) { sweeps++ }
	opts.Sweeps, opts.Tolerance = 40, 1e-15
	if d, err = Learn(context.Background(), net, opts); err != nil {
		t.Fatal(err)
	}
	if len(d.Estimates[0].Parts) != 2 || sweeps < 20 {
		t.Errorf("%d components after %d sweeps", len(d.Estimates[0].Parts), sweeps)
	}
	checkPlan(t, "redundant", net, materialise(net), partition(net, materialise(net)), d)
}

func TestSameSeedSameBits(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	net := randomNetwork(rng, []int{2, 3, 2, 2, 3, 2}, []int{3, 2, 1}, 1)
	s := query.Settings{Components: 3, Sweeps: 4, Seed: 9, LearnMaps: true}
	a, err := Learn(context.Background(), net, Options{Settings: s})
	if err != nil {
		t.Fatal(err)
	}
	b, err := Learn(context.Background(), net, Options{Settings: s})
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(a, b) {
		t.Error("two runs differ")
	}
	s.Seed = 10
	c, err := Learn(context.Background(), net, Options{Settings: s})
	if err != nil {
		t.Fatal(err)
	}
	if reflect.DeepEqual(a, c) {
		t.Error("the seed changes nothing")
	}
}

func TestLearningStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	calls := 0
	_, err := Learn(ctx, complete(5, 1), Options{Progress: func(Progress) { calls++; cancel() }})
	if !errors.Is(err, context.Canceled) || calls != 1 {
		t.Errorf("%v after %d sweeps", err, calls)
	}
}

func TestOptionsThatMakeNoSense(t *testing.T) {
	for _, o := range []Options{
		{Settings: query.Settings{Components: -1}}, {Settings: query.Settings{Sweeps: -1}},
		{Settings: query.Settings{Starts: -2}},
		{Tolerance: math.NaN()}, {Tolerance: -1}, {Classes: []btn.Class{btn.ClassElimination}},
		{Levels: &countspace.Levels{D: 2}},
	} {
		if _, err := Learn(context.Background(), complete(3, 1), o); err == nil {
			t.Errorf("%+v was accepted", o)
		}
	}
}

func TestDefaultLevels(t *testing.T) {
	for _, c := range []struct {
		dims []int
		d    int
	}{{nil, 2}, {[]int{2, 2}, 2}, {[]int{3, 3, 3}, 3}, {[]int{2, 3}, 2}, {[]int{1, 1}, 1},
		{repeated(3, 500), 2}, {repeated(4, 60), 2}, {repeated(4, 20), 4}} {
		if got := DefaultLevels(c.dims).D; got != c.d {
			t.Errorf("%d legs of %v: %d levels, want %d", len(c.dims), c.dims[:min(2, len(c.dims))], got, c.d)
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

// TestCostGrowsAsItSays: quadratic in the legs, and in the components.
func TestCostGrowsAsItSays(t *testing.T) {
	small, large := Cost(pairwise(1000), query.Settings{}), Cost(pairwise(2000), query.Settings{})
	near(t, "twice the legs", large/small, 4, 0.1, 1)
	many := Cost(pairwise(1000), query.Settings{Components: 8})
	if many < 3*small || many > 10*small {
		t.Errorf("twice the components: %v times the cost", many/small)
	}
}
