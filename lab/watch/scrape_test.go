//go:build nightly

package watch

import (
	"io"
	"log/slog"
	"maps"
	"math"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/answer/stage"
	"github.com/basetensor/basetensor/internal/jobs/metrics"
	"github.com/basetensor/basetensor/internal/jobs/service"
	"github.com/basetensor/basetensor/internal/jobs/workers"
	"github.com/basetensor/basetensor/internal/models/generate"
	"github.com/basetensor/basetensor/internal/queue/connect"
	"github.com/basetensor/basetensor/internal/queue/telemetry"
	"github.com/basetensor/basetensor/pkg/client"
	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/promql/parser"
)

// scrape reads /metrics of a worker as Prometheus does, and returns its samples.
func scrape(t *testing.T, url string) map[string]float64 {
	t.Helper()
	reply, err := http.Get(url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	body, err := io.ReadAll(reply.Body)
	if err != nil {
		t.Fatal(err)
	}
	read, err := textparse.New(body, reply.Header.Get("Content-Type"), labels.NewSymbolTable(), textparse.ParserOptions{})
	if err != nil {
		t.Fatal(err)
	}
	samples := map[string]float64{}
	for {
		switch entry, err := read.Next(); {
		case err == io.EOF:
			return samples
		case err != nil:
			t.Fatal(err)
		case entry == textparse.EntrySeries:
			_, _, value := read.Series()
			var of labels.Labels
			read.Labels(&of)
			b := labels.NewBuilder(of)
			b.Set("job", "basetensor")
			b.Set("instance", strings.TrimPrefix(url, "http://"))
			samples[b.Labels().String()] = value
		}
	}
}

// scraped runs the four stages as four workers would, each with metrics and a server of its own, has them answer jobs, and
// returns two scrapes of all with jobs in between.
func scraped(t *testing.T) (before, after map[string]float64) {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	stack, err := embedded.Start(t.Context(), embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stack.Close() })
	var urls []string
	for _, name := range stage.Names() {
		m := metrics.New(name)
		server, err := telemetry.Serve("127.0.0.1:0", m.Registry(), m.Ready)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(server.Close)
		urls = append(urls, server.URL)
		nc, err := stack.Connect(name)
		if err != nil {
			t.Fatal(err)
		}
		go service.Run(t.Context(), service.Config{
			NC: nc, RedisClient: connect.RedisWithin(stack.DialRedis), RedisTimeout: connect.OwnRedisTimeout, Metrics: m, Logger: quiet,
			Settings: workers.Settings{ChunkFlops: 1e4},
		}, name)
	}
	c, err := stack.Client()
	if err != nil {
		t.Fatal(err)
	}
	all := func() map[string]float64 {
		samples := map[string]float64{}
		for _, url := range urls {
			maps.Copy(samples, scrape(t, url))
		}
		return samples
	}

	ask(t, c, "first")
	// The aggregator has looked at everything once.
	for before = all(); !has(before, "basetensor_backlog_seconds") || !has(before, "basetensor_oldest_job_seconds") ||
		!has(before, "basetensor_stream_fill_ratio"); before = all() {
		time.Sleep(50 * time.Millisecond)
	}
	ask(t, c, "second")
	return before, all()
}

// ask has a job of every method answered.
func ask(t *testing.T, c *client.Client, name string) {
	t.Helper()
	model, err := generate.Grid(6, 6, generate.Ising{Delta: 0.5, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, method := range []query.Method{query.MethodExact, query.MethodSymmetryCP, query.MethodTruncated, query.MethodRegions} {
		request, err := wire.NewRequest(model)
		if err != nil {
			t.Fatal(err)
		}
		request.Job = name + "-" + string(method)
		request.Settings = query.Settings{Method: method, NoExact: method != query.MethodExact}
		if _, err := c.Submit(t.Context(), request); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Wait(t.Context(), request.Job); err != nil {
			t.Fatal(err)
		}
	}
}

// has reports whether a scrape has a metric.
func has(samples map[string]float64, metric string) bool {
	return slices.Contains(names(samples), metric)
}

// names lists the metrics of a scrape.
func names(samples map[string]float64) []string {
	set := map[string]bool{}
	for series := range samples {
		of, err := parser.NewParser(parser.Options{}).ParseMetric(series)
		if err == nil {
			set[of.Get("__name__")] = true
		}
	}
	return slices.Sorted(maps.Keys(set))
}

// asked lists the metrics that a query reads.
func asked(t *testing.T, expression string) (metrics []string) {
	t.Helper()
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(expression)
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
		if s, is := n.(*parser.VectorSelector); is {
			metrics = append(metrics, s.Name)
		}
		return nil
	})
	return metrics
}

// rare are panels that show nothing while all is well.
var rare = []string{"annotations"}

// TestAgainstWorkers: every metric that rules and board name is one that workers show, or a rule makes; every panel has
// something to show after jobs of all methods; no alert fires.
func TestAgainstWorkers(t *testing.T) {
	before, after := scraped(t)
	p := newPrometheus(t)
	known := names(after)
	for _, g := range p.groups {
		for _, r := range g.Rules() {
			for _, metric := range asked(t, r.Query().String()) {
				if !slices.Contains(known, metric) {
					t.Errorf("%s reads %s, which nobody shows", r.Name(), metric)
				}
			}
			if strings.HasPrefix(r.Name(), "basetensor:") {
				known = append(known, r.Name())
			}
		}
	}
	known = append(known, "ALERTS")

	// The two scrapes are taken as a minute old and as current; between them the counters grow evenly.
	now := time.Unix(1_800_000_000, 0)
	const scrapes = 5
	for i := range scrapes {
		share := float64(i) / (scrapes - 1)
		samples := map[string]float64{}
		for series, last := range after {
			samples[series] = last
			if first, there := before[series]; there && !math.IsInf(last, 0) && !math.IsInf(first, 0) {
				samples[series] = first + share*(last-first)
			}
		}
		at := now.Add(time.Duration((share - 1) * float64(time.Minute)))
		p.add(at, samples)
		if firing := p.evaluate(at); len(firing) > 0 {
			t.Errorf("%v fires", firing)
		}
	}
	for panel, queries := range boardQueries(t) {
		shown := 0
		for _, q := range queries {
			for _, metric := range asked(t, q) {
				if !slices.Contains(known, metric) {
					t.Errorf("panel %q reads %s, which nobody shows", panel, metric)
				}
			}
			ask, err := p.engine.NewInstantQuery(t.Context(), p.store, nil, q, now)
			if err != nil {
				t.Errorf("panel %q: %v", panel, err)
				continue
			}
			result := ask.Exec(t.Context())
			if result.Err != nil {
				t.Errorf("panel %q: %v", panel, result.Err)
			}
			if vector, err := result.Vector(); err == nil {
				shown += len(vector)
			}
			ask.Close()
		}
		if shown == 0 && !slices.Contains(rare, panel) {
			t.Errorf("panel %q shows nothing", panel)
		}
	}
}

// TestDocumented: every metric of the workers is in docs/reference/metrics.md.
func TestDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/reference/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	families, err := metrics.New().Registry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if name := f.GetName(); strings.HasPrefix(name, "basetensor_") && !strings.Contains(string(text), name) &&
			!strings.Contains(string(text), "…_"+strings.TrimPrefix(name, "basetensor_cache_")) {
			t.Errorf("%s is not in docs/reference/metrics.md", name)
		}
	}
}
