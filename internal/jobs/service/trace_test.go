package service_test

import (
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/jobs/metrics"
	"github.com/basetensor/basetensor/internal/queue/telemetry"
	"github.com/basetensor/basetensor/internal/queue/tracing"
	"github.com/basetensor/basetensor/internal/queue/tracing/export"
	"github.com/basetensor/basetensor/internal/testing/testserver"
	"github.com/basetensor/basetensor/pkg/client"
	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
)

// received lists the spans that a receiver has, by their ids.
func received(o *testserver.OTLP) map[string]*otlp.Span {
	spans := map[string]*otlp.Span{}
	all, _ := o.Received()
	for _, r := range all {
		for _, scope := range r.ScopeSpans {
			for _, span := range scope.Spans {
				spans[string(span.SpanId)] = span
			}
		}
	}
	return spans
}

// said is an attribute of a span as text; "" for none.
func attribute(attributes []*common.KeyValue, key string) string {
	for _, a := range attributes {
		if a.Key != key {
			continue
		}
		switch v := a.Value.Value.(type) {
		case *common.AnyValue_StringValue:
			return v.StringValue
		default:
			return strings.TrimPrefix(strings.SplitN(a.Value.String(), ":", 2)[1], " ")
		}
	}
	return ""
}

// TestTraces: a job of several tasks is one trace, which a receiver of OpenTelemetry gets: spans of
// waiting and of work, their parents, and the tasks that the sum was made from.
func TestTraces(t *testing.T) {
	receiver := testserver.NewOTLP(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.URL)
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=test")
	provider, flush, err := export.Traces(t.Context(), "basetensor-test", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if provider == nil {
		t.Fatal("an endpoint is named, and there is no provider")
	}

	const tenant, job = "secretive-tenant", "traced"
	r := newRig(t, embedded.Options{}, calm)
	c := calm
	c.Tracing = provider
	c.Metrics = metrics.New()
	c.ChunkFlops = 1e3
	stop, _ := r.run(c, allStages()...)
	m, _ := request(t, job, grid(t, 6, 6, 1),
		query.Settings{Method: query.MethodSymmetryCP, Objective: query.ObjectiveFrobenius},
		observe(), observe(1), observe(0, 1), observe(1, 1, 0))
	m.Tenant = tenant

	ctx, end := tracing.Root(t.Context(), provider, "test")
	_, err = r.client.Submit(ctx, m)
	r.must(err)
	answer, err := r.client.Wait(ctx, job)
	r.must(err)
	end(nil)
	stop()
	flush()

	spans := received(receiver)
	byName := map[string][]*otlp.Span{}
	var root *otlp.Span
	for _, s := range spans {
		byName[s.Name] = append(byName[s.Name], s)
		if s.Name == "test" {
			root = s
		}
	}
	if root == nil {
		t.Fatalf("no root among %v", slices.Collect(maps.Keys(byName)))
	}
	tasks := len(byName["work "+query.StageContract])
	if tasks < 3 {
		t.Fatalf("%d tasks: the model does not serve", tasks)
	}

	// One trace, and every span but the root is the child of the one that it follows from.
	work := func(stage string) string { return "work " + string(stage) }
	wait := func(stage string) string { return "wait " + string(stage) }
	parents := map[string][]string{
		"submit":                   {"test"},
		"wait answer":              {"test"},
		wait(query.StageReparam):   {"submit"},
		work(query.StageReparam):   {"submit"},
		wait(query.StageLearn):     {work(query.StageReparam)},
		work(query.StageLearn):     {work(query.StageReparam)},
		"cache":                    {work(query.StageReparam), work(query.StageLearn), work(query.StageContract)},
		wait(query.StageContract):  {work(query.StageLearn)},
		work(query.StageContract):  {work(query.StageLearn)},
		wait(query.StageAggregate): {work(query.StageContract)},
		work(query.StageAggregate): {work(query.StageContract)},
		"sum":                      {work(query.StageAggregate), work(query.StageContract)},
		"answer":                   {"sum"},
	}
	for _, s := range spans {
		if string(s.TraceId) != string(root.TraceId) {
			t.Errorf("%s is in another trace", s.Name)
		}
		if s == root {
			continue
		}
		parent := spans[string(s.ParentSpanId)]
		if parent == nil || !slices.Contains(parents[s.Name], parent.Name) {
			t.Errorf("%s is below %v, not below one of %v", s.Name, parent.GetName(), parents[s.Name])
		}
		if s.EndTimeUnixNano < s.StartTimeUnixNano {
			t.Errorf("%s ends before it begins", s.Name)
		}
	}
	for name, want := range map[string]int{
		"submit": 1, "wait answer": 1, "sum": 1, "answer": 1,
		wait(query.StageReparam): 1, work(query.StageReparam): 1,
		wait(query.StageLearn): 1, work(query.StageLearn): 1,
		wait(query.StageContract): tasks, wait(query.StageAggregate): len(byName[work(query.StageAggregate)]),
	} {
		if len(byName[name]) != want {
			t.Errorf("%d spans %q, want %d", len(byName[name]), name, want)
		}
	}
	// An answer is made of what is stored, and that of a busy machine before the last partials are delivered.
	if n := len(byName[work(query.StageAggregate)]); n < 1 || n > tasks {
		t.Errorf("%d partials of %d tasks were worked on", n, tasks)
	}
	if len(byName["cache"]) == 0 {
		t.Error("no look into the cache")
	}

	// The sum says from which tasks it was made.
	linked := map[string]bool{}
	for _, sum := range byName["sum"] {
		for _, l := range sum.Links {
			if of := spans[string(l.SpanId)]; of == nil || of.Name != work(query.StageContract) {
				t.Errorf("the sum is linked to %v", of.GetName())
			}
			linked[string(l.SpanId)] = true
		}
	}
	if len(linked) != tasks {
		t.Errorf("the sum is linked to %d tasks of %d", len(linked), tasks)
	}

	// The attributes of spans.
	chunks := map[string]bool{}
	for _, s := range spans {
		stage, is := strings.CutPrefix(s.Name, "work ")
		if !is {
			continue
		}
		for key, want := range map[string]string{
			"basetensor.job": job, "basetensor.lane": fmt.Sprintf("%d", wire.Lane(tenant)), "basetensor.stage": stage,
			"basetensor.attempt": "1",
		} {
			if got := attribute(s.Attributes, key); got != want {
				t.Errorf("%s: %s is %q, want %q", s.Name, key, got, want)
			}
		}
		if outcome := attribute(s.Attributes, "basetensor.outcome"); outcome != "done" && outcome != "held" {
			t.Errorf("%s: outcome %q", s.Name, outcome)
		}
		if stage == query.StageContract {
			chunks[attribute(s.Attributes, "basetensor.chunk")] = true
		}
	}
	if len(chunks) != tasks {
		t.Errorf("chunks %v of %d tasks", chunks, tasks)
	}
	for name, want := range map[string]string{
		work(query.StageLearn): string(query.MethodSymmetryCP), "answer": string(answer.Results[0].Method),
	} {
		if got := attribute(byName[name][0].Attributes, "basetensor.method"); got != want {
			t.Errorf("%s: method %q, want %q", name, got, want)
		}
	}

	// Where they come from, and nothing of whom.
	all, wrong := receiver.Received()
	if len(wrong) > 0 {
		t.Errorf("requests %v", wrong)
	}
	for _, one := range all {
		about := one.Resource.Attributes
		if attribute(about, "service.name") != "basetensor-test" || attribute(about, "deployment.environment") != "test" {
			t.Errorf("the resource is %v", about)
		}
		if strings.Contains(one.String(), tenant) {
			t.Error("a span names the tenant")
		}
	}

	// Histograms show the trace as an example.
	text := exposition(t, c.Metrics)
	for _, name := range []string{"basetensor_job_seconds", "basetensor_wait_seconds", "basetensor_work_seconds"} {
		if !exemplar(text, name, fmt.Sprintf("%x", root.TraceId)) {
			t.Errorf("%s has no example of the trace", name)
		}
	}
}

// exposition returns the metrics as a scraper of OpenMetrics gets them.
func exposition(t *testing.T, m *metrics.Metrics) string {
	t.Helper()
	server, err := telemetry.Serve("127.0.0.1:0", m.Registry(), m.Ready)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	ask, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	ask.Header.Set("Accept", "application/openmetrics-text; version=1.0.0")
	reply, err := http.DefaultClient.Do(ask)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	defer http.DefaultClient.CloseIdleConnections()
	body, err := io.ReadAll(reply.Body)
	if err != nil || !strings.HasPrefix(reply.Header.Get("Content-Type"), "application/openmetrics-text") {
		t.Fatalf("%v, %s", err, reply.Header.Get("Content-Type"))
	}
	return string(body)
}

// exemplar reports whether a bucket of a histogram has the trace for an example.
func exemplar(text, name, trace string) bool {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, name+"_bucket{") && strings.Contains(line, `# {trace_id="`+trace+`"}`) {
			return true
		}
	}
	return false
}

// TestTracesPassOn: without a provider a job's trace goes through all stages to its answer as the
// client named it.
func TestTracesPassOn(t *testing.T) {
	t.Parallel()
	r := newRig(t, embedded.Options{}, calm)
	r.run(calm, query.StageReparam, query.StageLearn)
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	m, _ := request(t, "named", grid(t, 3, 3, 1), query.Settings{})
	_, err := r.client.Submit(client.WithTrace(r.ctx, map[string][]string{"traceparent": {parent}}), m)
	r.must(err)
	r.eventually("the job has its task", func() bool { return r.messages("BTN_TASK") == 1 })
	s, err := r.js.Stream(r.ctx, "BTN_TASK")
	r.must(err)
	task, err := s.GetMsg(r.ctx, 1)
	r.must(err)
	if got := task.Header.Get("traceparent"); got != parent {
		t.Errorf("the task's trace is %q, want %q", got, parent)
	}
}
