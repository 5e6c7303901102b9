package page

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/doors/gateway"
	"github.com/basetensor/basetensor/internal/testing/nightly"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/modeljson"
	"github.com/basetensor/basetensor/pkg/pipeline"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go/jetstream"
)

// grid is the text of a model of side × side variables of two values.
func grid(side int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "MARKOV %d%s %d ", side*side, strings.Repeat(" 2", side*side), 2*side*(side-1))
	for i := range side * side {
		if i%side > 0 {
			fmt.Fprintf(&b, "2 %d %d ", i-1, i)
		}
		if i >= side {
			fmt.Fprintf(&b, "2 %d %d ", i-side, i)
		}
	}
	for i := range 2 * side * (side - 1) {
		x, y := 1+i*7919%13, 1+i*i%11
		fmt.Fprintf(&b, "4 %d %d %d %d ", x, y, y, x+i%2)
	}
	return b.String()
}

// fill submits jobs of every kind, and registers models; it returns their digests.
func (s *service) fill() (asia, alarm string) {
	s.Helper()
	model := json.RawMessage(s.file("asia.json"))
	s.ask(200, "POST", "/v1/infer", map[string]any{"job": "asia", "tenant": "clinic", "model": model,
		"evidence":  map[string]string{"dysp": "yes"},
		"marginals": true, "joint": []string{"smoke", "bronc"}}, nil)
	s.ask(200, "POST", "/v1/infer", map[string]any{"job": "asia-two", "tenant": "clinic", "model": model, "queries": []any{
		map[string]any{"marginals": true},
		map[string]any{"evidence": map[string]string{"xray": "abnormal"}, "event": map[string]string{"smoke": "yes"}},
	}}, nil)
	s.ask(200, "POST", "/v1/infer", map[string]any{"job": "descent", "tenant": "clinic", "model": model,
		"evidence": map[string]string{"dysp": "yes"},
		"mpe":      true, "map": []string{"tub", "lung"}, "samples": 20, "seed": 7}, nil)
	s.ask(200, "POST", "/v1/infer", map[string]any{"job": "grid", "tenant": "physics", "text": grid(12), "marginals": true,
		"settings": map[string]any{"method": "truncated", "budget": 1e9}}, nil)
	s.ask(200, "POST", "/v1/infer", map[string]any{"job": "too-large", "tenant": "physics", "text": grid(12),
		"settings": map[string]any{"method": "exact", "memory": 1 << 10}}, nil)
	s.ask(400, "POST", "/v1/infer", map[string]any{"job": "too-late", "text": grid(2), "deadline_ms": 100_000_000_000}, nil)
	m, err := modeljson.Decode(bytes.NewReader(model), modeljson.Limits{})
	if err != nil {
		s.Fatal(err)
	}
	request, err := wire.NewRequest(m)
	if err != nil {
		s.Fatal(err)
	}
	request.Job, request.Queries = "next", []query.Query{{
		Information: &query.Ask{Target: 3}, Sensitivity: &query.Sensitivity{Variable: 3, Value: 1, Top: 6}, // lung
	}}
	c, err := s.stack.Client()
	if err != nil {
		s.Fatal(err)
	}
	if _, err := c.Submit(s.Context(), request); err != nil {
		s.Fatal(err)
	}
	if err := s.nc.Publish(wire.ModelSubject(wire.Lane("physics"), "physics.broken"), []byte("no message")); err != nil {
		s.Fatal(err)
	}
	for _, of := range []struct {
		name string
		to   *string
	}{{"asia.json", &asia}, {"alarm.uai", &alarm}} {
		var put gateway.Model
		s.ask(201, "POST", "/v1/models", string(s.file(of.name)), &put)
		*of.to = put.Digest
	}
	s.until(func() bool {
		var dead gateway.DeadLetters
		s.ask(200, "GET", "/v1/dead-letters", nil, &dead)
		return len(dead.DeadLetters) == 1
	})
	return asia, alarm
}

// wrong finds obstacles to reading a view: elements without a name for screen readers, duplicate ids, text too close to its ground,
// overflow.
//
//go:embed wrong.js
var wrong string

// screens are the widths and heights of a large screen, a tablet upright and a telephone.
var screens = [][2]int{{1440, 900}, {820, 1180}, {390, 844}}

// look opens a view in both colours and all sizes, and checks the rules of every view.
func (p *tab) look(name, hash string, ready string, args ...any) {
	p.Helper()
	p.lookAfter(name, hash, func() {}, ready, args...)
}

// lookAfter looks at a view after something was done there.
func (p *tab) lookAfter(name, hash string, does func(), ready string, args ...any) {
	p.Helper()
	for k, size := range screens {
		for _, scheme := range []string{"light", "dark"} {
			if !nightly.On() && (scheme == "dark") != (k == len(screens)-1) {
				continue // narrow is dark, the others are light; make nightly takes all six
			}
			p.size(size[0], size[1])
			p.colours(scheme)
			p.open(hash)
			does()
			p.wait(ready, args...)
			if found := eval[[]string](p, wrong); len(found) > 0 {
				p.Errorf("%s, %s, %d wide: %q", name, scheme, size[0], found)
			}
			p.shot(fmt.Sprintf("%s-%s-%d", name, scheme, size[0]))
		}
	}
	p.size(1440, 900)
}

