package exchangeable

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contraction"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/internal/network/reparam"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// exchanged draws a model of n variables of d values in some classes with a table for every set of order variables: a function of how
// often it has each value of each class after values are exchanged at some variables, times random vectors for each of its variables.
// Tables of pairs come with it, and, of several classes, a variable with a table of its own alone.
func exchanged(rng *rand.Rand, n, d, order, classes int) *factorgraph.Model {
	m := &factorgraph.Model{Domains: make([]int, n)}
	value, class := make([][]int, n), make([]int, n)
	for i := range n {
		m.Domains[i], value[i], class[i] = d, rng.Perm(d), i%classes
	}
	curves := map[[24]uint8]float64{}
	table := func(scope []int, scale float64) {
		shape := make([]int, len(scope))
		main := make([]float64, len(scope))
		for k := range scope {
			shape[k], main[k] = d, 0.3*rng.NormFloat64()
		}
		var data []float64
		oracle.Each(shape, func(x []int) {
			var at [24]uint8
			sum := 0.0
			for k, v := range scope {
				at[class[v]*d+value[v][x[k]]]++
				sum += main[k] * float64(x[k])
			}
			if _, ok := curves[at]; !ok {
				curves[at] = scale * rng.NormFloat64()
			}
			data = append(data, math.Exp(curves[at]+sum))
		})
		m.Factors = append(m.Factors, factorgraph.Factor{Scope: scope, Table: &tensor.Dense{Shape: shape, Data: data}})
	}
	alone := n
	if classes > 1 {
		alone = n - 1
		class[alone] = 0
		table([]int{alone}, 1)
	}
	set := make([]int, order)
	for i := range set {
		set[i] = i
	}
	for set[order-1] < alone {
		scope := append([]int{}, set...)
		rng.Shuffle(order, func(a, b int) { scope[a], scope[b] = scope[b], scope[a] })
		table(scope, 1/float64(n))
		next(set)
	}
	for i := range alone {
		for j := range i {
			table([]int{i, j}, 0.25)
		}
	}
	return m
}

// next changes an increasing set into the one that follows in the order of its last members.
func next(set []int) {
	for k := range set {
		if k+1 == len(set) || set[k]+1 < set[k+1] {
			set[k]++
			for i := range k {
				set[i] = i
			}
			return
		}
	}
}

