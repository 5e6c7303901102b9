package bayesnet

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/tensor"
	"github.com/basetensor/basetensor/pkg/uai"
)

// sprinkler is written as different programs write: quotes, comments, properties, defaults, rows out of order.
const sprinkler = `// rain and a sprinkler
network "back yard" { property "author = nobody"; }
variable rain { type discrete [ 2 ] { no, yes }; property position = (1, 2); }
variable "garden sprinkler" {
  property x = "a;}";
  type discrete[3] { off  low high }
}
/* the grass
   looks wet */
variable grass { type discrete [ 2 ] { dry, "soaking wet"// glued
}; }
probability ( rain ) { table 0.8, 0.2; }
probability ( "garden sprinkler" | rain ) {
  (yes) 1 0 0;
  (no) 0.5, 0.3/* a third */, .2// glued
;
}
probability ( grass | rain, "garden sprinkler" ) {
  default 0.01 0.99;
  (no, off) 1.0, 0.0;
  (no, low) 4e-1, 6E-1;
}
`

func TestReadBIF(t *testing.T) {
	m, err := ReadBIF(strings.NewReader(sprinkler), uai.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"names":  []string{"rain", "garden sprinkler", "grass"},
		"states": [][]string{{"no", "yes"}, {"off", "low", "high"}, {"dry", "soaking wet"}},
		"0":      []float64{0.8, 0.2},
		"1":      []float64{0.5, 0.3, 0.2, 1, 0, 0},
		"2":      []float64{1, 0, 0.4, 0.6, 0.01, 0.99, 0.01, 0.99, 0.01, 0.99, 0.01, 0.99},
		"scopes": [][]int{{0}, {0, 1}, {0, 1, 2}},
	}
	got := map[string]any{"names": m.Names, "states": m.States, "scopes": [][]int{}}
	for j, f := range m.Factors {
		got[string(rune('0'+j))] = f.Table.(*tensor.Dense).Data
		got["scopes"] = append(got["scopes"].([][]int), f.Scope)
	}
	for k, w := range want {
		if !reflect.DeepEqual(got[k], w) {
			t.Errorf("%s: %v, want %v", k, got[k], w)
		}
	}
	if !m.Bayes {
		t.Error("not a Bayesian network")
	}
}

