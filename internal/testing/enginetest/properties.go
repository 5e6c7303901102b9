package enginetest

// The properties, one function each.

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"testing"

	"github.com/basetensor/basetensor/internal/network/reparam"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/internal/testing/modeltest"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

const (
	rounds      = 120
	shortRounds = 25
	// leastSliced is the minimum number of sliced problems, in the fewest rounds, for slices to count
	// as tested.
	leastSliced = 3
	// settled is the share of its terms that Z must keep for probabilities to be compared: they are parts of Z over Z.
	settled = 1e-3
)

// each draws problems, and counts those that the engine declines: a quarter at least must be answered.
func (e Engine) each(t *testing.T, seed uint64, check func(rng *rand.Rand, what string) error) {
	t.Helper()
	e.some(t, 1, seed, check)
}

// some is each of one problem in share.
func (e Engine) some(t *testing.T, share int, seed uint64, check func(rng *rand.Rand, what string) error) {
	t.Helper()
	n, declined := rounds/share, 0
	least := n / 4
	if testing.Short() {
		n = shortRounds / share
		least = max(1, n/8) // few rounds deviate more from the average draw
	}
	for round := range n {
		what := fmt.Sprintf("seed %d, round %d", seed, round)
		switch err := check(rand.New(rand.NewPCG(seed, uint64(round))), what); {
		case errors.Is(err, ErrDeclined):
			declined++
		case err != nil:
			t.Fatalf("%s: %v", what, err)
		}
	}
	if n-declined < least {
		t.Errorf("%d of %d problems were declined, at least %d shall not be", declined, n, least)
	}
}

// compare holds an answer against enumeration.
func (e Engine) compare(t *testing.T, what string, p *Problem, got Value, w Want) {
	t.Helper()
	given := expressionOf(p.Model, p.Evidence)
	sums := oracle.Sum(given, 0)
	if off := oracle.ScaledError(got.Z.Mant, got.Z.Exp, sums.Z, sums.Terms); !(off <= e.Tolerance) {
		t.Fatalf("%s: Z = %v, enumeration %v, off by %.3g of the terms", what, got.Z, sums.Z, off)
	}
	share := scaled.FromBig(sums.Z).Abs().Div(scaled.FromBig(sums.Terms)).Float64()
	if sums.Z.Sign() == 0 || share < settled {
		return
	}
	within := 10 * e.Tolerance / share
	if w.Marginals {
		if len(got.Marginals) != len(p.Model.Domains) {
			t.Fatalf("%s: marginals of %d variables, there are %d", what, len(got.Marginals), len(p.Model.Domains))
		}
		for v, row := range sums.Marginals() {
			for x, want := range row {
				if !(math.Abs(got.Marginals[v][x]-want) <= within) {
					t.Fatalf("%s: P(x_%d = %d) = %v, enumeration %v", what, v, x, got.Marginals[v][x], want)
				}
			}
		}
	}
	if w.Joint != nil {
		for k, want := range jointOf(given, sums.Z, w.Joint) {
			if !(math.Abs(got.Joint[k]-want) <= within) {
				t.Fatalf("%s: cell %d of the joint marginal of %v is %v, enumeration %v", what, k, w.Joint, got.Joint[k], want)
			}
		}
	}
}

// random compares answers to random models, with evidence and without, under both choices of cores and of maps.
func (e Engine) random(t *testing.T, seed uint64, signs, zeros bool, want func(rng *rand.Rand, m *factorgraph.Model) Want) {
	t.Helper()
	e.each(t, seed, func(rng *rand.Rand, what string) error {
		m := e.draw(rng, signs, zeros)
		ev := factorgraph.Evidence{}
		if rng.IntN(2) == 0 {
			ev = modeltest.Evidence(rng, m)
		}
		p := New(t, m, ev, options(rng), rng.Uint64())
		w := want(rng, m)
		got, err := e.Contract(context.Background(), p, w)
		if err == nil {
			e.compare(t, what, p, got, w)
		}
		return err
	})
}

