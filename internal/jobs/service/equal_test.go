package service_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/answer/stage"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/infer"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/uai"
	"github.com/basetensor/basetensor/pkg/wire"
)

var workerCounts = []int{1, 2, 4}

// start starts one worker of each other stage and so many contract-workers, each with its own connection.
func (r *rig) start(contract int) {
	for _, s := range []string{query.StageReparam, query.StageLearn, query.StageAggregate} {
		r.run(calm, s)
	}
	for range contract {
		r.run(calm, query.StageContract)
	}
}

// The pipeline gives the answers of the four functions in a row, bit for bit.
func TestAnswersEqualInfer(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name     string
		model    *factorgraph.Model
		settings query.Settings
		evidence []factorgraph.Evidence // of each query; those at odd places ask for marginals
	}{
		{"exact", grid(t, 4, 4, 1), query.Settings{Method: query.MethodExact}, []factorgraph.Evidence{{}, observe(0, 1), observe(1)}},
		{
			"symmetry-cp", grid(t, 3, 3, 2), query.Settings{Method: query.MethodSymmetryCP, Objective: "frobenius", Components: 3, Seed: 7},
			[]factorgraph.Evidence{observe(1), {}},
		},
		{"orthogonal", grid(t, 2, 3, 3), query.Settings{
			Method: query.MethodSymmetryCP, Objective: query.ObjectiveFrobenius, Components: 2, Maps: query.MapOrthogonal,
		}, nil},
		{"messages", grid(t, 2, 3, 3), query.Settings{
			Method: query.MethodSymmetryCP, Objective: query.ObjectiveFrobenius, Components: 2, Maps: query.MapBP,
		}, nil},
		{"variables", grid(t, 2, 3, 4), query.Settings{Cores: query.CoresAreVariables}, nil},
		{"impossible", &factorgraph.Model{Domains: []int{2}, Factors: []factorgraph.Factor{}}, query.Settings{},
			[]factorgraph.Evidence{{Soft: []factorgraph.Likelihood{{Var: 0, Weights: []float64{0, 0}}}}}},
		{"over budget", grid(t, 6, 6, 5), query.Settings{Method: query.MethodExact, Memory: 64}, nil},
	}
	for _, contract := range workerCounts {
		r := newRig(t, embedded.Options{NoRedis: true}, calm)
		r.start(contract)
		for i, c := range cases {
			w, p := request(t, fmt.Sprintf("job-%d", i), c.model, c.settings, c.evidence...)
			for q := range w.Queries {
				w.Queries[q].Marginals, p.Queries[q].Marginals = q%2 == 1, q%2 == 1
				if q > 0 {
					w.Queries[q].Over, p.Queries[q].Over = q, q // over the query before
				}
				if q == 2 { // and a joint marginal
					w.Queries[q].Joint, p.Queries[q].Joint = []int{5, 1}, []int{5, 1}
				}
			}
			want, wantErr := infer.Run(r.ctx, p)
			r.submit(w)
			a := r.wait(w.Job)
			if wantErr != nil {
				if a.Status != wire.StatusError || a.Error.Message != wantErr.Error() {
					t.Errorf("%s, %d contract-workers: %s %v, want the error %v", c.name, contract, a.Status, a.Error, wantErr)
				}
				continue
			}
			if a.Status != wire.StatusOK {
				t.Fatalf("%s: %s: %v", c.name, a.Status, a.Error)
			}
			if got, want := plain(t, a.Results), plain(t, want); got != want {
				t.Errorf("%s, %d contract-workers: got\n%s\nwant\n%s", c.name, contract, got, want)
			}
			if len(a.Results) > 1 && (a.Results[0].Marginals != nil || a.Results[1].Marginals == nil) {
				t.Errorf("%s: marginals of the wrong query: %v", c.name, a.Results)
			}
			if len(a.Results) > 1 && !a.Results[1].Zero && a.Results[1].Ratio == nil {
				t.Errorf("%s: no ratio: %v", c.name, a.Results)
			}
			if len(a.Results) > 2 && (a.Results[1].Joint != nil || a.Results[2].Joint == nil || len(a.Results[2].Joint.P) != 4) {
				t.Errorf("%s: no joint marginal: %v", c.name, a.Results)
			}
			for _, stage := range allStages() {
				if _, ok := a.Results[0].TimingsMS[string(stage)]; !ok {
					t.Errorf("%s: no timing of %s in %v", c.name, stage, a.Results[0].TimingsMS)
				}
			}
		}
	}
}

