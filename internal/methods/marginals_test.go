package methods_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/basetensor/basetensor/internal/methods/closed"
	exactparts "github.com/basetensor/basetensor/internal/methods/exact"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contraction"
	"github.com/basetensor/basetensor/internal/network/lower"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/internal/network/reparam"
	"github.com/basetensor/basetensor/internal/testing/modeltest"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/internal/testing/orders"
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// withMarginals contracts a part with and without marginals,
// and holds the two values of Z bit for bit.
func withMarginals(t *testing.T, net *btn.Network, part btn.Part, o problem.Options) btn.Value {
	t.Helper()
	v, err := contraction.Part(context.Background(), problem.New(net, o), part,
		btn.Want{Marginals: true})
	if err != nil {
		t.Fatal(err)
	}
	without, err := contraction.Part(context.Background(), problem.New(net, o), part, btn.Want{})
	if err != nil {
		t.Fatal(err)
	}
	if without.Marginals != nil || v.Marginals == nil || without.Z != v.Z {
		t.Fatalf("class %s: %+v without marginals, %+v with", part.Class(), without, v)
	}
	return v
}

// canonical checks what every list of marginals keeps:
// its length, one exponent for the largest in ±[1, 2), no −0.
func canonical(t *testing.T, net *btn.Network, m *btn.Marginals) {
	t.Helper()
	total, top := 0, 0.0
	for _, v := range net.Variables {
		total += v.Domain
	}
	for i, x := range m.Mant {
		top = max(top, math.Abs(x))
		if x == 0 && math.Signbit(x) || x-x != 0 {
			t.Errorf("entry %d is %v", i, x)
		}
	}
	if len(m.Mant) != total || top != 0 && (top < 1 || top >= 2) || top == 0 && m.Exp != 0 {
		t.Errorf("%d entries of largest %v·2^%d, want %d", len(m.Mant), top, m.Exp, total)
	}
}

// enumerateQ sums over all legs of a small network with the base tensor q, by the value of every
// variable. q also returns the sum of the absolute values that its entry is made of, and terms adds
// these up: what rounding is to be measured against.
func enumerateQ(
	net *btn.Network, q func(x []int) (value, terms float64),
) (m []float64, terms float64) {
	owner := make([]int, len(net.Links))
	offset := make([]int, len(net.Variables))
	total := 0
	for j := range owner {
		owner[j] = -1
	}
	for v, place := range net.Variables {
		owner[place.Link], offset[v] = v, total
		total += place.Domain
	}
	m = make([]float64, total)
	entry := func(t tensor.Tensor, x []int) float64 {
		f, _ := oracle.Entry(t, x).Float64()
		return f
	}
	value, size := make([]float64, len(net.Links)), make([]float64, len(net.Links))
	oracle.Each(net.Dims, func(x []int) {
		b, bound := q(x)
		b, bound = b*net.Scale.Float64(), math.Abs(bound*net.Scale.Float64())
		at := make([][]int, len(net.Links))
		for j, link := range net.Links {
			for _, l := range link.Legs {
				at[j] = append(at[j], x[l])
			}
			value[j] = entry(link.T, at[j])
			size[j] = math.Abs(value[j])
			if cp, ok := link.T.(*tensor.CP); ok {
				size[j] = entry(absolute(cp), at[j])
			}
		}
		for j, v := range owner {
			if v < 0 {
				continue
			}
			others, around := b, bound
			for k := range value {
				if k != j {
					others *= value[k]
					around *= size[k]
				}
			}
			cp := net.Links[j].T.(*tensor.CP)
			for a, w := range cp.Weights {
				one := *cp // the link with one value of the variable
				one.Weights = make([]float64, len(cp.Weights))
				one.Weights[a] = w
				m[offset[v]+a] += others * entry(&one, at[j])
				terms += around * math.Abs(entry(&one, at[j]))
			}
		}
	})
	return m, terms
}