// found returns the part of a model and its problem under evidence; nil if it has no classes.
func found(t *testing.T, m *factorgraph.Model, evidence factorgraph.Evidence) (*Sum, *problem.Problem) {
	t.Helper()
	net, err := reparam.Build(t.Context(), m, reparam.Options{})
	if err != nil {
		t.Fatal(err)
	}
	classes, _, err := findClasses(t.Context(), problem.New(net, problem.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	if classes == nil {
		return nil, nil
	}
	conditioned, err := net.Condition(evidence)
	if err != nil {
		t.Fatal(err)
	}
	part := &Sum{Classes: classes, To: WholeShare}
	if err := part.Fits(conditioned); err != nil {
		t.Fatal(err)
	}
	p := problem.New(conditioned, problem.Options{})
	p.Base = net
	return part, p
}

// TestTablesOfSeveralAgainstEnumeration: Z, marginals and a joint marginal under evidence, of tables of three to five over one to three
// classes of two to four values, with weights of their own in every table; a model with one entry of one table changed has no classes.
func TestTablesOfSeveralAgainstEnumeration(t *testing.T) {
	ctx := t.Context()
	for _, c := range []struct{ d, order, classes int }{
		{2, 3, 1}, {2, 3, 2}, {2, 3, 3}, {2, 4, 1}, {2, 4, 2}, {2, 4, 3}, {2, 5, 1}, {2, 5, 2}, {2, 5, 3},
		{3, 3, 1}, {3, 3, 2}, {3, 4, 1}, {4, 3, 1},
	} {
		t.Run(fmt.Sprint(c.d, c.order, c.classes), func(t *testing.T) { againstEnumeration(ctx, t, c.d, c.order, c.classes) })
	}
}

func againstEnumeration(ctx context.Context, t *testing.T, d, order, classes int) {
	rng := rand.New(rand.NewPCG(uint64(order), uint64(classes)))
	m := exchanged(rng, 12, d, order, classes)
	hard := []factorgraph.Observation{{Var: 3, Value: 1}}
	if d > 2 {
		hard = append(hard, factorgraph.Observation{Var: 4, Value: 2}, factorgraph.Observation{Var: 6}, factorgraph.Observation{Var: 8, Value: 2},
			factorgraph.Observation{Var: 9, Value: 1}, factorgraph.Observation{Var: 10, Value: 2})
	}
	evidence := factorgraph.Evidence{
		Hard: hard, Soft: []factorgraph.Likelihood{{Var: 5, Weights: []float64{0.2, 1.5, 0.7, 1}[:d]}},
	}
	part, p := found(t, m, evidence)
	if part == nil {
		t.Fatal("no classes found")
	}
	value, err := contraction.Part(ctx, p, part, btn.Want{Marginals: true, Joint: []int{2, 7}})
	if err != nil {
		t.Fatal(err)
	}
	if value.Doubt != "" {
		t.Error(value.Doubt)
	}
	if off := oracle.RelativeError(value.Z.Mant, value.Z.Exp, oracle.Z(m, evidence)); off > 1e-12 {
		t.Errorf("Z is off by %.2g of it", off)
	}
	checkMarginals(t, m, evidence, value)
	for cell, x := range value.Joint.Mant {
		e := evidence
		e.Hard = append([]factorgraph.Observation{{Var: 2, Value: cell / d}, {Var: 7, Value: cell % d}}, hard...)
		if off := oracle.RelativeError(x, value.Joint.Exp, oracle.Z(m, e)); off > 1e-12 {
			t.Errorf("cell %d of a joint marginal is off by %.2g of it", cell, off)
		}
	}
	m.Factors[7].Table.(*tensor.Dense).Data[2] *= 1 + 1e-8
	if part, _ := found(t, m, evidence); part != nil && part.Classes.Count <= classes {
		t.Errorf("found though an entry differs")
	}
}

// checkMarginals compares with enumeration.
func checkMarginals(t *testing.T, m *factorgraph.Model, evidence factorgraph.Evidence, value btn.Value) {
	t.Helper()
	at := 0
	for v, row := range oracle.Marginals(m, evidence) {
		for x, want := range row {
			got := scaled.Make(value.Marginals.Mant[at], value.Marginals.Exp).Div(value.Z).Float64()
			if at++; !(math.Abs(got-want) <= 1e-12) {
				t.Errorf("P(%d = %d) is %v, want %v", v, x, got, want)
			}
		}
	}
}

// swapped draws a model of two classes with a table for each kind of pair, hidden variables of pairs, forbidden values, and relabelled
// values.
func swapped(rng *rand.Rand, sizes []int, values, hidden int, zeros float64) *factorgraph.Model {
	m := &factorgraph.Model{}
	var class []int
	var labels [][]int
	for c, n := range sizes {
		for range n {
			m.Domains = append(m.Domains, values)
			class, labels = append(class, c), append(labels, rng.Perm(values))
		}
	}
	add := func(scope []int, entry func(x []int) float64) {
		f := &tensor.Dense{}
		for _, v := range scope {
			f.Shape = append(f.Shape, m.Domains[v])
		}
		oracle.Each(f.Shape, func(x []int) { f.Data = append(f.Data, entry(x)) })
		m.Factors = append(m.Factors, factorgraph.Factor{Scope: scope, Table: f})
	}
	entries := map[[5]int]float64{}
	entry := func(key [5]int) float64 {
		x, ok := entries[key]
		if !ok {
			if x = math.Exp(rng.NormFloat64()); rng.Float64() < zeros && key[2]+key[3] > 0 {
				x = 0
			}
			entries[key] = x
		}
		return x
	}
	n := len(class)
	for v := range n {
		add([]int{v}, func(x []int) float64 { return 1 + float64(labels[v][x[0]]) })
	}
	for v := range n {
		for u := range v {
			scope := []int{u, v}
			if hidden > 0 && (class[u] != class[v] || len(sizes) == 1) {
				scope = append(scope, len(m.Domains))
				m.Domains = append(m.Domains, hidden)
			}
			add(scope, func(x []int) float64 {
				a, b, h := labels[u][x[0]], labels[v][x[1]], 0
				if len(x) == 3 {
					h = x[2]
				}
				if class[u] == class[v] {
					a, b = min(a, b), max(a, b)
				}
				return entry([5]int{class[u], class[v], a, b, h})
			})
		}
	}
	return m
}

// TestPairsAgainstEnumeration: Z, marginals of hidden variables too, the most probable assignment, and draws.
func TestPairsAgainstEnumeration(t *testing.T) {
	for k, c := range []struct {
		sizes  []int
		values int
		hidden int
		zeros  float64
	}{
		{[]int{13}, 2, 0, 0}, {[]int{13}, 2, 0, 0.4}, {[]int{7}, 4, 0, 0}, {[]int{8}, 3, 0, 0.3},
		{[]int{6, 6}, 2, 0, 0}, {[]int{4, 4}, 3, 0, 0.2},
		{[]int{3, 3}, 2, 2, 0}, {[]int{3, 3}, 2, 2, 0.3}, {[]int{4, 2}, 3, 2, 0},
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(uint64(k), 1))
			m := swapped(rng, c.sizes, c.values, c.hidden, c.zeros)
			evidence := factorgraph.Evidence{
				Hard: []factorgraph.Observation{{Var: 1, Value: 1}},
				Soft: []factorgraph.Likelihood{{Var: 2, Weights: []float64{0.3, 1.2, 0.9, 1}[:c.values]}},
			}
			if c.hidden > 0 { // tells two variables from the others
				evidence.Hard = append(evidence.Hard, factorgraph.Observation{Var: len(m.Domains) - 1, Value: 1})
			}
			part, p := found(t, m, evidence)
			if part == nil {
				t.Fatal("no classes found")
			}
			value, err := contraction.Part(t.Context(), p, part, btn.Want{Marginals: true})
			if err != nil {
				t.Fatal(err)
			}
			if off := oracle.RelativeError(value.Z.Mant, value.Z.Exp, oracle.Z(m, evidence)); !(off <= 1e-13) || value.Doubt != "" {
				t.Errorf("Z is off by %.2g of it, %s", off, value.Doubt)
			}
			checkMarginals(t, m, evidence, value)
			checkBest(t, m, evidence, p, part)
			checkDraws(t, m, evidence, p, part)
		})
	}
}