func TestUAITextAndEvidenceText(t *testing.T) {
	r := newRig(t, embedded.Options{NoRedis: true}, calm)
	r.start(1)
	var text, evid strings.Builder
	m := grid(t, 3, 3, 9)
	r.must(uai.Write(&text, m))
	r.must(uai.WriteEvidence(&evid, observe(1, 0)))
	back, err := uai.Read(strings.NewReader(text.String()), uai.Limits{})
	r.must(err)
	w := wire.Request{Job: "text", Text: text.String(), Queries: []query.Query{{Evid: evid.String(), EvidenceFile: "grid.uai.evid"}, {}}}
	p := infer.Request{Job: "text", Model: back, Queries: []query.Query{{Evidence: observe(1, 0), EvidenceFile: "grid.uai.evid"}, {}}}
	want, err := infer.Run(r.ctx, p)
	r.must(err)
	r.submit(w)
	if got, want := plain(t, r.wait("text").Results), plain(t, want); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// tasks stores the blobs of a request and returns a task per unit: more chunks than its cost would give it.
func (r *rig) tasks(p infer.Request) (tasks []*message.Task, want []query.Result) {
	r.t.Helper()
	net, err := stage.Reparameterise(context.Background(), p.Model, p.Settings)
	r.must(err)
	assignments, err := stage.Learn(r.ctx, net, p.Queries, p.Settings, nil, nil)
	r.must(err)
	netBytes, err := message.EncodeNetwork(net)
	r.must(err)
	jobBytes, err := message.EncodeAssignments(assignments)
	r.must(err)
	r.publish(message.BlobSubject("", wire.Digest(netBytes)), netBytes)
	r.publish(message.BlobSubject("", wire.Digest(jobBytes)), jobBytes)
	var units []btn.Unit
	chunks, _ := stage.Chunks(net, assignments)
	for _, c := range chunks {
		units = append(units, c...)
	}
	for k, u := range units {
		tasks = append(tasks, &message.Task{
			Job:         p.Job,
			Digest:      wire.Digest([]byte(p.Job)),
			NetworkBlob: wire.Digest(netBytes),
			JobBlob:     wire.Digest(jobBytes),
			K:           k,
			N:           len(units),
			Units:       []btn.Unit{u},
			Demands:     stage.Demands(net, p.Queries),
			Memory:      query.DefaultMemory,
		})
	}
	want, err = infer.Run(r.ctx, p)
	r.must(err)
	return tasks, want
}

// Chunks are contracted and arrive in any order and more than once; the sum has the same bits.
func TestShuffledAndDuplicatedDeliveries(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for _, contract := range workerCounts {
		r := newRig(t, embedded.Options{NoRedis: true}, calm)
		_, p := request(t, "shuffled", grid(t, 2, 3, 11), query.Settings{Method: query.MethodSymmetryCP, Objective: "frobenius", Components: 8},
			factorgraph.Evidence{}, observe(1), observe(0, 1))
		tasks, want := r.tasks(p)
		if len(tasks) != 24 {
			t.Fatalf("%d tasks, want 24", len(tasks))
		}
		send := func(tasks []*message.Task) {
			for _, k := range rng.Perm(len(tasks)) {
				m := tasks[k]
				b, err := wire.Encode(m)
				r.must(err)
				// Refused where the same task still waits; accepted, and contracted again, where it does not.
				r.js.Publish(r.ctx, message.TaskSubject(3, m.Job, m.N, m.K), b)
			}
		}
		for range 2 { // two aggregators: neither sees all partials
			r.run(calm, query.StageAggregate)
		}
		half := len(tasks) / 2
		send(tasks[:half])
		for range contract {
			r.run(calm, query.StageContract)
		}
		r.eventually("the first half is contracted", func() bool { return r.messages("BTN_PARTIAL") == uint64(half) })
		send(tasks)
		send(tasks)
		// No request is stored: to a client the job is unknown until it is answered.
		r.eventually("there is an answer", func() bool { return r.messages("BTN_ANSWER") > 0 })
		got := plain(t, r.wait("shuffled").Results)
		if want := plain(t, want); got != want {
			t.Fatalf("%d contract-workers: got\n%s\nwant\n%s", contract, got, want)
		}
		send(tasks)
		r.eventually("late duplicates are disposed of", func() bool { return r.messages("BTN_TASK") == 0 })
		if n := r.messages("BTN_ANSWER"); n != 1 {
			t.Errorf("%d answers", n)
		}
	}
}

// Chunks as learn-worker cuts them: queries too heavy to share one.
func TestSeveralChunks(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("contracts for a second")
	}
	r := newRig(t, embedded.Options{NoRedis: true}, calm)
	r.start(2)
	m := heavy(t)
	w, p := request(t, "dear", m, query.Settings{Method: query.MethodExact}, make([]factorgraph.Evidence, 60)...)
	want, err := infer.Run(r.ctx, p)
	r.must(err)
	r.submit(w)
	a := r.wait("dear")
	if got, want := plain(t, a.Results), plain(t, want); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if n := r.messages("BTN_PARTIAL"); n < 2 {
		t.Errorf("%d chunks, this test needs several: %v", n, *a.Results[0].Plan)
	}
}