func enumeration(t *testing.T, e Engine) {
	e.random(t, 1, false, false, func(*rand.Rand, *factorgraph.Model) Want { return Want{} })
}

func marginals(t *testing.T, e Engine) {
	e.random(t, 2, false, false, func(*rand.Rand, *factorgraph.Model) Want { return Want{Marginals: true} })
}

func joint(t *testing.T, e Engine) {
	e.random(t, 3, false, false, func(rng *rand.Rand, m *factorgraph.Model) Want {
		n := len(m.Domains)
		return Want{Joint: rng.Perm(n)[:1+rng.IntN(min(n, 3))]}
	})
}

func signs(t *testing.T, e Engine) {
	e.random(t, 4, true, false, func(rng *rand.Rand, _ *factorgraph.Model) Want {
		return Want{Marginals: e.has(Marginals) && rng.IntN(2) == 0}
	})
}

func zeros(t *testing.T, e Engine) {
	e.random(t, 5, false, true, func(rng *rand.Rand, _ *factorgraph.Model) Want {
		return Want{Marginals: e.has(Marginals) && rng.IntN(2) == 0}
	})
}

// Random returns an expression of up to 2^9 terms with tables of up to four indices in any sequence, some without any, some over the same
// indices, indices of dimension 1 and in no table, in parts that are not connected.
func Random(rng *rand.Rand, signs, zeros bool) *sumproduct.Expression {
	e := &sumproduct.Expression{Scale: scaled.FromFloat(0.5 + rng.Float64())}
	for total := 1; len(e.Dims) < 1+rng.IntN(8); {
		d := 1 + rng.IntN(4)
		if total*d > 1<<9 {
			d = 1
		}
		total *= d
		e.Dims = append(e.Dims, d)
	}
	for range rng.IntN(12) {
		scope := rng.Perm(len(e.Dims))[:rng.IntN(min(len(e.Dims), 4)+1)]
		size := 1
		for _, i := range scope {
			size *= e.Dims[i]
		}
		data := make([]float64, size)
		for k := range data {
			data[k] = math.Exp(rng.NormFloat64())
			if signs && rng.IntN(3) == 0 {
				data[k] = -data[k]
			}
			if zeros && rng.IntN(3) == 0 {
				data[k] = 0
			}
		}
		e.Tables = append(e.Tables, sumproduct.Table{Scope: scope, Data: data})
	}
	return e
}

// expressions hands the expression of a model over as it was drawn: with the parts that lowering would have tidied up.
func expressions(t *testing.T, e Engine) {
	e.each(t, 6, func(rng *rand.Rand, what string) error {
		drawn := Random(rng, e.has(Signs) && rng.IntN(3) == 0, e.has(Zeros) && rng.IntN(3) == 0)
		p := New(t, modelOf(drawn), factorgraph.Evidence{}, reparam.Options{}, rng.Uint64())
		p.Expression = expressionOf(p.Model, p.Evidence)
		w := Want{Marginals: e.has(Marginals)}
		got, err := e.Contract(context.Background(), p, w)
		if err == nil {
			e.compare(t, what, p, got, w)
		}
		return err
	})
}

// maps: Z of a network does not depend on the maps on its legs.
func maps(t *testing.T, e Engine) {
	e.each(t, 7, func(rng *rand.Rand, what string) error {
		m := e.draw(rng, false, false)
		ev := modeltest.Evidence(rng, m)
		cores := []query.CoreChoice{query.CoresAreFactors, query.CoresAreVariables}[rng.IntN(2)]
		var z [2]scaled.Number
		for k, kind := range []query.MapKind{query.MapIdentity, query.MapOrthogonal} {
			got, err := e.Contract(context.Background(), New(t, m, ev, reparam.Options{Maps: kind, Cores: cores}, 1), Want{})
			if err != nil {
				return err
			}
			z[k] = got.Z
		}
		if off := z[0].Sub(z[1]).Div(z[0]).Float64(); !z[0].IsZero() && !(math.Abs(off) <= 10*e.Tolerance) {
			t.Fatalf("%s: Z = %v, and %v with other maps", what, z[0], z[1])
		}
		return nil
	})
}

