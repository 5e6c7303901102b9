package page

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
)

// clauses are those of a formula over four variables: -2 says that variable 2 is false.
var clauses = [][]int{{1, 2}, {-2, 3, 4}, {-1, -4}}

// formula is a file of the clauses. Variables have weights when they are true, and one less that when they are false; none: 1 each.
func formula(weights []float64) string {
	var b strings.Builder
	fmt.Fprintf(&b, "p cnf 4 %d\n", len(clauses))
	for i, w := range weights {
		fmt.Fprintf(&b, "c p weight %d %v 0\nc p weight -%d %v 0\n", i+1, w, i+1, 1-w)
	}
	for _, clause := range clauses {
		b.WriteString(strings.Trim(fmt.Sprint(clause), "[]") + " 0\n")
	}
	return b.String()
}

// satisfying adds the weights of the assignments that satisfy all clauses, one by one.
func satisfying(weights []float64) (sum float64) {
	for x := range 16 {
		isTrue := func(variable int) bool { return x>>(variable-1)&1 == 1 }
		weight := 1.0
		for _, clause := range clauses {
			holds := false
			for _, literal := range clause {
				holds = holds || isTrue(max(literal, -literal)) == (literal > 0)
			}
			if !holds {
				weight = 0
			}
		}
		for i, w := range weights {
			if isTrue(i + 1) {
				weight *= w
			} else {
				weight *= 1 - w
			}
		}
		sum += weight
	}
	return sum
}

// TestCounts: Z of a formula is called a count in lists, jobs, graphs and saved answers, and never ln Z or a probability of evidence.
func TestCounts(t *testing.T) {
	b, s := startBrowser(t), serve(t, false)
	s.work()
	weights := []float64{0.3, 0.25, 0.6, 0.7}
	whole, weighted := satisfying(nil), satisfying(weights)
	s.ask(200, "PUT", "/v1/models/clauses?format=cnf", formula(nil), nil)
	for job, body := range map[string]map[string]any{
		"plain":    {"text": formula(nil)},
		"named":    {"model_name": "clauses", "marginals": true},
		"weighted": {"text": formula(weights)},
		"none":     {"text": "p cnf 1 2\n1 0\n-1 0\n"},
		"estimate": {"text": formula(weights), "settings": map[string]any{"method": "regions"}},
	} {
		body["job"] = job
		s.ask(200, "POST", "/v1/infer", body, nil)
	}
	count := fmt.Sprintf("count = %.0f", whole)
	lnCount := fmt.Sprintf("ln count = %.10f", math.Log(weighted))
	p := b.tab(t, s.url)
	p.open("#/jobs")
	for job, want := range map[string]string{
		"plain": count, "named": count, "weighted": lnCount, "none": "count = 0", "estimate": "ln count ≈",
	} {
		row := `[...document.querySelectorAll('.jobs tbody tr')].find(r => r.querySelector('.id').textContent === $1)`
		p.wait(row+`.querySelector('.answer').textContent.startsWith($2)`, job, want)
	}
	says := func(name, words string) {
		t.Helper()
		p.wait(`document.querySelector('.headline')?.innerText.includes($1)`, words)
		p.shot("count-" + name)
		text := eval[string](p, `document.querySelector('main').textContent`)
		for _, wrong := range []string{"ln Z", "Z =", "log10 Z", "P(evidence)"} {
			if strings.Contains(text, wrong) {
				t.Errorf("%s: the page says %q of a formula", name, wrong)
			}
		}
	}
	for job, want := range map[string]string{
		"plain": fmt.Sprintf("count = %.0f (ln = %.10f)", whole, math.Log(whole)), "weighted": lnCount, "none": "count = 0",
		"estimate": "ln count ≈",
	} {
		p.open("#/jobs/" + job)
		says(job, want)
	}
	p.open("#/graph/model/clauses")
	says("graph", count)

	saved := p.saves()
	for job, want := range map[string]string{"plain": fmt.Sprintf(`{"count":%.0f}`, whole), "none": `{"count":0}`} {
		p.open("#/jobs/" + job)
		p.click("#save-json")
		var answer struct {
			Job     string
			Counts  []json.RawMessage
			Results []struct{ Zero bool }
		}
		if err := json.Unmarshal([]byte(saved(job+".json")), &answer); err != nil || answer.Job != job || len(answer.Results) != 1 ||
			len(answer.Counts) != 1 || string(answer.Counts[0]) != want {
			t.Errorf("%+v, %v", answer, err)
		}
	}
	p.open("#/jobs/weighted")
	p.click("#save-json")
	var answer struct {
		Counts []struct {
			Count   *float64
			LnCount float64 `json:"ln_count"`
		}
	}
	err := json.Unmarshal([]byte(saved("weighted.json")), &answer)
	if err != nil || len(answer.Counts) != 1 || answer.Counts[0].Count != nil ||
		math.Abs(answer.Counts[0].LnCount-math.Log(weighted)) > 1e-12 {
		t.Errorf("%+v, %v", answer, err)
	}
}

// TestWhatZIs: the list and the job call Z P(evidence) only of a Bayesian network whose rows sum to 1, and conflicts are said once.
func TestWhatZIs(t *testing.T) {
	b, s := startBrowser(t), serve(t, false)
	s.work()
	rain := func(values string) string {
		return `{"basetensor_model": 1, "bayes": true, "variables": [{"name": "rain", "states": ["no", "yes"]}], "factors": [{"scope": [0],
			"dense": {"values": [` + values + `]}}]}`
	}
	yes := map[string]string{"rain": "yes"}
	s.ask(200, "POST", "/v1/infer", map[string]any{"job": "normalised", "text": rain("0.75, 0.25"), "evidence": yes}, nil)
	s.ask(200, "POST", "/v1/infer", map[string]any{"job": "rows", "text": rain("0.25, 0.25"), "evidence": yes}, nil)
	s.ask(200, "POST", "/v1/infer", map[string]any{"job": "impossible", "text": rain("1, 0"), "evidence": yes, "conflict": true}, nil)
	p := b.tab(t, s.url)
	for job, want := range map[string]string{
		"normalised": "P(evidence) = 0.25", "rows": fmt.Sprintf("ln Z = %.10f", math.Log(0.25)), "impossible": "Z = 0",
	} {
		p.open("#/jobs")
		p.wait(`[...document.querySelectorAll('.jobs tbody tr')].some(r => r.querySelector('.id').textContent === $1 &&
			r.querySelector('.answer').textContent === $2)`, job, want)
		p.open("#/jobs/" + job)
		p.wait(`document.querySelector('.headline')?.textContent.startsWith($1)`, want)
		if warnings := eval[int](p, `document.querySelectorAll('.warning').length`); (warnings == 1) != (job != "normalised") {
			t.Errorf("%s: %d warnings", job, warnings)
		}
	}
}
