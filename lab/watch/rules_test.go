//go:build nightly

// Package watch tests the operators' monitoring: the rules for Prometheus, the runbooks that their alerts name, and the board.
package watch

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/util/teststorage"
)

const (
	rulesFile = "../../deploy/prometheus/rules.yaml"
	boardFile = "../../deploy/grafana/basetensor.json"
	runbooks  = "docs/how-to/runbooks.md"
)

// prometheus evaluates queries and rules in these tests: the real engine over a store of its own.
type prometheus struct {
	t      *testing.T
	store  *teststorage.TestStorage
	engine *promql.Engine
	groups []*rules.Group
}

// newPrometheus returns one with the rules of deploy/ and no samples.
func newPrometheus(t *testing.T) *prometheus {
	t.Helper()
	read := parser.NewParser(parser.Options{})
	p := &prometheus{
		t:     t,
		store: teststorage.New(t),
		engine: promql.NewEngine(promql.EngineOpts{
			MaxSamples: 1 << 20, Timeout: time.Minute, Parser: read, LookbackDelta: 5 * time.Minute,
		}),
	}
	t.Cleanup(func() { p.engine.Close() })
	manager := rules.NewManager(&rules.ManagerOptions{
		ExternalURL: &url.URL{},
		QueryFunc:   rules.EngineQueryFunc(p.engine, p.store),
		NotifyFunc:  func(context.Context, string, ...*rules.Alert) {},
		Context:     t.Context(),
		Appendable:  p.store,
		Queryable:   p.store,
		Logger:      slog.New(slog.DiscardHandler),
		Parser:      read,
	})
	loaded, errs := manager.LoadGroups(15*time.Second, labels.EmptyLabels(), "", nil, false, rulesFile)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	for _, g := range loaded {
		p.groups = append(p.groups, g)
	}
	slices.SortFunc(p.groups, func(a, b *rules.Group) int { return strings.Compare(b.Name(), a.Name()) }) // record before alert
	return p
}

// add stores one value of a series, as "name{label="value"}".
func (p *prometheus) add(at time.Time, series map[string]float64) {
	p.t.Helper()
	app := p.store.Appender(p.t.Context())
	for text, value := range series {
		of, err := parser.NewParser(parser.Options{}).ParseMetric(text)
		if err != nil {
			p.t.Fatalf("%s: %v", text, err)
		}
		if _, err := app.Append(0, of, at.UnixMilli(), value); err != nil {
			p.t.Fatalf("%s: %v", text, err)
		}
	}
	if err := app.Commit(); err != nil {
		p.t.Fatal(err)
	}
}

// evaluate evaluates all rules, and returns the alerts that fire.
func (p *prometheus) evaluate(at time.Time) (firing []string) {
	p.t.Helper()
	for _, g := range p.groups {
		g.Eval(p.t.Context(), at)
		for _, r := range g.Rules() {
			if err := r.LastError(); err != nil {
				p.t.Fatalf("%s: %v", r.Name(), err)
			}
		}
		for _, r := range g.AlertingRules() {
			for _, a := range r.ActiveAlerts() {
				if a.State == rules.StateFiring && !slices.Contains(firing, r.Name()) {
					firing = append(firing, r.Name())
				}
			}
		}
	}
	slices.Sort(firing)
	return firing
}

// step is how often the synthetic series are scraped.
const step = 15 * time.Second

// healthy are series of a system that does well, after so many seconds.
func healthy(s float64) map[string]float64 {
	return map[string]float64{
		`basetensor_oldest_job_seconds`:                                                        40,
		`basetensor_job_seconds_count{method="exact",outcome="ok",class="default"}`:            50 * s,
		`basetensor_job_seconds_count{method="none",outcome="bad_input",class="default"}`:      5 * s,
		`basetensor_job_seconds_count{method="none",outcome="internal",class="default"}`:       0,
		`basetensor_job_seconds_count{method="none",outcome="infrastructure",class="default"}`: 0.04 * s,
		`basetensor_storage_stalled`:                                                           0,
		`basetensor_room_seconds{stream="BTN_MODEL"}`:                                          7200,
		`basetensor_stream_fill_ratio{stream="BTN_MODEL"}`:                                     0.5,
		`basetensor_stream_fill_ratio{stream="BTN_DLQ"}`:                                       0.99,
		`basetensor_conflicts_total{stage="aggregator"}`:                                       0,
		`basetensor_hung_total{stage="contract-worker"}`:                                       0,
		`basetensor_lost_goroutines{stage="contract-worker"}`:                                  0,
		`basetensor_forged_total{kind="answer"}`:                                               0,
		`basetensor_messages_total{stage="contract-worker"}`:                                   60 * s,
		`basetensor_redeliveries_total{stage="contract-worker"}`:                               0.1 * s,
	}
}

