package cases

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
)

// states has variables whose values have names of every kind: words, numbers, words for a missing value, none.
func states() *factorgraph.Labels {
	l, err := factorgraph.NewLabels([]int{3, 2, 3, 2, 3},
		[]string{"level", "flag", "mark", "share", ""},
		[][]string{{"low", "normal", "high|er"}, {"0", "1"}, {"NA", "?", "a:1"}, {"0.5", "1.50"}, nil})
	if err != nil {
		panic(err)
	}
	return l
}

// TestCells: every form of a cell, with the value, the weights or the error that it is. The name of a value wins over other meanings.
func TestCells(t *testing.T) {
	for _, c := range []struct{ column, cell, want string }{
		{"level", "normal", "1 []"},
		{"level", " normal ", "1 []"},
		{"level", "#2", "2 []"},
		{"level", "#3", `has no value "#3"`},
		{"level", "1", `has no value "1"`},
		{"level", "", "-1 []"}, {"level", "?", "-1 []"}, {"level", "*", "-1 []"}, {"level", "NaN", "-1 []"}, {"level", "nan", "-1 []"},
		{"level", "NA", "-1 []"}, {"level", "N/A", "-1 []"}, {"level", "#N/A", "-1 []"}, {"level", "<NA>", "-1 []"}, {"level", "NULL", "-1 []"},
		{"level", "none", "-1 []"}, // a word of this reader
		{"level", "unknown", `has no value "unknown"`},
		{"mark", "NA", "0 []"}, {"mark", "?", "1 []"}, {"mark", "NaN", "-1 []"}, {"mark", "a:1", "2 []"}, {"mark", "none", "-1 []"},
		{"flag", "1.0", "1 []"}, {"flag", "0.0", "0 []"}, {"flag", "1e0", "1 []"}, {"flag", "2.0", `has no value "2.0"`},
		{"flag", "inf", `has no value "inf"`}, {"flag", "-0.0", "0 []"},
		{"share", "1.5", "1 []"}, {"share", ".5", "0 []"}, {"share", "1", `has no value "1"`},
		{"4", "2", "2 []"}, {"4", "2.00", "2 []"}, {"4", "2.5", `has no value "2.5"`},
		{"level", "low|normal", "-1 [1 1 0]"}, {"level", " low | #2 ", "-1 [1 0 1]"}, {"level", "high|er", "2 []"},
		{"level", "normal:0.8|low:0.2", "-1 [0.2 0.8 0]"}, {"level", "normal : 8|low : 2e0", "-1 [2 8 0]"},
		{"flag", "1.0:0.7|0:.3", "-1 [0.3 0.7]"}, {"mark", "a:1|NA", "-1 [1 0 1]"}, {"mark", "a:1:0.5|NA:1", "-1 [1 0 0.5]"},
		{"level", "[0.2, 0.3,0.5]", "-1 [0.2 0.3 0.5]"},
		{"level", "[0.2,0.3]", `variable "level" is "[0.2,0.3]": 2 weights of 3 values`},
		{"level", "[0.2,0.3,-1]", "a weight is at least 0"},
		{"level", "[0.2,0.3,x]", "a list of numbers in brackets is needed"},
		{"level", "low:0.8", `is "low:0.8": a weight of "low" alone says nothing`},
		{"level", "low|nomal", `is "low|nomal": variable "level" has no value "nomal"`},
		{"level", "low|", `has no value ""`},
		{"level", "low|normal:0.3", "some values have a weight, others have none"},
		{"level", "low|normal|low", `"low" is there twice`},
		{"level", "low:-1|normal:2", `"-1" is no weight, a number of at least 0: is negative`},
		{"level", "low:x|normal:2", `"x" is no weight`},
	} {
		columns := Columns{IDs: []string{"id"}, Missing: []string{"none"}}
		in, err := NewReader(strings.NewReader("id,"+c.column+"\n7,\""+c.cell+"\"\n"), states(), columns)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // a text that is remembered has the same value
			x, weights, err := in.cell(in.variableColumns[0].variable, strings.TrimSpace(c.cell))
			got := fmt.Sprint(x, weights)
			if err != nil {
				got = err.Error()
			}
			if !strings.Contains(got, c.want) || err == nil && got != c.want {
				t.Errorf("%s = %q is %s, want %s", c.column, c.cell, got, c.want)
			}
		}
		row, err := in.Next()
		if err != nil || row.Line != 2 || row.Weight != 1 {
			t.Errorf("%q: %+v, %v", c.cell, row, err)
		}
		if row.Err != nil && (fault.CodeOf(row.Err) != fault.BadInput || !strings.HasPrefix(row.Err.Error(), "line 2: ")) {
			t.Errorf("%q: %v", c.cell, row.Err)
		}
	}
}

