package preprocess_test

import (
	"context"
	"errors"
	"math/big"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/basetensor/basetensor/internal/network/preprocess"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/internal/testing/nightly"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// tolerance of Z and of marginals against the sum of the terms' absolute values:
// a thousand splits at most, a few roundings each.
const tolerance = 1e-12

// check compares the simplified expression with the one given by enumeration, and its invariants.
func check(
	t *testing.T, what string, e *sumproduct.Expression, o preprocess.Options,
) *preprocess.Result {
	t.Helper()
	before := clone(e)
	r, err := preprocess.Run(context.Background(), e, o)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if !reflect.DeepEqual(before, e) {
		t.Fatalf("%s: the expression given has changed", what)
	}
	again, err := preprocess.Run(context.Background(), e, o)
	if err != nil || !reflect.DeepEqual(r, again) {
		t.Fatalf("%s: a second run differs", what)
	}
	sums := oracle.Sum(e, 0)
	wantZ, size, want := sums.Z, sums.Terms, sums.Parts
	if states(r.Expression) > 1<<16 { // chains of counters have many indices
		z := value(t, r.Expression)
		if d := away(new(big.Float).SetMantExp(big.NewFloat(z.Mant), int(z.Exp)), wantZ,
			size); d > tolerance {
			t.Fatalf("%s: Z = %v, was %v, %.3g of the terms\n%v", what, z, wantZ, d, r.Report)
		}
		return r
	}
	left := oracle.Sum(r.Expression, 0)
	z, got := left.Z, left.Parts
	if d := away(z, wantZ, size); d > tolerance {
		t.Fatalf("%s: Z = %v, was %v, %.3g of the terms\n%v", what, z, wantZ, d, r.Report)
	}
	if (r.Report.Zero != nil) != r.Expression.Scale.IsZero() {
		t.Fatalf("%s: reason %v, scale %v", what, r.Report.Zero, r.Expression.Scale)
	}
	if r.Report.Zero != nil &&
		(wantZ.Sign() != 0 && away(wantZ, new(big.Float), size) > tolerance) {
		t.Fatalf("%s: Z = 0 because %v, but it is %v", what, r.Report.Zero, wantZ)
	}
	checkParts(t, r)
	if r.Report.Zero != nil || wantZ.Sign() == 0 {
		return r
	}
	for i := range e.Dims {
		checkMarginal(t, what, r, o, i, want[i], got, size)
	}
	return r
}

// checkMarginal compares Σ of the terms with every value of index i,
// recovered from the simplified expression's.
func checkMarginal(t *testing.T, what string, r *preprocess.Result, o preprocess.Options, i int,
	want []*big.Float,
	got [][]*big.Float, size *big.Float) {
	t.Helper()
	kept := o.Marginals || slices.Contains(o.Keep, i)
	marginals := make([][]float64, len(got))
	for j := range got {
		for _, x := range got[j] {
			p, _ := new(big.Float).Quo(x, size).Float64()
			marginals[j] = append(marginals[j], p)
		}
	}
	p, err := r.Recover(i, marginals)
	if errors.Is(err, preprocess.ErrSummedOut) && !kept {
		return
	}
	if err != nil {
		t.Fatalf("%s: index %d: %v", what, i, err)
	}
	z := new(big.Float).SetPrec(precision)
	for _, x := range want {
		z.Add(z, x)
	}
	rows := len(r.Origin[i].ValueOf) + len(r.Origin[i].Conditional)/len(want)
	for x := range want {
		have := new(big.Float).SetPrec(precision).Mul(big.NewFloat(p[x]), size)
		if rows == 1 {
			have.Mul(big.NewFloat(p[x]), z)
		}
		if d := away(have, want[x], size); d > tolerance {
			t.Fatalf("%s: index %d value %d: %v, was %v of %v\n%v",
				what, i, x, have, want[x], size, r.Report)
		}
	}
}

func checkParts(t *testing.T, r *preprocess.Result) {
	t.Helper()
	part := map[int]int{}
	seen := 0
	for p, tables := range r.Parts {
		for _, n := range tables {
			seen++
			for _, i := range r.Expression.Tables[n].Scope {
				if q, known := part[i]; known && q != p {
					t.Fatalf("index %d is in parts %d and %d", i, p, q)
				}
				part[i] = p
			}
		}
	}
	if seen != len(r.Expression.Tables) {
		t.Fatalf("%d tables in parts, there are %d", seen, len(r.Expression.Tables))
	}
}

func clone(e *sumproduct.Expression) *sumproduct.Expression {
	c := *e
	c.Dims = slices.Clone(e.Dims)
	c.Tables = slices.Clone(e.Tables)
	for t := range c.Tables {
		c.Tables[t].Scope = slices.Clone(e.Tables[t].Scope)
		c.Tables[t].Data = slices.Clone(e.Tables[t].Data)
	}
	return &c
}

// TestRandomExpressions: mixed domains, zeros of 0 to 80 %, hyperedges,
// signs, structure, entries of any size; with and without marginals.
func TestRandomExpressions(t *testing.T) {
	const seed = 71
	rng := rand.New(rand.NewPCG(seed, 1))
	rounds := nightly.Rounds(400, 4000)
	var sum preprocess.Report
	zeros := 0
	for round := range rounds {
		d := drawing{indices: 1 + rng.IntN(8), tables: 1 + rng.IntN(9), arity: 1 + rng.IntN(7),
			dim:   2 + rng.IntN(3),
			zeros: 0.2 * float64(rng.IntN(5)), negative: round%3 == 0, structure: round%2 == 0,
			planted: round%5 > 0}
		if round%7 == 0 {
			d.range2, d.structure = 400, false
		}
		if round%2 == 0 {
			d.zeros /= 2
		}
		e := draw(rng, d)
		switch round % 16 { // kinds of table that random draws hardly ever give
		case 4:
			e = barren(rng)
		case 8:
			e = clauses(rng)
		}
		for _, o := range []preprocess.Options{{}, {Marginals: true}, {
			Keep:          []int{rng.IntN(len(e.Dims))},
			NoElimination: round%4 == 0,
			NoStructure:   round%4 == 1,
			Probes:        -1,
		},
			preprocess.Always(preprocess.Options{Marginals: round%2 == 0})} {
			r := check(t, "seed 71", e, o)
			if r.Report.Zero != nil {
				zeros++
			}
			sum.ValuesRemoved += r.Report.ValuesRemoved
			sum.Aliases += r.Report.Aliases
			sum.TablesMerged += r.Report.TablesMerged
			sum.ConstantModes += r.Report.ConstantModes
			sum.SummedOut += r.Report.SummedOut
			sum.Splits += r.Report.Splits
			sum.Stars += r.Report.Stars
			sum.Chains += r.Report.Chains
			sum.ProbedAway += r.Report.ProbedAway
		}
	}
	t.Logf("%d probed away, %d of %d are 0; %v", sum.ProbedAway, zeros, 4*rounds, sum)
	if zeros == 0 || sum.Aliases == 0 || sum.ConstantModes == 0 || sum.Splits == 0 ||
		sum.ValuesRemoved == 0 ||
		sum.ProbedAway == 0 || sum.Stars == 0 || sum.Chains == 0 {
		t.Errorf("a rule was never used: %+v", sum)
	}
}

// TestSparseExpressions: tables of constraints with one zero or many over few indices,
// where probing finds consequences beyond single tables.
func TestSparseExpressions(t *testing.T) {
	const seed = 72
	rng := rand.New(rand.NewPCG(seed, 1))
	rounds := nightly.Rounds(300, 2000)
	var sum preprocess.Report
	for round := range rounds {
		d := drawing{indices: 3 + rng.IntN(7), tables: 4 + rng.IntN(12), arity: 2 + rng.IntN(3),
			dim:   2 + round%2,
			zeros: 0.3 + 0.3*rng.Float64(), negative: round%4 == 0, planted: true}
		e := draw(rng, d)
		if round%3 > 0 {
			e = clauses(rng)
		}
		for _, o := range []preprocess.Options{{}, {Marginals: true}} {
			r := check(t, "seed 72", e, o)
			sum.ProbedAway += r.Report.ProbedAway
			sum.Aliases += r.Report.Aliases
			sum.EntriesRemoved += r.Report.EntriesRemoved
		}
	}
	t.Logf("%d values probed away, %d aliases, %d entries removed",
		sum.ProbedAway, sum.Aliases, sum.EntriesRemoved)
	if sum.ProbedAway == 0 || sum.Aliases == 0 || sum.EntriesRemoved == 0 {
		t.Error("a rule was never of use")
	}
}

// clauses draws a satisfiable formula over binary indices with weights.
func clauses(rng *rand.Rand) *sumproduct.Expression {
	e := &sumproduct.Expression{Scale: scaled.One}
	n := 5 + rng.IntN(5)
	truth := make([]int, n)
	for i := range n {
		e.Dims = append(e.Dims, 2)
		truth[i] = rng.IntN(2)
	}
	for range n + rng.IntN(2*n) {
		scope := rng.Perm(n)[:2+rng.IntN(2)]
		data := make([]float64, 1<<len(scope))
		holds := 0
		for _, i := range scope {
			holds = 2*holds + truth[i]
		}
		for k := range data {
			data[k] = 0.5 + rng.Float64()
		}
		if k := rng.IntN(len(data)); k != holds {
			data[k] = 0
		}
		e.Tables = append(e.Tables, sumproduct.Table{Scope: scope, Data: data})
	}
	return e
}

// barren draws a conditional probability P(y | x, z)
// of a y that nothing else has, beside tables that hold x and z apart.
func barren(rng *rand.Rand) *sumproduct.Expression {
	e := &sumproduct.Expression{Scale: scaled.One,
		Dims: []int{2 + rng.IntN(3), 2 + rng.IntN(3), 2 + rng.IntN(3), 2, 3}}
	var p []float64
	for range e.Dims[0] * e.Dims[1] {
		sum := 0.0
		row := make([]float64, e.Dims[2])
		for y := range row {
			row[y] = 0.05 + rng.Float64()
			sum += row[y]
		}
		for _, x := range row {
			p = append(p, x/sum)
		}
	}
	e.Tables = []sumproduct.Table{{Scope: []int{0, 1, 2}, Data: p}}
	for i := range 2 {
		for j := 3; j < 5; j++ {
			data := make([]float64, e.Dims[i]*e.Dims[j])
			for k := range data {
				data[k] = 0.05 + rng.Float64()
			}
			e.Tables = append(e.Tables, sumproduct.Table{Scope: []int{i, j}, Data: data})
		}
	}
	return e
}