// TestBIFTableHasTheNodeSlowest: P(light-on | family-out) of the dog problem as JavaBayes has it.
func TestBIFTableHasTheNodeSlowest(t *testing.T) {
	m, err := ReadBIF(strings.NewReader(`network d {} variable f { type discrete [2] { true, false }; }
		variable l { type discrete [2] { true, false }; } probability (f) { table 0.15 0.85; }
		probability (l | f) { table 0.6 0.05 0.4 0.95; }`), uai.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := m.Factors[1].Table.(*tensor.Dense).Data, []float64{0.6, 0.4, 0.05, 0.95}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestBIFErrors(t *testing.T) {
	const head = "network n {\n}\nvariable a { type discrete [ 2 ] { x, y }; }\nvariable b { type discrete [ 2 ] { x, y }; }\n"
	const a = "probability ( a ) { table 0.5, 0.5; }\n"
	for _, c := range [][2]string{
		{"", "bif: line 1, column 1: invalid model: the file has no nodes"},
		{
			"netwerk n { }",
			`line 1, column 1: syntax error: between blocks: "netwerk" is found where network, variable or probability is needed`,
		},
		{
			"variable a { type continuous; }",
			`line 1, column 19: invalid model: variable "a" has the type "continuous", discrete is read`,
		},
		{"variable a { type discrete [ 3 ] { x, y }; }", `variable "a" has 2 states, 3 are announced`},
		{"variable a { type discrete [ 0 ] { }; }", `variable "a": the number of states is 1 to 1048576`},
		{"variable a { type discrete [ 2 ] { x, x }; }", `node "a": state "x" is there twice`},
		{head + "variable a { type discrete [ 1 ] { x }; }", `line 5, column 1: invalid model: node "a" is there twice`},
		{head + a, `line 4, column 1: invalid model: node "b" has no table`},
		{head + a + "probability ( b | a ) {\n  (x) 0.5, 0.5;\n}", `line 6, column 1: invalid model: node "b": no row for (a = y)`},
		{
			head + a + "probability ( b | a ) {\n  (x) 0.5, 0.5;\n  (x) 0.5, 0.5;\n}",
			`line 8, column 3: invalid model: node "b": row (a = x) is there twice`,
		},
		{head + a + "probability ( b | a ) {\n  (z) 0.5, 0.5;\n}", `line 7, column 3: invalid model: node "a" has no state "z"`},
		{
			head + a + "probability ( b | a ) {\n  (x, y) 0.5, 0.5;\n}",
			`line 7, column 3: invalid model: node "b": a row names 2 states, it has 1 parents`,
		},
		{
			head + a + "probability ( b | a ) {\n  property weight 1;\n  property function max;\n}",
			`line 8, column 3: invalid model: node "b" is given by the function "max", rows of numbers are read`,
		},
		{
			head + a + "probability ( b | a ) { property \"function  noisy max\"; (x) 1 0; }",
			`node "b" is given by the function "noisy max", rows of numbers are read`,
		},
		{head + a + "probability ( b | c ) {", `line 6, column 19: invalid model: no node has the name "c"`},
		{head + a + a, `line 6, column 1: invalid model: node "a" has two tables, the first on line 5`},
		{head + a + "probability ( b | b ) { table 1 0 0 1; }", `node "b": "b" is twice among the node and its parents`},
		{
			head + a + "probability ( b ) { table 0.5; }",
			`line 6, column 30: syntax error: node "b": ";" is found where a number is needed`,
		},
		{head + a + "probability ( b ) { table 0.5 0.5 0.5; }", `node "b", after 2 numbers: "0.5;" is found where ';' is needed`},
		{head + a + "probability ( b ) { table 0.5 x; }", `line 6, column 31: syntax error: node "b": "x" is not a number`},
		{head + a + "probability ( b ) { table 0.5 NaN; }", `line 6, column 31: invalid model: node "b": "NaN" is not finite`},
		{head + a + "probability ( b ) { table 0.5 -0.5; }", `invalid model: node "b": "-0.5" is not a probability`},
		{head + a + "probability ( b ) { table 0.5 0x1p-1; }", `syntax error: node "b": "0x1p-1" is not a number`},
		{head + a + "probability ( b ) { table 0.5 1e999; }", `invalid model: node "b": "1e999" is beyond the range of float64`},
		{head + a + "probability ( b ) { }", `line 4, column 1: invalid model: the table of "b" is unknown: btn fit learns it`},
		{head + a + "probability ( b ) { default 1 0; default 1 0; }", `node "b" has two defaults`},
		{head + a + "probability ( b ) { default 1 0; table 1 0; }", `node "b" has a default and a table`},
		{head + a + "probability ( b ) { table 0.5, 0.5", `node "b", after 2 numbers: the file ends where ';' is needed`},
		{head + "/* " + a, `line 5, column 1: syntax error: a comment without end`},
		{head + "variable \"c", `line 5, column 10: syntax error: a quote without end`},
		{head + "probability (a | b) { default 1 0; } probability (b | a) { default 1 0; }",
			`line 3, column 1: invalid model: node "a" is its own ancestor: a → b → a`},
	} {
		text, want := c[0], c[1]
		_, err := ReadBIF(strings.NewReader(text), uai.Limits{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
			continue
		}
		code := fault.BadInput
		if strings.Contains(want, "the function") {
			code = fault.Unsupported
		}
		if fault.CodeOf(err) != code || !errors.Is(err, uai.ErrSyntax) && !errors.Is(err, uai.ErrModel) {
			t.Errorf("%q: code %s, %v", text, fault.CodeOf(err), err)
		}
	}
}

// TestTablesAreBounded: a short file takes no large table, and limits hold.
func TestTablesAreBounded(t *testing.T) {
	var b strings.Builder
	b.WriteString("network n {}\n")
	for _, name := range []string{"a", "b", "c"} {
		b.WriteString("variable " + name + " { type discrete [ 200 ] {")
		for i := range 200 {
			b.WriteString(" s" + string(rune('a'+i/26)) + string(rune('a'+i%26)))
		}
		b.WriteString(" }; }\n")
	}
	text := b.String() + "probability ( a | b, c ) { }"
	_, err := ReadBIF(strings.NewReader(text), uai.Limits{})
	if !errors.Is(err, uai.ErrLimit) || !strings.Contains(err.Error(), `node "a": its table needs 8000000 entries, this file may have`) {
		t.Error(err)
	}
	if _, err = ReadBIF(strings.NewReader(sprinkler), uai.Limits{Entries: 19}); !errors.Is(err, uai.ErrLimit) {
		t.Error(err)
	}
	if _, err = ReadBIF(strings.NewReader(sprinkler), uai.Limits{Bytes: int64(len(sprinkler)) - 1}); !errors.Is(err, uai.ErrLimit) {
		t.Error(err)
	}
	if _, err = ReadBIF(strings.NewReader(sprinkler), uai.Limits{Bytes: int64(len(sprinkler)), Entries: 20}); err != nil {
		t.Error(err)
	}
}

// TestWhatIsPassedOverIsBounded: an unclosed block is refused long before the end of the file, and lists take no memory.
func TestWhatIsPassedOverIsBounded(t *testing.T) {
	braces, names := strings.Repeat("{", mostSkipped+2), strings.Repeat("a ", 2<<20)
	for text, read := range map[string]func(io.Reader, uai.Limits) (*factorgraph.Model, error){
		"network n { property " + braces:                  ReadBIF,
		"variable a { type discrete [ 2 ] { " + names:     ReadBIF,
		"belief network\nproperties " + braces:            ReadDSC,
		"belief network\nnode a { other " + braces:        ReadDSC,
		"net { a = " + strings.Repeat("(", mostSkipped+2): ReadNET,
		"net { } node a { states = (" + names:             ReadNET,
	} {
		if _, err := read(strings.NewReader(text), uai.Limits{}); !errors.Is(err, uai.ErrLimit) || fault.CodeOf(err) != fault.BadInput {
			t.Errorf("%.40q: %v", text, err)
		}
	}
}

// TestCyclesAreShown: a cycle is shown as a path along its arcs, from a parent to its child, without nodes beside it.
func TestCyclesAreShown(t *testing.T) {
	node := func(name string, parents ...string) string {
		text := "probability ( " + name
		for k, parent := range parents {
			text += []string{" | ", ", "}[min(k, 1)] + parent
		}
		return text + " ) { default 1; }\n"
	}
	declared := func(names ...string) (text string) {
		for _, name := range names {
			text += "variable " + name + " { type discrete [ 1 ] { x }; }\n"
		}
		return text
	}
	long, names := "", []string{}
	for k := range 20 {
		names = append(names, fmt.Sprintf("n%d", k))
		long += node(fmt.Sprintf("n%d", k), fmt.Sprintf("n%d", (k+19)%20))
	}
	for text, want := range map[string]string{
		declared("r", "a", "b", "c", "d") + node("r") + node("a", "r", "c") + node("b", "r", "a") + node("c", "b") +
			node("d", "a", "c"): "a → b → c → a",
		declared("a") + node("a", "a"): "is twice among the node and its parents",
		declared(names...) + long:      "n0 → n1 → n2 → n3 → n4 → n5 → n6 → n7 → n8 → n9 → n10 → n11 → … → n0",
	} {
		_, err := ReadBIF(strings.NewReader(text), uai.Limits{})
		if err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestStatesAreListed: an error about a state that there is not lists all if they are few.
func TestStatesAreListed(t *testing.T) {
	const head = "variable a { type discrete [ 3 ] { low, mid, high }; }\nvariable b { type discrete [ 2 ] { no, yes }; }\n"
	for text, want := range map[string]string{
		head + "probability ( b | a ) { (lov) 1, 0; }": `node "a" has no state "lov": did you mean "low"? There are "low", "mid" and "high"`,
		head + "probability ( b | a ) { (xxx) 1, 0; }": `node "a" has no state "xxx": there are "low", "mid" and "high"`,
		head + "probability ( b | aa ) { (x) 1, 0; }":  `no node has the name "aa": did you mean "a"?`,
	} {
		if _, err := ReadBIF(strings.NewReader(text), uai.Limits{}); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