// TestAlerts: every alert fires, alone, when its condition occurs, and none while all is well. After it has passed it stops.
func TestAlerts(t *testing.T) {
	const begins, ends, until = 1800, 3600, 7200 // seconds
	// during is x while something is wrong, else y.
	wrong := func(s float64) bool { return s >= begins && s < ends }
	for name, disturb := range map[string]func(s float64, series map[string]float64){
		"": func(float64, map[string]float64) {},
		"BasetensorJobsWait": func(s float64, series map[string]float64) {
			if wrong(s) {
				series[`basetensor_oldest_job_seconds`] = 1801
			}
		},
		"BasetensorJobsWait: nobody tells": func(s float64, series map[string]float64) {
			if wrong(s) {
				delete(series, `basetensor_oldest_job_seconds`)
			}
		},
		"BasetensorJobsFail": func(s float64, series map[string]float64) {
			series[`basetensor_job_seconds_count{method="none",outcome="internal",class="default"}`] = max(0, min(s, ends)-begins)
		},
		"BasetensorStorageStalled": func(s float64, series map[string]float64) {
			if wrong(s) {
				series[`basetensor_storage_stalled`] = 1
			}
		},
		"BasetensorRoomShort": func(s float64, series map[string]float64) {
			if wrong(s) {
				series[`basetensor_room_seconds{stream="BTN_MODEL"}`] = 600
			}
		},
		"BasetensorRoomShort: full": func(s float64, series map[string]float64) {
			if wrong(s) {
				series[`basetensor_stream_fill_ratio{stream="BTN_MODEL"}`] = 0.8
			}
		},
		"BasetensorConflicts": func(s float64, series map[string]float64) {
			if s >= begins {
				series[`basetensor_conflicts_total{stage="aggregator"}`] = 1
			}
		},
		"BasetensorHandlersHang": func(s float64, series map[string]float64) {
			if s >= begins {
				series[`basetensor_hung_total{stage="contract-worker"}`] = 1
			}
		},
		"BasetensorHandlersHang: computing still": func(s float64, series map[string]float64) {
			if wrong(s) {
				series[`basetensor_lost_goroutines{stage="contract-worker"}`] = 1
			}
		},
		"BasetensorForged": func(s float64, series map[string]float64) {
			if s >= begins {
				series[`basetensor_forged_total{kind="answer"}`] = 3
			}
		},
	} {
		t.Run("when "+name, func(t *testing.T) {
			p := newPrometheus(t)
			alert, _, _ := strings.Cut(name, ":")
			start, fired := time.Unix(1_800_000_000, 0), false
			for s := 0.0; s <= until; s += step.Seconds() {
				at := start.Add(time.Duration(s * float64(time.Second)))
				series := healthy(s)
				disturb(s, series)
				p.add(at, series)
				firing := p.evaluate(at)
				if alert == "BasetensorJobsFail" && s >= begins { // uses up the budget, too: see TestBurnRates
					firing = slices.DeleteFunc(firing, func(name string) bool { return strings.HasPrefix(name, "BasetensorBudget") })
				}
				switch {
				case len(firing) == 0:
					if s == ends-600 && alert != "" && !strings.Contains(name, "Conflicts") && !strings.Contains(name, "Forged") &&
						name != "BasetensorHandlersHang" {
						t.Errorf("silent %v s after it began", s-begins)
					}
				case len(firing) > 1 || firing[0] != alert || s < begins:
					t.Fatalf("after %v s %v fires", s, firing)
				case s == until:
					t.Error("fires still, long after it has passed")
				default:
					fired = true
				}
			}
			if fired != (alert != "") {
				t.Errorf("fired: %v", fired)
			}
		})
	}
}

// failing are the hours between which jobs fail, and the share of jobs that do.
type failing struct{ begins, ends, share float64 }