// long is a model whose names and values are as long as people write them, without a blank to break at.
func long() map[string]any {
	name := func(kind string, i int) string {
		return fmt.Sprintf("%s_%d_%s", kind, i, strings.Repeat("measured", 6))
	}
	states := make([]string, 12)
	for x := range states {
		states[x] = name("between", x)
	}
	var variables, factors []any
	for v := range 3 {
		variables = append(variables, map[string]any{"name": name("temperature", v), "states": states})
		values := []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 1e-6, 1, 2}
		factors = append(factors, map[string]any{"scope": []int{v}, "dense": map[string]any{"values": values}})
	}
	return map[string]any{"basetensor_model": 1, "variables": variables, "factors": factors}
}

// TestViews: every view shows its contents, in both colours, narrow and wide.
func TestViews(t *testing.T) {
	b := startBrowser(t)
	s := serve(t, false)
	s.work()
	asia, alarm := s.fill()
	s.ask(200, "POST", "/v1/infer", map[string]any{"job": "placed", "text": clinic, "marginals": true}, nil)
	longest := strings.Repeat("x", 64)
	s.ask(200, "POST", "/v1/infer", map[string]any{"job": longest, "tenant": strings.Repeat("t", 64), "model": long(), "marginals": true,
		"settings": map[string]any{"method": "regions"}}, nil)
	p := b.tab(t, s.url)
	p.look("jobs", "#/jobs", `document.querySelectorAll('.jobs tbody tr').length === 10`)
	p.look("job", "#/jobs/asia", `document.querySelectorAll('.posterior').length === 8
		&& document.querySelectorAll('.joint tbody tr').length === 4`)
	text := eval[string](p, "document.querySelector('.headline').innerText")
	if !strings.Contains(text, "exact") || strings.Contains(text, "≈") {
		t.Errorf("an exact answer says %q", text)
	}
	p.look("job-descent", "#/jobs/descent", `document.getElementById('mpe-title') && document.getElementById('map-title')
		&& document.getElementById('samples-title')`)
	p.look("job-next", "#/jobs/next", `document.querySelector('#information-title') &&
		document.querySelectorAll('.tornado tbody tr').length === 6 &&
		document.querySelector('.tornado tbody th').textContent.startsWith('P(') && document.querySelector('.tornado .here') &&
		[...document.querySelectorAll('table.list tbody th')].some(th => th.textContent === 'either')`)
	p.look("job-estimate", "#/jobs/grid", `document.querySelector('svg.estimates') && document.querySelector('.timeline')`)
	text = eval[string](p, "document.querySelector('.headline').innerText")
	if !strings.Contains(text, "estimate") || !strings.Contains(text, "≈") {
		t.Errorf("an estimate says %q", text)
	}
	p.look("job-error", "#/jobs/too-large", `document.querySelector('.error strong').textContent === 'too large'`)
	p.look("job-failed", "#/jobs/too-late", `document.querySelector('.error strong').textContent === 'wrong input'`)
	p.look("models", "#/models", `document.querySelectorAll('.models tbody tr').length === 2`)
	p.look("graph", "#/graph/job/asia", `document.querySelectorAll('.node').length === 8
		&& document.querySelectorAll('.node.seen').length === 1 && document.querySelector('.node .p')`)
	p.look("graph-alarm", "#/graph/model/"+alarm[:12], `document.querySelectorAll('.node').length === 37
		&& document.querySelector('.node .p')`)
	p.look("graph-grid", "#/graph/job/grid", `document.querySelectorAll('.node').length === 144 && document.querySelector('.node .p')`)
	p.lookAfter("graph-edited", "#/graph/model/"+asia[:12], func() {
		p.wait(`document.querySelector('.node .p')`)
		p.click(`.node[data-variable="7"] .name`)
		for _, selector := range []string{".table summary", ".soft summary", ".save summary", "#edit-7"} {
			p.click(selector)
		}
		p.enter("entry-7-0", "0.5")
		p.enter("entry-7-2", "0.123456789")
	}, `document.querySelectorAll('.numbers tr.wrong').length === 2 && document.querySelector('.edits')
		&& document.querySelector('.state-of-it .error')`)
	p.lookAfter("graph-rows", "#/graph/model/"+asia[:12], func() {
		p.wait(`document.querySelector('.node .p')`)
		p.drop("clinic.csv", []byte("dysp,smoke\nyes,yes\nperhaps,no\n"))
	}, `document.querySelectorAll('.answers tbody tr').length === 3`)
	p.look("graph-placed", "#/graph/job/placed", `document.querySelectorAll('.node').length === 4 && document.querySelector('.node .p')`)
	p.look("long-job", "#/jobs/"+longest, `document.querySelectorAll('.posterior').length === 3`)
	p.lookAfter("long-graph", "#/graph/job/"+longest, func() {
		p.wait(`document.querySelector('.node .p')`)
		for _, selector := range []string{`.node[data-variable="1"] .name`, ".soft summary", ".table summary", "#edit-1"} {
			p.click(selector)
		}
	}, `document.querySelector('.numbers input')`)
	p.look("long-ask", "#/ask/job/"+longest, `document.querySelectorAll('datalist option').length === 3`)
	p.look("ask", "#/ask/model/"+asia[:12], `document.querySelectorAll('datalist option').length === 8`)
	p.look("dead-letters", "#/dead-letters", `document.querySelectorAll('.dead tbody tr').length === 1`)
	p.look("workers", "#/workers", `document.querySelectorAll('.stages tbody tr').length === 4
		&& document.querySelectorAll('.queues .queue').length === 16
		&& document.querySelectorAll('.stages .state.ok').length === 4`)
	p.allow("status of 404")
	p.look("nothing", "#/jobs/nobody", `document.querySelector('.trouble')`)
}