// relabelling: the variables, their values and the factors of a model in another sequence.
func relabelling(t *testing.T, e Engine) {
	e.each(t, 8, func(rng *rand.Rand, what string) error {
		m := e.draw(rng, false, false)
		place, values := rng.Perm(len(m.Domains)), make([][]int, len(m.Domains))
		for v, d := range m.Domains {
			values[v] = rng.Perm(d)
		}
		w := Want{Marginals: e.has(Marginals)}
		one, err := e.Contract(context.Background(), New(t, m, factorgraph.Evidence{}, reparam.Options{}, 1), w)
		if err != nil {
			return err
		}
		moved := modelOf(relabelled(rng, expressionOf(m, factorgraph.Evidence{}), place, values))
		if e.Draw != nil { // tables would no longer be the engine's: the factors as they are, in another sequence
			moved = &factorgraph.Model{Domains: m.Domains, Factors: slices.Clone(m.Factors)}
			rng.Shuffle(len(m.Factors), func(i, j int) { moved.Factors[i], moved.Factors[j] = moved.Factors[j], moved.Factors[i] })
			for v, d := range m.Domains {
				place[v], values[v] = v, modeltest.UpTo(d)
			}
		}
		two, err := e.Contract(context.Background(), New(t, moved, factorgraph.Evidence{}, reparam.Options{}, 1), w)
		if err != nil {
			return err
		}
		if off := one.Z.Sub(two.Z).Div(one.Z).Float64(); !(math.Abs(off) <= 10*e.Tolerance) {
			t.Fatalf("%s: Z = %v, relabelled %v", what, one.Z, two.Z)
		}
		for v, row := range one.Marginals {
			for x, p := range row {
				if q := two.Marginals[place[v]][values[v][x]]; !(math.Abs(p-q) <= 100*e.Tolerance) {
					t.Fatalf("%s: P(x_%d = %d) = %v, relabelled %v", what, v, x, p, q)
				}
			}
		}
		return nil
	})
}

// relabelled moves index i to place[i] and its value x to values[i][x], and shuffles the tables.
func relabelled(rng *rand.Rand, e *sumproduct.Expression, place []int, values [][]int) *sumproduct.Expression {
	out := &sumproduct.Expression{Scale: e.Scale, Dims: make([]int, len(e.Dims))}
	for i, d := range e.Dims {
		out.Dims[place[i]] = d
	}
	for _, n := range rng.Perm(len(e.Tables)) {
		t := e.Tables[n]
		moved := sumproduct.Table{Data: make([]float64, len(t.Data))}
		dims := make([]int, len(t.Scope))
		for k, i := range t.Scope {
			moved.Scope, dims[k] = append(moved.Scope, place[i]), e.Dims[i]
		}
		at := 0
		oracle.Each(dims, func(x []int) {
			to := 0
			for k, i := range t.Scope {
				to = to*dims[k] + values[i][x[k]]
			}
			moved.Data[to] = t.Data[at]
			at++
		})
		out.Tables = append(out.Tables, moved)
	}
	return out
}

