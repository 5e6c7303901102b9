package golden

// Answers: the results of infer.Run for a request, and the decompositions that it would have
// stored.

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"sync"
	"testing"

	"github.com/basetensor/basetensor/internal/answer/stage"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// answers are the goldens of requests.
type answers struct {
	results, decompositions *goldens
}

func newAnswers() *answers { return &answers{newGoldens(), newGoldens()} }

// ask answers a request. Settings bound work by counts alone and the context has no deadline: no
// clock takes part.
func (a *answers) ask(t *testing.T, name string, m *factorgraph.Model, queries []query.Query, s query.Settings) {
	t.Helper()
	memo := &recorder{}
	results, err := stage.Run(context.Background(), stage.Request{
		Job:      "golden",
		Model:    m,
		Queries:  queries,
		Settings: s,
	}, memo)
	if err != nil {
		a.results.add(name+" request", "code="+string(fault.CodeOf(err)))
		return
	}
	for q := range results {
		asked := fmt.Sprintf("%s q%d", name, q)
		fields, told := fieldsOfResult(t, &results[q])
		a.results.add(asked, fields...)
		a.results.tell(asked, told)
	}
	for k, d := range memo.made {
		stored, err := message.EncodePlan(d)
		if err != nil {
			t.Errorf("%s: decomposition %d: %v", name, k, err)
		}
		number, text := fmt.Sprintf("%s d%d", name, k), canonical(d)
		a.decompositions.add(number, "what="+summary(d), "digest="+digest([]byte(text)), "stored="+digest(stored))
		a.decompositions.tell(number, text)
	}
}

// askAgain repeats a request under another setting that must change nothing.
func (a *answers) askAgain(
	t *testing.T, name string, m *factorgraph.Model, queries []query.Query, s query.Settings,
) {
	t.Helper()
	again := newAnswers()
	again.ask(t, name, m, queries, s)
	for _, pair := range [][2]*goldens{{a.results, again.results}, {a.decompositions, again.decompositions}} {
		for _, d := range differences(pair[0].only(pair[1]), pair[1]) {
			t.Errorf("maps %s: %s", s.Maps, d.text)
		}
	}
}

// recorder is a memo that keeps its plans in sequence, and forgets nothing within a request.
type recorder struct {
	mu    sync.Mutex
	known map[string]*btn.Plan
	made  []*btn.Plan
}

// Do is part of proposal.Memo.
func (r *recorder) Do(
	ctx context.Context, key string, compute func(context.Context) (*btn.Plan, error),
) (*btn.Plan, bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if d, ok := r.known[key]; ok {
		return d, true, nil
	}
	r.mu.Unlock() // compute may ask the memo
	d, err := compute(ctx)
	r.mu.Lock()
	if err != nil {
		return nil, false, err
	}
	if r.known == nil {
		r.known = map[string]*btn.Plan{}
	}
	r.known[key] = d
	r.made = append(r.made, d)
	return d, false, nil
}

// fieldsOfResult are ln Z and the ratio in full, digests of long lists, of the other numbers (rest)
// and of the texts for people. told is the text behind the last two.
func fieldsOfResult(t *testing.T, r *query.Result) (fields []string, told string) {
	t.Helper()
	if r.Status != query.StatusOK {
		return []string{"code=" + string(r.Error.Code), "stage=" + r.Error.Stage}, r.Error.Message
	}
	fields = []string{fmt.Sprintf("exact=%t", r.Exact)}
	if r.Zero {
		fields = append(fields, "zero=true")
	}
	ratio := r.Ratio
	if ratio == nil {
		ratio = &query.Ratio{}
	}
	for _, f := range []struct {
		name  string
		value *float64
	}{{"lnz", r.LogZ}, {"ratio", ratio.Ln}, {"unsure", r.Uncertainty}} {
		if f.value != nil {
			fields = append(fields, f.name+"="+bits(*f.value))
		}
	}
	if r.Marginals != nil {
		fields = append(fields, "mar="+many(query.Probabilities(r.Marginals)...))
	}
	if r.Joint != nil {
		fields = append(fields, "joint="+many(r.Joint.P))
	}
	said, rest := query.Result{Warnings: r.Warnings, Relearned: r.Relearned, Plan: r.Plan, Run: r.Run}, *r
	rest.Job, rest.Query, rest.Cache, rest.EvidenceFile, rest.TimingsMS = "", 0, "", nil, nil
	rest.LogZ, rest.Log10Z, rest.Ratio, rest.Uncertainty, rest.Marginals, rest.Joint = nil, nil, nil, nil, nil, nil
	rest.Warnings, rest.Relearned, rest.Plan, rest.Run = nil, "", nil, nil
	numbers, words := asJSON(t, rest), asJSON(t, said)
	told = fmt.Sprintf("%s; %s", short(numbers), short(words))
	return append(fields, "rest="+digest(numbers), "said="+digest(words)), told
}

// short leaves out fields that are null, empty or 0.
func short(text []byte) string {
	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil {
		return err.Error()
	}
	maps.DeleteFunc(fields, func(_ string, v any) bool { return v == nil || v == "" || v == false || v == 0.0 })
	text, _ = json.Marshal(fields)
	return string(text)
}

func asJSON(t *testing.T, x any) []byte {
	t.Helper()
	text, err := json.Marshal(x)
	if err != nil {
		t.Error(err)
	}
	return text
}