// TestBurnRates: the alerts of the budget fire by the speed at which it is used up, at any scale of time, and stop when the failures have.
func TestBurnRates(t *testing.T) {
	const fast, slowly = "BasetensorBudgetBurnsFast", "BasetensorBudgetBurnsSlowly"
	for name, c := range map[string]struct {
		fails         failing
		fires, silent string  // an alert that fires, and one that does not
		within        float64 // hours after the beginning
	}{
		"two per cent for two hours":        {failing{73, 75, 0.02}, fast, "", 1.2},
		"0.8 per cent for eight hours":      {failing{73, 81, 0.008}, fast, "", 6},
		"0.2 per cent for four days":        {failing{73, 169, 0.002}, slowly, fast, 73},
		"0.08 per cent, within the budget":  {failing{73, 169, 0.0008}, "", slowly, 0},
		"two per cent for two minutes only": {failing{73, 73.04, 0.02}, "", fast, 0},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPrometheus(t)
			start, failed, all := time.Unix(1_800_000_000, 0), 0.0, 0.0
			first, last := 0.0, 0.0
			const each = 1.0 / 30 // hours between two scrapes
			for h := 0.0; h < c.fails.ends+8; h += each {
				if all += 180_000 * each; h >= c.fails.begins && h < c.fails.ends {
					failed += c.fails.share * 180_000 * each
				}
				at := start.Add(time.Duration(h * float64(time.Hour)))
				p.add(at, map[string]float64{
					`basetensor_oldest_job_seconds`:                                                        1,
					`basetensor_job_seconds_count{method="exact",outcome="ok",class="default"}`:            all - failed,
					`basetensor_job_seconds_count{method="none",outcome="infrastructure",class="default"}`: failed,
				})
				for _, alert := range p.evaluate(at) {
					switch alert {
					case c.silent:
						t.Fatalf("%s fires at hour %.1f", alert, h)
					case c.fires:
						if last = h; first == 0 {
							first = h
						}
					}
				}
			}
			switch {
			case (first > 0) != (c.fires != ""):
				t.Errorf("fired first at hour %.1f", first)
			case c.fires != "" && first > c.fails.begins+c.within:
				t.Errorf("fired at hour %.1f, later than %.1f hours after it began", first, c.within)
			case last > c.fails.ends+6.5:
				t.Errorf("fires still at hour %.1f", last)
			}
		})
	}
}

// anchors returns the anchors of a page's headings.
func anchors(t *testing.T, page string) []string {
	t.Helper()
	text, err := os.ReadFile("../../" + page)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, heading := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(string(text), -1) {
		all = append(all, strings.ReplaceAll(strings.ToLower(heading[1]), " ", "-"))
	}
	return all
}

// TestRunbooks: every alert describes the fault and names a section with its remedy, and every section has its alert.
func TestRunbooks(t *testing.T) {
	sections := anchors(t, runbooks)
	alerts := 0
	for _, g := range newPrometheus(t).groups {
		for _, r := range g.AlertingRules() {
			alerts++
			for _, name := range []string{"summary", "description", "runbook_url"} {
				if r.Annotations().Get(name) == "" {
					t.Errorf("%s has no %s", r.Name(), name)
				}
			}
			if r.Labels().Get("severity") == "" {
				t.Errorf("%s has no severity", r.Name())
			}
			page, anchor, _ := strings.Cut(r.Annotations().Get("runbook_url"), "#")
			if !strings.HasSuffix(page, "/"+runbooks) || anchor != strings.ToLower(r.Name()) || !slices.Contains(sections, anchor) {
				t.Errorf("%s names %s#%s, which is no section for it", r.Name(), page, anchor)
			}
		}
	}
	if alerts < 6 || len(sections) != alerts+1 { // and the title
		t.Errorf("%d alerts, %d sections", alerts, len(sections))
	}
}

// boardQueries are the queries of the board, by panel.
func boardQueries(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(boardFile)
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Panels []struct {
			Title   string
			Type    string
			ID      int
			GridPos struct{ X, Y, W, H int }
			Targets []struct{ Expr string }
		}
		Annotations struct{ List []struct{ Expr string } }
	}
	if err := json.Unmarshal(text, &board); err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{}
	ids := map[int]bool{}
	for _, p := range board.Panels {
		if ids[p.ID] || p.GridPos.W == 0 || p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("panel %q: id %d at %+v", p.Title, p.ID, p.GridPos)
		}
		ids[p.ID] = true
		if p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("panel %q asks nothing", p.Title)
		}
		for _, target := range p.Targets {
			all[p.Title] = append(all[p.Title], strings.ReplaceAll(target.Expr, "$__rate_interval", "1m"))
		}
	}
	for _, a := range board.Annotations.List {
		all["annotations"] = append(all["annotations"], a.Expr)
	}
	return all
}