// slicesAddUp cuts a sliced contraction in two, anywhere.
func slicesAddUp(t *testing.T, e Engine) {
	sliced := 0
	e.each(t, 9, func(rng *rand.Rand, what string) error {
		m := e.draw(rng, false, false)
		p := New(t, m, factorgraph.Evidence{}, options(rng), rng.Uint64())
		w := Want{Sliced: true, Marginals: e.has(Marginals) && rng.IntN(2) == 0}
		whole, err := e.Contract(context.Background(), p, w)
		if err != nil || whole.Slices < 2 {
			return err
		}
		sliced++
		e.compare(t, what+", all slices", p, whole, w)
		cut := 1 + rng.Int64N(whole.Slices-1)
		sum := Value{}
		for _, d := range m.Domains {
			sum.Marginals = append(sum.Marginals, make([]float64, d))
		}
		for _, span := range [][2]int64{{0, cut}, {cut, whole.Slices}} {
			w.From, w.To = span[0], span[1]
			part, err := e.Contract(context.Background(), p, w)
			if err != nil {
				return err
			}
			sum.Z = sum.Z.Add(part.Z)
			share := part.Z.Div(whole.Z).Float64()
			for v, row := range part.Marginals {
				for x, q := range row {
					sum.Marginals[v][x] += q * share
				}
			}
		}
		e.compare(t, fmt.Sprintf("%s, cut at %d of %d slices", what, cut, whole.Slices), p, sum, w)
		return nil
	})
	if sliced < leastSliced {
		t.Errorf("only %d problems were sliced", sliced)
	}
}

// Grid returns rows × columns variables of a domain with a random table per pair of neighbours.
func Grid(rng *rand.Rand, rows, columns, domain int) *sumproduct.Expression {
	e := &sumproduct.Expression{Scale: scaled.One, Dims: slices.Repeat([]int{domain}, rows*columns)}
	pair := func(i, j int) {
		data := make([]float64, domain*domain)
		for k := range data {
			data[k] = 0.2 + rng.Float64()
		}
		e.Tables = append(e.Tables, sumproduct.Table{Scope: []int{i, j}, Data: data})
	}
	for i := range rows * columns {
		if i%columns+1 < columns {
			pair(i, i+1)
		}
		if i+columns < rows*columns {
			pair(i, i+columns)
		}
	}
	return e
}

// threads: tables are large enough to be shared out.
func threads(t *testing.T, e Engine) {
	rng := rand.New(rand.NewPCG(10, 1))
	p := New(t, modelOf(Grid(rng, 7, 7, 4)), factorgraph.Evidence{}, reparam.Options{}, 1)
	for _, w := range []Want{{Threads: 1}, {Threads: 1, Marginals: true}} {
		if w.Marginals && !e.has(Marginals) {
			continue
		}
		one, err := e.Contract(context.Background(), p, w)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range []int{2, 3, 8} {
			w.Threads = n
			more, err := e.Contract(context.Background(), p, w)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(one, more) {
				t.Errorf("other bits with %d threads: Z = %v, and %v with one", n, more.Z, one.Z)
			}
		}
	}
}

