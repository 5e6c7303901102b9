package plan_test

// A search split into cubes: one part each, which sum to what the whole is.

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/internal/answer/plan"
	"github.com/basetensor/basetensor/internal/answer/stage"
	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/families/circuits"
	"github.com/basetensor/basetensor/internal/logic"
	"github.com/basetensor/basetensor/internal/logic/formula"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/internal/network/proposal"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// clauses is a formula of n variables and m clauses of three literals, with weights.
func clauses(n, m int, seed uint64) *factorgraph.Model {
	r := rand.New(rand.NewPCG(seed, 40))
	out := &factorgraph.Model{Domains: make([]int, n)}
	for v := range n {
		out.Domains[v] = 2
		t, err := factorgraph.Table([]int{2}, []float64{r.Float64(), r.Float64()})
		if err != nil {
			panic(err)
		}
		out.Factors = append(out.Factors, factorgraph.Factor{Scope: []int{v}, Table: t})
	}
	for range m {
		out.Factors = append(out.Factors, factorgraph.Factor{
			Scope: r.Perm(n)[:3], Table: factorgraph.Clause(r.IntN(2) == 0, r.IntN(2) == 0, r.IntN(2) == 0),
		})
	}
	return out
}

// TestCubes: a search that may take little work has cubes; each is contracted by itself, in any sequence, and their sums are
// the exact ln Z and marginals.
func TestCubes(t *testing.T) {
	m := clauses(44, 95, 1)
	queries := []query.Query{
		{},
		{Marginals: true, Evidence: factorgraph.Observe(map[int]int{5: 1})},
	}
	few := query.Settings{Method: query.MethodCircuit, Budget: 60 << 10}
	got, parts := contracted(t, m, queries, few, true)
	again, _ := contracted(t, m, queries[:1], few, false)
	want, _ := contracted(t, m, queries, query.Settings{Method: query.MethodExact}, false)

	for q := range queries {
		if n := parts[q]; n < 8 {
			t.Errorf("query %d: %d parts", q, n)
		}
		z, exact := lnSum(got[q].Z), lnSum(want[q].Z)
		if off := math.Abs(z - exact); !(off < 1e-11) {
			t.Errorf("query %d: ln Z = %v, %v along a tree", q, z, exact)
		}
	}
	for k, x := range got[0].Z {
		if x != again[0].Z[k] {
			t.Errorf("part %d is %v, and %v in another sequence", k, x, again[0].Z[k])
		}
	}
	for i, x := range got[1].Marginals {
		if off := math.Abs(x/got[1].total - want[1].Marginals[i]/want[1].total); !(off < 1e-11) {
			t.Errorf("marginal %d is off by %v", i, off)
		}
	}
}

// TestPriceOfCubes: cubes cost what they are estimated to take, with a margin, and may take no more than all together.
func TestPriceOfCubes(t *testing.T) {
	m := clauses(44, 95, 1)
	s := query.Settings{Method: query.MethodCircuit, Budget: 60 << 20}
	net, err := stage.Reparameterise(t.Context(), m, s)
	if err != nil {
		t.Fatal(err)
	}
	assignments, err := stage.LearnKnown(t.Context(), net, []query.Query{{}}, s, nil, &plan.Known{})
	if err != nil {
		t.Fatal(err)
	}
	parts := assignments[0].Plan.Estimates[0].Parts
	if work := parts[0].(*circuits.Cube).Of.Work; work*int64(len(parts)) > policy.CubesWork || work < policy.CubesWork/policy.Cubes {
		t.Errorf("%d cubes of %d steps at most", len(parts), work)
	}
	steps := int64(0)
	for _, literals := range parts[0].(*circuits.Cube).Of.Cubes {
		var cube []formula.Literal
		for _, l := range literals {
			cube = append(cube, formula.Literal(l))
		}
		_, work, err := logic.Search(t.Context(), net, logic.Options{Cube: cube})
		if err != nil {
			t.Fatal(err)
		}
		steps += work
	}
	took := policy.CircuitFlops * float64(steps)
	if price := assignments[0].Cost.Flops; price < took || price > 100*took {
		t.Errorf("a price of %.3g flops for what takes %.3g", price, took)
	}
}

// TestCubesThatAreOnlyCounted: a cube whose circuit is larger than allowed has the same Z, and no marginals.
func TestCubesThatAreOnlyCounted(t *testing.T) {
	m := clauses(44, 95, 1)
	s := query.Settings{Method: query.MethodCircuit, Budget: 60 << 10}
	net, err := stage.Reparameterise(t.Context(), m, s)
	if err != nil {
		t.Fatal(err)
	}
	queries := []query.Query{{}, {Marginals: true}}
	assignments, err := stage.LearnKnown(t.Context(), net, queries, s, nil, &plan.Known{})
	if err != nil {
		t.Fatal(err)
	}
	var compiled made
	value := func(q int) btn.UnitValue {
		values, err := stage.Contract(t.Context(), net, assignments, stage.Demands(net, queries), []btn.Unit{{Query: q, Part: 0}},
			stage.ContractOptions{Memo: &compiled})
		if err != nil {
			t.Fatal(err)
		}
		return values[0]
	}
	want := value(0)
	if want.Error != nil || want.Value.Z.IsZero() || compiled != 1 {
		t.Fatalf("%+v, %d circuits", want, compiled)
	}
	for q := range queries {
		assignments[q].Plan.Estimates[0].Parts[0].(*circuits.Cube).Of.Bytes = 1
	}
	got := value(0)
	if got.Error != nil || math.Abs(lnSum([]scaled.Number{got.Value.Z})-lnSum([]scaled.Number{want.Value.Z})) > 1e-12 {
		t.Errorf("counted %v, by its circuit %v: %+v", got.Value.Z, want.Value.Z, got.Error)
	}
	if got := value(1); got.Error == nil || got.Error.Code != fault.OverBudget {
		t.Errorf("marginals without a circuit: %+v", got.Error)
	}
}