// eachWeight calls f for every assignment that the evidence allows.
func eachWeight(m *factorgraph.Model, evidence factorgraph.Evidence, f func(x []int, weight float64)) {
	oracle.Each(m.Domains, func(x []int) {
		w := 1.0
		for _, e := range evidence.Hard {
			if x[e.Var] != e.Value {
				return
			}
		}
		for _, e := range evidence.Soft {
			w *= e.Weights[x[e.Var]]
		}
		for _, factor := range m.Factors {
			at := 0
			for k, v := range factor.Scope {
				at = at*factor.Table.Dims()[k] + x[v]
			}
			w *= factor.Table.(*tensor.Dense).Data[at]
		}
		f(x, w)
	})
}

// checkBest compares the most probable assignment with enumeration.
func checkBest(t *testing.T, m *factorgraph.Model, evidence factorgraph.Evidence, p *problem.Problem, part *Sum) {
	t.Helper()
	value, err := contraction.Part(t.Context(), p, &Sum{Classes: part.Classes, To: WholeShare, Ask: btn.AskMPE}, btn.Want{})
	if err != nil {
		t.Log(err) // maxima over hidden variables need not be the same for all pairs
		return
	}
	largest, count := 0.0, 0
	var best []int
	eachWeight(m, evidence, func(x []int, w float64) {
		if w > largest*(1+1e-12) {
			largest, count, best = w, 0, slices.Clone(x)
		}
		if w > largest*(1-1e-12) {
			count++
		}
	})
	f := value.Found
	if math.Abs(f.Weight.Float64()/largest-1) > 1e-12 || !slices.Equal(f.Values, best) || f.Unique != (count == 1) {
		t.Errorf("best %v of weight %v, unique %t; want %v of %v, %d such", f.Values, f.Weight.Float64(), f.Unique, best, largest, count)
	}
}

