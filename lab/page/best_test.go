package page

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// weighed is an assignment with the product of all tables there.
type weighed struct {
	values []int
	weight float64
}

// everyAssignment lists the assignments of a model of two-valued variables that have evidence's values, the heaviest first.
func everyAssignment(m *factorgraph.Model, evidence map[int]int) (all []weighed, sum float64) {
	for bits := range 1 << len(m.Domains) {
		values := make([]int, len(m.Domains))
		isObserved := true
		for v := range values {
			values[v] = bits >> v & 1
			if x, ok := evidence[v]; ok && x != values[v] {
				isObserved = false
			}
		}
		if !isObserved {
			continue
		}
		weight := 1.0
		for _, f := range m.Factors {
			entry := 0
			for _, v := range f.Scope {
				entry = 2*entry + values[v]
			}
			weight *= f.Table.(*tensor.Dense).Data[entry]
		}
		all, sum = append(all, weighed{values, weight}), sum+weight
	}
	slices.SortFunc(all, func(a, b weighed) int { return cmp.Compare(b.weight, a.weight) })
	return all, sum
}

// six writes a number to six significant digits, as the page does.
func six(x float64) string { return fmt.Sprintf("%.6g", x) }

// TestBestAssignments: a job and a graph show the probability of the most probable explanation and the next best ones, by name.
func TestBestAssignments(t *testing.T) {
	_, s, m, hash, p := openGraph(t)
	dysp := variable(t, m, "dysp")
	all, sum := everyAssignment(m, map[int]int{dysp: 1})
	differences := func(k int) string {
		var list []string
		for v, x := range all[k].values {
			if x != all[0].values[v] {
				list = append(list, m.Names[v]+" = "+m.States[v][x])
			}
		}
		return strings.Join(list, ", ")
	}
	const best = 4
	address := fmt.Sprintf("?evidence=dysp=yes&mpe=true&best=%d", best)
	says := func(where string) {
		t.Helper()
		p.wait(`document.querySelectorAll('.next-best li').length === $1`, best-1)
		text := eval[string](p, `document.querySelector($1).textContent`, where)
		for _, words := range []string{
			"P(assignment) = " + six(all[0].weight), "P(assignment | evidence) = " + six(all[0].weight/sum),
			fmt.Sprintf("ln weight %.10f; no other is as good", math.Log(all[0].weight)),
		} {
			if !strings.Contains(text, words) {
				t.Errorf("%s does not say %q: %q", where, words, text)
			}
		}
		rows := eval[[][]string](p, `[...document.querySelectorAll('.next-best li')].map(li => [...li.children].map(c => c.textContent))`)
		for k, row := range rows {
			if want := []string{six(all[k+1].weight / sum), differences(k + 1)}; !slices.Equal(row, want) {
				t.Errorf("%s: %q, want %q", where, row, want)
			}
		}
	}

	s.ask(200, "POST", "/v1/infer", map[string]any{
		"job": "best", "text": string(s.file("asia.json")), "evidence": map[string]string{"dysp": "yes"}, "mpe": true, "best": best,
	}, nil)
	p.open("#/jobs/best")
	p.wait(`document.querySelector('.asked strong')?.textContent === 'yes'`)
	says("main")
	p.look("job-best", "#/jobs/best", `document.querySelectorAll('.next-best li').length === 3`)

	// in a graph, by the small field; the address has the number, and another browser shows the same
	p.open(hash + "?evidence=dysp=yes")
	p.wait(`document.querySelector('.node .p')`)
	p.enter("show-best", fmt.Sprint(best))
	p.key("Enter")
	p.wait(`location.hash === $1 && document.getElementById('show-mpe').checked`, hash+address)
	says("aside")
	p.look("graph-best", hash+address, `document.querySelectorAll('.next-best li').length === 3`)
	says("aside")

	// by the form
	p.click(".head .actions a")
	p.wait(`document.getElementById('ask-best')`)
	p.enter("ask-best", fmt.Sprint(best))
	p.enter("ask-job", "by-form")
	p.click("#ask-go")
	p.wait(`location.hash === '#/jobs/by-form' && document.querySelector('.asked strong')?.textContent === 'yes'`)
	says("main")

	// without evidence there is one probability, of a soft observation the share alone
	for query, want := range map[string]string{"": "P(assignment) = ", "&likelihood=smoke=0.25,1": "P(assignment | evidence) = "} {
		p.open(hash + "?mpe=true" + query)
		p.wait(`document.querySelector('.most-probable')`)
		if text := eval[string](p, `document.querySelector('.most-probable').textContent`); strings.Count(text, "P(assignment") != 1 ||
			!strings.Contains(text, want) {
			t.Errorf("%s: %q", query, text)
		}
	}
}
