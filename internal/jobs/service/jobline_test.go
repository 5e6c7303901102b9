package service_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/basetensor/basetensor/internal/jobs/hop"
	"github.com/basetensor/basetensor/internal/jobs/metrics"
	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
)

// journal is a log of JSON lines.
type journal struct {
	mu  sync.Mutex
	out bytes.Buffer
}

func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.out.Write(b)
}

// lines returns the lines with a message.
func (j *journal) lines(t *testing.T, text string) (all []map[string]any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for line := range strings.Lines(j.out.String()) {
		values := map[string]any{}
		if err := json.Unmarshal([]byte(line), &values); err != nil {
			t.Fatal(err)
		}
		if values["msg"] == text {
			all = append(all, values)
		}
	}
	return all
}

// The log has a line a job at level info, with its facts, and the answer has the model and the question in its headers.
func TestALineAJob(t *testing.T) {
	r := newRig(t, embedded.Options{}, calm)
	log := &journal{}
	c := calm
	c.Logger = slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelInfo}))
	stop, _ := r.run(c)
	text := "MARKOV\n1\n2\n1\n1 0\n2\n1 3\n"
	digest, err := r.client.PutModel(r.ctx, &wire.Graph{Text: text})
	r.must(err)
	for _, m := range []wire.Request{
		{Job: "named", Tenant: "acme", ModelDigest: digest, Queries: []query.Query{{Marginals: true, MPE: true}}},
		{Job: "wrong", Tenant: "globex", Text: "MARKOV\n1\n2\n1\n1 0\n2\n1\n", Queries: []query.Query{{}}},
	} {
		r.submit(m)
		r.wait(m.Job)
	}
	stop()
	lines := map[any]map[string]any{}
	for _, line := range log.lines(t, "job") {
		if lines[line["job"]] != nil {
			t.Errorf("two lines of job %v", line["job"])
		}
		lines[line["job"]] = line
	}
	for job, want := range map[string]map[string]string{
		"named": {"tenant": "acme", "model": digest, "question": "marginals, mpe", "outcome": "ok", "method": "exact"},
		"wrong": {"tenant": "globex", "model": "file of 21 bytes", "question": "ln Z", "outcome": "bad_input", "method": "none"},
	} {
		line := lines[job]
		for name, value := range want {
			if line[name] != value {
				t.Errorf("job %s: %s is %v, want %s", job, name, line[name], value)
			}
		}
		if ms, _ := line["ms"].(float64); line["ms"] == nil || ms < 0 || line["level"] != "INFO" {
			t.Errorf("job %s: %v", job, line)
		}
		answer, err := r.js.Stream(r.ctx, bus.StreamAnswer)
		r.must(err)
		stored, err := answer.GetLastMsgForSubject(r.ctx, wire.AnswerSubject(job))
		r.must(err)
		if about := message.AboutIn(stored.Header); about.Model != want["model"] || about.Question != want["question"] {
			t.Errorf("job %s: its answer says %+v", job, about)
		}
	}
	if len(lines) != 2 {
		t.Errorf("lines of %d jobs", len(lines))
	}
}

// usageOf reads the series of usage from metrics.
func usageOf(t *testing.T, m *metrics.Metrics) map[string]float64 {
	t.Helper()
	families, err := m.Registry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, f := range families {
		for _, s := range f.GetMetric() {
			for _, l := range s.GetLabel() {
				if l.GetName() == "tenant" {
					all[f.GetName()+" "+l.GetValue()] = s.GetCounter().GetValue()
				}
			}
		}
	}
	return all
}

// Jobs, flops and bytes are counted by tenant.
func TestUsageOfTenants(t *testing.T) {
	r := newRig(t, embedded.Options{}, calm)
	c := calm
	c.Metrics = metrics.New()
	stop, _ := r.run(c)
	text := "MARKOV\n1\n2\n1\n1 0\n2\n1 3\n"
	for i, tenant := range []string{"acme", "acme", "globex", ""} {
		m := wire.Request{Job: fmt.Sprint("job-", i), Tenant: tenant, Text: text, Queries: []query.Query{{}}}
		r.submit(m)
		r.wait(m.Job)
	}
	stop()
	have := usageOf(t, c.Metrics)
	for tenant, jobs := range map[string]float64{"acme": 2, "globex": 1, "(none)": 1} {
		if have["basetensor_tenant_jobs_total "+tenant] != jobs {
			t.Errorf("%s: %v jobs, want %v", tenant, have["basetensor_tenant_jobs_total "+tenant], jobs)
		}
		if bytes := have["basetensor_tenant_bytes_total "+tenant]; bytes < jobs*float64(2*len(text)) {
			t.Errorf("%s: %v bytes", tenant, bytes)
		}
		if have["basetensor_tenant_flops_total "+tenant] <= 0 {
			t.Errorf("%s: no flops", tenant)
		}
	}
}

// However many tenants there are, the series stay few, and nothing is lost from their sum.
func TestUsageIsBounded(t *testing.T) {
	m := metrics.New()
	for i := range 5000 {
		m.Answered(hop.Ended{Tenant: fmt.Sprint("tenant-", i), Outcome: hop.OutcomeOK})
	}
	have, sum := usageOf(t, m), 0.0
	for name, value := range have {
		if strings.HasPrefix(name, "basetensor_tenant_jobs_total ") {
			sum += value
		}
	}
	others := have["basetensor_tenant_jobs_total (other)"]
	if others != 4800 || sum != 5000 || len(have) > 500 {
		t.Errorf("%d series, %v jobs, %v under (other)", len(have), sum, others)
	}
}
