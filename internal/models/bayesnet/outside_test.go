package bayesnet

// Formats of other programs that are read and not written: DNE, DSL and ProbModelXML.

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/uai"
)

// outside are the readers by the endings of their files.
var outside = map[string]func(io.Reader, uai.Limits) (*factorgraph.Model, error){".dne": ReadDNE, ".dsl": ReadDSL, ".pgmx": ReadPGMX}

func readOutside(t *testing.T, file string) (*factorgraph.Model, error) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	return outside[filepath.Ext(file)](strings.NewReader(string(text)), uai.Limits{})
}

// node is a variable as a file has it: its states, its parents, and its distribution for the states of these, the last parent fastest.
type node struct {
	name    string
	states  []string
	parents []string
	rows    [][]float64
}

// networksOutside are the files of testdata, by hand.
var networksOutside = map[string][]node{
	"coat.dne": {
		{"Rain", []string{"dry", "wet"}, nil, [][]float64{{0.75, 0.25}}},
		{"Wind", []string{"calm", "gale"}, []string{"Rain"}, [][]float64{{0.9, 0.1}, {0.4, 0.6}}},
		{"Coat", []string{"none", "light", "heavy"}, []string{"Rain", "Wind"}, [][]float64{{1, 0, 0}, {0, 1, 0}, {0, 1, 0}, {0, 0, 1}}},
		{"Late", []string{"no", "yes"}, []string{"Coat", "Rain"}, [][]float64{{1, 0}, {0.8, 0.2}, {0.7, 0.3}, {0.6, 0.4}, {0, 1}, {0.25, 0.75}}},
	},
	"levels.dne": {
		{"Heat", []string{"-INFINITY to 10", "10 to 20.5", "20.5 to INFINITY"}, nil, [][]float64{{0.25, 0.5, 0.25}}},
		{"Year", []string{"Year 1", "Year 5"}, nil, [][]float64{{0, 1}}},
		{"Flow", []string{"low", "high"}, []string{"Heat"}, [][]float64{{1, 0}, {1, 0}, {0, 1}}},
		{"Code", []string{"3", "7"}, []string{"Year", "Flow"}, [][]float64{{1, 0}, {0, 1}, {0, 1}, {1, 0}}},
		{"Plain", nil, nil, [][]float64{{0.5, 0.25, 0.25}}},
	},
	"single.dne": {
		{"A", []string{"only"}, nil, [][]float64{{1}}},
		{"B", []string{"u", "v"}, []string{"A"}, [][]float64{{0.5, 0.5}}},
	},
	"chest.dsl": {
		{"Smoker", []string{"no", "yes"}, nil, [][]float64{{0.7, 0.3}}},
		{"Tumour", []string{"absent", "present"}, []string{"Smoker"}, [][]float64{{0.99, 0.01}, {0.9, 0.1}}},
		{"Infection", []string{"absent", "mild", "severe"}, nil, [][]float64{{0.8, 0.15, 0.05}}},
		{"Shadow", []string{"none", "some"}, []string{"Tumour", "Infection"}, [][]float64{{1, 0}, {1, 0}, {0, 1}, {0, 1}, {0, 1}, {0, 1}}},
		// seldom only if the leak, the infection and smoking all say so
		{"Cough", []string{"often", "seldom"}, []string{"Infection", "Smoker"}, [][]float64{
			often(0.95), often(0.95 * 0.7), often(0.95 * 0.5), often(0.95 * 0.5 * 0.7), often(0.95 * 0.1), often(0.95 * 0.1 * 0.7)}},
	},
	"one.dsl": {{"A", []string{"u", "v"}, nil, [][]float64{{0.25, 0.75}}}},
	"order.dsl": {
		{"B", []string{"u", "v"}, []string{"A"}, [][]float64{{0.25, 0.75}, {0.5, 0.5}}},
		{"A", []string{"u", "v"}, nil, [][]float64{{0.25, 0.75}}},
	},
	"plain.dsl": {{"A", []string{"u", "v", "w"}, nil, [][]float64{{0.5, 0.25, 0.25}}}},
	"fever.pgmx": {
		{"Flu", []string{"absent", "present"}, nil, [][]float64{{0.9, 0.1}}},
		{"Virus A", []string{"none", "mild", "severe"}, nil, [][]float64{{0.8, 0.15, 0.05}}},
		{"Fever", []string{"no", "low", "high"}, []string{"Virus A", "Flu"}, [][]float64{
			// P(all effects ≤ no), P(all ≤ low) of the leak, the virus and the flu
			upTo(0.95, 0.99), upTo(0.95*0.25, 0.99*0.75),
			upTo(0.95*0.5, 0.99*0.9), upTo(0.95*0.5*0.25, 0.99*0.9*0.75),
			upTo(0.95*0.1, 0.99*0.4), upTo(0.95*0.1*0.25, 0.99*0.4*0.75)}},
		{"Rash", []string{"absent", "present"}, []string{"Flu", "Virus A"}, [][]float64{
			{0.99, 0.01}, {0.7, 0.3}, {0.2, 0.8}, {0.9, 0.1}, {0.6, 0.4}, {0.1, 0.9}}},
		{"Season", []string{"cold", "warm"}, []string{"Rash"}, [][]float64{{0.5, 0.5}, {0.5, 0.5}}},
	},
	"weakest.pgmx": {
		{"Pump", []string{"absent", "present"}, nil, [][]float64{{0.25, 0.75}}},
		{"Valve", []string{"absent", "present"}, nil, [][]float64{{0.5, 0.5}}},
		{"Flow", []string{"none", "half", "full"}, []string{"Valve", "Pump"}, [][]float64{
			// P(both ≥ half), P(both = full) of valve and pump
			atLeast(0.5*0.1, 0), atLeast(0.5, 0), atLeast(0.9*0.1, 0), atLeast(0.9, 0.8*0.8)}},
	},
	"alone.pgmx": {{"A", []string{"u", "v"}, nil, [][]float64{{0.25, 0.75}}}},
}

