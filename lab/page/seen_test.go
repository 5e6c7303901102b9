package page

import (
	"fmt"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/doors/gateway"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/infer"
	"github.com/basetensor/basetensor/pkg/modeljson"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// registered puts the model of asia, and returns it with the address of its graph.
func (s *service) registered() (m *factorgraph.Model, hash string) {
	s.Helper()
	text := string(s.file("asia.json"))
	m, err := modeljson.Decode(strings.NewReader(text), modeljson.Limits{})
	if err != nil {
		s.Fatal(err)
	}
	var put gateway.Model
	s.ask(201, "POST", "/v1/models", text, &put)
	return m, "#/graph/model/" + put.Digest[:10]
}

// variable returns the position of a variable, value the position of a value.
func variable(t *testing.T, m *factorgraph.Model, name string) int {
	t.Helper()
	for v, of := range m.Names {
		if of == name {
			return v
		}
	}
	t.Fatalf("no variable is called %s", name)
	return 0
}

// says waits until the graph has the answer of the plain call to a query of all posteriors, in its headline and for every variable.
func (p *tab) says(m *factorgraph.Model, q query.Query) {
	p.Helper()
	q.Marginals = true
	r, err := infer.Run(p.Context(), infer.Request{Model: m, Queries: []query.Query{q}})
	p.must(err)
	for v, row := range r[0].Marginals {
		var text []string
		for x, chance := range row.P {
			text = append(text, m.States[v][x]+" "+shown(chance))
		}
		end := ""
		if r[0].MPE != nil {
			end = ". Most probable: " + m.States[v][r[0].MPE.Assignment[v]]
		}
		p.wait(`document.querySelector('.node[data-variable="'+$1+'"]').getAttribute('aria-label').endsWith($2)`,
			v, strings.Join(text, ", ")+end)
	}
	z := strings.Replace(fmt.Sprintf("= %.10f", *r[0].LogZ), "-0.0000000000", "0.0000000000", 1)
	p.wait(`document.querySelector('.headline .value').textContent.includes($1)`, z)
}

// openGraph opens the graph of the registered model in a browser.
func openGraph(t *testing.T) (b *browser, s *service, m *factorgraph.Model, hash string, p *tab) {
	t.Helper()
	b, s = startBrowser(t), serve(t, false)
	s.work()
	m, hash = s.registered()
	p = b.tab(t, s.url)
	p.open(hash)
	return b, s, m, hash, p
}

// TestAddress: the evidence is in the address, and another browser shows it from there.
func TestAddress(t *testing.T) {
	b, s, m, hash, p := openGraph(t)
	dysp, smoke := variable(t, m, "dysp"), variable(t, m, "smoke")
	p.click(fmt.Sprintf(`.node[data-variable="%d"] [data-state="1"]`, dysp))
	p.wait(`location.hash === $1`, hash+"?evidence=dysp=yes")
	p.click("#show-mpe")
	p.wait(`location.hash === $1`, hash+"?evidence=dysp=yes&mpe=true")

	passed := b.tab(t, s.url)
	passed.open(hash + "?evidence=dysp=yes&likelihood=smoke=0.25,1&mpe=true")
	seen := factorgraph.Observe(map[int]int{dysp: 1})
	seen.Soft = []factorgraph.Likelihood{{Var: smoke, Weights: []float64{0.25, 1}}}
	passed.says(m, query.Query{Evidence: seen, MPE: true})
	passed.wait(`[...document.querySelectorAll('.evidence li span')].map(e => e.textContent).join('; ')
		=== 'dysp = yes; smoke: no 0.25, yes 1'`)
	passed.click("#clear")
	passed.wait(`location.hash === $1`, hash+"?mpe=true")
	passed.says(m, query.Query{MPE: true})

	// evidence that the model lacks is named, and no posteriors are shown
	passed.open(hash + "?evidence=dysp=perhaps&evidence=lungs=yes&likelihood=smoke=1")
	passed.wait(`document.querySelector('.state-of-it .error').textContent
		.endsWith('The model does not have what the address says: dysp = perhaps, lungs = yes, smoke = 1')`)
	if n := eval[int](passed, `document.querySelectorAll('.node .p').length`); n != 0 {
		t.Errorf("%d posteriors of a question that nobody asked", n)
	}
}

// TestAddressOfAJob: the graph of a job shows the job's own answer; its evidence can be taken back in the address.
func TestAddressOfAJob(t *testing.T) {
	b := startBrowser(t)
	s := serve(t, false)
	s.work()
	m, _ := s.registered()
	s.ask(200, "POST", "/v1/infer", map[string]any{"job": "seen", "text": string(s.file("asia.json")), "marginals": true,
		"evidence": map[string]string{"dysp": "yes"}}, nil)
	p := b.tab(t, s.url)
	p.open("#/graph/job/seen")
	dysp := variable(t, m, "dysp")
	p.says(m, query.Query{Evidence: factorgraph.Observe(map[int]int{dysp: 1})})
	p.wait(`document.querySelector('.state-of-it a').getAttribute('href') === '#/jobs/seen'`)
	p.click("#clear")
	p.wait(`location.hash === '#/graph/job/seen?evidence='`)
	p.says(m, query.Query{})
	p.open("#/graph/job/seen?evidence=")
	p.says(m, query.Query{})
}

// TestConditionalTable: a variable shows its table, with the numbers of the file, and which row its parents say.
func TestConditionalTable(t *testing.T) {
	_, s, m, _, p := openGraph(t)
	p.click(`.node[data-variable="7"] .name`)
	p.click(".table summary")
	p.wait(`document.querySelector('.numbers caption').textContent === 'P(dysp | bronc, either)'`)
	var want []string
	for _, f := range m.Factors {
		if last := len(f.Scope) - 1; f.Scope[last] == 7 {
			for i, x := range f.Table.(*tensor.Dense).Data {
				if i%2 == 0 {
					want = append(want, m.States[f.Scope[0]][i/4]+" "+m.States[f.Scope[1]][i/2%2])
				}
				want[i/2] += fmt.Sprintf(" %g", x)
			}
		}
	}
	rows := `[...document.querySelectorAll('.numbers tbody tr')].map(r => [...r.children].map(c => c.textContent).join(' '))`
	if got := eval[[]string](p, rows); strings.Join(got, "; ") != strings.Join(want, "; ") {
		t.Errorf("the table says %q, the file %q", got, want)
	}
	p.click(`.node[data-variable="4"] [data-state="1"]`) // bronc
	p.wait(`document.querySelector('.choice legend').textContent === 'bronc'
		&& document.querySelector('.numbers caption').textContent === 'P(bronc | smoke)'`)
	p.click(`.node[data-variable="7"] .name`)
	p.wait(`[...document.querySelectorAll('.numbers tbody tr')].map(r => r.className === 'now').join() === 'false,false,true,true'`)
	p.shot("graph-table-light-1440")

	var put gateway.Model
	s.ask(201, "POST", "/v1/models", grid(2), &put) // no Bayesian network
	p.open("#/graph/model/" + put.Digest)
	p.click(`.node[data-variable="0"] .name`)
	p.click(".table summary")
	p.wait(`[...document.querySelectorAll('.numbers caption')].map(c => c.textContent).join() === 'Factor of x_0, x_1,Factor of x_0, x_2'`)
}

// TestMostProbable: the most probable explanation is marked in the graph, and in the labels for screen readers.
func TestMostProbable(t *testing.T) {
	_, _, m, _, p := openGraph(t)
	p.says(m, query.Query{})
	p.click("#show-mpe")
	p.says(m, query.Query{MPE: true})
	p.click(`.node[data-variable="7"] [data-state="1"]`)
	seen := factorgraph.Observe(map[int]int{7: 1})
	p.says(m, query.Query{Evidence: seen, MPE: true})
	r, err := infer.Run(t.Context(), infer.Request{Model: m, Queries: []query.Query{{Evidence: seen, MPE: true}}})
	p.must(err)
	marked := eval[[]int](p, `[...document.querySelectorAll('.node')]
		.map(e => Number(e.querySelector('.best').closest('[data-state]').dataset.state))`)
	if fmt.Sprint(marked) != fmt.Sprint(r[0].MPE.Assignment) {
		t.Errorf("%v is marked, %v is the most probable", marked, r[0].MPE.Assignment)
	}
	p.wait(`document.querySelector('.most-probable').textContent.includes($1)`, fmt.Sprintf("ln weight %.10f; ", r[0].MPE.LnWeight))
	p.click(".table summary")
	p.click(".soft summary")
	p.wait(`document.querySelector('.numbers caption') && document.querySelector('#weight-7-1').checkVisibility()`)
	p.shot("graph-mpe-light-1440")
	p.click("#show-mpe")
	p.wait(`!document.querySelector('.node .best') && !document.querySelector('.most-probable')`)
}

// TestSoftEvidence: sliders weigh the values of a variable, by keyboard too; equal weights say nothing.
func TestSoftEvidence(t *testing.T) {
	_, _, m, hash, p := openGraph(t)
	xray := variable(t, m, "xray")
	p.click(fmt.Sprintf(`.node[data-variable="%d"] .name`, xray))
	p.click(".soft summary")
	slider := fmt.Sprintf("weight-%d-0", xray)
	eval[bool](p, `document.getElementById($1).focus() || true`, slider)
	for range 40 {
		p.key("ArrowLeft")
	}
	weighed := func(first float64) query.Query {
		e := factorgraph.Evidence{Soft: []factorgraph.Likelihood{{Var: xray, Weights: []float64{first, 1}}}}
		return query.Query{Evidence: e}
	}
	p.says(m, weighed(0.6))
	p.wait(`document.activeElement.id === $1 && location.hash === $2`, slider, hash+"?likelihood=xray=0.6,1")
	p.shot("graph-soft-light-1440")
	p.key("Home")
	p.says(m, weighed(0))
	p.key("End")
	p.says(m, query.Query{})
	p.wait(`location.hash === $1 && !document.querySelector('.evidence')`, hash)
}