// checkDraws compares the frequencies of values among draws with their probabilities: within five standard errors.
func checkDraws(t *testing.T, m *factorgraph.Model, evidence factorgraph.Evidence, p *problem.Problem, part *Sum) {
	t.Helper()
	const n = 4000
	drawn := &Sum{Classes: part.Classes, To: WholeShare, Ask: btn.AskSamples}
	value, err := contraction.Part(t.Context(), p, drawn, btn.Want{Samples: n, Seed: 5})
	if err != nil {
		t.Fatal(err)
	}
	frequency := make([][]float64, len(m.Domains))
	for v, d := range m.Domains {
		frequency[v] = make([]float64, d)
	}
	pairs, wantPairs := 0.0, 0.0 // of the first and the last variable with value 0
	for s := range n {
		x := value.Drawn.Values[s*len(m.Domains):][:len(m.Domains)]
		for v, a := range x {
			frequency[v][a] += 1.0 / n
		}
		if x[0] == 0 && x[len(x)-1] == 0 {
			pairs += 1.0 / n
		}
	}
	near := func(got, want float64) bool { return math.Abs(got-want) <= 5*math.Sqrt(want*(1-want)/n)+1e-12 }
	z := 0.0
	eachWeight(m, evidence, func(x []int, w float64) {
		z += w
		if x[0] == 0 && x[len(x)-1] == 0 {
			wantPairs += w
		}
	})
	if !near(pairs, wantPairs/z) {
		t.Errorf("two values are drawn together with frequency %v, want %v", pairs, wantPairs/z)
	}
	for v, row := range oracle.Marginals(m, evidence) {
		for x, want := range row {
			if !near(frequency[v][x], want) {
				t.Errorf("P(%d = %d): frequency %v, want %v", v, x, frequency[v][x], want)
			}
		}
	}
}

