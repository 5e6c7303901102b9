package bench

import (
	"bytes"
	"compress/gzip"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestFormulas: formulas are found, compressed or not, and have their counts from the file beside them.
func TestFormulas(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"a.cnf": "c t wmc\np cnf 12 3\n", "b.cnf": "", "c.uai": "MARKOV 3", "sub/d.cnf": "p cnf 2 1", "sub/counts.csv": "a,b\nd,what\n",
		"counts.csv": "model,log10_z\na,-333.87993539\nb,-1\nz,-1.5\n",
	})
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write([]byte("p cnf 7 3\n")); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "z.cnf.gz"), packed.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	models, err := Find(dir, nil, true)
	if err != nil {
		t.Fatal(err)
	}
	want := []struct {
		name      string
		variables int
		count     float64 // 0: none
	}{{"a", 12, -333.87993539}, {"b", 0, 0}, {"sub/d", 2, 0}, {"z", 7, -1.5}}
	if len(models) != len(want) {
		t.Fatalf("%+v", models)
	}
	for i, m := range models {
		r := Config{Formulas: true}.reference(m.Path)
		if m.Name != want[i].name || m.Variables != want[i].variables || (r.Log10Z != nil) != (want[i].count != 0) {
			t.Errorf("%+v, %+v, want %+v", m, r, want[i])
		}
		if r.Log10Z != nil && (*r.Log10Z != want[i].count || math.Abs(r.Tolerance/map[string]float64{"a": 5e-9, "z": 0.05}[m.Name]-1) > 1e-5) {
			t.Errorf("%s: %v within %v", m.Name, *r.Log10Z, r.Tolerance)
		}
		if wrong := m.Name == "sub/d"; wrong != (r.Err != nil) {
			t.Errorf("%s: %v", m.Name, r.Err)
		}
	}
}

// TestCPUTime: a run above the limit is killed, and counts as a timeout.
func TestCPUTime(t *testing.T) {
	c := Config{Command: stand(t, "spin"), CPU: time.Second, Timeout: time.Minute}
	rows, err := Run(t.Context(), c, []Model{{Name: "m", Path: "m"}}, func(Row) {})
	if err != nil || len(rows) != 1 || rows[0].Status != Timeout || rows[0].Note != "killed after 1s of CPU time" {
		t.Errorf("%+v, %v", rows, err)
	}
	c.Command = stand(t, "answer")
	rows, err = Run(t.Context(), c, []Model{{Name: "m", Path: "m"}}, func(Row) {})
	if err != nil || len(rows) != 1 || rows[0].Status != Unchecked {
		t.Errorf("%+v, %v", rows, err)
	}
}

// TestPageOfCounts: the numbers solved, and solved within each time.
func TestPageOfCounts(t *testing.T) {
	z := -333.8799353901
	rows := []Row{
		{Model: "a", Wall: 9, CPU: 4, Log10Z: &z, Reference: &z, Status: OK},
		{Model: "b", Wall: 90, CPU: 30, Log10Z: &z, Status: Unchecked},
		{Model: "c", Wall: 1, CPU: 1, Status: Timeout},
	}
	var b strings.Builder
	if err := WriteMarkdown(&b, Page{Models: 3, Formulas: true, Within: []int{1, 5, 60}}, rows); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"2 of 3 solved (unchecked 1, timeout 1)", "| 1 | 0 of 3 |\n| 5 | 1 of 3 |\n| 60 | 2 of 3 |\n", "- c: timeout",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, &b)
		}
	}
	if s := SeriesOf(rows, "", CPU); len(s) != 1 || s[0].Times[0] != 4 || s[0].Times[1] != 30 {
		t.Errorf("%+v", s)
	}
}