func often(seldom float64) []float64 { return []float64{1 - seldom, seldom} }

func upTo(first, second float64) []float64 { return []float64{first, second - first, 1 - second} }

func atLeast(second, third float64) []float64 { return []float64{1 - second, second - third, third} }

// TestOutsideFiles: every entry of every table, names and states are those of the file.
func TestOutsideFiles(t *testing.T) {
	for file, nodes := range networksOutside {
		m, err := readOutside(t, file)
		if err != nil || m.Validate() != nil || !m.Bayes || len(m.Domains) != len(nodes) {
			t.Errorf("%s: %+v, %v", file, m, err)
			continue
		}
		position := map[string]int{}
		for v, n := range nodes {
			position[n.name] = v
			if m.Names[v] != n.name || !reflect.DeepEqual(m.States[v], n.states) {
				t.Errorf("%s: node %s with the states %v, want %s with %v", file, m.Names[v], m.States[v], n.name, n.states)
			}
		}
		for v, n := range nodes {
			f := m.Factors[v]
			scope := []int{}
			for _, parent := range n.parents {
				scope = append(scope, position[parent])
			}
			if scope = append(scope, v); !reflect.DeepEqual(f.Scope, scope) {
				t.Errorf("%s: node %s: scope %v, want %v", file, n.name, f.Scope, scope)
				continue
			}
			row := 0
			every(f.Table.Dims(), func(x []int) {
				y := x[len(x)-1]
				if got := entry(f.Table, x); math.Abs(got-n.rows[row][y]) > 1e-15 {
					t.Errorf("%s: P(%s = %d) in row %d is %v, want %v", file, n.name, y, row, got, n.rows[row][y])
				}
				if y == len(n.rows[row])-1 {
					row++
				}
			})
		}
	}
}