// TestLive: a job that grows shows its estimates as they come, and its answer, without being asked again.
func TestLive(t *testing.T) {
	b := startBrowser(t)
	s := serve(t, false)
	s.work(pipeline.StageReparam, pipeline.StageLearn)
	s.ask(202, "POST", "/v1/infer", map[string]any{"job": "grows", "async": true, "text": grid(12),
		"settings": map[string]any{"method": "regions"}}, nil)
	p := b.tab(t, s.url)
	p.open("#/jobs/grows")
	p.wait(`document.querySelector('.state').textContent.includes('pending') && !document.querySelector('svg.estimates')`)
	s.work(pipeline.StageContract)
	p.wait(`document.querySelectorAll('svg.estimates .track g').length > 1
		&& document.querySelector('.so-far .mark.estimate, .so-far .mark.guess')`)
	p.shot("job-live-light-1440")
	s.work(pipeline.StageAggregate)
	p.wait(`document.querySelector('.state').textContent.includes('ok') && !document.querySelector('.so-far')
		&& document.querySelector('.headline')`)
	p.wait(`document.querySelectorAll('.timeline tbody tr').length > 4`)
}

// TestTenThousandJobs: the list is paged, searched by tenant, state and id, and stays quick.
func TestTenThousandJobs(t *testing.T) {
	b := startBrowser(t)
	s := serve(t, false)
	const n = 10_000
	js, err := jetstream.New(s.nc, jetstream.WithPublishAsyncMaxPending(n)) // a busy server keeps nobody waiting
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		a := &wire.Answer{Job: fmt.Sprintf("t%d.job-%d", i%7, i), Digest: wire.Digest(nil), Status: wire.StatusError,
			Error: &query.ErrorInfo{Code: fault.BadInput, Message: "none", Stage: query.StageReparam}}
		m, err := wire.Encode(a)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := js.PublishAsync(wire.AnswerSubject(a.Job), m); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-js.PublishAsyncComplete():
	case <-t.Context().Done():
		t.Fatal(t.Context().Err())
	}
	s.ask(202, "POST", "/v1/infer", map[string]any{"job": "last", "async": true, "text": grid(2)}, nil)

	p := b.tab(t, s.url)
	began := time.Now()
	p.open("#/jobs")
	p.wait(`document.querySelector('.where').textContent === '1–100 of 10,001'
		&& document.querySelectorAll('.jobs tbody tr').length === 100`)
	t.Logf("10,001 jobs: interactive after %s", time.Since(began).Round(time.Millisecond))
	p.shot("jobs-10000-light-1440")
	first := `document.querySelector('.jobs tbody tr .id').textContent`
	if id := eval[string](p, first); id != "last" {
		t.Errorf("the newest is %s", id)
	}
	p.click("#jobs-older")
	p.wait(`document.querySelector('.where').textContent === '101–200 of 10,001'`)
	p.click("#jobs-newer")
	p.wait(`document.querySelector('.where').textContent === '1–100 of 10,001' && ` + first + ` === 'last'`)
	began = time.Now()
	p.click("#jobs-tenant")
	p.write("t3")
	p.wait(`document.querySelector('.where').textContent === '1–100 of 1,429'`)
	t.Logf("those of a tenant after %s", time.Since(began).Round(time.Millisecond))
	if hash := eval[string](p, "location.hash"); hash != "#/jobs?tenant=t3" {
		t.Errorf("the address is %s", hash)
	}
	p.click("#jobs-text")
	p.write("job-9999")
	p.wait(`document.querySelector('.where').textContent === '1–1 of 1' && ` + first + ` === 't3.job-9999'`)
	p.open("#/jobs?state=pending")
	p.wait(`document.querySelector('.where').textContent === '1–1 of 1' && ` + first + ` === 'last'`)
	p.open("#/jobs?tenant=" + url.QueryEscape("nobody"))
	p.wait(`document.querySelector('.empty').checkVisibility()`)
}