func absolute(t *tensor.CP) *tensor.CP {
	abs := func(list []float64) []float64 {
		var out []float64
		for _, x := range list {
			out = append(out, math.Abs(x))
		}
		return out
	}
	out := &tensor.CP{Shape: t.Shape, Weights: abs(t.Weights)}
	for _, v := range t.Vectors {
		out.Vectors = append(out.Vectors, abs(v))
	}
	return out
}

// smallNetwork draws a model whose network has 2 to 6 legs
// and at most 250 assignments of them, under evidence.
func smallNetwork(t *testing.T, rng *rand.Rand, o modeltest.SmallOptions) *btn.Network {
	t.Helper()
	for {
		m := modeltest.Small(rng, o)
		net, err := reparam.Build(context.Background(), m, reparam.Options{
			Maps:  []query.MapKind{query.MapIdentity, query.MapOrthogonal}[rng.IntN(2)],
			Cores: []query.CoreChoice{query.CoresAreFactors, query.CoresAreVariables}[rng.IntN(2)],
		})
		if err != nil {
			t.Fatal(err)
		}
		size := 1
		for _, d := range net.Dims {
			size *= d
		}
		if len(net.Dims) < 2 || len(net.Dims) > 7 || size > 250 {
			continue
		}
		if rng.IntN(2) == 0 {
			if net, err = net.Condition(modeltest.Evidence(rng, m)); err != nil {
				t.Fatal(err)
			}
		}
		return net
	}
}

// tabulated returns the table of a component's tensor under learned maps, by definition.
func tabulated(
	dims []int, rotations [][]float64, entry func(x []int) float64,
) func(x []int) (value, terms float64) {
	at := func(x []int) int {
		i := 0
		for l, v := range x {
			i = i*dims[l] + v
		}
		return i
	}
	size := 1
	for _, d := range dims {
		size *= d
	}
	table, bound := make([]float64, size), make([]float64, size)
	oracle.Each(dims, func(x []int) { table[at(x)], bound[at(x)] = entry(x), math.Abs(entry(x)) })
	if rotations != nil {
		turned, turnedBound := make([]float64, size), make([]float64, size)
		oracle.Each(dims, func(x []int) {
			oracle.Each(dims, func(y []int) {
				p := table[at(y)]
				for l, o := range rotations {
					switch {
					case o != nil:
						p *= o[x[l]*dims[l]+y[l]]
					case x[l] != y[l]:
						p = 0
					}
				}
				turned[at(x)] += p
				turnedBound[at(x)] += math.Abs(p)
			})
		})
		table, bound = turned, turnedBound
	}
	return func(x []int) (value, terms float64) { return table[at(x)], bound[at(x)] }
}