// TestValuesAgainstEnumeration: a Potts model whose count vectors are not listed, with evidence that tells groups apart.
func TestValuesAgainstEnumeration(t *testing.T) {
	for k, values := range []int{3, 5} {
		rng := rand.New(rand.NewPCG(uint64(values), 3))
		m := &factorgraph.Model{}
		n := 8 - k
		labels := make([][]int, n)
		for v := range n {
			m.Domains = append(m.Domains, values)
			labels[v] = rng.Perm(values)
		}
		diagonal := make([]float64, values)
		share := make([]float64, values)
		for a := range diagonal {
			diagonal[a], share[a] = rng.Float64(), 0.5+rng.Float64()
		}
		diagonal[1] = 0
		for v := range n {
			for u := range v {
				f := &tensor.Dense{Shape: []int{values, values}}
				oracle.Each(f.Shape, func(x []int) {
					a, b := labels[u][x[0]], labels[v][x[1]]
					y := 1.0
					if a == b {
						y = diagonal[a]
					}
					f.Data = append(f.Data, y)
				})
				m.Factors = append(m.Factors, factorgraph.Factor{Scope: []int{u, v}, Table: f})
			}
		}
		evidence := factorgraph.Evidence{
			Hard: []factorgraph.Observation{{Var: 1, Value: 2}},
			Soft: []factorgraph.Likelihood{{Var: 2, Weights: []float64{0.3, 1.2, 0.9, 1, 2}[:values]}},
		}
		part, p := found(t, m, evidence)
		if part == nil {
			t.Fatal("no classes found")
		}
		f, err := formOf(t.Context(), p, part, nil, false)
		if err != nil {
			t.Fatal(err)
		}
		b := f.valueByValue()
		if b == nil {
			t.Fatal("its values interact")
		}
		if err := b.fillWeights(t.Context()); err != nil {
			t.Fatal(err)
		}
		z := b.lnZ().number().Mul(p.Net.Scale)
		if off := oracle.RelativeError(z.Mant, z.Exp, oracle.Z(m, evidence)); !(off <= 1e-13) {
			t.Errorf("%d values: Z is off by %.2g of it", values, off)
		}
		rows, err := b.marginals(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		drawn, err := b.draw(t.Context(), btn.Want{Samples: 4000, Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		for v, row := range oracle.Marginals(m, evidence) {
			for x, want := range row {
				if !(math.Abs(rows[v][x]-want) <= 1e-12) {
					t.Errorf("P(%d = %d) is %v, want %v", v, x, rows[v][x], want)
				}
				count := 0.0
				for s := range 4000 {
					if drawn.Values[s*n+v] == x {
						count++
					}
				}
				if math.Abs(count/4000-want) > 5*math.Sqrt(want*(1-want)/4000)+1e-12 {
					t.Errorf("P(%d = %d): frequency %v, want %v", v, x, count/4000, want)
				}
			}
		}
	}
}

// TestLogarithms: in 200 bits by the series of the area tangent, and sums of many of them.
func TestLogarithms(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	for range 300 {
		x := math.Exp(1400*rng.Float64() - 700)
		if off := offBy(logarithmOf(x), bigLog(x)); off > 1e-29 {
			t.Errorf("ln %v is off by %.2g of it", x, off)
		}
	}
	if got := logarithmOf(1); got != (logarithm{}) {
		t.Errorf("ln 1 is %v", got)
	}
	sum, want := logarithm{}, new(big.Float).SetPrec(200)
	for range 1000 {
		x, n := math.Exp(20*rng.NormFloat64()), float64(rng.IntN(1000000))
		sum = sum.plus(logarithmOf(x).times(n))
		want.Add(want, new(big.Float).SetPrec(200).Mul(bigLog(x), big.NewFloat(n)))
	}
	if off := offBy(sum, want); off > 1e-28 {
		t.Errorf("a sum is off by %.2g of it", off)
	}
}

// offBy is the relative error of a logarithm.
func offBy(got logarithm, want *big.Float) float64 {
	e := new(big.Float).SetPrec(200).SetFloat64(got.High)
	e.Add(e, big.NewFloat(got.Low))
	e.Sub(e, want)
	off, _ := e.Quo(e, want).Float64()
	return math.Abs(off)
}

// bigLog is ln x = e ln 2 + 2 artanh((m − 1)/(m + 1)).
func bigLog(x float64) *big.Float {
	m, e := math.Frexp(x)
	float := func(x float64) *big.Float { return new(big.Float).SetPrec(250).SetFloat64(x) }
	series := func(z *big.Float) *big.Float {
		sum, power := float(0), float(0).Set(z)
		square := float(0).Mul(z, z)
		for k := range 300 {
			sum.Add(sum, float(0).Quo(power, float(float64(2*k+1))))
			power.Mul(power, square)
		}
		return sum.Mul(sum, float(2))
	}
	one := float(1)
	of := func(y *big.Float) *big.Float {
		return series(float(0).Quo(float(0).Sub(y, one), float(0).Add(y, one)))
	}
	two := of(float(2))
	return float(0).Add(of(float(m)), two.Mul(two, float(float64(e))))
}

// TestWhatDoesNotFit: parts with one thing wrong each.
func TestWhatDoesNotFit(t *testing.T) {
	m := swapped(rand.New(rand.NewPCG(1, 1)), []int{7, 6}, 2, 0, 0)
	part, p := found(t, m, factorgraph.Evidence{})
	if part == nil || len(part.Classes.Relabellings) < 2 {
		t.Fatal("no relabelled classes")
	}
	for what, spoil := range map[string]func(*Sum){
		"it has no classes":  func(s *Sum) { s.Classes = nil },
		"it asks for":        func(s *Sum) { s.Ask = btn.AskMap },
		"classes of 12":      func(s *Sum) { s.Classes.ClassOf = s.Classes.ClassOf[1:] },
		"0 classes":          func(s *Sum) { s.Classes.Count = 0 },
		"of class 7":         func(s *Sum) { s.Classes.ClassOf[3] = 7 },
		"has no variable":    func(s *Sum) { s.Classes.Count++ },
		"2 classes, 2 relab": func(s *Sum) { s.Classes.Relabellings[0] = []uint8{0, 1} },
		"has relabelling":    func(s *Sum) { s.Classes.Relabellings[1] = []uint8{1, 1} },
	} {
		c := *part.Classes
		c.ClassOf, c.RelabellingOf, c.Relabellings = slices.Clone(c.ClassOf), slices.Clone(c.RelabellingOf), slices.Clone(c.Relabellings)
		wrong := &Sum{Classes: &c, To: WholeShare}
		spoil(wrong)
		if err := wrong.Fits(p.Net); !errors.Is(err, btn.ErrPart) || !strings.Contains(err.Error(), what) {
			t.Errorf("%q: %v", what, err)
		}
	}
	// Classes that are none: two variables of different ones change places.
	c := *part.Classes
	c.ClassOf = slices.Clone(c.ClassOf)
	c.ClassOf[0], c.ClassOf[12] = c.ClassOf[12], c.ClassOf[0]
	value, err := contraction.Part(t.Context(), problem.New(p.Net, problem.Options{}), &Sum{Classes: &c, To: WholeShare}, btn.Want{})
	if err != nil {
		return
	}
	if off := oracle.RelativeError(value.Z.Mant, value.Z.Exp, oracle.Z(m, factorgraph.Evidence{})); !(off <= 1e-13) {
		t.Errorf("by wrong classes Z is off by %.2g of it", off)
	}
}

// TestClassesInTurn: layers whose vectors together are too many, and random graphs of classes, summed out one after the other, beside the
// sum over all vectors, and marginals and draws beside enumeration.
func TestClassesInTurn(t *testing.T) {
	for k, c := range []struct {
		sizes  []int
		values int
		hidden int
		zeros  float64
	}{
		{[]int{4, 4, 4}, 2, 0, 0}, {[]int{3, 3, 3, 3}, 2, 0, 0.3}, {[]int{2, 3, 2}, 3, 0, 0.2}, {[]int{2, 2, 2}, 2, 2, 0},
	} {
		rng := rand.New(rand.NewPCG(uint64(k), 4))
		m := swapped(rng, c.sizes, c.values, c.hidden, c.zeros)
		first := c.sizes[0]
		m.Factors = slices.DeleteFunc(m.Factors, func(f factorgraph.Factor) bool { // the first and the last class do not meet
			last := 0
			for _, n := range c.sizes {
				last += n
			}
			return c.hidden == 0 && len(f.Scope) == 2 && f.Scope[0] < first && f.Scope[1] >= last-c.sizes[len(c.sizes)-1]
		})
		evidence := factorgraph.Evidence{Soft: []factorgraph.Likelihood{{Var: 1, Weights: []float64{0.3, 1.2, 0.9}[:c.values]}}}
		part, p := found(t, m, evidence)
		if part == nil {
			t.Fatal("no classes found")
		}
		f, err := formOf(t.Context(), p, part, nil, false)
		if err != nil {
			t.Fatal(err)
		}
		split := f.needsSplit(true)
		lists, err := f.makeLists(t.Context(), split)
		if err != nil {
			t.Fatal(err)
		}
		e := &eliminated{form: f, elimination: f.eliminationWithin(split, 1<<30), lists: lists}
		if err := e.sumOutAll(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		z := e.lnZ().number().Mul(p.Net.Scale)
		if off := oracle.RelativeError(z.Mant, z.Exp, oracle.Z(m, evidence)); !(off <= 1e-13) {
			t.Errorf("%v: Z is off by %.2g of it", c, off)
		}
		rows, err := e.marginals(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		const samples = 4000
		drawn := make([]int, len(m.Domains)) // how often variables have value 0
		if split || f.vectorCount(true) == f.vectorCount(false) {
			d, err := e.draw(t.Context(), btn.Want{Samples: samples, Seed: 3})
			if err != nil {
				t.Fatal(err)
			}
			for at, x := range d.Values {
				if x == 0 {
					drawn[at%len(m.Domains)]++
				}
			}
		}
		for v, row := range oracle.Marginals(m, evidence) {
			for x, want := range row {
				if !(math.Abs(rows[v][x]-want) <= 1e-12) {
					t.Errorf("%v: P(%d = %d) is %v, want %v", c, v, x, rows[v][x], want)
				}
			}
			if drawn[v] > 0 && math.Abs(float64(drawn[v])/samples-row[0]) > 5*math.Sqrt(row[0]*(1-row[0])/samples)+1e-12 {
				t.Errorf("%v: P(%d = 0): frequency %v, want %v", c, v, float64(drawn[v])/samples, row[0])
			}
		}
	}
}

// TestSharesAddUp: Z and marginals of three shares of the count vectors are those of all.
func TestSharesAddUp(t *testing.T) {
	m := swapped(rand.New(rand.NewPCG(2, 2)), []int{12, 11}, 2, 0, 0.2)
	evidence := factorgraph.Evidence{Soft: []factorgraph.Likelihood{{Var: 2, Weights: []float64{0.3, 1.2}}}}
	part, p := found(t, m, evidence)
	if part == nil {
		t.Fatal("no classes found")
	}
	contract := func(from, to int64) btn.Value {
		share := &Sum{Classes: part.Classes, From: from, To: to}
		value, err := contraction.Part(t.Context(), p, share, btn.Want{Marginals: true})
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
	whole := contract(0, WholeShare)
	sum := scaled.Number{}
	marginals := make([]scaled.Number, len(whole.Marginals.Mant))
	for k := range int64(3) {
		v := contract(WholeShare*k/3, WholeShare*(k+1)/3)
		sum = sum.Add(v.Z)
		for x, mant := range v.Marginals.Mant {
			marginals[x] = marginals[x].Add(scaled.Make(mant, v.Marginals.Exp))
		}
	}
	if off := math.Abs(sum.Div(whole.Z).Float64() - 1); off > 1e-13 {
		t.Errorf("the shares' Z are off by %.2g", off)
	}
	for x, got := range marginals {
		want := scaled.Make(whole.Marginals.Mant[x], whole.Marginals.Exp)
		if math.Abs(got.Sub(want).Div(whole.Z).Float64()) > 1e-13 {
			t.Errorf("marginal %d: %v, want %v", x, got, want)
		}
	}
}

// TestHiddenWithinAClass: hidden variables of pairs of one group, whose marginals need the chance that two of its variables have two
// values.
func TestHiddenWithinAClass(t *testing.T) {
	m := swapped(rand.New(rand.NewPCG(3, 3)), []int{5}, 2, 2, 0)
	part, p := found(t, m, factorgraph.Evidence{})
	if part == nil {
		t.Fatal("no classes found")
	}
	value, err := contraction.Part(t.Context(), p, part, btn.Want{Marginals: true})
	if err != nil {
		t.Fatal(err)
	}
	checkMarginals(t, m, factorgraph.Evidence{}, value)
}

// TestAMissingTable: classes of a model of which a table is missing now are no answer, or the right one.
func TestAMissingTable(t *testing.T) {
	m := swapped(rand.New(rand.NewPCG(4, 4)), []int{7}, 2, 0, 0)
	part, _ := found(t, m, factorgraph.Evidence{})
	if part == nil {
		t.Fatal("no classes found")
	}
	m.Factors = slices.Delete(m.Factors, 9, 10) // of a pair
	net, err := reparam.Build(t.Context(), m, reparam.Options{})
	if err != nil {
		t.Fatal(err)
	}
	value, err := contraction.Part(t.Context(), problem.New(net, problem.Options{}), part, btn.Want{})
	if err != nil {
		return
	}
	if off := oracle.RelativeError(value.Z.Mant, value.Z.Exp, oracle.Z(m, factorgraph.Evidence{})); !(off <= 1e-13) {
		t.Errorf("Z is off by %.2g of it", off)
	}
}
