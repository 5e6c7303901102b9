package page

import (
	"slices"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/doors/gateway"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/formats"
	"github.com/basetensor/basetensor/pkg/modeljson"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
	"github.com/basetensor/basetensor/pkg/uai"
)

// with is a model with other numbers in one of its tables.
func with(m *factorgraph.Model, factor int, values ...float64) *factorgraph.Model {
	out := *m
	out.Factors = slices.Clone(m.Factors)
	out.Factors[factor].Table = &tensor.Dense{Shape: m.Factors[factor].Table.(*tensor.Dense).Shape, Data: values}
	return &out
}

// enter puts a number in place of that of a cell, by the keyboard.
func (p *tab) enter(id, number string) {
	p.Helper()
	p.wait(`document.getElementById($1)`, id)
	eval[bool](p, `(() => { const e = document.getElementById($1); e.focus(); e.select(); return true })()`, id)
	p.write(number)
}

// TestEditATable: cells of a table are edited and asked; rows that do not sum to 1 are shown and not asked; edits are marked and undone.
func TestEditATable(t *testing.T) {
	_, s, m, hash, p := openGraph(t)
	p.click(`.node[data-variable="7"] .name`)
	p.click(".table summary")
	p.click("#edit-7")
	p.wait(`document.activeElement.id === 'entry-7-0' && document.activeElement.value === '0.9'
		&& document.activeElement.getAttribute('aria-label') === 'P(dysp = no | bronc = no, either = no)'`)

	p.enter("entry-7-0", "0.5")
	p.wait(`document.querySelector('.numbers tr.wrong + .sum').innerText.startsWith('sum 0.6')
		&& [...document.querySelectorAll('.numbers .sum')].filter(e => e.checkVisibility()).length === 1`)
	p.wait(`document.querySelector('.state-of-it .error .message').textContent
		=== 'P(dysp | bronc, either) has a row that does not sum to 1: normalise it' && !document.querySelector('.node .p')`)
	p.wait(`document.activeElement.id === 'entry-7-0'`) // what is said takes nobody's place
	p.click("#normalise-7-0")
	p.says(with(m, 7, 0.5/0.6, 0.1/0.6, 0.3, 0.7, 0.2, 0.8, 0.1, 0.9), query.Query{})
	edited := with(m, 7, 0.4, 0.6, 0.3, 0.7, 0.2, 0.8, 0.1, 0.9)
	p.enter("entry-7-0", "0.4")
	p.enter("entry-7-1", "0.6")
	p.says(edited, query.Query{})
	p.click(`.node[data-variable="6"] [data-state="1"]`)
	seen := query.Query{Evidence: factorgraph.Observe(map[int]int{6: 1})}
	p.says(edited, seen)
	p.wait(`document.querySelector('.node.edited').dataset.variable === '7' && document.querySelectorAll('.node.edited').length === 1
		&& document.querySelector('.node.edited').getAttribute('aria-label').startsWith('dysp: edited table. ')
		&& document.querySelector('.edits li span').textContent === '✎ P(dysp | bronc, either)'`)

	// no negative numbers, and nothing that is no number
	p.click(`.node[data-variable="7"] .name`)
	for _, wrong := range []string{"-0.1", "x", "", "1e999"} {
		p.enter("entry-7-0", wrong)
		if wrong == "" {
			p.key("Delete")
		}
		p.wait(`document.getElementById('entry-7-0').getAttribute('aria-invalid') === 'true'
			&& document.querySelector('.state-of-it .error .message').textContent.includes('no number of 0 or more')
			&& !document.querySelector('.node .p')`)
	}
	p.enter("entry-7-0", "0.4")
	p.says(edited, seen)
	p.shot("graph-edit-light-1440")

	// another view and back: the edits are there; the stored model is as it was
	eval[bool](p, `(location.hash = '#/models') !== ''`)
	p.wait(`document.querySelector('main').dataset.ready === '#/models'`)
	eval[bool](p, `(location.hash = $1) !== ''`, hash)
	p.says(edited, query.Query{})
	var stored gateway.Answer
	s.ask(200, "POST", "/v1/infer", map[string]any{"model_name": hash[len("#/graph/model/"):], "targets": []string{"dysp"}}, &stored)
	// that P(dysp = yes) is 0.4359706 has been known since Lauritzen and Spiegelhalter (1988)
	if got, want := stored.Results[0].Marginals[0].P[0], 1-0.4359706; got < want-1e-6 || got > want+1e-6 {
		t.Errorf("P(dysp = no) of the stored model is %v, want %v", got, want)
	}

	p.click("#take-back-7")
	p.says(m, query.Query{})
	p.wait(`!document.querySelector('.node.edited') && !document.querySelector('.edits')`)
	p.click(`.node[data-variable="7"] .name`)
	p.click(".table summary")
	p.click("#edit-7")
	p.enter("entry-7-1", "0.2")
	p.wait(`document.querySelector('.numbers caption').textContent === 'P(dysp | bronc, either) ✎ edited'`)
	p.click("#undo-7")
	p.says(m, query.Query{})
	p.wait(`document.getElementById('entry-7-1').value === '0.1'
		&& document.querySelector('.numbers caption').textContent === 'P(dysp | bronc, either)'`)
}