// TestMarginalsOfEveryClass: rank-one, cp, symmetric and symmetry-rank-one parts that have nothing
// to do with the network's own base tensor, two and three levels, learned maps, both choices of
// cores, zeros and signs, against enumeration.
func TestMarginalsOfEveryClass(t *testing.T) {
	rounds := 60
	if testing.Short() {
		rounds = 15
	}
	for seed := range uint64(rounds) {
		rng := rand.New(rand.NewPCG(seed, 31))
		o := modeltest.SmallOptions{Variables: 4, Factors: 4, MinDomain: 1, MaxDomain: 3,
			Zeros:    0.15 * float64(seed%3),
			Negative: seed%2 == 0, Constant: true}
		net := smallNetwork(t, rng, o)
		symmetric := modeltest.Tensor(rng, modeltest.SymmetryCP, net.Dims,
			signed).(*tensor.SymmetryCP)
		cp := modeltest.Tensor(rng, modeltest.CP, net.Dims, signed).(*tensor.CP)
		e, frame := symmetryCP(symmetric)
		tensors := make([]tensor.Tensor, 0, 4)
		for _, term := range symmetric.Terms {
			one := *symmetric
			one.Terms = []tensor.SymmetryRankOne{{Alpha: 1, S: term.S, R: term.R}}
			tensors = append(tensors, &one)
		}
		plain := *symmetric
		plain.Terms = []tensor.SymmetryRankOne{{Alpha: 1, S: symmetric.Terms[0].S}}
		parts := append(e.Parts,
			&closed.SymmetryRankOne{Frame: frame, S: e.Parts[0].(*closed.SymmetryRankOne).S},
			&closed.CP{Frame: frame, Tensor: cp},
			&closed.RankOne{Frame: frame, R: symmetric.Terms[0].R})
		tensors = append(tensors, &plain, cp, nil)
		if seed%3 == 2 {
			frame.Rotations = randomRotations(rng, net.Dims)
		}
		for i, q := range parts {
			v := withMarginals(t, net, q, problem.Options{})
			canonical(t, net, v.Marginals)
			want, terms := enumerateQ(net,
				tabulated(net.Dims, frame.Rotations, func(x []int) float64 {
					if tensors[i] != nil {
						f, _ := oracle.Entry(tensors[i], x).Float64()
						return f
					}
					p := 1.0
					for l, r := range q.(*closed.RankOne).R {
						if r != nil {
							p *= r[x[l]]
						}
					}
					return p
				}))
			for k, w := range want {
				if got := math.Ldexp(v.Marginals.Mant[k],
					int(v.Marginals.Exp)); !(math.Abs(got-w) <= tolerance*terms) {
					t.Errorf("seed %d, part %d, class %s, D = %d, cores %s: entry %d is %v, want "+
						"%v of %v", seed, i, q.Class(),
						frame.Levels.D, net.Choice, k, got, w, terms)
				}
			}
			addsUp(t, fmt.Sprintf("seed %d, part %d", seed, i), net, v, tolerance*terms)
		}
	}
}

// addsUp checks Σ_x M_v(x) = Z for every variable.
func addsUp(t *testing.T, what string, net *btn.Network, v btn.Value, within float64) {
	t.Helper()
	at := 0
	for i, place := range net.Variables {
		var sum scaled.Number
		for range place.Domain {
			sum = sum.Add(scaled.Make(v.Marginals.Mant[at], v.Marginals.Exp))
			at++
		}
		if diff := sum.Sub(v.Z).Float64(); !(math.Abs(diff) <= within) {
			t.Errorf("%s: the marginals of variable %d sum to %v, Z = %v", what, i, sum, v.Z)
		}
	}
}

// TestExactMarginals: C = B on random models, both choices of cores, maps, hard and soft evidence,
// against Z with one more observation, and against the probabilities of enumeration.
func TestExactMarginals(t *testing.T) {
	rounds := 40
	if testing.Short() {
		rounds = 8
	}
	for seed := range uint64(rounds) {
		rng := rand.New(rand.NewPCG(seed, 32))
		m := modeltest.Small(rng,
			modeltest.SmallOptions{Variables: 6, Factors: 8, MinDomain: 1, MaxDomain: 4, MaxArity: 4,
				Negative: seed%2 == 0,
				Zeros:    0.1 * float64(seed%4), Constant: true})
		ev := factorgraph.Evidence{}
		if seed%3 > 0 {
			ev = modeltest.Evidence(rng, m)
		}
		want := jointWithEvidence(m, ev)
		probability := oracle.Marginals(m, ev)
		for _, cores := range []query.CoreChoice{query.CoresAreFactors, query.CoresAreVariables} {
			for _, maps := range []query.MapKind{query.MapIdentity, query.MapOrthogonal} {
				what := fmt.Sprintf("seed %d, cores %s, maps %s", seed, cores, maps)
				net, err := reparam.Build(context.Background(), m,
					reparam.Options{Maps: maps, Cores: cores})
				if err != nil {
					t.Fatal(err)
				}
				part := along(t, net)
				if net, err = net.Condition(ev); err != nil {
					t.Fatal(err)
				}
				v := withMarginals(t, net, part, problem.Options{Threads: 1})
				if three := withMarginals(t, net, part,
					problem.Options{Threads: 3}); !reflect.DeepEqual(v, three) {
					t.Errorf("%s: other bits with three threads", what)
				}
				canonical(t, net, v.Marginals)
				z, largest := v.Z.Float64(), 0.0
				for _, w := range want {
					for _, x := range w {
						largest = max(largest, math.Abs(x))
					}
				}
				addsUp(t, what, net, v, 1e-9*largest+1e-12)
				at := 0
				for i := range want {
					for x, w := range want[i] {
						got := math.Ldexp(v.Marginals.Mant[at], int(v.Marginals.Exp))
						at++
						if !(math.Abs(got-w) <= 1e-9*largest+1e-12) {
							t.Errorf("%s: variable %d, value %d: %v, want %v", what, i, x, got, w)
						}
						if seed%2 == 1 && z != 0 && !(math.Abs(got/z-probability[i][x]) < 1e-9) {
							t.Errorf("%s: variable %d, value %d: P = %v, want %v",
								what, i, x, got/z, probability[i][x])
						}
					}
				}
			}
		}
	}
}

