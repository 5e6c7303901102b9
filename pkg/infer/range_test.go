package infer

// Values beyond float64, and terms of both signs that cancel: answers marked exact are right.

import (
	"context"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/base/sampling"
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/modeljson"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// TestValuesBeyondFloat64: small models whose numbers span more than a float64,
// found by differential testing. Truths by hand and by exact rational arithmetic.
func TestValuesBeyondFloat64(t *testing.T) {
	const two = `{"basetensor_model":1,"variables":[{"domain":2},{"domain":2}],"factors":[`
	for _, c := range []struct {
		name, model string
		evidence    map[int]int
		lnZ         float64
		p0          float64 // P(x_0 = 0)
	}{
		{"a term that is 0 beside the largest", two + `{"scope":[0,1],"symmetry_cp":{"levels":"two","terms":[
			{"alpha":1,"values":[1,1e100,1],"vectors":[[1e-13,1e7],[1,1]]},
			{"alpha":1,"scaled":{"mantissas":[1,1,1],"exponents":[0,0,1900]},"vectors":[[0,0],[1,1]]}]}}]}`, nil, 246.3766049504, 1e-20},
		{"a count that another factor excludes", two + `
			{"scope":[0,1],"symmetric":{"levels":"two","scaled":{"mantissas":[1,1,1],"exponents":[0,600,1900]}}},
			{"scope":[0],"dense":{"values":[1,0]}}]}`, nil, 600 * math.Ln2, 1},
		{
			"a value that only evidence reaches",
			two + `{"scope":[0,1],"symmetric":{"levels":"two","log_values":[-1000,0,1]}}]}`,
			map[int]int{0: 0, 1: 0}, -1000,
			1,
		},
		{"terms far apart", `{"basetensor_model":1,"variables":[{"domain":2},{"domain":2},{"domain":2}],"factors":[
			{"scope":[],"symmetry_cp":{"levels":"two","terms":[
			{"alpha":10312854.174087279,"scaled":{"mantissas":[1.1978414216299125],"exponents":[-215]}}]}},
			{"scope":[0,2,1],"symmetry_cp":{"levels":"two","terms":[
			{"alpha":0.43785992496823933,"values":[3.405502335994304e+92,2.2920543005495155e+136,4.022031728531537e-51,1.7214208824843104e+184],
			 "vectors":[[2.821436273740083e-13,17855154.119949784],[0.993239328466813,0],[0.13227615282756633,0.9270963823863879]]},
			{"alpha":0.8921054469389633,"scaled":{
			 "mantissas":[1.2202082472271671,1.6670405450701427,1.7728157306843666,1.2898813042311574],"exponents":[1170,-568,1923,338]},
			 "vectors":[[11355860.757129494,0.008368834774577727],[0,0],[0,0]]}]}}]}`, nil, 195.12609953, 1.1e-19},
		{
			"entries below the rounding of a map",
			two + `{"scope":[0,1],"dense":{"values":[1,1e-9,1e-9,1e-17]}},{"scope":[0],"dense":{"values":[0,1]}}]}`,
			map[int]int{1: 1}, math.Log(1e-17), 0,
		},
		{"factors of order one", two + `{"scope":[0],"symmetric":{"levels":"two","log_values":[-900,0]}},
			{"scope":[0],"symmetric":{"levels":"two","log_values":[-900,0]}},
			{"scope":[0,1],"dense":{"values":[1,1,0,0]}}]}`, nil, math.Ln2 - 1800, 1},
		{"subnormal entries", two + `{"scope":[0,1],"dense":{"values":[0,4.9406564584124654e-324,9.9999999999999694e-311,0]}},
			{"scope":[0,1],"dense":{"values":[1e308,4.9406564584124654e-324,9.9999999999999694e-311,1e308]}}]}`, nil, -620 * math.Ln10, 0},
	} {
		for _, maps := range []query.MapKind{query.MapIdentity, query.MapOrthogonal, query.MapBP} {
			for _, cores := range []query.CoreChoice{query.CoresAreFactors, query.CoresAreVariables} {
				for _, joint := range [][]int{nil, {0}} {
					m, err := modeljson.Decode(strings.NewReader(c.model), modeljson.Limits{})
					if err != nil {
						t.Fatal(err)
					}
					r := Request{Job: "t", Model: m,
						Queries: []query.Query{{Evidence: factorgraph.Observe(c.evidence),
							Marginals: true, Joint: joint}},
						Settings: query.Settings{Method: query.MethodExact, Maps: maps, Cores: cores}}
					results, err := Run(context.Background(), r)
					if err != nil {
						t.Fatal(err)
					}
					a := results[0]
					if a.Status != "ok" || !a.Exact || a.Zero || math.Abs(*a.LogZ-c.lnZ) > 1e-5 {
						t.Fatalf("%s, maps %s, cores %s: ln Z %v, %+v",
							c.name, maps, cores, deref(a.LogZ), a)
					}
					if p := a.Marginals[0].P[0]; math.Abs(p-c.p0) > 1e-9+1e-2*c.p0*(1-c.p0) {
						t.Errorf("%s, maps %s, cores %s: P(x_0 = 0) = %v, want %v",
							c.name, maps, cores, p, c.p0)
					}
					if joint != nil && math.Abs(a.Joint.P[0]-a.Marginals[0].P[0]) > 1e-9 {
						t.Errorf("%s: joint %v, marginals %v", c.name, a.Joint.P, a.Marginals[0])
					}
				}
			}
		}
	}
}

// TestNoisyOr: two layers, against inclusion and exclusion over the positive findings in 400 bits.
// Findings that nobody observed are summed out, however many there are: with their signs they are
// out of every order's reach.
func TestNoisyOr(t *testing.T) {
	for _, c := range []struct {
		name                                 string
		causes, findings, positive, negative int
		share, leak                          float64
		marginals                            bool
		digits                               float64 // that cancel, at least
	}{
		{"all findings positive", 30, 12, 12, 0, 0.3, 0, true, 8},
		{"most findings not observed", 200, 300, 7, 5, 0.2, 0.05, false, 0},
		{"most findings not observed, no leak", 150, 400, 8, 0, 0.1, 0, false, 0},
	} {
		m, evidence, want := twoLayers(t, rand.New(rand.NewPCG(8, 8)), c.causes, c.findings,
			c.positive, c.negative, c.share, c.leak)
		for _, method := range []query.Method{query.MethodExact, query.MethodAuto} {
			for _, marginals := range slices.Compact([]bool{false, c.marginals}) {
				r := Request{
					Job:   "t",
					Model: m,
					Queries: []query.Query{{Evidence: factorgraph.Observe(evidence),
						Marginals: marginals}},
					Settings: query.Settings{Method: method},
				}
				results, err := Run(context.Background(), r)
				if err != nil {
					t.Fatal(err)
				}
				if a := results[0]; a.Status != "ok" || !a.Exact ||
					math.Abs(*a.LogZ-want) > 1e-9*math.Abs(want) ||
					*a.CancellationDigits < c.digits {
					t.Errorf("%s, %s: ln Z %v, want %v; exact %v, %v digits cancelled; %q",
						c.name, method, deref(a.LogZ), want, a.Exact, deref(a.CancellationDigits),
						a.Warnings)
				}
			}
		}
	}
}

// twoLayers returns a noisy-or network of rare causes, where a share of all arrows is there,
// the first findings being positive and those after them negative, and its ln Z.
func twoLayers(
	t *testing.T, rng *rand.Rand, causes, findings, positive, negative int, share, leak float64,
) (*factorgraph.Model, map[int]int, float64) {
	t.Helper()
	m := &factorgraph.Model{}
	prior, chance := make([]float64, causes), make([][]float64, findings)
	for i := range prior {
		prior[i] = 1e-3 * rng.Float64()
		m.Domains = append(m.Domains, 2)
		m.Factors = append(
			m.Factors,
			factorgraph.Factor{Scope: []int{i},
				Table: &tensor.Dense{Shape: []int{2}, Data: []float64{1 - prior[i], prior[i]}}},
		)
	}
	evidence := map[int]int{}
	for j := range findings {
		chance[j] = make([]float64, causes)
		var scope []int
		var activate []float64
		for i := range causes {
			if rng.Float64() < share {
				chance[j][i] = rng.Float64()
				scope, activate = append(scope, i), append(activate, chance[j][i])
			}
		}
		f, err := factorgraph.NoisyOr(leak, activate...)
		if err != nil {
			t.Fatal(err)
		}
		scope = append(scope, causes+j)
		// the same tensor with its weights in the vectors of the finding,
		// and in both, whose products are rounded, the finding first
		switch j % 3 {
		case 1:
			f.Weights, f.Vectors[len(scope)-1] = []float64{1, 1}, []float64{0, 1, 1 - leak,
				leak - 1}
		case 2:
			f.Weights, f.Vectors[len(scope)-1] = []float64{1, 0.9}, []float64{0, 1,
				(1 - leak) / 0.9, (leak - 1) / 0.9}
			last := len(scope) - 1
			scope[0], scope[last] = scope[last], scope[0]
			f.Vectors[0], f.Vectors[last] = f.Vectors[last], f.Vectors[0]
		}
		m.Domains = append(m.Domains, 2)
		m.Factors = append(m.Factors, factorgraph.Factor{Scope: scope, Table: f})
		if j < positive+negative {
			evidence[causes+j] = 0
		}
		if j < positive {
			evidence[causes+j] = 1
		}
	}
	number := func(x float64) *big.Float { return new(big.Float).SetPrec(400).SetFloat64(x) }
	z := number(0)
	for set := range 1 << positive {
		set |= (1<<negative - 1) << positive
		term := number(1)
		for i := range causes {
			on := number(prior[i])
			for j := range positive + negative {
				if set>>j&1 == 1 && chance[j][i] > 0 {
					on.Mul(on, number(1-chance[j][i]))
				}
			}
			term.Mul(term, on.Add(on, number(1-prior[i])))
		}
		for j := range positive + negative {
			if set>>j&1 == 1 {
				if j%3 == 2 {
					term.Mul(term, number(0.9)).Mul(term, number((1-leak)/0.9))
				} else {
					term.Mul(term, number(1-leak))
				}
			}
			if set>>j&1 == 1 && j < positive {
				term.Neg(term)
			}
		}
		z.Add(z, term)
	}
	f, _ := z.Float64()
	return m, evidence, math.Log(f)
}

// TestSignsThatCancelToNothingAreNoZero: 0.1 + 0.2 − 0.3 is 2^-55.2 in float64s, and 1 − 1 is 0.
func TestSignsThatCancelToNothingAreNoZero(t *testing.T) {
	for _, c := range []struct {
		weights []float64
		want    *float64
	}{
		{[]float64{0.1, 0.2, -0.3}, new(math.Log(0x1p-55))},
		{[]float64{1, 1, -2}, nil},
	} {
		ones := []float64{1, 1, 1, 1, 1, 1}
		m := &factorgraph.Model{
			Domains: []int{2, 2},
			Factors: []factorgraph.Factor{
				{Scope: []int{0, 1}, Table: &tensor.CP{Shape: []int{2, 2}, Weights: c.weights,
					Vectors: [][]float64{ones, ones}}},
			},
		}
		results, err := Run(
			context.Background(),
			Request{Job: "t", Model: m, Queries: []query.Query{{}},
				Settings: query.Settings{Method: query.MethodExact}})

		if err != nil {
			t.Fatal(err)
		}
		switch a := results[0]; {
		case a.Status != "ok" || !a.Exact || a.Zero != (c.want == nil):
			t.Errorf("weights %v: %+v", c.weights, a)
		case c.want != nil && math.Abs(*a.LogZ-exactSum(c.weights)-math.Log(4)) > 1e-9:
			t.Errorf("weights %v: ln Z %v, want %v",
				c.weights, *a.LogZ, exactSum(c.weights)+math.Log(4))
		}
	}
}

// exactSum is ln of a sum in 200 bits.
func exactSum(xs []float64) float64 {
	sum := new(big.Float).SetPrec(200)
	for _, x := range xs {
		sum.Add(sum, big.NewFloat(x))
	}
	f, _ := sum.Float64()
	return math.Log(f)
}

// TestWhatIsTooLargeForWideNumbersIsNotMarkedExact:
// a grid whose entries span too much, and that takes too long in wide numbers.
func TestWhatIsTooLargeForWideNumbersIsNotMarkedExact(t *testing.T) {
	const side = 18
	m := &factorgraph.Model{Domains: make([]int, side*side)}
	pair := func(a, b int) {
		data := []float64{1, 1e-180, 1e-180, 1e-200}
		// two corners prefer the other value: the terms that count are 1e-800 of the ones the rest prefers
		if a == 0 || b == side*side-1 {
			data = []float64{1e-200, 1e-180, 1e-180, 1}
		}
		m.Factors = append(m.Factors,
			factorgraph.Factor{Scope: []int{a, b},
				Table: &tensor.Dense{Shape: []int{2, 2}, Data: data}})
	}
	for i := range m.Domains {
		m.Domains[i] = 2
		if i%side > 0 {
			pair(i-1, i)
		}
		if i >= side {
			pair(i-side, i)
		}
	}
	r := Request{Job: "t", Model: m, Queries: []query.Query{{}},
		Settings: query.Settings{Method: query.MethodExact, Memory: 64 << 20}}
	results, err := Run(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	a := results[0]
	if a.Status != "ok" || a.Exact ||
		!strings.Contains(strings.Join(a.Warnings, " "), "may be missing") {
		t.Errorf("got %+v", a)
	}
}

func deref(x *float64) float64 {
	if x == nil {
		return math.NaN()
	}
	return *x
}

// TestEstimatesTakeNoStandIns: where the values of a symmetric factor are further apart than
// float64 holds, no estimate is made of numbers that stand for those that are too small.
func TestEstimatesTakeNoStandIns(t *testing.T) {
	const n = 14
	m := &factorgraph.Model{Domains: make([]int, n)}
	values, scope := scaled.NewVector(n+1), make([]int, n)
	of := make([][]uint8, n)
	for i := range n {
		m.Domains[i], scope[i], of[i] = 2, i, []uint8{0, 1}
		m.Factors = append(
			m.Factors,
			factorgraph.Factor{Scope: []int{i, (i + 1) % n},
				Table: &tensor.Dense{Shape: []int{2, 2}, Data: []float64{1, 1e-3, 1e-2, 1.25}}},
		)
	}
	for c := range n + 1 {
		values.Set(c, scaled.Make(1, int64(-1500*(c%2))))
	}
	m.Factors = append(
		m.Factors,
		factorgraph.Factor{Scope: scope,
			Table: &tensor.Symmetric{Shape: m.Domains, Levels: countspace.Levels{D: 2, Of: of},
				Values: values}},
	)
	ask := func(s query.Settings) query.Result {
		results, err := Run(
			context.Background(),
			Request{Job: "t", Model: m,
				Queries:  []query.Query{{Evidence: factorgraph.Observe(map[int]int{3: 1})}},
				Settings: s})

		if err != nil {
			t.Fatal(err)
		}
		return results[0]
	}
	want := ask(query.Settings{Method: query.MethodExact})
	if want.Status != "ok" || !want.Exact {
		t.Fatalf("exact: %+v", want)
	}
	for _, method := range []query.Method{query.MethodTruncated, query.MethodRegions} {
		for _, maps := range []query.MapKind{query.MapIdentity, query.MapBP} {
			a := ask(query.Settings{Method: method, Maps: maps})
			switch {
			case a.Status == "ok" && a.Exact && math.Abs(*a.LogZ-*want.LogZ) < 1e-9:
			case a.Error == nil || a.Error.Code != fault.Unsupported:
				t.Errorf("%s, maps %s: ln Z %v (exact: %v), it is %v; %+v",
					method, maps, deref(a.LogZ), a.Exact, *want.LogZ, a.Error)
			}
		}
	}
}

// TestWeightsOfSignedModelsAreNotRounded: terms cancel down to the rounding error of a product of two weights. Factors of
// order one keep every digit, and so does a likelihood on top of weights.
func TestWeightsOfSignedModelsAreNotRounded(t *testing.T) {
	weights := [][]float64{{0.1, 0.2}, {0.3, 0.7}, {1, -math.Nextafter((0.1*0.3)/(0.2*0.7), 0)}}
	total := new(big.Float).SetPrec(400)
	for x := range 2 {
		term := new(big.Float).SetPrec(400).SetInt64(3)
		for _, w := range weights {
			term.Mul(term, big.NewFloat(w[x]))
		}
		total.Add(total, term)
	}
	want, _ := total.Float64()
	dense := func(shape []int, data ...float64) tensor.Tensor {
		return &tensor.Dense{Shape: shape, Data: data}
	}
	for _, soft := range []bool{false, true} {
		m := &factorgraph.Model{Domains: []int{2, 2},
			Factors: []factorgraph.Factor{{Scope: []int{0, 1},
				Table: dense([]int{2, 2}, 1, 2, 1, 2)}}}
		q := query.Query{}
		for k, w := range weights {
			if soft && k == 1 {
				q.Evidence.Soft = []factorgraph.Likelihood{{Var: 0, Weights: w}}
				continue
			}
			m.Factors = append(m.Factors,
				factorgraph.Factor{Scope: []int{0}, Table: dense([]int{2}, w...)})
		}
		for _, cores := range []query.CoreChoice{query.CoresAreFactors, query.CoresAreVariables} {
			results, err := Run(
				context.Background(),
				Request{Job: "t", Model: m, Queries: []query.Query{q},
					Settings: query.Settings{Method: query.MethodExact, Cores: cores}})

			if err != nil {
				t.Fatal(err)
			}
			a := results[0]
			if !a.Exact || math.Abs(deref(a.LogZ)-math.Log(want)) > 1e-9 {
				t.Errorf("cores %s, a likelihood %v: ln Z %v (exact: %v), it is %v",
					cores, soft, deref(a.LogZ), a.Exact, math.Log(want))
			}
		}
	}
}

// TestEstimatesBeyondTheRange: number partitioning, with couplings a_i a_j whose exponentials do not fit a table of float64
// side by side. Samples in logarithms answer, with an uncertainty that holds.
func TestEstimatesBeyondTheRange(t *testing.T) {
	const n = 16
	for seed := range uint64(4) {
		rng := rand.New(rand.NewPCG(seed, 13))
		a := make([]float64, n)
		for i := range a {
			a[i] = 1 + 14*rng.Float64()
		}
		m := &factorgraph.Model{Domains: slices.Repeat([]int{2}, n)}
		for i := range n {
			for j := range i {
				same, other := math.Exp(-a[i]*a[j]), math.Exp(a[i]*a[j])
				table := &tensor.Dense{Shape: []int{2, 2}, Data: []float64{same, other, other, same}}
				m.Factors = append(m.Factors, factorgraph.Factor{Scope: []int{j, i}, Table: table})
			}
		}
		all := make([]float64, 1<<n)
		for x := range all {
			sum, squares := 0.0, 0.0
			for i := range n {
				sum += a[i] * float64(2*(x>>i&1)-1)
				squares += a[i] * a[i]
			}
			all[x] = (squares - sum*sum) / 2 // −Σ_{i<j} a_i a_j x_i x_j
		}
		truth := sampling.LnMean(all) + n*math.Ln2
		s := query.Settings{Method: query.MethodAuto, NoExact: true, Budget: 3e8, Memory: 64 << 10, Seed: seed}
		results, err := Run(t.Context(), Request{Model: m, Queries: []query.Query{{Marginals: true}}, Settings: s})
		if err != nil {
			t.Fatal(err)
		}
		r := results[0]
		if r.LogZ == nil || r.Uncertainty == nil || r.MarginalUncertainty == nil {
			t.Fatalf("seed %d: nothing stated: %v", seed, r.Warnings)
		}
		if off := math.Abs(*r.LogZ - truth); off > 3**r.Uncertainty || *r.Uncertainty > 1 {
			t.Errorf("seed %d: ln Z %v ± %v, truth %v", seed, *r.LogZ, *r.Uncertainty, truth)
		}
		for v, p := range r.Marginals { // flipping all spins leaves the model unchanged
			if math.Abs(p.P[0]-0.5) > 3**r.MarginalUncertainty {
				t.Errorf("seed %d: P(x_%d = 0) is %v ± %v, truth 1/2", seed, v, p.P[0], *r.MarginalUncertainty)
			}
		}
	}
}