// TestOutsideMistakes: a mistake is reported with its line, its element and its code.
func TestOutsideMistakes(t *testing.T) {
	for file, want := range map[string]string{
		"decision.dne":   `unsupported dne: line 4, column 1: invalid model: node "Act" is of the kind decision`,
		"utility.dne":    `unsupported dne: line 3, column 1: invalid model: node "U" is of the kind utility`,
		"equation.dne":   `unsupported dne: line 3, column 1: invalid model: node "B" is given by the equation "B (A) = A", tables are read`,
		"continuous.dne": `unsupported dne: line 2, column 1: invalid model: node "A" is continuous and has no levels`,
		"long.dne":       `dne: line 3, column 1: invalid model: the table of node "A": more than 2 numbers`,
		"parent.dne":     `dne: line 3, column 41: invalid model: no node has the name "C"`,
		"state.dne":      `dne: line 3, column 14: invalid model: node "A" has no state "w"`,
		"decision.dsl":   `unsupported dsl: line 4, column 1: invalid model: "D" is of the kind decision`,
		"utility.dsl":    `unsupported dsl: line 4, column 1: invalid model: "U" is of the kind utility`,
		"short.dsl":      `dsl: line 3, column 1: invalid model: node "A": 1 numbers, 2 are needed`,
		"parent.dsl":     `dsl: line 2, column 44: invalid model: node "A": no node has the id "Z"`,
		"state.dsl":      `dsl: line 3, column 1: invalid model: node "A": resulting state 1: it has no state "w"`,
		"open.dsl":       "dsl: line 4, column 1: syntax error: in net: the file ends where an attribute, a block or '}' is needed",
		"diagram.pgmx":   `unsupported pgmx: line 3, column 3: invalid model: the network is of the type "InfluenceDiagram"`,
		"role.pgmx":      `unsupported pgmx: line 13, column 7: invalid model: variable "D" has the role decision`,
		"numeric.pgmx":   `unsupported pgmx: line 6, column 7: invalid model: variable "X" is numeric`,
		"tree.pgmx":      `unsupported pgmx: line 30, column 7: invalid model: the potential of "B" is of the type "Tree/ADD"`,
		"tuning.pgmx":    `unsupported pgmx: line 30, column 7: invalid model: the potential of "B" is the model "TUNING"`,
		"short.pgmx":     `pgmx: line 35, column 9: invalid model: the potential of "B": 3 numbers, 4 are needed`,
		"link.pgmx":      `unsupported pgmx: line 22, column 7: invalid model: a link has a restriction`,
	} {
		_, err := readOutside(t, file)
		refusedOutside(t, file, err, want)
	}
	head := "bnet x { node A { states = (u, v); "
	for text, want := range map[string]string{
		"":                                             `dne: line 1, column 1: syntax error: at the beginning: the file ends where bnet`,
		"bnet x { }":                                   "the file has no nodes",
		"bnet x { } y":                                 `"y" is found where the end of the file is needed`,
		"bnet x { node A { states = (u; }; };":         `node "A": states: ";" is found where`,
		"bnet x { a = 1":                               "the file ends where ';' is needed",
		"bnet x { a \"b }":                             "a quote without end",
		head + "}; };":                                 `node "A" has no table`,
		head + "probs = (0.5); }; };":                  "1 numbers, 2 are needed",
		head + "probs = (0.5, #1); }; };":              "more than 2 numbers",
		head + "probs = (#2); }; };":                   `has no state "#2", it has 2`,
		head + "probs = (0.5, -1); }; };":              `"-1" is not a probability`,
		head + "probs = (0.5, @undef); }; };":          `"@undef" is not a number`,
		head + "functable = (u, v); }; };":             "more than 1 states",
		head + "delays = (1); }; };":                   "unsupported dne: line 1, column 10: invalid model: node \"A\" has delays",
		"bnet x { node A { numstates = 9999999; }; };": `has "9999999" states`,
		"bnet x { node A { states = (u, v); parents = (A); probs = (1,0,1,0); } }": "is twice among the node and its parents",
		"bnet x { node C { kind = CONSTANT; }; node A { states = (u); parents = (C); probs = (1); }; }": `unsupported dne: line 1, column 73: ` +
			`invalid model: node "A" has the constant "C" as its parent`,
		"bnet x { " + strings.Repeat("a { ", 20):                                    "more than 16 blocks within each other",
		"bnet x { node A { levels = (1, x); states = (u, v); functable = (1); }; }": `the level "x" is no number`,
		"bnet x { node A { levels = (1, 2); states = (u, v); functable = (3); }; }": `has no state for "3" among its levels`,
	} {
		_, err := ReadDNE(strings.NewReader(text), uai.Limits{})
		refusedOutside(t, text, err, want)
	}
}