// along returns the part B along a min-fill order.
func along(t *testing.T, net *btn.Network) btn.Part {
	t.Helper()
	h, err := lower.Shape(context.Background(), net)
	if err != nil {
		t.Fatal(err)
	}
	return &exactparts.Elimination{Order: orders.MinFill(h)}
}

// jointWithEvidence returns Z under the evidence and X_i = x, by enumeration:
// 0 where the evidence excludes x.
func jointWithEvidence(m *factorgraph.Model, ev factorgraph.Evidence) [][]float64 {
	out := make([][]float64, len(m.Domains))
	for i, d := range m.Domains {
		out[i] = make([]float64, d)
	values:
		for x := range d {
			more := factorgraph.Evidence{Soft: ev.Soft}
			for _, h := range ev.Hard {
				if h.Var != i {
					more.Hard = append(more.Hard, h)
				} else if h.Value != x {
					continue values
				}
			}
			more.Hard = append(more.Hard, factorgraph.Observation{Var: i, Value: x})
			out[i][x], _ = oracle.Z(m, more).Float64()
		}
	}
	return out
}

// TestMarginalsOfEqualVariables:
// a factor in CP form with the identity on every leg makes its variables one index.
func TestMarginalsOfEqualVariables(t *testing.T) {
	m := &factorgraph.Model{Domains: []int{3, 3, 3}, Factors: []factorgraph.Factor{
		{Scope: []int{0, 1, 2},
			Table: &tensor.CP{Shape: []int{3, 3, 3}, Weights: []float64{1, 2, 4},
				Vectors: make([][]float64, 3)}},
		{Scope: []int{1}, Table: &tensor.Dense{Shape: []int{3}, Data: []float64{5, 0, 7}}},
	}}
	net, err := reparam.Build(context.Background(), m, reparam.Options{})
	if err != nil {
		t.Fatal(err)
	}
	v := withMarginals(t, net, exact(t, net), problem.Options{})
	for i, want := range []float64{5, 0, 28, 5, 0, 28, 5, 0, 28} {
		if got := math.Ldexp(v.Marginals.Mant[i],
			int(v.Marginals.Exp)); math.Abs(got-want) > 1e-13 {
			t.Errorf("entry %d: %v, want %v", i, got, want)
		}
	}
}

