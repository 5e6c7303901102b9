package gateway

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"
)

// body is a request in JSON.
func body(t *testing.T, fields map[string]any) string {
	t.Helper()
	b, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestCases: every row is answered under its evidence; a wrong row says its line and variable, a wrong column its number.
func TestCases(t *testing.T) {
	s := start(t, true, nil)
	file := "wet,place\nyes,a\n,b\ndamp,c\nno,d\n"
	ask := map[string]any{"model": json.RawMessage(rain), "cases": file, "targets": []string{"rain"}, "id": []string{"place"}}
	got := want[CaseTable](s, 200, "POST", "/v1/cases", body(t, ask))
	if !reflect.DeepEqual(got.Columns, []string{"row", "place", "P(rain=no)", "P(rain=yes)", "ln_p_evidence", "exact", "error"}) {
		t.Errorf("%q", got.Columns)
	}
	if len(got.Rows) != 4 || got.Failed != 1 || got.HasMore {
		t.Fatalf("%+v", got)
	}
	for i, p := range map[int][2]float64{0: {wetRain, 0.24}, 1: {0.2, 1}, 3: {0.04 / 0.76, 0.76}} { // P(rain = yes | row), P(row)
		row := got.Rows[i]
		q, err := strconv.ParseFloat(row[3], 64)
		ln, errLn := strconv.ParseFloat(row[4], 64)
		if err != nil || errLn != nil || !near(q, p[0]) || !near(ln, math.Log(p[1])) || row[5] != "true" || row[6] != "" {
			t.Errorf("row %d: %q, want %v", i+1, row, p)
		}
	}
	if row := got.Rows[2]; row[0] != "3" || row[1] != "c" || row[2]+row[3] != "" ||
		row[6] != `line 4: variable "wet" has no value "damp": there are "no" and "yes"` {
		t.Errorf("%q", row)
	}
	s.refused(400, `cases: column 2: `, "POST", "/v1/cases", body(t, map[string]any{"text": rain, "cases": file}))
	s.refused(400, `targets: `, "POST", "/v1/cases", body(t, map[string]any{"text": rain, "cases": file, "targets": []string{"snow"}}))
	s.refused(400, "exactly one of model, text and model_name", "POST", "/v1/cases", body(t, map[string]any{"cases": file}))
	s.refused(400, "there is no header", "POST", "/v1/cases", body(t, map[string]any{"text": rain, "cases": ""}))
	s.refused(400, "body: ", "POST", "/v1/cases", `{"cases": 1}`)
	s.refused(415, "application/json", "POST", "/v1/cases", file, "Content-Type", "text/csv")
	if all := want[Jobs](s, 200, "GET", "/v1/jobs?looks=false", ""); len(all.Jobs) != 0 {
		t.Errorf("%+v are listed", all.Jobs)
	}
}

// TestCasesOfARegisteredModel: a thousand rows are answered, and it is said that there are more.
func TestCasesOfARegisteredModel(t *testing.T) {
	s := start(t, true, nil)
	heating, err := os.ReadFile("../../../examples/heating.bif")
	if err != nil {
		t.Fatal(err)
	}
	want[Model](s, 200, "PUT", "/v1/models/heating", string(heating))
	file := "complaint\n" + strings.Repeat("yes\n", mostCases+1)
	ask := map[string]any{"model": "heating", "cases": file, "targets": []string{"pump"}}
	got := want[CaseTable](s, 200, "POST", "/v1/cases", body(t, ask))
	if len(got.Rows) != mostCases || !got.HasMore || got.Failed != 0 || got.Rows[mostCases-1][0] != fmt.Sprint(mostCases) ||
		!reflect.DeepEqual(got.Rows[0][1:], got.Rows[mostCases-1][1:]) {
		t.Errorf("%d rows, %q, more: %v", len(got.Rows), got.Rows[len(got.Rows)-1], got.HasMore)
	}
	ask["cases"] = strings.TrimSuffix(file, "yes\n")
	exactly := want[CaseTable](s, 200, "POST", "/v1/cases", body(t, ask))
	if len(exactly.Rows) != mostCases || exactly.HasMore {
		t.Errorf("%d rows, more: %v", len(exactly.Rows), exactly.HasMore)
	}
}

// TestCasesAreBounded: in time, and in the bytes that a model takes which travels with every job.
func TestCasesAreBounded(t *testing.T) {
	s := start(t, false, func(c *Config) {
		c.Limits.Patience, c.Limits.Body, c.Limits.Bodies = 300*time.Millisecond, 1<<16, 1<<18
	})
	ask := map[string]any{"text": rain, "cases": "wet\nyes\n"}
	s.refused(504, "no answer to all rows", "POST", "/v1/cases", body(t, ask))
	ask["text"] = rain + strings.Repeat(" ", 1<<14)
	s.refused(503, "bytes of bodies", "POST", "/v1/cases", body(t, ask))
}
