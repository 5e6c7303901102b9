package page

import (
	"encoding/csv"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/doors/gateway"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/formats"
	"github.com/basetensor/basetensor/pkg/infer"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/uai"
)

// saves has the browser save files in a folder, and returns what reads them once they are there.
func (p *tab) saves() func(name string) string {
	p.Helper()
	folder := p.TempDir()
	p.do("Page.setDownloadBehavior", map[string]any{"behavior": "allow", "downloadPath": folder}, nil)
	return func(name string) string {
		p.Helper()
		var text []byte
		s := &service{T: p.T}
		s.until(func() bool {
			b, err := os.ReadFile(filepath.Join(folder, name))
			text = b
			return err == nil && len(b) > 0
		})
		return string(text)
	}
}

// choose picks an option of a list, as a hand does.
func (p *tab) choose(selector, value string) {
	p.Helper()
	eval[bool](p, `(() => { const e = document.querySelector($1)
		e.value = $2
		return e.value === $2 && e.dispatchEvent(new Event('change')) })()`, selector, value)
}

// TestSaveAModel: a model that is open is saved in every format that is written, and reads as the same model; losses are said.
func TestSaveAModel(t *testing.T) {
	_, _, m, hash, p := openGraph(t)
	saved := p.saves()
	p.click(".save summary")
	all := eval[[]string](p, `[...document.querySelectorAll('#save-format option')].map(o => o.value)`)
	if len(all) < 10 {
		t.Fatalf("%v", all)
	}
	name := "model-" + hash[len("#/graph/model/"):][:6]
	want := posteriorsOf(t, m)
	for _, format := range all {
		p.choose("#save-format", format)
		p.click("#save-model")
		if format == "cnf" { // the tables are no clauses
			p.allow("status of 422")
			p.wait(`document.querySelector('.save .wrong')?.textContent.includes('cnf')`)
			continue
		}
		p.wait(`document.querySelector('.save [role="status"]').textContent !== ''`)
		said := eval[string](p, `document.querySelector('.save [role="status"]').textContent`)
		if lossless := format != "uai" && format != "fg" && format != "cfn"; lossless != (said == "saved") {
			t.Errorf("%s: the page says %q", format, said)
		}
		back, err := formats.Read(strings.NewReader(saved(name+"."+format)), formats.Format(format), "", uai.Limits{})
		if err != nil {
			t.Errorf("%s: %v", format, err)
			continue
		}
		if got := posteriorsOf(t, back); !sameNumbers(got, want, 1e-6) {
			t.Errorf("%s: its posteriors are %v, want %v", format, got, want)
		}
	}
}

// posteriorsOf are the probabilities of the last values of all variables, in increasing order.
func posteriorsOf(t *testing.T, m *factorgraph.Model) (all []float64) {
	t.Helper()
	r, err := infer.Run(t.Context(), infer.Request{Model: m, Queries: []query.Query{{Marginals: true}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range r[0].Marginals {
		all = append(all, row.P[len(row.P)-1])
	}
	return increasing(all)
}

// TestSaveAnAnswer: the answer of a job is saved as HTTP has it, and its posteriors as a table.
func TestSaveAnAnswer(t *testing.T) {
	b, s := startBrowser(t), serve(t, false)
	s.work()
	var asked gateway.Answer
	s.ask(200, "POST", "/v1/infer", map[string]any{"job": "spelled", "model": json.RawMessage(spelled), "queries": []any{
		map[string]any{"marginals": true}, map[string]any{"marginals": true, "evidence": map[string]any{"50%": "a+b&c"}}}}, &asked)
	p := b.tab(t, s.url)
	saved := p.saves()
	p.open("#/jobs/spelled")
	p.click("#save-json")
	var job gateway.Job
	if err := json.Unmarshal([]byte(saved("spelled.json")), &job); err != nil || job.Job != "spelled" || len(job.Results) != 2 ||
		*job.Results[1].LogZ != *asked.Results[1].LogZ {
		t.Errorf("%+v, %v", job, err)
	}
	p.click("#save-csv")
	rows, err := csv.NewReader(strings.NewReader(saved("spelled.csv"))).ReadAll()
	if err != nil || len(rows) != 1+2*6 {
		t.Fatalf("%v: %v", rows, err)
	}
	var p0 float64
	if err := json.Unmarshal([]byte(rows[7][3]), &p0); err != nil || rows[7][0] != "2" || rows[7][1] != "dose, mg=5" ||
		rows[7][2] != "0,5 = half" || p0 != asked.Results[1].Marginals[0].P[0] {
		t.Errorf("%q: %v", rows[7], err)
	}
}

// increasing sorts numbers.
func increasing(all []float64) []float64 {
	slices.Sort(all)
	return all
}

// sameNumbers reports whether two lists agree up to an error.
func sameNumbers(a, b []float64, most float64) bool {
	return slices.EqualFunc(a, b, func(x, y float64) bool { return math.Abs(x-y) <= most })
}
