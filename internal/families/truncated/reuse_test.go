package truncated_test

import (
	"context"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/engine/einsum"
	"github.com/basetensor/basetensor/internal/engine/trees"
	"github.com/basetensor/basetensor/internal/families/truncated"
	"github.com/basetensor/basetensor/internal/models/generate"
	"github.com/basetensor/basetensor/internal/network/reparam"
	"github.com/basetensor/basetensor/internal/testing/orders"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
)

// remembered is a memo without bounds, and how often it computed.
type remembered struct {
	known    map[string]*trees.Projectors
	computed int
}

func (r *remembered) do(ctx context.Context, key string,
	learn func(context.Context) (*trees.Projectors, error)) (*trees.Projectors, error) {
	if p := r.known[key]; p != nil {
		return p, nil
	}
	p, err := learn(ctx)
	if r.known == nil {
		r.known = map[string]*trees.Projectors{}
	}
	r.known[key] = p
	r.computed++
	return p, err
}

func anew(ctx context.Context, _ string, learn func(context.Context) (*trees.Projectors, error)) (*trees.Projectors, error) {
	return learn(ctx)
}

// model is a grid, prepared, and a tree for it.
func model(t *testing.T, rows, cols int, o generate.Ising, bond int) (*factorgraph.Model, *truncated.Prepared, *truncated.TruncatedPlan) {
	t.Helper()
	m, err := generate.Grid(rows, cols, o)
	if err != nil {
		t.Fatal(err)
	}
	net, err := reparam.Build(context.Background(), m, reparam.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := truncated.Prepare(context.Background(), net, true)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := p.Tree(t.Context(), truncated.SearchOptions{Bond: bond, Memory: query.DefaultMemory, Seed: 1}, 1<<22)
	if err != nil {
		t.Fatal(err)
	}
	return m, p, &plan
}

// No reuse that is accepted is off by more than 1e-4 (by mostLoss and the largest miss of error estimates seen, a factor of
// two each), beside the exact value; the others say why, and have the bits of a contraction that knows nothing of reuse.
func TestAcceptedReuseIsNearTheExactValue(t *testing.T) {
	const tolerance = 1e-4
	reused, refused := 0, 0
	for seed := range uint64(6) {
		m, p, plan := model(t, 10, 10, generate.Ising{Delta: 0.5 + 0.2*float64(seed), Attractive: seed%2 == 0, Seed: seed}, 16)
		memo := &remembered{}
		rng := rand.New(rand.NewPCG(seed, 1))
		for k := range 48 {
			ev := observe(rng, m, 1+k%4)
			if k%8 == 7 {
				ev.Soft = append(ev.Soft, factorgraph.Likelihood{Var: ev.Hard[0].Var, Weights: []float64{0.2, 0.9}})
				ev.Hard = ev.Hard[1:]
			}
			bond := 4 << (k % 2)
			a, err := p.Under(t.Context(), plan, bond, 0, ev, truncated.Reuse{Accuracy: 1, Projectors: memo.do, Flops: 1})
			if err != nil {
				t.Fatal(err)
			}
			q, err := p.Mask(ev)
			if err != nil {
				t.Fatal(err)
			}
			if !a.Truncation.Reused {
				b, err := q.Contract(t.Context(), plan, bond, 0, false)
				if err != nil || a.Z != b.Z {
					t.Errorf("relearned %v, with no word of reuse %v, %v", a.Z, b.Z, err)
				}
				if !strings.HasPrefix(a.Truncation.Relearned, "those without evidence ") {
					t.Errorf("refused without a reason: %+v", a.Truncation)
				}
				refused++
				continue
			}
			want, _, err := einsum.Contract(t.Context(), q.Expression(), orders.Best(q.Expression().Hypergraph()), einsum.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if d := math.Abs(a.Z.LogAbs() - want.LogAbs()); !(d <= tolerance) || a.Truncation.Relearned != "" || !a.Truncation.Truncated {
				t.Errorf("seed %d, %d observations: off by %v, %+v", seed, 1+k%4, d, a.Truncation)
			}
			reused++
		}
		if memo.computed != 2 {
			t.Errorf("projectors of two bonds computed %d times", memo.computed)
		}
	}
	if reused < 80 || refused < 40 {
		t.Errorf("%d reused, %d refused: nothing was shown", reused, refused)
	}
}

// The same bits without a memory, with one, with one that is warm, and after other queries.
func TestReuseDependsOnNothingElse(t *testing.T) {
	m, p, plan := model(t, 10, 10, generate.Ising{Delta: 0.8, Seed: 2}, 4)
	rng := rand.New(rand.NewPCG(5, 5))
	var queries []factorgraph.Evidence
	for k := range 12 {
		queries = append(queries, observe(rng, m, k%3))
	}
	warm := &remembered{}
	ask := func(o truncated.Reuse, order []int) []truncated.Answer {
		out := make([]truncated.Answer, len(queries))
		for _, k := range order {
			var err error
			if out[k], err = p.Under(t.Context(), plan, 4, 0, queries[k], o); err != nil {
				t.Fatal(err)
			}
		}
		return out
	}
	forth := rng.Perm(len(queries))
	want := ask(truncated.Reuse{Accuracy: 1e-5, Projectors: anew, Flops: 1}, forth)
	reused := 0
	for round := range 3 {
		for k, a := range ask(truncated.Reuse{Accuracy: 1e-5, Projectors: warm.do, Flops: 1}, rng.Perm(len(queries))) {
			if a.Z != want[k].Z || a.Truncation != want[k].Truncation {
				t.Errorf("round %d: %+v, without memory %+v", round, a, want[k])
			}
			if a.Truncation.Reused {
				reused++
			}
		}
	}
	if reused < 6 || warm.computed != 1 {
		t.Errorf("%d reused, projectors computed %d times", reused, warm.computed)
	}
}

// Many observations, little work, and a memory that returns something else.
func TestReuseIsRefused(t *testing.T) {
	m, p, plan := model(t, 10, 10, generate.Ising{Delta: 0.8, Seed: 2}, 4)
	rng := rand.New(rand.NewPCG(5, 6))
	under := func(n int, o truncated.Reuse) truncated.Answer {
		t.Helper()
		a, err := p.Under(t.Context(), plan, 4, 0, observe(rng, m, n), o)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	if a := under(12, truncated.Reuse{Projectors: anew, Flops: 1}); a.Truncation.Reused ||
		a.Truncation.Relearned != "12 observations, at most 4" {
		t.Errorf("many observations: %+v", a.Truncation)
	}
	if a := under(1, truncated.Reuse{Projectors: anew}); a.Truncation.Reused || a.Truncation.Relearned != "" {
		t.Errorf("little work: %+v", a.Truncation)
	}
	if a := under(0, truncated.Reuse{Projectors: anew, Flops: 1}); a.Truncation.Reused || a.Truncation.Relearned != "" {
		t.Errorf("no evidence: %+v", a.Truncation)
	}
	ev := factorgraph.Observe(map[int]int{40: 1})
	want, err := p.Under(t.Context(), plan, 4, 0, ev, truncated.Reuse{Accuracy: 1e-5, Projectors: anew, Flops: 1})
	if err != nil || !want.Truncation.Reused {
		t.Fatalf("%+v, %v", want.Truncation, err)
	}
	for name, change := range map[string]func(*trees.Projectors){
		"too few":     func(q *trees.Projectors) { q.Pairs = q.Pairs[:1] },
		"other shape": func(q *trees.Projectors) { q.Pairs[0].Rows++ },
	} {
		got, err := p.Under(t.Context(), plan, 4, 0, ev,
			truncated.Reuse{Accuracy: 1e-5, Flops: 1, Projectors: func(ctx context.Context, _ string,
				learn func(context.Context) (*trees.Projectors, error)) (*trees.Projectors, error) {
				q, err := learn(ctx)
				if err == nil {
					change(q)
				}
				return q, err
			}})
		if err != nil || got.Z != want.Z {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// observe draws n observations.
func observe(rng *rand.Rand, m *factorgraph.Model, n int) factorgraph.Evidence {
	var hard []factorgraph.Observation
	for _, v := range rng.Perm(len(m.Domains))[:n] {
		hard = append(hard, factorgraph.Observation{Var: v, Value: rng.IntN(m.Domains[v])})
	}
	ev, err := factorgraph.NewEvidence(hard, nil)
	if err != nil {
		panic(err)
	}
	return ev
}