// made counts the circuits of cubes that are asked for, and remembers none.
type made int

func (n *made) Do(
	ctx context.Context, _ problem.Entry, compute func(context.Context) (problem.Memorable, error),
) (problem.Memorable, error) {
	*n++
	return compute(ctx)
}

// plans remembers plans.
type plans map[string]*btn.Plan

func (p plans) Do(ctx context.Context, key string, compute func(context.Context) (*btn.Plan, error)) (*btn.Plan, bool, error) {
	if known := p[key]; known != nil {
		return known, true, nil
	}
	made, err := compute(ctx)
	if err == nil {
		p[key] = made
	}
	return made, false, err
}

// TestFirstQueryForZMakesNoCircuits: the only query of a job, for Z of a model that was not asked before, is counted; what comes
// after it, or wants more, or comes with others, makes circuits, as does a registered model.
func TestFirstQueryForZMakesNoCircuits(t *testing.T) {
	m := clauses(44, 95, 1)
	s := query.Settings{Method: query.MethodCircuit, Budget: 60 << 10}
	net, err := stage.Reparameterise(t.Context(), m, s)
	if err != nil {
		t.Fatal(err)
	}
	var first scaled.Number
	memo := plans{}
	for k, c := range []struct {
		name     string
		ctx      context.Context
		queries  []query.Query
		memo     proposal.Memo
		circuits made
	}{
		{"the first", t.Context(), []query.Query{{}}, memo, 0},
		{"asked again", t.Context(), []query.Query{{}}, memo, 1},
		{"nothing is remembered", t.Context(), []query.Query{{}}, nil, 0},
		{"marginals", t.Context(), []query.Query{{Marginals: true}}, plans{}, 1},
		{"two queries", t.Context(), []query.Query{{}, {}}, plans{}, 1},
		{"a registered model", proposal.Recurring(t.Context()), []query.Query{{}}, plans{}, 1},
	} {
		assignments, err := stage.LearnKnown(c.ctx, net, c.queries, s, c.memo, &plan.Known{})
		if err != nil {
			t.Fatal(err)
		}
		var compiled made
		demands := stage.Demands(net, c.queries)
		values, err := stage.Contract(t.Context(), net, assignments, demands, []btn.Unit{{}}, stage.ContractOptions{Memo: &compiled})
		if err != nil || values[0].Error != nil {
			t.Fatalf("%s: %v, %+v", c.name, err, values[0].Error)
		}
		if compiled != c.circuits {
			t.Errorf("%s: %d circuits, want %d", c.name, compiled, c.circuits)
		}
		z := values[0].Value.Z
		if k == 0 {
			first = z
		}
		if off := math.Abs(z.LogAbs() - first.LogAbs()); !(off < 1e-12) {
			t.Errorf("%s: ln Z is %v, %v of the first", c.name, z.LogAbs(), first.LogAbs())
		}
	}
}

func lnSum(values []scaled.Number) float64 {
	sum := scaled.Number{}
	for _, z := range values {
		sum = sum.Add(z)
	}
	return math.Log(math.Abs(sum.Mant)) + float64(sum.Exp)*math.Ln2
}

// sums are the values of the parts of a query, and their marginals added up.
type sums struct {
	Z         []scaled.Number
	Marginals []float64
	total     float64
}

// contracted plans queries and contracts the parts of each, one by one.
func contracted(t *testing.T, m *factorgraph.Model, queries []query.Query, s query.Settings, backwards bool) (out []sums, parts []int) {
	t.Helper()
	net, err := stage.Reparameterise(t.Context(), m, s)
	if err != nil {
		t.Fatal(err)
	}
	known := &plan.Known{Options: problem.Options{Memory: s.WithDefaults().Memory}}
	assignments, err := stage.LearnKnown(t.Context(), net, queries, s, nil, known)
	if err != nil {
		t.Fatal(err)
	}
	for q, a := range assignments {
		if a.Error != nil {
			t.Fatalf("query %d: %s", q, a.Error.Message)
		}
		n := a.Plan.Len()
		one := sums{Z: make([]scaled.Number, n)}
		for i := range n {
			if backwards {
				i = n - 1 - i
			}
			values, err := stage.Contract(t.Context(), net, assignments, stage.Demands(net, queries), []btn.Unit{{Query: q, Part: i}},
				stage.ContractOptions{Memory: known.Options.Memory})
			if err != nil {
				t.Fatal(err)
			}
			if values[0].Error != nil {
				t.Fatalf("query %d, part %d: %s", q, i, values[0].Error.Message)
			}
			v := values[0].Value
			one.Z[i] = v.Z
			if v.Marginals == nil {
				continue
			}
			if one.Marginals == nil {
				one.Marginals = make([]float64, len(v.Marginals.Mant))
			}
			for k, x := range v.Marginals.Mant {
				one.Marginals[k] += scaled.Make(x, v.Marginals.Exp).Float64()
			}
			one.total += v.Z.Float64()
		}
		out, parts = append(out, one), append(parts, n)
	}
	return out, parts
}
