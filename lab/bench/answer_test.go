package bench

import (
	"strings"
	"testing"
)

const exactLine = `{"job":"j","query":0,"status":"ok","error":null,"exact":true,"method":"exact",` +
	`"log_z":2.302585092994046,"log10_z":1,"zero":false,` +
	`"plan":{"width":3,"log2_table":4,"flops":120,"peak_bytes":256},"timings_ms":{"total":1}}` + "\n"

func TestParseAnswer(t *testing.T) {
	a, err := parseAnswer([]byte("a line of something else\n" + exactLine))
	if err != nil {
		t.Fatal(err)
	}
	if *a.Log10Z != 1 || *a.Plan.Width != 3 || *a.Plan.Log2Table != 4 || *a.Plan.Flops != 120 || !a.Exact ||
		a.Method != "exact" {
		t.Errorf("got %+v", a)
	}
	if a.Run != nil || a.Marginals != nil || a.Plan.Slices != nil {
		t.Errorf("fields that are not in the result: %+v", a)
	}
	with := strings.Replace(exactLine, `"peak_bytes":256}`,
		`"peak_bytes":256,"slices":8},"run":{"flops":130,"slices":4},"marginals":[[0.25,0.75],[1]]`, 1)
	if a, err = parseAnswer([]byte(with)); err != nil {
		t.Fatal(err)
	}
	if *a.Run.Flops != 130 || *a.Run.Slices != 4 || *a.Plan.Slices != 8 || len(a.Marginals) != 2 ||
		a.Marginals[0][1] != 0.75 {
		t.Errorf("got %+v", a)
	}
}

func TestParseAnswerRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                    "no result",
		"hello\n":             "no result",
		exactLine + exactLine: "more than one",
		`{"status":"ok"`:      "unexpected end",
		`{"status":"ok","log10_z":null,"zero":false}`: "neither",
		`{"status":"ok","log10_z":1,"zero":true}`:     "both",
		`{"status":"error","error":null}`:             "without its reason",
		`{"status":"fine"}`:                           `status "fine"`,
		`{"status":"ok","log10_z":"1"}`:               "log10_z",
	} {
		if _, err := parseAnswer([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want an error with %q", text, err, want)
		}
	}
}
