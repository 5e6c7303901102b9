package load

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/models/generate"
	"github.com/basetensor/basetensor/pkg/client"
	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/infer"
	"github.com/basetensor/basetensor/pkg/pipeline"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// target answers in this process, with faults where asked for.
type target struct {
	t      *testing.T
	submit func(number int) error         // nil: takes all
	delay  func(number int) time.Duration // nil: none
	spoil  func(number int, a *wire.Answer) *wire.Answer

	mu      sync.Mutex
	f       func(string, *wire.Answer, error)
	answers map[string]*wire.Answer
	models  map[string]*wire.Model
	under   int
	most    int
	work    sync.WaitGroup
}

func (g *target) Results(
	_ context.Context, wanted func(string) bool, f func(string, *wire.Answer, error),
) (func(), error) {
	if wanted("somebody-else") || !wanted("load-0") {
		g.t.Error("a run wants other jobs than its own")
	}
	g.f, g.answers = f, map[string]*wire.Answer{}
	return g.work.Wait, nil
}

func (g *target) PutModel(_ context.Context, m *wire.Graph) (string, error) {
	_, digest, err := wire.EncodeGraph(m)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.models == nil {
		g.models = map[string]*wire.Model{}
	}
	if g.models[digest] != nil {
		g.t.Error("a model is registered twice")
	}
	g.models[digest] = m.Model
	return digest, err
}

func (g *target) Answer(_ context.Context, job string) (*wire.Answer, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if a := g.answers[job]; a != nil {
		return a, nil
	}
	return nil, client.ErrNotFound
}

func (g *target) Submit(ctx context.Context, m wire.Request) (string, error) {
	var n int
	fmt.Sscanf(m.Job, "load-%d", &n)
	if g.submit != nil {
		if err := g.submit(n); err != nil {
			return "", err
		}
	}
	g.mu.Lock()
	g.under++
	g.most = max(g.most, g.under)
	g.mu.Unlock()
	g.work.Go(func() {
		if g.delay != nil {
			time.Sleep(g.delay(n))
		}
		g.mu.Lock()
		body := m.Model
		if m.ModelDigest != "" {
			body = g.models[m.ModelDigest]
		}
		g.mu.Unlock()
		graph, err := body.Decode()
		if err != nil {
			g.t.Error(err)
			return
		}
		r := infer.Request{Job: m.Job, Model: graph, Settings: m.Settings}
		for _, q := range m.Queries {
			r.Queries = append(r.Queries, query.Query{Evidence: q.Evidence, Marginals: q.Marginals})
		}
		results, err := infer.Run(context.WithoutCancel(ctx), r)
		if err != nil {
			g.t.Error(err)
			return
		}
		for i := range results {
			results[i].TimingsMS = map[string]float64{query.StageContract: 0.25}
		}
		a := &wire.Answer{Job: m.Job, Status: wire.StatusOK, Results: results}
		g.mu.Lock()
		defer g.mu.Unlock()
		g.under--
		if g.spoil != nil {
			a = g.spoil(n, a)
		}
		if a != nil {
			g.f(m.Job, a, nil)
		}
	})
	return "digest", nil
}

func small(t *testing.T) Config {
	t.Helper()
	m, err := generate.Grid(2, 2, generate.Ising{Delta: 0.5})
	if err != nil {
		t.Fatal(err)
	}
	return Config{
		Models:   []Model{{Name: "grid", Graph: m, Weight: 1}},
		Duration: 300 * time.Millisecond,
		WarmUp:   50 * time.Millisecond,
		Drain:    200 * time.Millisecond,
		Batch:    2,
		Verify:   -1,
	}
}

