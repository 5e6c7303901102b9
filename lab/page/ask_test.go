package page

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/doors/gateway"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/infer"
	"github.com/basetensor/basetensor/pkg/modeljson"
	"github.com/basetensor/basetensor/pkg/query"
)

// shown is how the page writes an exact probability.
func shown(p float64) string { return fmt.Sprintf("%.6f", p) }

// TestObserve: a click on a value observes it and asks again, as Enter and the digits do; the numbers equal the plain call's.
func TestObserve(t *testing.T) {
	b := startBrowser(t)
	s := serve(t, false)
	s.work()
	var put gateway.Model
	s.ask(201, "POST", "/v1/models", string(s.file("asia.json")), &put)
	m, err := modeljson.Decode(strings.NewReader(string(s.file("asia.json"))), modeljson.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	p := b.tab(t, s.url)
	// holds waits until every node says the posteriors under this evidence.
	holds := func(evidence map[int]int) {
		t.Helper()
		r, err := infer.Run(t.Context(), infer.Request{
			Model: m, Queries: []query.Query{{Evidence: factorgraph.Observe(evidence), Marginals: true}},
		})

		if err != nil {
			t.Fatal(err)
		}
		for v, row := range r[0].Marginals {
			label := m.Names[v] + ": "
			if x, ok := evidence[v]; ok {
				label += "observed " + m.States[v][x] + ". "
			}
			for x, of := range row.P {
				if x > 0 {
					label += ", "
				}
				label += m.States[v][x] + " " + shown(of)
			}
			p.wait(`document.querySelector('.node[data-variable="'+$1+'"]').getAttribute('aria-label') === $2`, v, label)
		}
		z := strings.Replace(fmt.Sprintf("= %.10f", *r[0].LogZ), "-0.0000000000", "0.0000000000", 1)
		p.wait(`document.querySelector('.headline .value').textContent.includes($1)`, z)
	}
	p.open("#/graph/model/" + put.Digest[:10])
	holds(nil)
	p.click(`.node[data-variable="7"] [data-state="1"]`)
	holds(map[int]int{7: 1})
	p.click(`.node[data-variable="6"] [data-state="0"]`)
	holds(map[int]int{7: 1, 6: 0})
	p.click(`.node[data-variable="7"] [data-state="1"]`) // again: not any more
	holds(map[int]int{6: 0})

	// by keyboard: from the node that Tab comes to
	eval[bool](p, `document.querySelector('.node[tabindex="0"]').focus() || true`)
	p.wait(`document.activeElement.dataset.variable === '7'`)
	for _, step := range [][2]string{{"ArrowUp", "5"}, {"ArrowDown", "6"}} {
		p.key(step[0])
		p.wait(`document.activeElement.dataset.variable === $1`, step[1])
	}
	p.key("0")
	holds(nil)
	p.key("2")
	holds(map[int]int{6: 1})
	p.key("Enter")
	p.wait(`document.querySelector('.choice legend').textContent === 'xray'`)
	p.click("#value-6--1")
	holds(nil)
	eval[bool](p, `document.getElementById('value-6--1').focus() || true`)
	p.key("ArrowDown")
	holds(map[int]int{6: 0})
	p.wait(`document.activeElement.id === 'value-6-0'`)

	// an impossible observation is reported, and no number is left
	p.click(`.node[data-variable="1"] [data-state="1"]`)
	p.click(`.node[data-variable="5"] [data-state="0"]`)
	p.wait(`document.querySelector('.headline .value').textContent === 'Z = 0' && !document.querySelector('.node .p')`)
	p.shot("graph-impossible-light-1440")
	p.click("#clear")
	holds(nil)
}

// TestAskForm: evidence by name, the next observations, and the job of it.
func TestAskForm(t *testing.T) {
	b := startBrowser(t)
	s := serve(t, false)
	s.work()
	var put gateway.Model
	s.ask(201, "POST", "/v1/models", string(s.file("asia.json")), &put)
	p := b.tab(t, s.url)
	p.open("#/ask/model/" + put.Digest)
	p.click(".rows input")
	p.write("dysp")
	p.wait(`document.querySelector('.rows select')`)
	eval[bool](p, `(document.querySelector('.rows select').value = '1') !== ''`)
	p.click("#ask-joint")
	p.write("smoke, bronc")
	p.click("#ask-job")
	p.write("by-hand")
	p.click("#ask-go")
	p.wait(`location.hash === '#/jobs/by-hand' && document.querySelectorAll('.posterior').length === 8`)
	rows := eval[[]string](p, `[...document.querySelectorAll('.joint tbody tr')].map(r => r.textContent)`)
	if len(rows) != 4 || !strings.HasSuffix(rows[3], "0.558021") {
		t.Errorf("the joint is %q", rows)
	}
	// a joint posterior and what moves a probability are two queries of the job
	p.open("#/ask/model/" + put.Digest)
	p.click("#ask-joint")
	p.write("smoke, bronc")
	p.click("#ask-sensitivity")
	p.write("lung=yes")
	p.click("#ask-job")
	p.write("two-questions")
	p.click("#ask-go")
	p.wait(`location.hash === '#/jobs/two-questions' && document.querySelectorAll('.joint tbody tr').length === 4`)
	p.click("#query-after")
	p.wait(`document.querySelector('#tornado-title')?.textContent === 'What moves P(lung = yes)' && !document.querySelector('.error')`)

	p.allow("status of 400")
	p.open("#/ask/model/" + put.Digest)
	p.click("#ask-joint")
	p.write("smok")
	p.click("#ask-go")
	p.wait(`document.querySelector('.ask .error').textContent.includes('did you mean')`)
	p.shot("ask-error-light-1440")
}

// TestHostileNames: names are text, wherever they come.
func TestHostileNames(t *testing.T) {
	b := startBrowser(t)
	s := serve(t, false)
	s.work()
	const evil = `<img src=x onerror="window.hacked=1">`
	const worse = `</script><script>window.hacked=2</script>`
	model, err := json.Marshal(map[string]any{
		"basetensor_model": 1, "bayes": true,
		"variables": []any{
			map[string]any{"name": evil, "states": []string{worse, "__proto__"}}, map[string]any{"name": "__proto__", "states": []string{"a", "b"}},
		},
		"factors": []any{map[string]any{"scope": []int{0}, "dense": map[string]any{"values": []float64{0.25, 0.75}}},
			map[string]any{"scope": []int{0, 1}, "dense": map[string]any{"values": []float64{0.5, 0.5, 0.1, 0.9}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.ask(200, "POST", "/v1/infer", map[string]any{"job": "evil", "tenant": evil, "model": json.RawMessage(model), "marginals": true,
		"joint": []string{evil, "__proto__"}, "mpe": true, "samples": 3, "label": evil}, nil)
	var put gateway.Model
	s.ask(201, "POST", "/v1/models", string(model), &put)
	p := b.tab(t, s.url)
	p.allow("status of 400")
	p.allow("status of 404")
	for _, view := range []struct{ hash, says string }{
		{"#/jobs?tenant=" + "%3Cimg%20src%3Dx%20onerror%3D%22window.hacked%3D1%22%3E", evil},
		{"#/jobs/evil", evil}, {"#/graph/job/evil", evil}, {"#/graph/model/" + put.Digest, worse}, {"#/ask/model/" + put.Digest, ""},
		{"#/jobs/%3Cimg%20src%3Dx%3E", "<img src=x>"}, {"#/graph/%3Cb%3E/%3Cimg%3E", "<img>"},
	} {
		p.open(view.hash)
		if view.says != "" && !strings.HasPrefix(view.hash, "#/graph") {
			p.wait(`document.querySelector('main').textContent.includes($1)`, view.says)
		}
		if strings.HasPrefix(view.hash, "#/graph/job") {
			p.wait(`document.querySelector('.node .p')`)
			p.click(`.node[data-variable="0"] [data-state="1"]`)
			p.wait(`document.querySelector('.evidence')?.textContent.includes($1)
		&& document.querySelector('.choice legend').textContent === $1`, evil)
			p.wait(`document.querySelector('.node[data-variable="1"]').getAttribute('aria-label') === '__proto__: a 0.100000, b 0.900000'`)
			p.shot("hostile-light-1440")
		}
		if n := eval[int](p, `document.images.length + (window.hacked || 0) + document.querySelectorAll('main script').length`); n != 0 {
			t.Errorf("%s: text became elements", view.hash)
		}
	}
}

// TestKeyboard: everything can be come to with Tab, in sequence, and is seen to have the focus.
func TestKeyboard(t *testing.T) {
	b := startBrowser(t)
	s := serve(t, false)
	s.work()
	asia, _ := s.fill()
	p := b.tab(t, s.url)
	p.allow("status of 400") // the job that Enter opens may be the one whose model cannot be read
	for _, hash := range []string{
		"#/jobs", "#/jobs/asia", "#/models", "#/graph/model/" + asia, "#/ask/model/" + asia, "#/dead-letters", "#/workers",
	} {
		p.open(hash)
		p.wait(`!document.querySelector('.graph') || document.querySelector('.node .p')`)
		// everything that can have the focus: of radio buttons the one that is chosen, of nodes one
		want := eval[int](p, `[...document.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex="0"]')]
			.filter(e => !e.disabled && e.checkVisibility() && e.tabIndex >= 0).length`)
		eval[bool](p, `document.body.focus() || true`)
		var seen []string
		for range want + 5 {
			p.key("Tab")
			at := eval[[]string](p, `(() => { const e = document.activeElement; e.dataset.walk ||= String(Math.random())
				const s = getComputedStyle(e.matches('.node') ? e.querySelector('.box') : e)
				return [e === document.body ? 'body' : e.dataset.walk, e.outerHTML.slice(0, 120),
					e.matches('.node') ? s.strokeWidth : s.outlineStyle === 'none' ? '' : s.outlineWidth] })()`)
			if at[0] == "body" || slices.Contains(seen, at[0]) {
				break
			}
			seen = append(seen, at[0])
			if at[2] == "" || at[2] == "0px" {
				t.Errorf("%s: the focus cannot be seen on %s", hash, at[1])
			}
		}
		if len(seen) != want {
			t.Errorf("%s: Tab comes to %d of %d", hash, len(seen), want)
		}
	}

	// the first thing is a way past the head
	p.open("#/jobs")
	p.key("Tab")
	p.key("Enter")
	p.wait(`document.activeElement.id === 'main' && location.hash === '#/jobs'`)
	// and a job opens by Enter
	for range 40 {
		if eval[bool](p, `document.activeElement.matches('.jobs a')`) {
			break
		}
		p.key("Tab")
	}
	p.key("Enter")
	p.wait(`location.hash.startsWith('#/jobs/') && document.querySelector('h1 .kind')`)
}

// TestKeys: the page changes nothing without a key that may, and everything with it.
func TestKeys(t *testing.T) {
	b := startBrowser(t)
	s := serve(t, true)
	s.ask(202, "POST", "/v1/infer", map[string]any{"job": "clinic.waits", "async": true, "text": grid(2)}, nil)
	p := b.tab(t, s.url)
	p.allow("status of 401")
	enter := func(key string) {
		t.Helper()
		p.click("#access")
		p.wait(`document.getElementById('key').open`)
		p.click("#key-field")
		p.write(key)
		p.key("Enter")
		p.wait(`!document.getElementById('key').open && document.querySelector('main').dataset.ready === location.hash`)
	}
	p.open("#/jobs/clinic.waits")
	p.wait(`document.querySelector('.trouble h1').textContent === 'A key is needed'`)
	p.shot("key-light-1440")
	enter("a key that nobody has")
	p.wait(`document.querySelector('.trouble')`)
	enter(readKey)
	p.wait(`document.querySelector('.state').textContent.includes('pending') && !document.getElementById('cancel')`)
	enter(clinicKey)
	p.wait(`document.getElementById('access').textContent === 'clinic' && document.getElementById('cancel')`)
	if stored := eval[int](p, `sessionStorage.length - Object.values(localStorage).filter(v => v.includes('key')).length`); stored != 1 {
		t.Errorf("%d entries of the session", stored)
	}
	s.work()
	p.click("#cancel")
	p.wait(`/cancelled|ok/.test(document.querySelector('.state').textContent)`)

	// a model is put, and a dead letter replayed
	enter(everyKey)
	p.open("#/models")
	p.wait(`document.getElementById('upload-go')`)
	eval[bool](p, `(() => { const all = new DataTransfer(); all.items.add(new File([$1], 'small.uai'))
		const e = document.getElementById('upload-file')
		e.files = all.files; return e.dispatchEvent(new Event('change')) })()`, grid(2))
	p.wait(`document.getElementById('upload-name')?.value !== ''`)
	p.click("#upload-go")
	p.wait(`document.querySelectorAll('.models tbody tr').length === 1`)
	p.shot("models-key-light-1440")
	p.click(".models a")
	p.wait(`document.querySelectorAll('.node').length === 4`)
}

// TestWhatIsSupposed: the page of a job says what was set from outside and what was believed, and calls nothing above 1 a probability.
func TestWhatIsSupposed(t *testing.T) {
	b := startBrowser(t)
	s := serve(t, false)
	s.work()
	p := b.tab(t, s.url)
	text := string(s.file("asia.json"))
	for job, c := range map[string]struct {
		query map[string]any
		want  string
	}{
		"doing":     {map[string]any{"do": map[string]any{"smoke": "yes"}}, "Set from outside smoke = yes"},
		"believing": {map[string]any{"believe": map[string]any{"xray": []float64{0.3, 0.7}}}, "Believed xray = 0.3 / 0.7"},
	} {
		c.query["job"], c.query["text"], c.query["marginals"] = job, text, true
		s.ask(200, "POST", "/v1/infer", c.query, nil)
		p.open("#/jobs/" + job)
		p.wait(`document.querySelector('.asked')?.textContent.replaceAll('"', '').includes($1)`, c.want)
	}
	s.ask(200, "POST", "/v1/infer", map[string]any{
		"job": "weighed", "text": text, "evidence": map[string]any{"xray": []float64{30, 70}},
	}, nil)
	p.open("#/jobs/weighed")
	p.wait(`document.querySelector('.headline .value')?.textContent.startsWith('ln Z ')`)
}