// TestSaveAnEditedModel: an edited model is saved in a format, and under a name by a key that may.
func TestSaveAnEditedModel(t *testing.T) {
	b, s := startBrowser(t), serve(t, true)
	s.work()
	m, hash := s.registered()
	edited := with(m, 0, 0.5, 0.5)
	p := b.tab(t, s.url)
	p.allow("status of 401")
	saved := p.saves()
	p.open(hash)
	p.click("#access")
	p.wait(`document.getElementById('key').open`)
	p.click("#key-field")
	p.write(everyKey)
	p.key("Enter")
	p.says(m, query.Query{})
	p.click(`.node[data-variable="0"] .name`)
	p.click(".table summary")
	p.click("#edit-0")
	p.enter("entry-0-0", "0.5")
	p.enter("entry-0-1", "0.5")
	p.says(edited, query.Query{})
	p.click(".save summary")
	p.choose("#save-format", "bif")
	p.click("#save-model")
	back, err := formats.Read(strings.NewReader(saved("model-"+hash[len("#/graph/model/"):][:6]+".bif")), formats.BIF, "", uai.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if got := back.Factors[0].Table.(*tensor.Dense).Data; !slices.Equal(got, []float64{0.5, 0.5}) {
		t.Errorf("asia is %v in the file", got)
	}
	p.click("#save-name")
	p.write("clinic")
	p.click("#register-model")
	p.wait(`document.querySelector('.save [role="status"] a').textContent === 'clinic@1'`)
	p.click(".save [role='status'] a")
	p.wait(`location.hash === '#/graph/model/clinic%401' && !document.querySelector('.edits')`)
	p.says(edited, query.Query{})
}

// TestEditFactors: a factor of a model that is no Bayesian network is edited, also one that is given as a sum of products; its rows
// have no sum.
func TestEditFactors(t *testing.T) {
	b, s := startBrowser(t), serve(t, false)
	s.work()
	var put gateway.Model
	const text = `{"basetensor_model": 1, "variables": [{"name": "a", "states": ["no", "yes"]}, {"name": "b", "states": ["no", "yes"]}],
		"factors": [{"scope": [0, 1], "cp": {"weights": [1, 2], "vectors": [[[1, 0], [0, 1]], [[1, 3], [2, 1]]]}}]}`
	s.ask(201, "POST", "/v1/models", text, &put)
	m, err := modeljson.Decode(strings.NewReader(text), modeljson.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	p := b.tab(t, s.url)
	p.open("#/graph/model/" + put.Digest)
	p.says(m, query.Query{})
	p.click(`.node[data-variable="0"] .name`)
	p.click(".table summary")
	p.click("#edit-0")
	p.enter("entry-0-3", "7") // rows of a factor need not sum to 1
	out := *m
	out.Factors = []factorgraph.Factor{{Scope: []int{0, 1}, Table: &tensor.Dense{Shape: []int{2, 2}, Data: []float64{1, 3, 4, 7}}}}
	p.says(&out, query.Query{})
}
