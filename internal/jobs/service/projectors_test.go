package service_test

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/alicebob/miniredis/v2"

	"github.com/basetensor/basetensor/internal/answer/stage"
	"github.com/basetensor/basetensor/internal/engine/trees"
	"github.com/basetensor/basetensor/internal/families/truncated"
	"github.com/basetensor/basetensor/internal/jobs/cache"
	"github.com/basetensor/basetensor/internal/jobs/cached"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
)

func TestProjectorsAreRemembered(t *testing.T) {
	server := miniredis.RunT(t)
	url := "redis://" + server.Addr()
	open := func() problem.Memo {
		c, err := cache.Open(url, cache.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return &cached.Parts{Cache: c}
	}
	want := &trees.Projectors{
		Bond: 1,
		Pairs: []trees.Projector{
			{Rows: 2, Cols: 1, Left: []float64{1, 2}, Right: []float64{3, 4}, Residual: 0.5},
		},
	}
	computed := 0
	compute := func(context.Context) (problem.Memorable, error) {
		computed++
		return want, nil
	}
	decode := func(_ context.Context, b []byte) (problem.Memorable, error) {
		p := new(trees.Projectors)
		return p, p.UnmarshalBinary(b)
	}
	most := int64(1 << 20)
	ask := func(p problem.Memo, key string, times int) {
		t.Helper()
		entry := problem.Entry{Kind: "projectors", Key: key, Most: most, Decode: decode}
		if got, err := p.Do(t.Context(), entry, compute); err != nil ||
			!reflect.DeepEqual(got, want) || computed != times {
			t.Errorf("%s: %+v, %v, computed %d times, not %d", key, got, err, computed, times)
		}
	}
	first := open()
	ask(first, "a", 1)
	ask(first, "a", 1)  // from the process
	ask(open(), "a", 1) // from Redis
	most = 8
	small := open()
	ask(small, "b", 2)
	ask(small, "b", 2)
	ask(open(), "b", 3) // too large for Redis
	most = 1 << 20
	for _, key := range server.Keys() {
		if err := server.Set(key, "something else"); err != nil {
			t.Fatal(err)
		}
	}
	ask(open(), "a", 4) // a lie
	server.Close()
	ask(open(), "a", 5)
	down := open()
	ask(down, "c", 6)
	ask(down, "c", 6)
}

// along is a plan with one tree for the model and bonds 8 and 16, as a search would make it, in no
// time.
func along(t *testing.T, m *factorgraph.Model, s query.Settings) *btn.Plan {
	t.Helper()
	net, err := stage.Reparameterise(context.Background(), m, s)
	if err != nil {
		t.Fatal(err)
	}
	p, err := truncated.Prepare(context.Background(), net, true)
	if err != nil {
		t.Fatal(err)
	}
	tree, cost, err := trees.Search(
		t.Context(), p.Hypergraph(), trees.SearchOptions{Bond: 16, Seed: 1, Moves: 1 << 22},
	)
	if err != nil || cost.Projectors == 0 {
		t.Fatalf("%+v, %v", cost, err)
	}
	t.Logf("%+v", cost)
	var wires, merges []int
	for _, w := range tree.Wires {
		wires = append(wires, w[:]...)
	}
	for _, w := range tree.Merges {
		merges = append(merges, w[:]...)
	}
	along := &truncated.TruncatedPlan{
		Family:   query.FamilyTree,
		Shape:    p.Shape(),
		Tree:     [][]int{{tree.Tables}, tree.Hosts, tree.Copies, wires, merges},
		Masked:   true,
		Accuracy: s.Accuracy,
	}
	plan := &btn.Plan{Method: query.MethodTruncated, Accuracy: s.Accuracy}
	for _, bond := range []int{8, 16} {
		plan.Estimates = append(plan.Estimates, btn.Estimate{
			Rule:     btn.Linear,
			Track:    "tree 0",
			Level:    math.Log2(float64(bond)),
			Slices:   1,
			Lossless: true,
			Parts:    []btn.Part{&truncated.Truncated{Along: along, Bond: bond}},
			Cost:     query.Cost{Flops: 1e8, Bytes: 1e6},
		})
	}
	return plan
}

// planned is a proposal.Memo that holds along's plan, and records the key it was asked for.
type planned struct {
	plan *btn.Plan
	key  string
}

func (p *planned) Do(
	_ context.Context, key string, _ func(context.Context) (*btn.Plan, error),
) (*btn.Plan, bool, error) {
	p.key = key
	return p.plan, true, nil
}

// Queries with other evidence: the plan is a hit, estimates say that projectors were reused or why
// not, and the answers have the bits of plain calls, with a cold cache, a warm one, in another
// order, and alone.
func TestProjectorsReusedThroughThePipeline(t *testing.T) {
	t.Parallel()
	r, remembering := newRig(t, embedded.Options{NoRedis: true}, calm), remembering(t)
	m := grid(t, 16, 20, 1)
	s := query.Settings{Method: query.MethodTruncated, Accuracy: 1e-7, Budget: 1e9} // searched where there is no cache
	few, two, many := observe(1), factorgraph.Observe(map[int]int{100: 1, 200: 0}), observe(
		1, 0, 0, 1, 1, 0,
	)
	known := &planned{plan: along(t, m, s)}
	_, p := request(t, "reuse-0", m, s, few, two, many)
	want, err := stage.Run(r.ctx, stage.Request(p), known)
	r.must(err)
	reused := 0
	for q, result := range want {
		if result.Status != "ok" || len(result.Estimates) == 0 {
			t.Fatalf("query %d: %+v", q, result)
		}
		for _, e := range result.Estimates {
			if e.Reused {
				reused++
			}
			if q == 2 && e.Relearned != "6 observations, at most 4" || !e.Reused &&
				e.Relearned == "" {
				t.Errorf("query %d: %+v", q, e)
			}
		}
	}
	if reused == 0 {
		t.Errorf("nothing was reused: %+v", want[0].Estimates)
	}
	store, err := cache.Open(remembering.Redis, cache.Options{Timeout: guard}) // stored it must be
	r.must(err)
	defer store.Close()
	_, _, err = (&cached.Memo{Cache: store}).Do(
		r.ctx, known.key, func(context.Context) (*btn.Plan, error) { return known.plan, nil },
	)
	r.must(err)
	r.run(remembering, allStages()...)
	for i, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1}} {
		var ev []factorgraph.Evidence
		for _, q := range order {
			ev = append(ev, []factorgraph.Evidence{few, two, many}[q])
		}
		// A busy machine may not hear from the cache in time; the plan is then searched, and is
		// another one.
		var a *wire.Answer
		var w wire.Request
		for attempt := 0; ; attempt++ {
			w, _ = request(t, fmt.Sprintf("reuse-%d-%d", i, attempt), m, s, ev...)
			r.submit(w)
			a = r.wait(w.Job)
			if !slices.ContainsFunc(
				a.Results, func(x query.Result) bool { return x.Cache != "hit" },
			) {
				break
			}
			if attempt == 4 {
				t.Fatalf("%s: the cache is never heard of: %+v", w.Job, a.Results)
			}
		}
		for k, q := range order {
			got, expected := a.Results[k], want[q]
			got.Job, got.Query = expected.Job, expected.Query
			if g, e := plain(t, []query.Result{got}), plain(t, []query.Result{expected}); g != e {
				t.Errorf("%s, query %d: got\n%s\nwant\n%s", w.Job, k, g, e)
			}
		}
	}
}