func refusedOutside(t *testing.T, what string, err error, want string) {
	t.Helper()
	code := fault.BadInput
	if rest, ok := strings.CutPrefix(want, "unsupported "); ok {
		code, want = fault.Unsupported, rest
	}
	if err == nil || !strings.Contains(err.Error(), want) || fault.CodeOf(err) != code {
		t.Errorf("%.80q: %v (%s), want %q (%s)", what, err, fault.CodeOf(err), want, code)
	}
}

// TestStatesWithoutNames: their number is bounded by the bytes of the file, before anything is made of it.
func TestStatesWithoutNames(t *testing.T) {
	for _, c := range []struct {
		read             func(io.Reader, uai.Limits) (*factorgraph.Model, error)
		head, node, tail string
	}{
		{ReadDNE, "bnet x { ", "node n%d { numstates = 1000000; probs = (1); };\n", "}"},
		{ReadDSC, "belief network \"x\" ", "node n%d { type : discrete [ 1000000 ]; }\n", ""},
	} {
		var text strings.Builder
		text.WriteString(c.head)
		for i := range 1000 {
			fmt.Fprintf(&text, c.node, i)
		}
		text.WriteString(c.tail)
		_, err := c.read(strings.NewReader(text.String()), uai.Limits{})
		if !errors.Is(err, uai.ErrLimit) || !strings.Contains(err.Error(), `line 2, column `) ||
			!strings.Contains(err.Error(), `node "n1": the nodes have more than `) {
			t.Error(err)
		}
	}
}

// fuzzOutside holds a reader against properties of every text, without a writer.
func fuzzOutside(f *testing.F, ending string) {
	files, err := filepath.Glob(filepath.Join("testdata", "*"+ending))
	if err != nil || len(files) < 10 {
		f.Fatal(files, err)
	}
	pattern := filepath.Join("..", "internal", "models", "bayesnet", "testdata", "*"+ending)
	fuzz(f, outside[ending], func(w io.Writer, m *factorgraph.Model) error {
		if err := m.Validate(); err != nil {
			return err
		}
		return fault.New(fault.Unsupported, "%s is not written", ending)
	}, pattern)
}

func FuzzDNE(f *testing.F)  { fuzzOutside(f, ".dne") }
func FuzzDSL(f *testing.F)  { fuzzOutside(f, ".dsl") }
func FuzzPGMX(f *testing.F) { fuzzOutside(f, ".pgmx") }

// TestTypeInOtherEncodings: the type of a network is checked, and unknown numbers are refused, whatever the encoding of the file.
func TestTypeInOtherEncodings(t *testing.T) {
	text, err := os.ReadFile("testdata/fever.pgmx")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ old, mistake, want string }{
		{`"BayesianNetwork"`, `"MarkovNetwork"`, `the network is of the type "MarkovNetwork"`},
		{">0.9 0.1<", ">0.9 \xe9<", `"é" is not a number`},
		{"0.95 0.04 0.01", "-1 -1 -1", "numbers of a subpotential are unknown"},
	} {
		latin := strings.NewReplacer("UTF-8", "ISO-8859-1", c.old, c.mistake).Replace(string(text))
		_, err := ReadPGMX(strings.NewReader(latin), uai.Limits{Unknown: func(string) {}})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.mistake, err, c.want)
		}
	}
}