func TestOpenLoopCountsEverything(t *testing.T) {
	c := small(t)
	c.Rate = 400
	lost := 0
	g := &target{t: t,
		submit: func(n int) error {
			switch n % 10 {
			case 3:
				return fault.New(fault.Infrastructure, "%w", client.ErrFull)
			case 4:
				return fault.New(fault.Infrastructure, "no connection")
			}
			return nil
		},
	}
	g.spoil = func(n int, a *wire.Answer) *wire.Answer {
		switch n % 10 {
		case 5: // a wrong last bit
			z := math.Nextafter(*a.Results[1].LogZ, 9)
			a.Results[1].LogZ = &z
		case 6: // never answered
			lost++
			return nil
		case 7: // the republished answer is lost
			g.answers[a.Job] = a
			return nil
		case 8:
			a.Status, a.Results, a.Error = wire.StatusDeadline, nil, &query.ErrorInfo{Code: fault.Deadline}
		case 9:
			a.Results[0].Error = &query.ErrorInfo{Code: fault.OverBudget}
		}
		return a
	}
	o, err := Run(t.Context(), c, g)
	if err != nil {
		t.Fatal(err)
	}
	var want [10]int
	wrong := 0
	for n, rec := range o.records {
		if n%10 == 5 || n%10 == 8 || n%10 == 9 {
			wrong++ // 8 and 9 differ from this process's results too
		}
		if rec.at >= c.WarmUp {
			want[n%10]++
		}
	}
	r := o.Report()
	if r.Refused != want[3] || r.Failed != want[4] || r.Missing != want[6] || lost < want[6] || lost == 0 {
		t.Errorf("refused %d, failed %d, missing %d, want %v", r.Refused, r.Failed, r.Missing, want)
	}
	if r.Offered != r.Accepted+r.Refused+r.Failed || r.Answered != r.Accepted-r.Missing || r.Offered < 60 {
		t.Errorf("%+v", r)
	}
	if r.Errors["deadline"] != want[8] || r.Errors["over_budget"] != want[9] ||
		r.Errors["infrastructure"] != want[3]+want[4] {
		t.Errorf("errors %v, want %v", r.Errors, want)
	}
	v, err := o.Verify(t.Context())
	if err != nil || v.Wrong != wrong || v.Jobs < r.Answered || v.Queries != 2*v.Jobs || v.First != "load-5" {
		t.Errorf("%+v %v, want %d wrong", v, err, wrong)
	}
	if r.Stages[2].MS.P50 > 0.25 || r.Stages[2].MS.Max != 0.25 || r.Overhead.Mean > r.Latency.Mean {
		t.Errorf("stages %+v, overhead %+v", r.Stages, r.Overhead)
	}
}

// A publisher that hangs for 100 ms delays the arrivals of that time, and the delay counts: a generator that waits with
// it would report one slow job.
func TestNoCoordinatedOmission(t *testing.T) {
	c := small(t)
	c.Rate, c.WarmUp, c.Verify = 500, 0, 0
	var once sync.Once
	var gate sync.Mutex
	g := &target{t: t, submit: func(n int) error {
		gate.Lock()
		defer gate.Unlock()
		if n >= 50 {
			once.Do(func() { time.Sleep(100 * time.Millisecond) })
		}
		return nil
	}}
	o, err := Run(t.Context(), c, g)
	if err != nil {
		t.Fatal(err)
	}
	slow := 0
	for _, rec := range o.records {
		if rec.latency() > 40 {
			slow++
		}
	}
	if slow < 20 { // 60 ms of 500 jobs/s, less the fluctuations of Poisson and the machine
		t.Errorf("%d jobs waited for the hanging publisher", slow)
	}
}

