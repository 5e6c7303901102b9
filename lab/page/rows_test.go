package page

import (
	"encoding/csv"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/infer"
	"github.com/basetensor/basetensor/pkg/query"
)

// TestRowsOfAFile: rows of a CSV file that is dropped on an open model are asked one by one; the table says wrong rows, and is saved.
func TestRowsOfAFile(t *testing.T) {
	_, _, m, _, p := openGraph(t)
	saved := p.saves()
	p.says(m, query.Query{})
	rows := []map[int]int{{7: 1, 2: 1}, {7: 0}, nil, {}}
	p.drop("clinic.csv", []byte("patient,dysp,smoke\na,yes,yes\nb,no,\nc,perhaps,no\nd,,\n"))

	// a column that is none of the model's is named, and then copied
	p.allow("status of 400")
	p.wait(`document.querySelector('.file-rows .error .message').textContent.startsWith('cases: column 1: ')`)
	p.click("#rows-copy")
	p.write("patient")
	p.click("#rows-targets")
	eval[bool](p, `(document.getElementById('rows-targets').select(), true)`)
	p.write("lung, bronc")
	p.key("Enter")
	p.wait(`document.querySelectorAll('.answers tbody tr:not(.why)').length === 4`)
	table := eval[[][]string](p, `[...document.querySelectorAll('.answers tr:not(.why)')].map(r => [...r.children].map(c => c.textContent))`)
	if head := strings.Join(table[0], " "); head != "row patient P(lung=no) P(lung=yes) P(bronc=no) P(bronc=yes) ln_p_evidence exact" {
		t.Fatalf("%q", head)
	}
	file, err := csv.NewReader(strings.NewReader(p.savesRows(saved, "clinic-answers.csv"))).ReadAll()
	if err != nil || len(file) != 5 {
		t.Fatalf("%q, %v", file, err)
	}
	for i, seen := range rows {
		if seen == nil {
			p.wait(`document.querySelectorAll('.answers .why').length === 1 && document.querySelector('.answers .wrong + .why').textContent === $1`,
				`row 3: line 4: variable "dysp" has no value "perhaps": there are "no" and "yes"`)
			continue
		}
		r := underEvidence(t, m, seen)
		for c, want := range map[int]float64{3: r.Marginals[3].P[1], 5: r.Marginals[4].P[1], 6: *r.LogZ} {
			if got, err := strconv.ParseFloat(file[i+1][c], 64); err != nil || math.Abs(got-want) > 1e-12 {
				t.Errorf("row %d, %s: %v, want %v: %v", i+1, table[0][c], got, want, err)
			}
		}
		if table[i+1][3] != shown(r.Marginals[3].P[1]) || table[i+1][1] != string(rune('a'+i)) {
			t.Errorf("%q", table[i+1])
		}
	}

	// an edited table is asked, too
	p.click(`.node[data-variable="7"] .name`)
	p.click(".table summary")
	p.click("#edit-7")
	p.enter("entry-7-0", "0.4")
	p.enter("entry-7-1", "0.6")
	p.wait(`document.querySelector('.file-rows .warning')`)
	p.click("#rows-ask")
	r := underEvidence(t, with(m, 7, 0.4, 0.6, 0.3, 0.7, 0.2, 0.8, 0.1, 0.9), rows[0])
	p.wait(`!document.querySelector('.file-rows .warning') && document.querySelector('.answers tbody tr').children[3].textContent === $1`,
		shown(r.Marginals[3].P[1]))

	// without an open model there is nothing to ask
	p.open("#/jobs")
	p.drop("clinic.csv", []byte("dysp\nyes\n"))
	p.wait(`document.getElementById('toast').textContent === 'clinic.csv: its rows are asked of a model: open one first'`)
}

// underEvidence is the plain call's answer with all posteriors.
func underEvidence(t *testing.T, m *factorgraph.Model, seen map[int]int) query.Result {
	t.Helper()
	r, err := infer.Run(t.Context(), infer.Request{Model: m, Queries: []query.Query{{Evidence: factorgraph.Observe(seen), Marginals: true}}})
	if err != nil {
		t.Fatal(err)
	}
	return r[0]
}

// savesRows saves the answers to rows, and reads the file.
func (p *tab) savesRows(saved func(string) string, name string) string {
	p.Helper()
	p.click("#rows-save")
	return saved(name)
}

// TestManyRows: of a long file the first thousand rows are asked, in any encoding; what is no text is refused in words.
func TestManyRows(t *testing.T) {
	_, _, m, _, p := openGraph(t)
	saved := p.saves()
	p.says(m, query.Query{})
	wide := []byte{0xff, 0xfe}
	for _, c := range "dysp;smoke\r\n" + strings.Repeat("yes;no\r\n", 1200) {
		wide = append(wide, byte(c), 0)
	}
	p.drop("long.CSV", wide)
	p.wait(`document.querySelector('.file-rows .head span').textContent.startsWith('1,000 rows: the first of the file')`)
	if n := eval[int](p, `document.querySelectorAll('.answers tbody tr').length`); n != 100 {
		t.Errorf("%d rows are shown", n)
	}
	if lines := strings.Count(p.savesRows(saved, "long-answers.csv"), "\n"); lines != 1001 {
		t.Errorf("%d lines are saved", lines)
	}
	p.drop("picture.csv", []byte{0x89, 'P', 'N', 'G', 0xff, 0xfe})
	p.wait(`document.querySelector('.file-rows .error .message').textContent === 'picture.csv is not in UTF-8: save it as that'`)
	p.drop("clinic.csv", []byte(fmt.Sprintf("xray\n%s\n", "normal")))
	p.wait(`document.querySelectorAll('.answers tbody tr').length === 1 && !document.querySelector('.file-rows .error')`)
}
