package gateway

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/pipeline"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go/jetstream"
)

// eventually asks until a condition holds.
func eventually[T any](s *service, path string, holds func(T) bool) (v T) {
	s.Helper()
	ctx, stop := context.WithTimeout(s.Context(), time.Minute)
	defer stop()
	for {
		if v = want[T](s, http.StatusOK, "GET", path, ""); holds(v) {
			return v
		}
		select {
		case <-ctx.Done():
			s.Fatal(ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func TestJobs(t *testing.T) {
	s := start(t, true, nil)
	for i, tenant := range []string{"a", "a", "b"} {
		want[Answer](s, 200, "POST", "/v1/infer", fmt.Sprintf(`{"job": "job-%d", "tenant": %q, "model": %s}`, i, tenant, rain))
	}
	late := want[Answer](s, 400, "POST", "/v1/infer", `{"job": "a.wrong", "model": `+rain+`, "deadline_ms": 100000000000}`)
	if late.Status != "error" || late.Error.Code != fault.BadInput || late.Error.Stage != query.StageReparam {
		t.Errorf("%+v", late)
	}
	all := eventually(s, "/v1/jobs", func(j Jobs) bool { return j.Total == 4 && j.States["ok"] == 3 })
	for i, line := range all.Jobs {
		if line.Submitted == 0 || line.Answered < line.Submitted || i > 0 && line.Submitted > all.Jobs[i-1].Submitted {
			t.Errorf("%+v", line)
		}
	}
	for ask, jobs := range map[string]int{"tenant=a": 3, "tenant=b": 1, "state=ok": 3, "state=error": 1, "state=pending": 0,
		"job=ob-2": 1, "tenant=a&state=ok": 2, "tenant=%3Cimg": 0} {
		if got := want[Jobs](s, 200, "GET", "/v1/jobs?"+ask, ""); got.Total != jobs || len(got.Jobs) != jobs {
			t.Errorf("%s: %+v, want %d", ask, got, jobs)
		}
	}
	seen := map[string]bool{}
	for after := ""; ; {
		page := want[Jobs](s, 200, "GET", "/v1/jobs?limit=1&after="+after, "")
		seen[page.Jobs[0].Job] = true
		if after = page.Next; after == "" {
			break
		}
	}
	if len(seen) != 4 {
		t.Errorf("pages have %v", seen)
	}
	for ask, words := range map[string]string{"limit=0": "limit", "state=done": "none of", "after=x": "after"} {
		s.refused(400, words, "GET", "/v1/jobs?"+ask, "")
	}
	s.refused(404, "unknown", "GET", "/v1/jobs/nobody", "")
	s.refused(404, "unknown", "DELETE", "/v1/jobs/nobody", "")
	s.refused(404, "unknown", "GET", "/v1/jobs/nobody/events", "")
	s.refused(400, "is not", "GET", "/v1/jobs/no%20body", "")

	// every stage is in the timeline, one after the other
	job := want[Job](s, 200, "GET", "/v1/jobs/job-0", "")
	if job.Status != "ok" || len(job.Results) != 1 || len(job.Timeline) != 4 || job.SoFar != nil {
		t.Fatalf("%+v", job)
	}
	end := 0.0
	for i, of := range []string{query.StageReparam, query.StageLearn, query.StageContract, query.StageAggregate} {
		span := job.Timeline[i]
		if span.Stage != of || span.Queued == nil || span.Ended == nil || *span.Queued < end-1e-6 || *span.Ended < *span.Queued {
			t.Fatalf("after %v ms: %+v", end, span)
		}
		if end = *span.Ended; span.Work <= 0 {
			t.Errorf("%+v", span)
		}
	}
	if done := want[Answer](s, 200, "DELETE", "/v1/jobs/job-0", ""); done.Status != "ok" {
		t.Errorf("a job with an answer was cancelled: %+v", done)
	}
}

// TestGlances: lists have model, method and answer, and leave out questions in passing.
func TestGlances(t *testing.T) {
	s := start(t, true, nil)
	put := want[Model](s, 200, "PUT", "/v1/models/rain", rain)
	want[Answer](s, 200, "POST", "/v1/infer", `{"job": "own", "evidence": {"wet": "yes"}, "model": `+rain+`}`)
	want[Answer](s, 200, "POST", "/v1/infer", `{"job": "named", "tenant": "a", "queries": [{}, {}], "model_name": "`+put.Digest+`"}`)
	want[Answer](s, 400, "POST", "/v1/infer", `{"job": "wrong", "deadline_ms": 100000000000, "model": `+rain+`}`)
	look := want[Answer](s, 200, "POST", "/v1/infer", `{"look": true, "model": `+rain+`}`)
	if !strings.HasPrefix(look.Job, "look-") {
		t.Errorf("a question in passing is job %s", look.Job)
	}
	s.refused(400, "not given beside it", "POST", "/v1/infer", `{"look": true, "job": "x", "model": `+rain+`}`)

	for range 2 { // read, and remembered
		list := eventually(s, "/v1/jobs?glance=true&looks=false", func(j Jobs) bool { return j.States["pending"] == 0 })
		got := map[string]*Glance{}
		for _, line := range list.Jobs {
			got[line.Job] = line.Glance
		}
		if len(got) != 3 || list.Total != 3 || got["own"] == nil || got["named"] == nil || got["wrong"] == nil {
			t.Fatalf("%+v", list)
		}
		if g := got["own"]; g.Model != "" || g.Variables != 2 || g.Queries != 1 || g.Method != query.MethodExact || !g.First.Exact ||
			math.Abs(*g.First.LogZ-math.Log(0.24)) > 1e-12 {
			t.Errorf("%+v, %+v", g, g.First)
		}
		if g := got["named"]; g.Model != "rain@1" || g.Queries != 2 || math.Abs(*g.First.LogZ) > 1e-12 {
			t.Errorf("%+v, %+v", g, g.First)
		}
		if g := got["wrong"]; g.Error == nil || g.Error.Code != fault.BadInput || g.First != nil && g.First.LogZ != nil {
			t.Errorf("%+v", g)
		}
	}
	if all := want[Jobs](s, 200, "GET", "/v1/jobs", ""); all.Total != 4 || all.Jobs[0].Glance != nil {
		t.Errorf("%+v", all)
	}
	s.refused(400, "100 jobs", "GET", "/v1/jobs?glance=true&limit=101", "")
	s.refused(400, "true or false", "GET", "/v1/jobs?looks=some", "")
}

// TestFormulas: lists, a job and graphs say that a model is a formula, however it came; others are none.
func TestFormulas(t *testing.T) {
	s := start(t, true, nil)
	const formula = "p cnf 3 2\n1 2 0\n-2 3 0\n" // 2 false: 1 true and any 3; 2 true: 3 true and any 1
	want[Model](s, 200, "PUT", "/v1/models/clauses?format=cnf", formula)
	want[Answer](s, 200, "POST", "/v1/infer?job=file", formula, "Content-Type", "text/plain")
	want[Answer](s, 200, "POST", "/v1/infer", `{"job": "named", "model_name": "clauses"}`)
	want[Answer](s, 200, "POST", "/v1/infer", `{"job": "rain", "model": `+rain+`}`)
	if _, err := s.gateway.ownClient.Submit(t.Context(), wire.Request{Job: "text", Text: formula, Queries: []query.Query{{}}}); err != nil {
		t.Fatal(err)
	}
	for range 2 { // read, and remembered
		list := eventually(s, "/v1/jobs?glance=true", func(j Jobs) bool { return j.States["ok"] == 4 })
		for _, line := range list.Jobs {
			isFormula := line.Job != "rain"
			if line.Glance.Formula != isFormula || isFormula && math.Abs(*line.Glance.First.LogZ-math.Log(4)) > 1e-12 {
				t.Errorf("%s: %+v, %+v", line.Job, line.Glance, line.Glance.First)
			}
			job := want[Job](s, 200, "GET", "/v1/jobs/"+line.Job+"?glance=true", "")
			model := want[JobModel](s, 200, "GET", "/v1/jobs/"+line.Job+"/model", "")
			if job.Glance == nil || job.Glance.Formula != isFormula || model.Formula != isFormula {
				t.Errorf("%s: %+v, its model: %v", line.Job, job.Glance, model.Formula)
			}
		}
	}
	if g := want[Graph](s, 200, "GET", "/v1/models/clauses?format=graph", ""); !g.Formula {
		t.Error("the registered formula is none")
	}
	if job := want[Job](s, 200, "GET", "/v1/jobs/file", ""); job.Glance != nil {
		t.Errorf("%+v", job.Glance)
	}
	s.refused(400, "true or false", "GET", "/v1/jobs/file?glance=some", "")
}

// TestNormalised: lists and graphs say of Bayesian networks whether the rows of their tables sum to 1.
func TestNormalised(t *testing.T) {
	s := start(t, true, nil)
	text := func(bayes, values string) string {
		return `{"basetensor_model": 1, "bayes": ` + bayes + `, "variables": [{"domain": 2}],
			"factors": [{"scope": [0], "dense": {"values": [` + values + `]}}]}`
	}
	for model, isNormalised := range map[string]bool{
		text("true", "0.3, 0.7"): true, text("true", "0.3, 0.6"): false, text("false", "0.3, 0.7"): false,
	} {
		put := want[Model](s, 201, "POST", "/v1/models", model)
		if g := want[Graph](s, 200, "GET", "/v1/models/"+put.Digest+"?format=graph", ""); g.Normalised != isNormalised {
			t.Errorf("%s: %+v", model, g)
		}
		for _, request := range []string{`{"model": ` + model + `}`, `{"model_name": "` + put.Digest + `"}`} {
			job := want[Answer](s, 200, "POST", "/v1/infer", request)
			if g := want[Job](s, 200, "GET", "/v1/jobs/"+job.Job+"?glance=true", "").Glance; g.Normalised != isNormalised {
				t.Errorf("%s: %+v", request, g)
			}
		}
	}
}

// TestEvents: of a job that nobody works on yet, until its answer.
func TestEvents(t *testing.T) {
	s := start(t, false, nil)
	want[Submitted](s, 202, "POST", "/v1/infer",
		`{"job": "followed", "async": true, "marginals": true, "evidence": {"wet": 1}, "model": `+rain+`}`)
	r := s.ask("GET", "/v1/jobs/followed/events", "")
	if kind := r.Header.Get("Content-Type"); r.StatusCode != 200 || kind != "text/event-stream" {
		t.Fatalf("%s, %s", r.Status, kind)
	}
	lines, last := bufio.NewScanner(r.Body), ""
	next := func() (event string, job Job) {
		for lines.Scan() {
			if name, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
				event = name
			}
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok && (event == "job" || event == "answer") {
				if err := json.Unmarshal([]byte(data), &job); err != nil {
					t.Fatal(err)
				}
				return event, job
			}
		}
		t.Fatalf("the stream ended after %q: %v", last, lines.Err())
		return "", job
	}
	if event, job := next(); event != "job" || job.Status != StatusPending || job.Job != "followed" {
		t.Errorf("%s %+v", event, job)
	}
	s.work()
	for {
		event, job := next()
		if last = event; event != "answer" {
			continue
		}
		if p := job.Results[0].Marginals[0].P[1]; job.Status != "ok" || !near(p, wetRain) {
			t.Errorf("%+v", job)
		}
		break
	}
	if lines.Scan() && strings.TrimSpace(lines.Text()) != "" || lines.Scan() {
		t.Errorf("after the answer comes %q", lines.Text())
	}
}

// TestCancel: a job that nobody works on ends when it is cancelled.
func TestCancel(t *testing.T) {
	s := start(t, false, nil)
	go s.stack.Run(context.WithoutCancel(t.Context()), pipeline.Config{}, pipeline.StageAggregate)
	want[Submitted](s, 202, "POST", "/v1/infer", `{"job": "c", "async": true, "model": `+rain+`}`)
	if a := want[Answer](s, 200, "DELETE", "/v1/jobs/c", ""); a.Status != "cancelled" || a.Error.Code != fault.Cancelled {
		t.Errorf("%+v", a)
	}
	if a := want[Answer](s, 409, "POST", "/v1/infer", `{"job": "c", "model": `+rain+`}`); a.Status != "cancelled" {
		t.Errorf("%+v", a)
	}
}

// TestPatience: a client that stops waiting learns where the answer will be.
func TestPatience(t *testing.T) {
	s := start(t, false, func(c *Config) { c.Limits.Patience = 50 * time.Millisecond })
	a := want[Answer](s, 504, "POST", "/v1/infer", `{"job": "slow", "model": `+rain+`}`)
	if a.Status != StatusPending || a.Error.Code != fault.Deadline || !strings.Contains(a.Error.Message, "/v1/jobs/slow") {
		t.Errorf("%+v", a)
	}
	// in nanoseconds the deadline is more than an int64 holds
	a = want[Answer](s, 504, "POST", "/v1/infer", `{"job": "late", "deadline_ms": 9223372036855, "model": `+rain+`}`)
	if !strings.Contains(a.Error.Message, "within 50ms") {
		t.Errorf("%+v", a.Error)
	}
}

// TestPartialsTogether: however many they are, no more than partialBytes of them are looked into.
func TestPartialsTogether(t *testing.T) {
	for n := 1; n <= mostPartials; n++ {
		if most := bytesPerPartial(n); n*most > partialBytes || n == 1 && most != partialBytes {
			t.Errorf("%d partials of %d bytes", n, most)
		}
	}
}

// TestEstimatesSoFar: a job that grows shows its estimates before there is an answer, and the answer has the same.
func TestEstimatesSoFar(t *testing.T) {
	s := start(t, false, nil)
	run := func(stages ...pipeline.Stage) {
		go s.stack.Run(context.WithoutCancel(t.Context()), pipeline.Config{}, stages...)
	}
	run(pipeline.StageReparam, pipeline.StageLearn, pipeline.StageContract)
	const side = 12
	var model strings.Builder
	fmt.Fprintf(&model, "MARKOV %d%s %d ", side*side, strings.Repeat(" 2", side*side), 2*side*(side-1))
	for i := range side * side {
		if i%side > 0 {
			fmt.Fprintf(&model, "2 %d %d ", i-1, i)
		}
		if i >= side {
			fmt.Fprintf(&model, "2 %d %d ", i-side, i)
		}
	}
	for i := range 2 * side * (side - 1) {
		a, b := 1+i*7919%13, 1+i*i%11
		fmt.Fprintf(&model, "4 %d %d %d %d ", a, b, b, a+i%2)
	}
	want[Submitted](s, 202, "POST", "/v1/infer",
		`{"job": "grows", "async": true, "settings": {"method": "regions"}, "text": "`+model.String()+`"}`)
	job := eventually(s, "/v1/jobs/grows", func(j Job) bool {
		return len(j.SoFar) == 1 && len(j.Timeline) >= 3 && len(j.Timeline) == 2+j.Timeline[2].Of
	})
	estimates := job.SoFar[0].Estimates
	if job.Status != StatusPending || len(estimates) < 2 || job.SoFar[0].LogZ == nil || job.SoFar[0].Ended != "" ||
		strings.Contains(strings.Join(job.SoFar[0].Warnings, "\n"), "deadline") {
		t.Fatalf("%+v", job)
	}
	run(pipeline.StageAggregate)
	job = eventually(s, "/v1/jobs/grows", func(j Job) bool { return j.Status == "ok" })
	if z := job.Results[0].LogZ; z == nil || math.Abs(*z-*estimates[len(estimates)-1].LogZ) > 1e-6 {
		t.Errorf("ln Z is %v, the last of %d estimates was %v", z, len(estimates), *estimates[len(estimates)-1].LogZ)
	}
}

// TestTenThousandJobs: lists are whole, and quick.
func TestTenThousandJobs(t *testing.T) {
	s := start(t, false, nil)
	nc, err := s.stack.Connect("publisher")
	if err != nil {
		t.Fatal(err)
	}
	const n = 10_000
	js, err := jetstream.New(nc, jetstream.WithPublishAsyncMaxPending(n)) // a busy server keeps nobody waiting
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		a := &wire.Answer{
			Job: fmt.Sprintf("t%d.job-%d", i%7, i), Digest: wire.Digest(nil), Status: wire.StatusError,
			Error: &query.ErrorInfo{Code: fault.BadInput, Message: "none", Stage: query.StageReparam},
		}
		b, err := wire.Encode(a)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := js.PublishAsync(wire.AnswerSubject(a.Job), b); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-js.PublishAsyncComplete():
	case <-t.Context().Done():
		t.Fatal(t.Context().Err())
	}

	seen, began := map[string]bool{}, time.Now()
	for after := ""; ; {
		page := want[Jobs](s, 200, "GET", "/v1/jobs?limit=3000&after="+after, "")
		if page.Total != n {
			t.Fatalf("%d jobs, want %d", page.Total, n)
		}
		for _, j := range page.Jobs {
			seen[j.Job] = true
		}
		if after = page.Next; after == "" {
			break
		}
	}
	t.Logf("%d jobs in %s", len(seen), time.Since(began))
	if len(seen) != n {
		t.Errorf("pages have %d jobs, want %d", len(seen), n)
	}
	began = time.Now()
	if page := want[Jobs](s, 200, "GET", "/v1/jobs?tenant=t3&limit=10", ""); page.Total != 1429 || len(page.Jobs) != 10 {
		t.Errorf("of a tenant: %d", page.Total)
	}
	t.Logf("those of a tenant in %s", time.Since(began))
}