// TestMarginalsOfZeroPartition:
// whatever makes Z zero, the marginals are what is left of it: zeros when every term is.
func TestMarginalsOfZeroPartition(t *testing.T) {
	equal := &tensor.Dense{Shape: []int{2, 2}, Data: []float64{1, 0, 0, 1}}
	differ := &tensor.Dense{Shape: []int{2, 2}, Data: []float64{0, 1, 1, 0}}
	cancel := &tensor.Dense{Shape: []int{2, 2}, Data: []float64{1, 2, -1, -2}}
	for _, c := range []struct {
		name  string
		model factorgraph.Model
		want  []float64
	}{
		{"contradiction", factorgraph.Model{Domains: []int{2, 2},
			Factors: []factorgraph.Factor{{Scope: []int{0, 1}, Table: equal},
				{Scope: []int{0, 1}, Table: differ}}}, make([]float64, 4)},
		{"constant", factorgraph.Model{Domains: []int{2, 1},
			Factors: []factorgraph.Factor{{Scope: []int{},
				Table: &tensor.Dense{Shape: []int{}, Data: []float64{0}}}}}, make([]float64, 3)},
		{"cancellation", factorgraph.Model{Domains: []int{2, 2, 2},
			Factors: []factorgraph.Factor{{Scope: []int{0, 1}, Table: cancel}}}, []float64{6, -6, 0,
			0, 0, 0}},
	} {
		for _, cores := range []query.CoreChoice{query.CoresAreFactors, query.CoresAreVariables} {
			net, err := reparam.Build(context.Background(), &c.model, reparam.Options{Cores: cores})
			if err != nil {
				t.Fatal(err)
			}
			v := withMarginals(t, net, exact(t, net), problem.Options{})
			if !v.Z.IsZero() {
				t.Errorf("%s, cores %s: Z = %v", c.name, cores, v.Z)
			}
			for i, want := range c.want {
				if got := math.Ldexp(v.Marginals.Mant[i], int(v.Marginals.Exp)); got != want {
					t.Errorf("%s, cores %s: entry %d is %v, want %v", c.name, cores, i, got, want)
				}
			}
		}
	}
}

// isingNetwork is a rows × columns grid with random couplings and fields:
// legs 2·edges, links of degree up to 4.
func isingNetwork(t *testing.T, rows, columns, domain int, o reparam.Options) *btn.Network {
	t.Helper()
	rng := rand.New(rand.NewPCG(uint64(rows), uint64(columns)))
	m := &factorgraph.Model{}
	for range rows * columns {
		m.Factors = append(m.Factors,
			factorgraph.Factor{Scope: []int{len(m.Domains)},
				Table: modeltest.Tensor(rng, modeltest.Dense, []int{domain}, modeltest.SmallOptions{})})
		m.Domains = append(m.Domains, domain)
	}
	for v := range rows * columns {
		if (v+1)%columns != 0 {
			m.Factors = append(m.Factors,
				factorgraph.Factor{Scope: []int{v, v + 1},
					Table: modeltest.Tensor(rng, modeltest.Dense, []int{domain, domain},
						modeltest.SmallOptions{})})
		}
		if v+columns < rows*columns {
			m.Factors = append(m.Factors,
				factorgraph.Factor{Scope: []int{v, v + columns},
					Table: modeltest.Tensor(rng, modeltest.Dense, []int{domain, domain},
						modeltest.SmallOptions{})})
		}
	}
	net, err := reparam.Build(context.Background(), m, o)
	if err != nil {
		t.Fatal(err)
	}
	return net
}

// positive has a part of every class that a network has by itself,
// all numbers positive, over the levels λ = identity when paper.
func positive(t *testing.T, net *btn.Network, rng *rand.Rand, paper bool) ([]btn.Part, *btn.Frame) {
	t.Helper()
	frame := &btn.Frame{Levels: countspace.TwoLevels(net.Dims)}
	if paper {
		var err error
		if frame.Levels, err = countspace.Identity(net.Dims); err != nil {
			t.Fatal(err)
		}
	}
	s := countspace.New(frame.Levels.Shape())
	for i := range s.Coef.Mant {
		s.Coef.Mant[i], s.Coef.Exp[i] = 1+rng.Float64(), rng.Int64N(400)
	}
	r := make([][]float64, len(net.Dims))
	cp := &tensor.CP{Shape: net.Dims, Weights: []float64{0.5, 2, 1},
		Vectors: make([][]float64, len(net.Dims))}
	for l, d := range net.Dims {
		for range d {
			r[l] = append(r[l], 0.2+rng.Float64())
		}
		for range 3 * d {
			cp.Vectors[l] = append(cp.Vectors[l], 0.2+rng.Float64())
		}
	}
	return []btn.Part{
		exact(t, net),
		&closed.RankOne{Frame: frame, R: r},
		&closed.CP{Frame: frame, Tensor: cp},
		&closed.SymmetryRankOne{Frame: frame, S: s},
		&closed.SymmetryRankOne{Frame: frame, S: s, R: r},
	}, frame
}

