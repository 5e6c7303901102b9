package faults

// The jobs: small ones of many kinds, and the answers they must have.

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"

	"github.com/basetensor/basetensor/internal/models/generate"
	"github.com/basetensor/basetensor/lab/load"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/infer"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
	"github.com/basetensor/basetensor/pkg/wire"
)

// The kinds of jobs.
const (
	exactly    = "exact"      // one to four queries, marginals with some
	learned    = "learned"    // a decomposition is learned
	sliced     = "sliced"     // little memory: several tasks
	large      = "large"      // its model is above max_payload
	registered = "registered" // its model is named by digest
	patient    = "patient"    // a deadline that it meets
	late       = "late"       // a deadline that it does not meet
	dropped    = "dropped"    // cancelled under way
	wrong      = "wrong"      // a model with a variable that there is not
)

// shares says how often a kind is drawn.
var shares = []struct {
	kind  string
	share int
}{
	{exactly, 40},
	{learned, 16},
	{sliced, 12},
	{large, 6},
	{registered, 12},
	{patient, 6},
	{late, 2},
	{dropped, 3},
	{wrong, 3},
}

// tenants ask.
var tenants = []string{"ann", "ben", "cleo", "dan"}

// variants is the number of distinct models of a kind: their answers are computed once.
const variants = 24

// question is the request of one or several jobs.
type question struct {
	kind  string
	model *factorgraph.Model
	ask   wire.Request // without its job and tenant

	once sync.Once
	want []query.Result
	err  error
}

// questions are drawn from a seed.
type questions struct {
	seed uint64
	mu   sync.Mutex
	have map[string]*question
}

// draw returns the next job's question.
func (q *questions) draw(r *rand.Rand) (*question, error) {
	total := 0
	for _, s := range shares {
		total += s.share
	}
	at, kind := r.IntN(total), ""
	for _, s := range shares {
		if at -= s.share; at < 0 {
			kind = s.kind
			break
		}
	}
	number := r.IntN(variants)

	q.mu.Lock()
	defer q.mu.Unlock()
	key := fmt.Sprint(kind, number)
	if have := q.have[key]; have != nil {
		return have, nil
	}
	made, err := q.make(kind, uint64(number))
	if err != nil {
		return nil, fmt.Errorf("faults: a question of kind %s: %w", kind, err)
	}
	if q.have == nil {
		q.have = map[string]*question{}
	}
	q.have[key] = made
	return made, nil
}

// make makes a question.
func (q *questions) make(kind string, number uint64) (*question, error) {
	r := rand.New(rand.NewPCG(q.seed, number))
	rows, columns, queries := 2+r.IntN(3), 2+r.IntN(4), 1+r.IntN(4)
	strength := 0.5
	made := &question{kind: kind}
	s := &made.ask.Settings
	switch kind {
	case learned:
		rows, columns = 2, 2+r.IntN(3)
		*s = query.Settings{Method: query.MethodSymmetryCP, Objective: query.ObjectiveFrobenius, Components: 2, Budget: 1e8}
	case sliced:
		rows, columns, queries = 6, 6, 1+r.IntN(2)
		*s = query.Settings{Method: query.MethodExact, Memory: 1900}
	case patient:
		made.ask.DeadlineMS = 600_000
	case late:
		rows, columns, queries = 12, 12, 1
		*s = query.Settings{Method: query.MethodSymmetryCP, Objective: query.ObjectiveFrobenius, Components: 12, Budget: 1e8}
		made.ask.DeadlineMS = 200
	case dropped:
		*s = query.Settings{Method: query.MethodSymmetryCP, Objective: query.ObjectiveFrobenius, Components: 3, Budget: 1e8}
		rows, columns = 3, 4
	}

	var err error
	if kind == large {
		made.model = wideModel(r)
	} else if made.model, err = generate.Grid(rows, columns, generate.Ising{Delta: strength, Seed: r.Uint64()}); err != nil {
		return nil, err
	}
	if kind == wrong {
		made.ask.Text = fmt.Sprintf("MARKOV\n2\n2 2\n1\n2 0 %d\n4\n1 1 1\n", 2+number)
	} else if made.ask.Model, err = wire.NewModel(made.model); err != nil {
		return nil, err
	}
	for i := range queries {
		one := query.Query{Marginals: kind == exactly && i == 1}
		if i > 0 || r.IntN(2) == 0 {
			v := r.IntN(len(made.model.Domains))
			one.Evidence.Hard = []factorgraph.Observation{{Var: v, Value: r.IntN(2)}}
		}
		made.ask.Queries = append(made.ask.Queries, one)
	}
	return made, nil
}

// wideModel has a table of twice the message limit, and a tail.
func wideModel(r *rand.Rand) *factorgraph.Model {
	m := &factorgraph.Model{}
	const wide, all = 14, 18
	for range all {
		m.Domains = append(m.Domains, 2)
	}
	t := &tensor.Dense{Data: make([]float64, 1<<wide)}
	scope := make([]int, wide)
	for i := range scope {
		scope[i] = i
		t.Shape = append(t.Shape, 2)
	}
	for i := range t.Data {
		t.Data[i] = 0.1 + r.Float64()
	}
	m.Factors = append(m.Factors, factorgraph.Factor{Scope: scope, Table: t})
	for v := wide; v < all; v++ {
		m.Factors = append(m.Factors, factorgraph.Factor{
			Scope: []int{v - 1, v},
			Table: &tensor.Dense{Shape: []int{2, 2}, Data: []float64{1, r.Float64(), r.Float64(), 1}},
		})
	}
	return m
}

// expect computes the answer in this process.
func (q *question) expect(ctx context.Context) ([]query.Result, error) {
	q.once.Do(func() {
		q.want, q.err = infer.Run(ctx, infer.Request{
			Job: "expected", Model: q.model, Settings: q.ask.Settings, Queries: q.ask.Queries,
		})

	})
	return q.want, q.err
}

// judge describes the fault of an answer, or returns nothing.
func (q *question) judge(ctx context.Context, a *wire.Answer) string {
	said := a.Status
	if a.Error != nil {
		said = fmt.Sprintf("%s, %s: %s", a.Status, a.Error.Code, a.Error.Message)
	}
	switch q.kind {
	case wrong:
		if a.Status == wire.StatusError && a.Error.Code == fault.BadInput {
			return ""
		}
		return "bad input was answered with " + said
	case late:
		// Learning ends by the clock: then the number is checked only for being one.
		if a.Status == wire.StatusDeadline {
			return ""
		}
		if a.Status != wire.StatusOK || len(a.Results) != len(q.ask.Queries) {
			return "late, and answered with " + said
		}
		for _, r := range a.Results {
			if r.LogZ != nil && (math.IsNaN(*r.LogZ) || math.IsInf(*r.LogZ, 0)) || r.LogZ == nil && r.Error == nil {
				return "late, and answered without a number"
			}
		}
		return ""
	case dropped:
		if a.Status == wire.StatusCancelled {
			return ""
		}
	}
	if a.Status != wire.StatusOK {
		return "answered with " + said
	}
	want, err := q.expect(ctx)
	if err != nil {
		return "not computed here: " + err.Error()
	}
	got := append([]query.Result(nil), a.Results...)
	for i := range got {
		got[i].Job = "expected"
	}
	if !load.Same(got, want) {
		return fmt.Sprintf("other bits: %+v, not %+v", got, want)
	}
	return ""
}
