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
	// minUncancelled is the smallest |Z| / Σ |terms| at which probabilities are compared. They are parts of Z divided by Z, so their error
	// grows as terms cancel.
	minUncancelled = 1e-3
)

// forEachRound calls check, which draws a problem from rng and tests the engine on it, for each of many rounds. what names the round in
// messages. check returns the engine's error: ErrDeclined is counted, and at least a quarter of the problems must not be declined; any
// other error fails the test.
func (e Engine) forEachRound(t *testing.T, seed uint64, check func(rng *rand.Rand, what string) error) {
	t.Helper()
	e.forFewerRounds(t, 1, seed, check)
}

// forFewerRounds is forEachRound with the number of rounds divided by divisor.
func (e Engine) forFewerRounds(t *testing.T, divisor int, seed uint64, check func(rng *rand.Rand, what string) error) {
	t.Helper()
	n, declined := rounds/divisor, 0
	least := n / 4 // problems that must not be declined
	if testing.Short() {
		n = shortRounds / divisor
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

// compare fails the test unless the engine's answer to a problem is that of enumeration, within the tolerance. It compares marginals and
// the joint marginal, if they are wanted, unless the terms of Z nearly cancel.
func (e Engine) compare(t *testing.T, what string, p *Problem, got Value, w Want) {
	t.Helper()
	expression := expressionOf(p.Model, p.Evidence)
	sums := oracle.Sum(expression, 0)
	if zError := oracle.ScaledError(got.Z.Mant, got.Z.Exp, sums.Z, sums.Terms); !(zError <= e.Tolerance) {
		t.Fatalf("%s: Z = %v, enumeration %v, off by %.3g of the terms", what, got.Z, sums.Z, zError)
	}

	uncancelled := scaled.FromBig(sums.Z).Abs().Div(scaled.FromBig(sums.Terms)).Float64()
	if sums.Z.Sign() == 0 || uncancelled < minUncancelled {
		return
	}
	tolerance := 10 * e.Tolerance / uncancelled
	if w.Marginals {
		if len(got.Marginals) != len(p.Model.Domains) {
			t.Fatalf("%s: marginals of %d variables, there are %d", what, len(got.Marginals), len(p.Model.Domains))
		}
		for v, row := range sums.Marginals() {
			for x, want := range row {
				if !(math.Abs(got.Marginals[v][x]-want) <= tolerance) {
					t.Fatalf("%s: P(x_%d = %d) = %v, enumeration %v", what, v, x, got.Marginals[v][x], want)
				}
			}
		}
	}
	if w.Joint != nil {
		for k, want := range jointOf(expression, sums.Z, w.Joint) {
			if !(math.Abs(got.Joint[k]-want) <= tolerance) {
				t.Fatalf("%s: cell %d of the joint marginal of %v is %v, enumeration %v", what, k, w.Joint, got.Joint[k], want)
			}
		}
	}
}

// compareRandom compares the engine's answers about random models with enumeration, with and without evidence, for random choices of cores
// and maps. want says what is asked about a model.
func (e Engine) compareRandom(
	t *testing.T, seed uint64, kinds entryKinds, want func(rng *rand.Rand, m *factorgraph.Model) Want,
) {
	t.Helper()
	e.forEachRound(t, seed, func(rng *rand.Rand, what string) error {
		m := e.drawModel(rng, kinds)
		ev := factorgraph.Evidence{}
		if rng.IntN(2) == 0 {
			ev = modeltest.Evidence(rng, m)
		}
		p := NewProblem(t, m, ev, drawOptions(rng), rng.Uint64())
		w := want(rng, m)
		got, err := e.Contract(context.Background(), p, w)
		if err == nil {
			e.compare(t, what, p, got, w)
		}
		return err
	})
}

// enumeration checks the property Enumeration: Z of models with positive entries.
func enumeration(t *testing.T, e Engine) {
	e.compareRandom(t, 1, entryKinds{}, func(*rand.Rand, *factorgraph.Model) Want { return Want{} })
}

// marginals checks the property Marginals: Z and marginals of models with positive entries.
func marginals(t *testing.T, e Engine) {
	e.compareRandom(t, 2, entryKinds{}, func(*rand.Rand, *factorgraph.Model) Want { return Want{Marginals: true} })
}

// joint checks the property Joint: the joint marginals of one to three variables.
func joint(t *testing.T, e Engine) {
	e.compareRandom(t, 3, entryKinds{}, func(rng *rand.Rand, m *factorgraph.Model) Want {
		n := len(m.Domains)
		return Want{Joint: rng.Perm(n)[:1+rng.IntN(min(n, 3))]}
	})
}

// signs checks the property Signs: models with entries of both signs.
func signs(t *testing.T, e Engine) {
	e.compareRandom(t, 4, entryKinds{signs: true}, func(rng *rand.Rand, _ *factorgraph.Model) Want {
		return Want{Marginals: e.has(Marginals) && rng.IntN(2) == 0}
	})
}

// zeros checks the property Zeros: models with entries that are 0.
func zeros(t *testing.T, e Engine) {
	e.compareRandom(t, 5, entryKinds{zeros: true}, func(rng *rand.Rand, _ *factorgraph.Model) Want {
		return Want{Marginals: e.has(Marginals) && rng.IntN(2) == 0}
	})
}

// randomExpression draws an expression of up to 2^9 assignments with up to eleven tables of up to four indices, in any order. It may have
// what lowering avoids: tables without indices, tables over the same indices, indices of dimension 1 or in no table, and unconnected parts.
func randomExpression(rng *rand.Rand, kinds entryKinds) *sumproduct.Expression {
	e := &sumproduct.Expression{Scale: scaled.FromFloat(0.5 + rng.Float64())}
	for states := 1; len(e.Dims) < 1+rng.IntN(8); {
		d := 1 + rng.IntN(4)
		if states*d > 1<<9 {
			d = 1
		}
		states *= d
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
			if kinds.signs && rng.IntN(3) == 0 {
				data[k] = -data[k]
			}
			if kinds.zeros && rng.IntN(3) == 0 {
				data[k] = 0
			}
		}
		e.Tables = append(e.Tables, sumproduct.Table{Scope: scope, Data: data})
	}
	return e
}

// expressions checks the property Expressions: the engine gets random expressions as they are drawn, not simplified by lowering.
func expressions(t *testing.T, e Engine) {
	e.forEachRound(t, 6, func(rng *rand.Rand, what string) error {
		var kinds entryKinds
		kinds.signs = e.has(Signs) && rng.IntN(3) == 0
		kinds.zeros = e.has(Zeros) && rng.IntN(3) == 0
		drawn := randomExpression(rng, kinds)
		p := NewProblem(t, modelOf(drawn), factorgraph.Evidence{}, reparam.Options{}, rng.Uint64())
		p.Expression = expressionOf(p.Model, p.Evidence)
		w := Want{Marginals: e.has(Marginals)}
		got, err := e.Contract(context.Background(), p, w)
		if err == nil {
			e.compare(t, what, p, got, w)
		}
		return err
	})
}

// maps checks the property Maps: Z of a network is the same with identity maps and with orthogonal ones on its legs.
func maps(t *testing.T, e Engine) {
	e.forEachRound(t, 7, func(rng *rand.Rand, what string) error {
		m := e.drawModel(rng, entryKinds{})
		ev := modeltest.Evidence(rng, m)
		cores := []query.CoreChoice{query.CoresAreFactors, query.CoresAreVariables}[rng.IntN(2)]
		var z [2]scaled.Number
		for k, kind := range []query.MapKind{query.MapIdentity, query.MapOrthogonal} {
			got, err := e.Contract(context.Background(), NewProblem(t, m, ev, reparam.Options{Maps: kind, Cores: cores}, 1), Want{})
			if err != nil {
				return err
			}
			z[k] = got.Z
		}
		difference := z[0].Sub(z[1]).Div(z[0]).Float64() // relative
		if !z[0].IsZero() && !(math.Abs(difference) <= 10*e.Tolerance) {
			t.Fatalf("%s: Z = %v, and %v with other maps", what, z[0], z[1])
		}
		return nil
	})
}

// relabelling checks the property Relabelling: Z and marginals stay the same if the variables, their values and the factors of a model are
// renumbered. An engine that is for certain models only (e.Draw) gets the same factors in another order.
func relabelling(t *testing.T, e Engine) {
	e.forEachRound(t, 8, func(rng *rand.Rand, what string) error {
		// Value x of variable v becomes value newValue[v][x] of variable newIndex[v].
		m := e.drawModel(rng, entryKinds{})
		newIndex, newValue := rng.Perm(len(m.Domains)), make([][]int, len(m.Domains))
		for v, d := range m.Domains {
			newValue[v] = rng.Perm(d)
		}
		w := Want{Marginals: e.has(Marginals)}
		original, err := e.Contract(context.Background(), NewProblem(t, m, factorgraph.Evidence{}, reparam.Options{}, 1), w)
		if err != nil {
			return err
		}

		renumbered := modelOf(renumber(rng, expressionOf(m, factorgraph.Evidence{}), newIndex, newValue))
		if e.Draw != nil {
			renumbered = &factorgraph.Model{Domains: m.Domains, Factors: slices.Clone(m.Factors)}
			list := renumbered.Factors
			rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
			for v, d := range m.Domains {
				newIndex[v], newValue[v] = v, modeltest.UpTo(d)
			}
		}
		other, err := e.Contract(context.Background(), NewProblem(t, renumbered, factorgraph.Evidence{}, reparam.Options{}, 1), w)
		if err != nil {
			return err
		}

		if difference := original.Z.Sub(other.Z).Div(original.Z).Float64(); !(math.Abs(difference) <= 10*e.Tolerance) {
			t.Fatalf("%s: Z = %v, relabelled %v", what, original.Z, other.Z)
		}
		for v, row := range original.Marginals {
			for x, p := range row {
				if q := other.Marginals[newIndex[v]][newValue[v][x]]; !(math.Abs(p-q) <= 100*e.Tolerance) {
					t.Fatalf("%s: P(x_%d = %d) = %v, relabelled %v", what, v, x, p, q)
				}
			}
		}
		return nil
	})
}

// renumber returns an expression whose index newIndex[i] is index i of e and whose value newValue[i][x] of that index is value x, with the
// tables in random order.
func renumber(rng *rand.Rand, e *sumproduct.Expression, newIndex []int, newValue [][]int) *sumproduct.Expression {
	out := &sumproduct.Expression{Scale: e.Scale, Dims: make([]int, len(e.Dims))}
	for i, d := range e.Dims {
		out.Dims[newIndex[i]] = d
	}
	for _, n := range rng.Perm(len(e.Tables)) {
		t := e.Tables[n]
		renumbered := sumproduct.Table{Data: make([]float64, len(t.Data))}
		dims := make([]int, len(t.Scope))
		for k, i := range t.Scope {
			renumbered.Scope, dims[k] = append(renumbered.Scope, newIndex[i]), e.Dims[i]
		}

		// Copy the entries, which are row-major in both tables.
		source := 0
		oracle.Each(dims, func(x []int) {
			target := 0
			for k, i := range t.Scope {
				target = target*dims[k] + newValue[i][x[k]]
			}
			renumbered.Data[target] = t.Data[source]
			source++
		})
		out.Tables = append(out.Tables, renumbered)
	}
	return out
}

// slicesAddUp checks the property Slices: Z of a sliced contraction is the sum of two contractions, over the slices before a random cut and
// those from it on; marginals are the sum of theirs, weighted by their shares of Z.
func slicesAddUp(t *testing.T, e Engine) {
	sliced := 0 // problems with slices
	e.forEachRound(t, 9, func(rng *rand.Rand, what string) error {
		m := e.drawModel(rng, entryKinds{})
		p := NewProblem(t, m, factorgraph.Evidence{}, drawOptions(rng), rng.Uint64())
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

// Grid returns the expression of a grid of rows × columns indices with this number of values each: a random table of positive entries for
// each pair of neighbours. Index row·columns + column is at (row, column).
func Grid(rng *rand.Rand, rows, columns, domain int) *sumproduct.Expression {
	e := &sumproduct.Expression{Scale: scaled.One, Dims: slices.Repeat([]int{domain}, rows*columns)}
	addTable := func(i, j int) {
		data := make([]float64, domain*domain)
		for k := range data {
			data[k] = 0.2 + rng.Float64()
		}
		e.Tables = append(e.Tables, sumproduct.Table{Scope: []int{i, j}, Data: data})
	}
	for i := range rows * columns {
		if i%columns+1 < columns {
			addTable(i, i+1)
		}
		if i+columns < rows*columns {
			addTable(i, i+columns)
		}
	}
	return e
}

// threads checks the property Threads: 2, 3 and 8 threads give the same bits as one, on a grid whose tables are large enough to be divided
// among threads.
func threads(t *testing.T, e Engine) {
	rng := rand.New(rand.NewPCG(10, 1))
	p := NewProblem(t, modelOf(Grid(rng, 7, 7, 4)), factorgraph.Evidence{}, reparam.Options{}, 1)
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
			several, err := e.Contract(context.Background(), p, w)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(one, several) {
				t.Errorf("other bits with %d threads: Z = %v, and %v with one", n, several.Z, one.Z)
			}
		}
	}
}

// overBudget checks the property OverBudget: an engine that is allowed 8 KiB refuses the complete graph of 40 variables, whose contraction
// has a table of some 2^39 entries, before it allocates 256 MiB. The tables of the model alone exceed 8 KiB, so that slicing does not help.
func overBudget(t *testing.T, e Engine) {
	const n, memory, maxAllocated = 40, 1 << 13, 256 << 20
	complete := &sumproduct.Expression{Scale: scaled.One, Dims: slices.Repeat([]int{2}, n)}
	for i := range n {
		for j := range i {
			complete.Tables = append(complete.Tables, sumproduct.Table{Scope: []int{j, i}, Data: []float64{1, 2, 3, 4}})
		}
	}
	p := NewProblem(t, modelOf(complete), factorgraph.Evidence{}, reparam.Options{}, 1)
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
		if allocated := after.TotalAlloc - before.TotalAlloc; allocated > maxAllocated {
			t.Errorf("marginals %v: %d bytes were allocated before it was refused", w.Marginals, allocated)
		}
	}
}

// zeroZ checks the property ZeroZ on models with Z = 0: of two factors that exclude each other, with a factor that is all 0, and with terms
// that cancel. The answer is 0 without marginals, for the lowered expression (lowering may find the zero) and for one that is not
// simplified.
func zeroZ(t *testing.T, e Engine) {
	dense := func(data ...float64) *tensor.Dense { return &tensor.Dense{Shape: []int{2, 2}, Data: data} }
	modelWith := func(first, second *tensor.Dense) *factorgraph.Model {
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
		{"contradiction", modelWith(dense(1, 0, 0, 1), dense(0, 1, 1, 0)), false},
		{"zeros", modelWith(dense(0, 0, 0, 0), dense(1, 2, 3, 4)), false},
		{"cancellation", modelWith(dense(1, -1, 1, -1), dense(1, 1, 1, 1)), true},
	} {
		if c.signs && !e.has(Signs) {
			continue
		}
		lowered := NewProblem(t, c.model, factorgraph.Evidence{}, reparam.Options{}, 1)
		unsimplified := *lowered
		unsimplified.Expression = expressionOf(c.model, factorgraph.Evidence{})
		for k, p := range []*Problem{lowered, &unsimplified} {
			isLowered := k == 0
			for _, w := range []Want{{}, {Marginals: true}} {
				isLacked := w.Marginals && !e.has(Marginals) || !isLowered && !e.has(Expressions)
				if isLacked {
					continue
				}
				got, err := e.Contract(context.Background(), p, w)
				if errors.Is(err, ErrDeclined) {
					continue
				}
				if err != nil || !got.Z.IsZero() || got.Marginals != nil {
					t.Errorf("%s, lowered %v, marginals %v: %+v, %v", c.name, isLowered, w.Marginals, got, err)
				}
			}
		}
	}
}

// wideRange checks the property Range: the tables of an expression are multiplied by large and small powers of two, so that Z is beyond
// float64. Entries are small integers before, so that none loses digits as a subnormal number.
func wideRange(t *testing.T, e Engine) {
	for _, powers := range [][]int{{900}, {-900}, {-1060}, {1000, -1000}, {-1000, 1000, 3}} {
		e.forFewerRounds(t, 4, 11, func(rng *rand.Rand, what string) error {
			drawn := randomExpression(rng, entryKinds{})
			for n := range drawn.Tables {
				table := &drawn.Tables[n]
				for k, x := range table.Data {
					integer := math.Round(x*16) + 1
					table.Data[k] = math.Ldexp(integer, powers[n%len(powers)])
				}
			}
			p := NewProblem(t, modelOf(drawn), factorgraph.Evidence{}, reparam.Options{}, rng.Uint64())
			w := Want{Marginals: e.has(Marginals)}
			got, err := e.Contract(context.Background(), p, w)
			if err == nil {
				e.compare(t, fmt.Sprintf("%s, factors times 2^%v", what, powers), p, got, w)
			}
			return err
		})
	}
}

// cancelled checks the property Cancelled: with a context that has ended, or that ends at any of its checks, the engine returns the
// context's error, or else the complete answer.
func cancelled(t *testing.T, e Engine) {
	m := modelOf(Grid(rand.New(rand.NewPCG(12, 1)), 5, 5, 3))
	p := NewProblem(t, m, factorgraph.Evidence{}, reparam.Options{}, 1)
	w := Want{Threads: 1, Marginals: e.has(Marginals)}
	whole, err := e.Contract(context.Background(), p, w)
	if err != nil {
		t.Fatal(err)
	}

	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := e.Contract(ended, p, w); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: %v", err)
	}
	for _, checks := range []int{0, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 1 << 20} {
		got, err := e.Contract(ContextEndingAfter(checks, context.Canceled), p, w)
		switch {
		case err == nil && !reflect.DeepEqual(got, whole):
			t.Errorf("a context that ends after %d looks: another answer, Z = %v instead of %v", checks, got.Z, whole.Z)
		case err != nil && !errors.Is(err, context.Canceled):
			t.Errorf("a context that ends after %d looks: %v", checks, err)
		}
	}
}
