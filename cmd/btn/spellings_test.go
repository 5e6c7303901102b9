package main

import (
	"encoding/csv"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestMissingValuesAsPeopleWriteThem: two cases in every spelling have the same ln P, and fit begins with the same likelihood. ln P are
// ln(0.5·0.4) and ln(0.5·(0.3·0.8 + 0.7·0.1)).
func TestMissingValuesAsPeopleWriteThem(t *testing.T) {
	t.Run("testdata", func(t *testing.T) { spellings(t, "testdata/missing-values", 13) })
	t.Run("field", func(t *testing.T) {
		data := os.Getenv("BTN_DATA")
		if data == "" {
			t.Skip("BTN_DATA names no folder of reference data")
		}
		spellings(t, filepath.Join(data, "field/28-missing-values"), 10)
	})
}

func spellings(t *testing.T, folder string, number int) {
	want := []float64{math.Log(0.5 * 0.4), math.Log(0.5 * (0.3*0.8 + 0.7*0.1))}
	var files []string
	for _, ending := range []string{"*.csv", "*.cas"} {
		found, err := filepath.Glob(filepath.Join(folder, ending))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	if len(files) < number {
		t.Errorf("%d files, want %d", len(files), number)
	}
	model := filepath.Join(folder, "m.bif")
	for _, file := range files {
		code, stdout, stderr := command(t, "cases", model, file, "--redis", "off")
		rows, err := csv.NewReader(strings.NewReader(stdout)).ReadAll()
		if code != 0 || err != nil || len(rows) != 3 {
			t.Errorf("%s: exit code %d, %v: %s%s", file, code, err, stdout, stderr)
			continue
		}
		ln := 0.0
		for i, row := range rows[1:] {
			weight := 1.0
			for c, name := range rows[0] {
				if name == "NumCases" {
					if weight, err = strconv.ParseFloat(strings.Replace(row[c], ",", ".", 1), 64); err != nil {
						t.Errorf("%s: row %d has the weight %q", file, i+1, row[c])
					}
				}
			}
			got, err := strconv.ParseFloat(row[len(row)-3], 64)
			if err != nil || math.Abs(got-want[i]) > 1e-12 {
				t.Errorf("%s: row %d is %q, want %v", file, i+1, row, want[i])
			}
			ln += weight * want[i]
		}
		code, _, stderr = command(t, "fit", model, file, "--redis", "off", "--iterations", "1")
		_, after, _ := strings.Cut(stderr, "iteration     0  ln likelihood ")
		text, _, _ := strings.Cut(after, "\n")
		if got, err := strconv.ParseFloat(text, 64); code != 0 || err != nil || math.Abs(got-ln) > 1e-6 {
			t.Errorf("%s: exit code %d, fit begins at %q, want %v: %s", file, code, text, ln, stderr)
		}
	}
}

// TestSoftCellsOfTheField: a list of weights in a cell is a likelihood.
func TestSoftCellsOfTheField(t *testing.T) {
	data := os.Getenv("BTN_DATA")
	if data == "" {
		t.Skip("BTN_DATA names no folder of reference data")
	}
	folder := filepath.Join(data, "field/30-soft-evidence")
	code, stdout, stderr := command(t, "cases", folder+"/m.bif", folder+"/c.csv", "--redis", "off", "--target", "cond,report")
	rows, err := csv.NewReader(strings.NewReader(stdout)).ReadAll()
	if code != 0 || err != nil || len(rows) != 3 {
		t.Fatalf("exit code %d, %v: %s%s", code, err, stdout, stderr)
	}
	for c, want := range []float64{0.9, 0.1, 0.0903, 0.7161, 0.1935} {
		if got, err := strconv.ParseFloat(rows[1][1+c], 64); err != nil || math.Abs(got-want) > 5e-5 {
			t.Errorf("%s is %q, want %v", rows[0][1+c], rows[1][1+c], want)
		}
	}
}

// TestFitLeavesOutRowsThatAreNoCases: they are named with their lines, and the tables are those of the others.
func TestFitLeavesOutRowsThatAreNoCases(t *testing.T) {
	folder := t.TempDir()
	const model = "testdata/missing-values/m.bif"
	good, bad := "A,C,D\n0,1,0\n1,NA,0\n", "A,C,D\n0,1,0\n0,maybe,1\n1,NA,0\n1,0|1,0\n1,0:0.2|1:0.8,0\n1,0\n"
	_, want, _ := command(t, "fit", model, write(t, folder, "good.csv", good), "--redis", "off", "--seed", "1")
	code, got, stderr := command(t, "fit", model, write(t, folder, "bad.csv", bad), "--redis", "off", "--seed", "1")
	if code != 0 || got != want || want == "" {
		t.Errorf("exit code %d, %s\nwant %s", code, got, want)
	}
	for _, said := range []string{
		`row 2: line 3: variable "C" has no value "maybe"`,
		`row 4: line 5: variable "C" has several values or weights in one cell: a model is fitted to one value or none`,
		`row 5: line 6: variable "C" has several`, "row 6: line 7: 2 cells, the header has 3",
		"bad.csv: 4 of 6 rows are no cases and left out",
	} {
		if !strings.Contains(stderr, said) {
			t.Errorf("no %q in\n%s", said, stderr)
		}
	}
	code, _, stderr = command(t, "fit", model, write(t, folder, "none.csv", "A,C,D\n0,maybe,1\n7,,\n"), "--redis", "off")
	if code != 3 || !strings.Contains(stderr, "none of 2 rows is a case: row 1: line 2: ") {
		t.Errorf("exit code %d, %s", code, stderr)
	}
	code, _, stderr = command(t, "fit", model, write(t, folder, "columns.csv", "A,C,D,note\n"), "--redis", "off")
	if code != 3 || !strings.Contains(stderr, "; --ignore leaves a column out") || strings.Contains(stderr, "--id ") {
		t.Errorf("exit code %d, %s", code, stderr)
	}
}
