package infer_test

// Memory of a model: never another model's, and never a bit of difference.

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/answer/stage"
	"github.com/basetensor/basetensor/internal/jobs/cache"
	"github.com/basetensor/basetensor/internal/jobs/cached"
	"github.com/basetensor/basetensor/internal/methods/proposal"
	"github.com/basetensor/basetensor/internal/models/generate"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// memory is learn-worker's memo, entries as bytes, with the requested keys and the number of hits.
type memory struct {
	proposal.Memo
	keys map[string]bool
	hits int
}

func newMemory(t *testing.T) *memory {
	t.Helper()
	store, err := cache.Open("",
		cache.Options{Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	return &memory{Memo: &cached.Memo{Cache: store}, keys: map[string]bool{}}
}

func (m *memory) Do(
	ctx context.Context, key string, compute func(context.Context) (*btn.Plan, error),
) (*btn.Plan, bool, error) {
	m.keys[key] = true
	d, hit, err := m.Memo.Do(ctx, key, compute)
	if hit {
		m.hits++
	}
	return d, hit, err
}

// remembering is a method on a model that it learns something of.
type remembering struct {
	name     string
	model    *factorgraph.Model
	settings query.Settings
}

func rememberingCases(t *testing.T) []remembering {
	t.Helper()
	grid := func(n int, o generate.Ising) *factorgraph.Model {
		m, err := generate.Grid(n, n, o)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	return []remembering{
		{"exact, an order", grid(6, generate.Ising{Delta: 1, Seed: 1}),
			query.Settings{Method: query.MethodExact}},
		{"exact, a tree", grid(15, generate.Ising{Delta: 1, Seed: 1}),
			query.Settings{Method: query.MethodExact}},
		{
			"truncated", grid(10, generate.Ising{Delta: 1, Attractive: true, Seed: 5}),
			query.Settings{Method: query.MethodTruncated, Memory: 1 << 18, Budget: 1e8},
		},
		{
			"truncated, in slices", grid(9, generate.Ising{Delta: 1, Seed: 5}),
			query.Settings{Method: query.MethodTruncated, Memory: 1 << 15, Budget: 1e9},
		},
		{"regions, one fixed point", grid(8, generate.Ising{Delta: 0.5, Seed: 2}),
			query.Settings{Method: query.MethodRegions, Budget: 3e6}},
		{"regions, phases", grid(8, generate.Ising{Delta: 1.5, Attractive: true, Seed: 1}),
			query.Settings{Method: query.MethodRegions, Budget: 3e6}},
		{
			"symmetry-cp", grid(3, generate.Ising{Delta: 0.5, Seed: 1}),
			query.Settings{Method: query.MethodSymmetryCP, Objective: query.ObjectiveFrobenius, Components: 2},
		},
	}
}

// questions are queries that leave different parts of a model of n variables:
// the same variables at other values too.
func questions(n int) []query.Query {
	many := map[int]int{}
	for v := 0; v < n; v += 3 {
		many[v] = v % 2
	}
	soft := factorgraph.Evidence{Soft: []factorgraph.Likelihood{{Var: 2,
		Weights: []float64{0.25, 1.5}}}}
	return []query.Query{
		{}, {Evidence: factorgraph.Observe(map[int]int{n / 2: 1})},
		{Evidence: factorgraph.Observe(map[int]int{n / 2: 0})},
		{Evidence: factorgraph.Observe(many)}, {Evidence: soft},
	}
}

func answers(t *testing.T, c remembering, queries []query.Query, memo proposal.Memo) []query.Result {
	t.Helper()
	results, err := stage.Run(t.Context(),
		stage.Request{Job: "t", Model: c.model, Queries: queries, Settings: c.settings}, memo)
	if err != nil {
		t.Fatal(err)
	}
	for i := range results {
		if results[i].Error != nil {
			t.Fatalf("%s: %+v", c.name, results[i].Error)
		}
	}
	return results
}

// text is all of a result but its cache.
func text(t *testing.T, r query.Result) string {
	t.Helper()
	r.Cache, r.Query = "", 0
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Answers have the same bits after any earlier queries, in any order, with a memo and without one.
func TestAnswersDoNotDependOnWhatIsRemembered(t *testing.T) {
	for _, c := range rememberingCases(t) {
		t.Run(c.name, func(t *testing.T) {
			queries := questions(len(c.model.Domains))
			want := make([]string, len(queries))
			for i, q := range queries {
				r := answers(t, c, []query.Query{q}, nil)[0]
				if want[i] = text(t, r); r.Cache != "off" {
					t.Errorf("query %d: cache %q without one", i, r.Cache)
				}
			}
			check := func(how string, i int, r query.Result, cached string) {
				t.Helper()
				if got := text(t, r); got != want[i] {
					t.Errorf("query %d, %s:\n%s\nwant\n%s", i, how, got, want[i])
				}
				if cached != "" && r.Cache != cached {
					t.Errorf("query %d, %s: cache %q, want %q", i, how, r.Cache, cached)
				}
			}
			backwards, forwards := newMemory(t), newMemory(t)
			for k := range queries {
				i := len(queries) - 1 - k
				check("the last ones first", i, answers(t, c, queries[i:i+1], backwards)[0],
					map[bool]string{true: "miss"}[k == 0])
				check("each after the ones before", k, answers(t, c, queries[k:k+1], forwards)[0],
					map[bool]string{true: "miss"}[k == 0])
			}
			for i := range queries {
				check("asked again", i, answers(t, c, queries[i:i+1], forwards)[0], "hit")
			}
			if len(backwards.keys) != len(forwards.keys) {
				t.Errorf("%d keys one way, %d the other", len(backwards.keys), len(forwards.keys))
			}
			turned := slices.Clone(queries)
			slices.Reverse(turned)
			for k, r := range answers(t, c, turned, newMemory(t)) {
				check("in one job", len(queries)-1-k, r, "")
			}
		})
	}
}

// A model that differs in the last bit of one entry, of a factor of any order, never hits.
func TestAnotherEntryNeverHits(t *testing.T) {
	for _, c := range rememberingCases(t) {
		t.Run(c.name, func(t *testing.T) {
			known := newMemory(t)
			ask := []query.Query{{}, questions(len(c.model.Domains))[1]}
			answers(t, c, ask, known)
			if known.hits > 0 {
				t.Fatalf("%d hits before anything was known", known.hits)
			}
			changed := map[int]int{} // by order
			for f := range c.model.Factors {
				table, order := c.model.Factors[f].Table.(*tensor.Dense), len(c.model.Factors[f].Scope)
				if changed[order]++; changed[order] > 2 {
					continue
				}
				other := *c.model
				other.Factors = slices.Clone(c.model.Factors)
				data := slices.Clone(table.Data)
				at := f % len(data)
				data[at] = math.Nextafter(data[at], 0)
				other.Factors[f].Table = &tensor.Dense{Shape: table.Shape, Data: data}
				asked := c
				asked.model = &other
				for i, r := range answers(t, asked, ask, known) {
					if r.Cache != "miss" {
						t.Errorf("factor %d over %v, query %d: cache %q",
							f, c.model.Factors[f].Scope, i, r.Cache)
					}
				}
				if known.hits > 0 {
					t.Fatalf("factor %d over %v: %d hits", f, c.model.Factors[f].Scope, known.hits)
				}
			}
			if changed[1] == 0 || changed[2] == 0 {
				t.Fatalf("factors by order: %v", changed)
			}
		})
	}
}

// Answers state learning for the evidence alone, hit or miss; and nothing where the model's own decompositions serve.
func TestRelearnedUnderEvidenceSaysSo(t *testing.T) {
	grid, err := generate.Grid(20, 20, generate.Ising{Delta: 1, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	complete, err := generate.Complete(26, generate.Ising{Delta: 0.5, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		model    *factorgraph.Model
		settings query.Settings
		few      string // the decomposition after one observation
		many     string
	}{
		{complete, query.Settings{Method: query.MethodTruncated, Bond: 48}, "",
			"plans of truncated legs: the model's takes"},
		{grid, query.Settings{Method: query.MethodRegions, Budget: 1e7}, "regions",
			"regions"},
		{grid, query.Settings{Method: query.MethodExact}, "contraction tree", ""},
	} {
		memo := newMemory(t)
		model := remembering{string(c.settings.Method), c.model, c.settings}
		most := map[int]int{} // the first three fifths of the variables
		for v := range 3 * len(c.model.Domains) / 5 {
			most[v] = v % 2
		}
		for _, q := range []struct {
			evidence map[int]int
			want     string
			name     string
		}{{nil, "", "none"}, {map[int]int{7: 1}, c.few, "few"}, {most, c.many, "many"}} {
			for _, asked := range []string{"first", "again"} {
				net, err := stage.Reparameterise(context.Background(), model.model, model.settings)
				if err != nil {
					t.Fatal(err)
				}
				assignments, err := stage.Learn(t.Context(), net,
					[]query.Query{{Evidence: factorgraph.Observe(q.evidence)}}, model.settings,
					memo, nil)
				if err != nil {
					t.Fatal(err)
				}
				a := assignments[0]
				if a.Error != nil {
					t.Fatalf("%s, %s: %+v", model.name, q.name, a.Error)
				}
				if !strings.HasPrefix(a.Relearned, q.want) || q.want == "" && a.Relearned != "" {
					t.Errorf("%s, evidence %s, %s: %q, want %q",
						model.name, q.name, asked, a.Relearned, q.want)
				}
				if text := stage.Describe(assignments); text != "" && a.Relearned != "" &&
					!strings.Contains(text, "learned for its evidence: "+a.Relearned) {
					t.Errorf("%s, evidence %s: described as %q", model.name, q.name, text)
				}
				if asked == "again" && a.Cache != "hit" {
					t.Errorf("%s, evidence %s, %s: cache %q", model.name, q.name, asked, a.Cache)
				}
			}
		}
	}
}