// TestMarginalsAreDerivatives: Z is linear in every weight, so doubling one adds its marginal.
// On networks too large to enumerate, every class, two levels and three.
func TestMarginalsAreDerivatives(t *testing.T) {
	for _, c := range []struct {
		rows, columns, domain int
		o                     reparam.Options
	}{
		{5, 6, 2, reparam.Options{}},
		{3, 4, 3, reparam.Options{Maps: query.MapOrthogonal}},
		{4, 5, 2, reparam.Options{Cores: query.CoresAreVariables}},
	} {
		rng := rand.New(rand.NewPCG(uint64(c.rows), 33))
		net := isingNetwork(t, c.rows, c.columns, c.domain, c.o)
		parts, frame := positive(t, net, rng, c.domain == 3)
		if c.domain == 3 {
			frame.Rotations = randomRotations(rng, net.Dims)
		}
		for _, q := range parts {
			v := withMarginals(t, net, q, problem.Options{})
			canonical(t, net, v.Marginals)
			for range 4 {
				k := rng.IntN(len(net.Variables))
				x := rng.IntN(c.domain)
				more := *net
				more.Links = append([]btn.Link(nil), net.Links...)
				link := &more.Links[net.Variables[k].Link]
				cp := *link.T.(*tensor.CP)
				cp.Weights = append([]float64(nil), cp.Weights...)
				cp.Weights[x] *= 2
				link.T = &cp
				doubled, err := plain(&more, q)
				if err != nil {
					t.Fatal(err)
				}
				got := scaled.Make(v.Marginals.Mant[k*c.domain+x], v.Marginals.Exp)
				// with learned maps the numbers are not positive any more
				largest := v.Z.Abs().Add(doubled.Z.Abs())
				diff := got.Sub(doubled.Z.Sub(v.Z)).Div(largest).Float64()
				if !(math.Abs(diff) < 1e-9) {
					t.Errorf("%d×%d, class %s: variable %d, value %d: %v, difference of Z %v",
						c.rows, c.columns, q.Class(), k, x, got, doubled.Z.Sub(v.Z))
				}
			}
		}
	}
}

// TestMarginalsCost: about three times the operations of Z in every class, whatever the size.
func TestMarginalsCost(t *testing.T) {
	// Eliminations have steps of more than two tables. In several variables the products skip zeros, which
	// the derivatives by the links' polynomials do not.
	const most, base, several = 3.0, 4.0, 4.0
	for _, c := range []struct {
		rows, columns, domain int
		paper                 bool
		o                     reparam.Options
	}{
		{4, 4, 2, false, reparam.Options{}},
		{8, 8, 2, false, reparam.Options{}},
		{10, 12, 2, false, reparam.Options{}},
		{8, 8, 2, false, reparam.Options{Maps: query.MapOrthogonal}},
		{8, 8, 2, false, reparam.Options{Cores: query.CoresAreVariables}},
		{4, 4, 3, true, reparam.Options{}},
		{3, 3, 4, true, reparam.Options{}},
	} {
		rng := rand.New(rand.NewPCG(1, 34))
		net := isingNetwork(t, c.rows, c.columns, c.domain, c.o)
		parts, _ := positive(t, net, rng, c.paper)
		e := &btn.Estimate{Parts: parts}
		for i, q := range parts {
			once, err := plain(net, q)
			if err != nil {
				t.Fatal(err)
			}
			all, err := contraction.Part(context.Background(), problem.New(net, problem.Options{}), q,
				btn.Want{Marginals: true})
			if err != nil {
				t.Fatal(err)
			}
			elimination := q.Class() == btn.ClassElimination
			if cost := most * contraction.Flops(net, e, i); !elimination &&
				(cost > 4*all.Flops || all.Flops > 4*cost) {
				t.Errorf("%d×%d, class %s: %.4g flops predicted, %.4g counted",
					c.rows, c.columns, q.Class(), cost, all.Flops)
			}
			bound := most
			if elimination {
				bound = base
			} else if c.paper {
				bound = several
			}
			if ratio := all.Flops / once.Flops; !(ratio > 1 && ratio <= bound) {
				t.Errorf("%d×%d, %d values, cores %s, class %s: %.4g operations, %.4g without "+
					"marginals: %.2f times", c.rows, c.columns,
					c.domain, net.Choice, q.Class(), all.Flops, once.Flops, ratio)
			} else {
				t.Logf("%d×%d, %d values, cores %s, class %s: %.2f times",
					c.rows, c.columns, c.domain, net.Choice, q.Class(), ratio)
			}
		}
	}
}