func TestClosedLoopKeepsSoManyUnderWay(t *testing.T) {
	c := small(t)
	c.Outstanding, c.Verify = 5, 8
	var g *target
	var o *Outcome
	r := new(Report)
	for ; r.Answered < 50; c.Duration *= 2 { // a busy machine takes longer
		var err error
		g = &target{t: t, delay: func(int) time.Duration { return time.Millisecond }}
		if o, err = Run(t.Context(), c, g); err != nil {
			t.Fatal(err)
		}
		r = o.Report()
	}
	if g.most != 5 || r.Missing != 0 {
		t.Errorf("%d under way, %d answered, %d missing", g.most, r.Answered, r.Missing)
	}
	v, err := o.Verify(t.Context())
	if err != nil || v.Jobs < 8 || v.Jobs >= 16 || v.Wrong != 0 {
		t.Errorf("%+v %v", v, err)
	}
	last := -1
	for n, rec := range o.records {
		if rec.kept {
			last = n
		}
	}
	if last < len(o.records)/2 {
		t.Errorf("the last kept job is %d of %d", last, len(o.records))
	}
}

func TestConfigIsChecked(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"no model": func(c *Config) { c.Models = nil },
		"exactly one": func(c *Config) {
			c.Registered, c.Variants = true, 3
			c.Outstanding = 3
		},
		"variants":        func(c *Config) { c.Variants = -1 },
		"queries per job": func(c *Config) { c.Batch = -1 },
		"more than":       func(c *Config) { c.Rate = 1e9 },
		"prefix":          func(c *Config) { c.Prefix = "a.b" },
		"tenant x":        func(c *Config) { c.Tenants[0].Weight = 0 },
		"model a has":     func(c *Config) { c.Models[0].Weight = math.NaN() },
		"zipf":            func(c *Config) { c.Zipf = -1 },
		"duration -1s":    func(c *Config) { c.Duration = -time.Second },
	} {
		c := config()
		change(&c)
		if _, err := Run(t.Context(), c, nil); err == nil || fault.CodeOf(err) != fault.BadInput ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

func TestQuantiles(t *testing.T) {
	var v []float64
	for i := 200; i >= 1; i-- {
		v = append(v, float64(i))
	}
	if q := quantiles(v); q != (Quantiles{200, 100.5, 100, 180, 198, 200}) {
		t.Errorf("%+v", q)
	}
	if q := quantiles([]float64{3}); q != (Quantiles{1, 3, 3, 3, 3, 3}) {
		t.Errorf("%+v", q)
	}
	if q := quantiles(nil); q != (Quantiles{}) {
		t.Errorf("%+v", q)
	}
}

func TestOnTheEmbeddedStack(t *testing.T) {
	s, err := embedded.Start(t.Context(), embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	go s.Run(context.WithoutCancel(t.Context()), pipeline.Config{})
	nc, err := s.Connect("load")
	if err != nil {
		t.Fatal(err)
	}
	remote, err := client.New(nc, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := small(t)
	c.Rate, c.Drain, c.Marginals, c.Variants, c.Tenants = 50, 20*time.Second, true, 3, []Tenant{{"a", 1}, {"b", 2}}
	o, err := Run(t.Context(), c, remote)
	if err != nil {
		t.Fatal(err)
	}
	r := o.Report()
	if r.Verified, err = o.Verify(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r.Answered == 0 || r.Missing+r.Failed+r.Refused+len(r.Errors)+r.Verified.Wrong > 0 ||
		r.Verified.Jobs < r.Answered || r.Hits+r.Misses != 2*r.Answered {
		t.Errorf("%+v", r)
	}
	for _, stage := range r.Stages {
		if stage.MS.Max <= 0 {
			t.Errorf("no time in %s", stage.Name)
		}
	}
	var text, html bytes.Buffer
	if err := r.WriteText(&text); err != nil || !strings.Contains(text.String(), ": 0 wrong") ||
		!strings.Contains(text.String(), "tenant b") {
		t.Errorf("%v\n%s", err, text.String())
	}
	if err := r.WriteHTML(&html); err != nil || strings.Count(html.String(), "<svg") != 3 ||
		strings.Contains(html.String(), "href=\"http") {
		t.Errorf("%v\n%s", err, html.String())
	}
	if b, err := json.Marshal(r); err != nil || !bytes.Contains(b, []byte(`"missing":0`)) {
		t.Errorf("%s %v", b, err)
	}
}
