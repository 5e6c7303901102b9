package page

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/doors/gateway"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/formats"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/uai"
)

// drop drops a file in the middle of the page, as a hand does: over it first.
func (p *tab) drop(name string, content []byte) {
	p.Helper()
	eval[bool](p, `(() => {
		const dataTransfer = new DataTransfer()
		dataTransfer.items.add(new File([new Uint8Array($2)], $1))
		const event = kind => new DragEvent(kind, { dataTransfer, bubbles: true, cancelable: true })
		const main = document.querySelector('main')
		if (main.dispatchEvent(event('dragover')) || document.getElementById('shade').hidden) throw new Error('files are not taken')
		return !main.dispatchEvent(event('drop')) && document.getElementById('shade').hidden
	})()`, name, numbers(content))
}

// numbers is bytes as a list of numbers.
func numbers(b []byte) []int {
	all := make([]int, len(b))
	for i, x := range b {
		all[i] = int(x)
	}
	return all
}

// TestOpenAFile: a file that is dropped is shown as a graph with its posteriors and asked by clicks, and nothing is registered.
func TestOpenAFile(t *testing.T) {
	b := startBrowser(t)
	s := serve(t, false)
	s.work()
	text := s.file("heating.bif")
	m, err := formats.Read(strings.NewReader(string(text)), formats.BIF, "", uai.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	p := b.tab(t, s.url)
	p.open("#/jobs") // without a job it offers a file and an example
	p.wait(`document.getElementById('open-button')`)
	p.click("#open-example")
	p.wait(`document.querySelectorAll('.node').length === 8 && document.querySelector('.node .p')`)
	p.open("#/jobs")
	p.drop("heating.bif", text)
	p.wait(`/^#\/graph\/job\/heating-[a-z0-9]{6}$/.test(location.hash)`)
	p.says(m, query.Query{})
	p.click(`.node[data-variable="0"] [data-state="0"]`)
	p.says(m, query.Query{Evidence: factorgraph.Observe(map[int]int{0: 0})})
	var models gateway.Models
	if s.ask(200, "GET", "/v1/models", nil, &models); len(models.Models) != 0 {
		t.Errorf("%+v are registered", models.Models)
	}

	// the list of jobs goes on offering both, once each
	p.open("#/jobs")
	p.wait(`document.querySelectorAll('.jobs tbody tr').length === 2`)
	p.shot("jobs-two-light-1440")
	if n := eval[int](p, `document.querySelectorAll('#open-button, #open-example, #open-file').length`); n != 3 {
		t.Errorf("%d ways to open a model beside jobs, want 3", n)
	}
	p.click("#open-example")
	p.wait(`location.hash.startsWith('#/graph/job/asia-') && document.querySelectorAll('.node').length === 8`)

	// by a button, without dragging
	p.open("#/models")
	p.wait(`document.getElementById('open-button')`)
	eval[bool](p, `(() => { const all = new DataTransfer(); all.items.add(new File([$1], 'small grid.uai'))
		const e = document.getElementById('open-file')
		e.files = all.files; return e.dispatchEvent(new Event('change')) })()`, grid(2))
	p.wait(`/^#\/graph\/job\/small-grid-[a-z0-9]{6}$/.test(location.hash) && document.querySelectorAll('.node .p').length === 8`)

	// a file without a model is refused in words
	p.allow("status of 400")
	p.drop("letter.txt", []byte("Dear reader"))
	p.wait(`document.getElementById('toast').textContent.startsWith('letter.txt: line 1: ')`)
}

// TestClicksDoNotFloodTheList: questions of clicks are not among the jobs, unless they are wanted.
func TestClicksDoNotFloodTheList(t *testing.T) {
	b := startBrowser(t)
	s := serve(t, false)
	s.work()
	m, hash := s.registered()
	s.ask(200, "POST", "/v1/infer", map[string]any{"job": "only", "text": grid(2)}, nil)
	p := b.tab(t, s.url)
	p.open(hash)
	p.says(m, query.Query{})
	for v := range 3 {
		p.click(fmt.Sprintf(`.node[data-variable="%d"] [data-state="0"]`, v))
		seen := map[int]int{}
		for u := range v + 1 {
			seen[u] = 0
		}
		p.says(m, query.Query{Evidence: factorgraph.Observe(seen)})
	}
	p.open("#/jobs")
	p.wait(`document.querySelector('.where').textContent === '1–1 of 1' && document.querySelector('.jobs .id').textContent === 'only'`)
	p.click("#jobs-looks")
	p.wait(`location.hash === '#/jobs?looks=true' && document.querySelectorAll('.jobs tbody tr').length === 5`)
	if looks := eval[int](p, `[...document.querySelectorAll('.jobs .id')].filter(e => e.textContent.startsWith('look-')).length`); looks != 4 {
		t.Errorf("%d questions of clicks, want 4", looks)
	}
	p.click("#jobs-looks")
	p.wait(`location.hash === '#/jobs' && document.querySelectorAll('.jobs tbody tr').length === 1`)
}

// TestJobsAtAGlance: a row says model, method and answer; an estimate looks like one.
func TestJobsAtAGlance(t *testing.T) {
	b := startBrowser(t)
	s := serve(t, false)
	s.work()
	s.fill()
	s.ask(200, "PUT", "/v1/models/small", grid(2), nil)
	var exact, estimate gateway.Answer
	s.ask(200, "POST", "/v1/infer", map[string]any{"job": "named", "model_name": "small"}, &exact)
	s.ask(200, "GET", "/v1/jobs/grid", nil, &estimate)
	p := b.tab(t, s.url)
	p.open("#/jobs")
	row := func(job string) string {
		t.Helper()
		p.wait(`[...document.querySelectorAll('.jobs tbody tr')].some(r => r.querySelector('.id').textContent === $1)`, job)
		return eval[string](p, `[...[...document.querySelectorAll('.jobs tbody tr')].find(r => r.querySelector('.id').textContent === $1)
			.querySelectorAll('.model, .method, .answer')]
			.map(c => (c.matches('.model') ? c.firstChild : c).textContent).join('; ')`, job)
	}
	for job, want := range map[string]string{
		"named":     fmt.Sprintf("small@1; exact; ln Z = %.10f", *exact.Results[0].LogZ),
		"asia":      fmt.Sprintf("8 variables; exact; P(evidence) = %.6g", math.Exp(-0.8301804691)),
		"too-large": "144 variables; exact; too large",
		"too-late":  "4 variables; auto; wrong input",
	} {
		if got := row(job); got != want {
			t.Errorf("%s: %q, want %q", job, got, want)
		}
	}
	if got := row("asia-two"); !strings.HasSuffix(got, " and 2 more") {
		t.Errorf("asia-two: %q", got)
	}
	p.wait(`[...document.querySelectorAll('.jobs tbody tr')].some(r => r.querySelector('.id').textContent === 'asia' &&
		r.querySelector('.model').textContent.startsWith('8 variables: marginals'))`)
	r := estimate.Results[0]
	var value, off float64
	got := row("grid")
	if _, err := fmt.Sscanf(got, "144 variables; truncated; ln Z ≈ %g ± %g", &value, &off); err != nil || r.Exact ||
		math.Abs(value-*r.LogZ) > *r.Uncertainty || math.Abs(off-*r.Uncertainty) > 0.06**r.Uncertainty {
		t.Errorf("grid: %q of %v ± %v: %v", got, *r.LogZ, *r.Uncertainty, err)
	}
	p.wait(`document.querySelectorAll('.jobs .answer .estimate').length === 1`)
}

// TestWhoWorks: workers are counted, with versions and rates, in words of people.
func TestWhoWorks(t *testing.T) {
	b := startBrowser(t)
	s := serve(t, false)
	p := b.tab(t, s.url)
	p.open("#/workers")
	p.wait(`[...document.querySelectorAll('.stages .state')].map(e => e.textContent).join() === '✕ nobody,✕ nobody,✕ nobody,✕ nobody'`)
	s.work()
	s.work()
	p.wait(`[...document.querySelectorAll('.stages tbody th')].map(e => e.textContent).join() === 'preparing,planning,computing,answering'
		&& [...document.querySelectorAll('.stages .state')].every(e => e.textContent.includes('2 workers'))`)
	s.ask(200, "POST", "/v1/infer", map[string]any{"text": grid(2)}, nil)
	p.wait(`[...document.querySelectorAll('.stages tbody tr')].every(r => {
		const [, version, done] = [...r.querySelectorAll('td')].map(c => c.textContent)
		return version !== '' && /^[\d.]+ \/ (s|min)$/.test(done) && parseFloat(done) > 0
	})`)
	p.size(380, 844) // on a narrow screen, too
	p.wait(`[...document.querySelectorAll('.stages tbody tr')].every(r => r.children[2].checkVisibility() && r.children[3].checkVisibility())`)
	if text := eval[string](p, `document.querySelector('main').innerText`); strings.Contains(text, "BTN_") ||
		strings.Contains(strings.ToLower(text), "lane") {
		t.Errorf("the view says %s", text)
	}
}

// TestNoDigests: a model without a name is not called by its 64 digits.
func TestNoDigests(t *testing.T) {
	b := startBrowser(t)
	s := serve(t, false)
	s.work()
	asia, _ := s.fill()
	s.ask(200, "POST", "/v1/infer", map[string]any{"job": "unnamed", "model_name": asia}, nil)
	p := b.tab(t, s.url)
	for _, hash := range []string{"#/jobs", "#/jobs/unnamed", "#/models", "#/graph/model/" + asia, "#/ask/model/" + asia, "#/dead-letters"} {
		p.open(hash)
		text := eval[string](p, `document.querySelector('main').innerText`)
		if strings.Contains(text, asia[:12]) {
			t.Errorf("%s says %s", hash, text)
		}
	}
	p.open("#/jobs")
	p.wait(`[...document.querySelectorAll('.jobs .model')].some(e => e.firstChild.textContent === $1)`, "without a name, "+asia[:6])
}