// overBudget asks for a complete graph of 40 variables: its largest table has some 2^39 entries. Its own tables take more than is allowed,
// so that no number of slices makes it fit.
func overBudget(t *testing.T, e Engine) {
	const n, memory, least = 40, 1 << 13, 256 << 20
	complete := &sumproduct.Expression{Scale: scaled.One, Dims: slices.Repeat([]int{2}, n)}
	for i := range n {
		for j := range i {
			complete.Tables = append(complete.Tables, sumproduct.Table{Scope: []int{j, i}, Data: []float64{1, 2, 3, 4}})
		}
	}
	p := New(t, modelOf(complete), factorgraph.Evidence{}, reparam.Options{}, 1)
	for _, w := range []Want{{Memory: memory}, {Memory: memory, Marginals: true}} {
		if w.Marginals && !e.has(Marginals) {
			continue
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := e.Contract(context.Background(), p, w)
		runtime.ReadMemStats(&after)
		if fault.CodeOf(err) != fault.OverBudget || err == nil {
			t.Errorf("marginals %v: got %v, want an error of code over_budget", w.Marginals, err)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > least {
			t.Errorf("marginals %v: %d bytes were allocated before it was refused", w.Marginals, took)
		}
	}
}

// zeroZ: factors that exclude each other, one of zeros, and terms that cancel; lowered, where zeros are found before any engine, and as
// they are.
func zeroZ(t *testing.T, e Engine) {
	dense := func(data ...float64) *tensor.Dense { return &tensor.Dense{Shape: []int{2, 2}, Data: data} }
	over := func(first, second *tensor.Dense) *factorgraph.Model {
		return &factorgraph.Model{Domains: []int{2, 2, 3}, Factors: []factorgraph.Factor{
			{Scope: []int{0, 1}, Table: first}, {Scope: []int{0, 1}, Table: second},
			{Scope: []int{2}, Table: &tensor.Dense{Shape: []int{3}, Data: []float64{1, 2, 3}}},
		}}
	}
	for _, c := range []struct {
		name  string
		model *factorgraph.Model
		signs bool
	}{
		{"contradiction", over(dense(1, 0, 0, 1), dense(0, 1, 1, 0)), false},
		{"zeros", over(dense(0, 0, 0, 0), dense(1, 2, 3, 4)), false},
		{"cancellation", over(dense(1, -1, 1, -1), dense(1, 1, 1, 1)), true},
	} {
		if c.signs && !e.has(Signs) {
			continue
		}
		lowered := New(t, c.model, factorgraph.Evidence{}, reparam.Options{}, 1)
		plain := *lowered
		plain.Expression = expressionOf(c.model, factorgraph.Evidence{})
		for k, p := range []*Problem{lowered, &plain} {
			for _, w := range []Want{{}, {Marginals: true}} {
				if w.Marginals && !e.has(Marginals) || k > 0 && !e.has(Expressions) {
					continue
				}
				got, err := e.Contract(context.Background(), p, w)
				if errors.Is(err, ErrDeclined) {
					continue
				}
				if err != nil || !got.Z.IsZero() || got.Marginals != nil {
					t.Errorf("%s, lowered %v, marginals %v: %+v, %v", c.name, k == 0, w.Marginals, got, err)
				}
			}
		}
	}
}

// wideRange multiplies the factors of a model by powers of two: Z is far outside float64, and probabilities stay.
func wideRange(t *testing.T, e Engine) {
	for _, powers := range [][]int{{900}, {-900}, {-1060}, {1000, -1000}, {-1000, 1000, 3}} {
		e.some(t, 4, 11, func(rng *rand.Rand, what string) error {
			drawn := Random(rng, false, false)
			for n := range drawn.Tables {
				table := &drawn.Tables[n]
				for k, x := range table.Data { // three digits, none lost among the subnormal numbers
					x = math.Round(x*16) + 1
					table.Data[k] = math.Ldexp(x, powers[n%len(powers)])
				}
			}
			p := New(t, modelOf(drawn), factorgraph.Evidence{}, reparam.Options{}, rng.Uint64())
			w := Want{Marginals: e.has(Marginals)}
			got, err := e.Contract(context.Background(), p, w)
			if err == nil {
				e.compare(t, fmt.Sprintf("%s, factors times 2^%v", what, powers), p, got, w)
			}
			return err
		})
	}
}

// cancelled: before it begins, and after any number of looks: an answer is the whole one.
func cancelled(t *testing.T, e Engine) {
	m := modelOf(Grid(rand.New(rand.NewPCG(12, 1)), 5, 5, 3))
	p := New(t, m, factorgraph.Evidence{}, reparam.Options{}, 1)
	w := Want{Threads: 1, Marginals: e.has(Marginals)}
	whole, err := e.Contract(context.Background(), p, w)
	if err != nil {
		t.Fatal(err)
	}
	ended, end := context.WithCancel(context.Background())
	end()
	if _, err := e.Contract(ended, p, w); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: %v", err)
	}
	for _, left := range []int{0, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 1 << 20} {
		got, err := e.Contract(EndsAfter(left, context.Canceled), p, w)
		switch {
		case err == nil && !reflect.DeepEqual(got, whole):
			t.Errorf("a context that ends after %d looks: another answer, Z = %v instead of %v", left, got.Z, whole.Z)
		case err != nil && !errors.Is(err, context.Canceled):
			t.Errorf("a context that ends after %d looks: %v", left, err)
		}
	}
}