// TestMarginalsInLittleMemory: in two count variables partial products are computed
// again when they do not fit, with the same bits; below that the bytes are named.
func TestMarginalsInLittleMemory(t *testing.T) {
	net := isingNetwork(t, 4, 5, 3, reparam.Options{})
	parts, _ := positive(t, net, rand.New(rand.NewPCG(1, 35)), true)
	symmetric := parts[3]
	if symmetric.Class() != btn.ClassSymmetric {
		t.Fatal("the parts have moved")
	}
	plenty := withMarginals(t, net, symmetric, problem.Options{})
	flops := plenty.Flops
	fits, recomputed := int64(0), false
	for memory := int64(4 << 20); ; memory = memory * 9 / 10 {
		v, err := contraction.Part(context.Background(),
			problem.New(net, problem.Options{Memory: memory}), symmetric,
			btn.Want{Marginals: true})
		if errors.Is(err, contraction.ErrMemory) && fault.CodeOf(err) == fault.OverBudget {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		fits = memory
		if !reflect.DeepEqual(v.Marginals, plenty.Marginals) {
			t.Fatalf("other marginals in %d bytes", memory)
		}
		if v.Flops > 1.5*flops {
			t.Errorf("%v operations in %d bytes, %v in plenty", v.Flops, memory, flops)
		}
		recomputed = recomputed || v.Flops > flops
	}
	if fits == 0 || !recomputed {
		t.Errorf("smallest budget %d, partial products computed again: %v", fits, recomputed)
	}
}

func TestMarginalsNeedVariables(t *testing.T) {
	net, e := largeNetwork(6, 1, btn.ClassSymmetryRankOne)
	_, err := contraction.Part(context.Background(), problem.New(net, problem.Options{}), e.Parts[0],
		btn.Want{Marginals: true})
	if !errors.Is(err, contraction.ErrNoVariables) || fault.CodeOf(err) != fault.BadInput {
		t.Errorf("got %v", err)
	}
	empty, err := reparam.Build(context.Background(), &factorgraph.Model{}, reparam.Options{})
	if err != nil {
		t.Fatal(err)
	}
	v := withMarginals(t, empty, exact(t, empty), problem.Options{})
	if len(v.Marginals.Mant) != 0 || v.Z != scaled.One {
		t.Errorf("the empty model: %+v", v)
	}
}

// TestMarginalsStop: a context that ends is noticed forth and back.
func TestMarginalsStop(t *testing.T) {
	net := isingNetwork(t, 3, 3, 3, reparam.Options{})
	for _, paper := range []bool{false, true} {
		parts, _ := positive(t, net, rand.New(rand.NewPCG(1, 36)), paper)
		for _, part := range parts {
			for looks := 0; ; looks++ {
				_, err := contraction.Part(&stopping{context.Background(), looks},
					problem.New(net, problem.Options{Threads: 1}), part,
					btn.Want{Marginals: true})
				if err == nil {
					if looks < 2*len(net.Variables) {
						t.Errorf("class %s: %d looks", part.Class(), looks)
					}
					break
				}
				if !errors.Is(err, context.Canceled) {
					t.Fatal(err)
				}
			}
		}
	}
}