// utf16 is ASCII text in UTF-16 with a byte-order mark.
func utf16(text string) string {
	return "\xff\xfe" + strings.Join(strings.Split(text, ""), "\x00") + "\x00"
}

// TestTablesAsPeopleWriteThem: the same three cases with every separator, the columns that programs add, comments and weights.
func TestTablesAsPeopleWriteThem(t *testing.T) {
	want := "1 [{0 1} {1 0}] | 1 [{1 1}] | 1 [{0 0}]"
	weighted := "2 [{0 1} {1 0}] | 0.5 [{1 1}] | 0 [{0 0}]"
	for _, c := range []struct {
		text, want string
		columns    Columns
	}{
		{"level,flag\nnormal,0\n,1\nlow,\n", want, Columns{}},
		{"level;flag\nnormal;0\n;1\nlow;\n", want, Columns{}},
		{"level;flag\r\nnormal;0,0\r\n;1,00\r\nlow;\r\n", want, Columns{}},
		{"level\tflag\nnormal\t0\n\t1\nlow\t\n", want, Columns{}},
		{"  level  flag \n normal\t 0\n*  1  \n  low ?\n", want, Columns{}},
		{"level;flag\rnormal;0\r;1\rlow;\r", want, Columns{}},
		{utf16("level\tflag\r\nnormal\t0\r\n\t1\r\nlow\t\r\n"), want, Columns{}}, // "Unicode text" of Excel
		{",level,flag\n0,normal,0.0\n1,,1.0\n2,low,\n", want, Columns{}},
		{"Unnamed: 0,level,flag\n0,normal,0.0\n1,,1.0\n2,low,\n", want, Columns{}},
		{"\"level\", \"flag\"\n\"normal\", \"0\"\n, \"1\"\n\"low\",\n", want, Columns{}},
		{
			"// ~->[CASE-1]->~\n// made today; by nobody, at all\n\nIDnum\tlevel\tflag\n1\tnormal\t0\n// the second\n2\t*\t1\n3\tlow\t*\n",
			want, Columns{},
		},
		{"// a comment\npath,level,flag\n/a,normal,0\n//b,low,1\n/c,,1\n/,low,\n", want, Columns{IDs: []string{"path"}}},
		{"level;n;flag\nnormal;2,000;0\n;0,5;1\nlow;0;\n", weighted, Columns{Weight: "n", Ignore: []string{"n"}}},
		{"\"level\" \"flag\"\n\"1\" \"normal\" 0\n\"2\" NA 1\n\"3\" \"low\" NA\n", want, Columns{}},
		{"IDnum level flag NumCases\n1 normal 0 2\n2 * 1 0.5\n3 low * 0\n", weighted, Columns{}},
		{"level,flag,n\nnormal,0,2\n,1,.5\nlow,,0\n", weighted, Columns{Weight: "n"}},
		{"level;n;flag\nnormal;2,0;0\n;0,5;1\nlow;0;\n", weighted, Columns{Weight: "n", Ignore: []string{"n"}}},
		{"\"a note;\nof two lines\",level,flag\n\"1\n2\",normal,0\nb,,1\n,low,\n", want, Columns{Ignore: []string{"a note;\nof two lines"}}},
	} {
		in, err := NewReader(strings.NewReader(c.text), states(), c.columns)
		if err != nil {
			t.Errorf("%q: %v", c.text, err)
			continue
		}
		var rows []string
		for {
			row, err := in.Next()
			if err == io.EOF {
				break
			}
			if err != nil || row.Err != nil {
				t.Fatalf("%q: %v, %v", c.text, err, row.Err)
			}
			rows = append(rows, fmt.Sprint(row.Weight, row.Evidence.Hard))
		}
		if got := strings.Join(rows, " | "); got != c.want {
			t.Errorf("%q: %s, want %s", c.text, got, c.want)
		}
	}
	for _, c := range []struct {
		text, want string
		columns    Columns
	}{
		{"level;flag;note\n", `column 3: no variable "note"; advice`, Columns{Advice: "; advice"}},
		{"level,n\n", `there is no column called "weight"`, Columns{Weight: "weight"}},
		{"level,NumCases\nlow,-1\n", `line 2: column "NumCases": "-1" is no weight`, Columns{}},
		{"level\tNumCases\nlow\t1,000\n", `"1,000" is no weight, a number of at least 0: its comma may be a decimal one or`, Columns{}},
		{"level,NumCases\nlow,\n", `line 2: column "NumCases": "" is no weight`, Columns{}},
		{"level,n,NumCases\n", `column 3: no variable "NumCases"`, Columns{Weight: "n"}},
		{"level flag\nlow 1 1 0\n", "line 2: 4 cells, the header has 2", Columns{}},
		{"level,flag\n1,low,1\n", "line 2: 3 cells, the header has 2", Columns{}},
		{"l\x00e\x00", "the text is in UTF-16 without a byte-order mark", Columns{}},
		{"// nothing but a comment\n", "there is no header", Columns{}},
	} {
		in, err := NewReader(strings.NewReader(c.text), states(), c.columns)
		if err == nil {
			var row Case
			row, err = in.Next()
			if err == nil {
				err = row.Err
			}
		}
		if fault.CodeOf(err) != fault.BadInput || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %s", c.text, err, c.want)
		}
	}
}

// TestLongHeader: the separator of a header that no buffer holds is found by its beginning.
func TestLongHeader(t *testing.T) {
	const columns = 40_000
	labels, err := factorgraph.NewLabels(slices.Repeat([]int{2}, columns), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	names, cells := make([]string, columns), make([]string, columns)
	for v := range names {
		names[v], cells[v] = fmt.Sprint(v), fmt.Sprint(v%2)
	}
	in, err := NewReader(strings.NewReader(strings.Join(names, ";")+"\n"+strings.Join(cells, ";")), labels, Columns{})
	if err != nil {
		t.Fatal(err)
	}
	row, err := in.Next()
	if err != nil || row.Err != nil || len(row.Evidence.Hard) != columns || row.Evidence.Hard[columns-1].Value != 1 {
		t.Errorf("%d cells, %v, %v", len(row.Evidence.Hard), err, row.Err)
	}
}

// TestHeaderIsReadOnceItIsThere: the separator is found before a row follows, so that rows may be typed.
func TestHeaderIsReadOnceItIsThere(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	fmt.Fprint(w, "// typed\nlevel;flag\n")
	in, err := NewReader(r, states(), Columns{})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(w, "low;1\n")
	if row, err := in.Next(); err != nil || fmt.Sprint(row.Evidence.Hard) != "[{0 0} {1 1}]" {
		t.Errorf("%+v, %v", row, err)
	}
}

// TestSetsAndWeightsEqualEnumeration: posteriors and ln P of rows with sets and weights are those of enumeration.
func TestSetsAndWeightsEqualEnumeration(t *testing.T) {
	m := model(t)
	s := sweep(t, m, 2)
	rows := []struct {
		cells string
		soft  []factorgraph.Likelihood
	}{
		{"clear|dark;", []factorgraph.Likelihood{{Var: 1, Weights: []float64{1, 0, 1}}}},
		{"clear:0.2|dark:0,7;no", []factorgraph.Likelihood{{Var: 0, Weights: []float64{1, 0}}, {Var: 1, Weights: []float64{0.2, 0, 0.7}}}},
		{`"[0.1,2,0.3]";no:3|yes:4`, []factorgraph.Likelihood{{Var: 0, Weights: []float64{3, 4}}, {Var: 1, Weights: []float64{0.1, 2, 0.3}}}},
	}
	text := "\"x,ray\";smoke\n"
	for _, r := range rows {
		text += r.cells + "\n"
	}
	var out bytes.Buffer
	if _, err := s.Run(context.Background(), newDirect(m), reader(t, s, text, Columns{}), &out, nil); err != nil {
		t.Fatal(err)
	}
	got, err := csv.NewReader(&out).ReadAll()
	if err != nil || len(got) != 1+len(rows) {
		t.Fatalf("%v: %q", err, got)
	}
	z0, _ := oracle.Z(m, factorgraph.Evidence{}).Float64()
	for i, r := range rows {
		z, _ := oracle.Z(m, factorgraph.Evidence{Soft: r.soft}).Float64()
		near(t, got[i+1][3], math.Log(z/z0))
		for x := range 2 {
			zx, _ := oracle.Z(m, factorgraph.Evidence{Hard: []factorgraph.Observation{{Var: 2, Value: x}}, Soft: r.soft}).Float64()
			near(t, got[i+1][1+x], zx/z)
		}
	}
}

// TestNothingInTheOutputRuns: carried cells and names that a spreadsheet takes for formulas are text, numbers stay, and terminals get no
// commands. An interrupted run goes on after such rows.
func TestNothingInTheOutputRuns(t *testing.T) {
	m := model(t)
	m.Names[2] = "=sick"
	m.States[0] = []string{"-no", "@yes"}
	s := sweep(t, m, 0)
	text := "id\n=1+1\n+49 30\n-5\n-1e3\n@SUM(A1)\n\"\tx\"\n-cmd|' /C calc'!A0\na=b\n\x1b[31mred\u0085\nM\xfcller\n"
	want := []string{"'=1+1", "'+49 30", "-5", "-1e3", "'@SUM(A1)", "'\tx", "'-cmd|' /C calc'!A0", "a=b", "\ufffd[31mred\ufffd", "M\xfcller"}
	path := filepath.Join(t.TempDir(), "out.csv")
	for _, rows := range []int{4, len(want)} {
		in := reader(t, s, text, Columns{IDs: []string{"id"}})
		if rows < len(want) { // an unfinished run
			j, err := OpenJournal(path, s.Digest(in))
			if err != nil {
				t.Fatal(err)
			}
			table := newTable(j, s.Labels, s.Targets, m.Domains, in.IDs(), 0)
			if err := table.writeRow(table.header()); err != nil {
				t.Fatal(err)
			}
			for range rows {
				c, err := in.Next()
				if err != nil {
					t.Fatal(err)
				}
				c.Err = fmt.Errorf("-said by nobody")
				row, _ := table.resultRow(&c, nil)
				if err := table.writeRow(row); err != nil {
					t.Fatal(err)
				}
			}
			if err := table.flush(); err != nil {
				t.Fatal(err)
			}
			j.Close()
			continue
		}
		j, err := OpenJournal(path, s.Digest(in))
		if err != nil {
			t.Fatal(err)
		}
		done, err := s.Run(context.Background(), newDirect(m), in, nil, j)
		j.Close()
		if err != nil || done.Resumed != 4 || done.Rows != int64(len(want)-4) {
			t.Fatalf("%+v, %v", done, err)
		}
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	got, err := csv.NewReader(bytes.NewReader(b)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for i, w := range want {
		if got[i+1][1] != w {
			t.Errorf("row %d carries %q, want %q", i+1, got[i+1][1], w)
		}
	}
	if got[1][len(got[1])-1] != "'-said by nobody" {
		t.Errorf("the error is %q", got[1][len(got[1])-1])
	}
}

// TestBlankLines: a line of white space alone is no case, in files of one column and of several, and line numbers count it; a row of
// separators alone is a case without observations, and so is "" in a file of one column. White space within quotes stays.
func TestBlankLines(t *testing.T) {
	l, err := factorgraph.NewLabels([]int{2, 2}, []string{"s", "r"}, [][]string{{"no", "yes"}, {"low", "high"}})
	if err != nil {
		t.Fatal(err)
	}
	type row struct{ line, observations int }
	for text, want := range map[string][]row{
		"s\nno\n\nyes\n  \n\t\nno\n \t":                {{2, 1}, {4, 1}, {7, 1}},
		"s\nno\n\"\"\n?\n":                             {{2, 1}, {3, 0}, {4, 0}},
		"s,r\nno,\n  \n,\n , \n\nyes,low\n":            {{2, 1}, {4, 0}, {5, 0}, {7, 2}},
		"s;r\r\nno;\r\n  \r\n;\r\n \r\nyes;low\r\n ":   {{2, 1}, {4, 0}, {6, 2}},
		"s\tr\nno\t\n  \n\t\n \t \n\nyes\tlow\n":       {{2, 1}, {4, 0}, {5, 0}, {7, 2}},
		"s r\nno low\n\t \n\nyes low\n":                {{2, 2}, {5, 2}},
		"  \n\ns,r\nno,\n":                             {{4, 1}},
		"note,s\n\"a\n  \n\nb\",no\n  \nc,yes\n":       {{2, 1}, {7, 1}},
		"// it's \"one\n  \ns,r\n  \n// \"\n \nno,low": {{7, 2}},
	} {
		in, err := NewReader(strings.NewReader(text), l, Columns{Ignore: ignored(text)})
		if err != nil {
			t.Errorf("%.40q: %v", text, err)
			continue
		}
		var got []row
		for {
			c, err := in.Next()
			if err == io.EOF {
				break
			}
			if err != nil || c.Err != nil {
				t.Fatalf("%.40q: %v, %v", text, err, c.Err)
			}
			got = append(got, row{c.Line, len(c.Evidence.Hard)})
		}
		if !slices.Equal(got, want) {
			t.Errorf("%.40q: lines and observations %v, want %v", text, got, want)
		}
	}
}

// ignored are the columns of a text of TestBlankLines that are no variables.
func ignored(text string) []string {
	if strings.HasPrefix(text, "note") {
		return []string{"note"}
	}
	return nil
}
