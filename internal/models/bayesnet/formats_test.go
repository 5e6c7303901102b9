package bayesnet

import (
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/tensor"
	"github.com/basetensor/basetensor/pkg/uai"
)

// class is a network of Hugin's version 6 and later, within a class, with a flat list and a nested one.
const class = `% Hugin
class Wet_Grass
{
  inputs = ();
  outputs = (Grass);
  node_size = (80 40);
  HR_Grid_X = "10";
  node Rain { label = "Does it rain?"; position = (10 20); states = ("no" "yes"); HR_Group = "0"; }
  discrete node Hose { subtype = boolean; states = ("false" "true"); }
  node Grass { subtype = interval; states = ("" "" ""); state_values = (0 1 5 infinity); }
  node Depth { subtype = number; state_values = (0 0.5); }
  potential (Rain) { data = (0.8 0.2); }
  potential (Hose | Rain) { experience = (3 (4)); data = (0.6 0.4 0.99 1e-2); }
  potential (Grass | Hose Rain) { data = (((1 0 0) (0.2 0.5 0.3)) ((0.1 0.6 0.3)(0 0.1 0.9))); fading = (1); }
  potential (Depth |) { data = (1 0); }
}`

func TestReadNET(t *testing.T) {
	m, err := ReadNET(strings.NewReader(class), uai.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"Rain", "Hose", "Grass", "Depth"}; !reflect.DeepEqual(m.Names, want) {
		t.Errorf("%v, want %v", m.Names, want)
	}
	if want := [][]string{{"no", "yes"}, {"false", "true"}, nil, {"0", "0.5"}}; !reflect.DeepEqual(m.States, want) {
		t.Errorf("%v, want %v", m.States, want)
	}
	want := []float64{1, 0, 0, 0.2, 0.5, 0.3, 0.1, 0.6, 0.3, 0, 0.1, 0.9}
	if !reflect.DeepEqual(m.Factors[2].Table.(*tensor.Dense).Data, want) {
		t.Errorf("%v, want %v", m.Factors[2], want)
	}
	if want := []int{1, 0, 2}; !reflect.DeepEqual(m.Factors[2].Scope, want) { // Rain, the last parent, is faster than Hose
		t.Errorf("%v, want %v", m.Factors[2].Scope, want)
	}
}

// dog is the family-out problem in XMLBIF, with a byte-order mark, a document type and comments within numbers.
const dog = "\ufeff" + `<?xml version="1.0" encoding="US-ASCII"?>
<!DOCTYPE BIF [ <!ELEMENT BIF ( NETWORK )*> ]>
<BIF VERSION="0.3"><NETWORK><NAME>Dog</NAME><PROPERTY>x</PROPERTY>
<VARIABLE TYPE="nature"><NAME> family-out </NAME><OUTCOME>true</OUTCOME><OUTCOME>false</OUTCOME></VARIABLE>
<variable><name>bowel problem</name><outcome>&lt;yes&gt;</outcome><outcome>no</outcome></variable>
<VARIABLE TYPE="nature"><NAME>dog-out</NAME><OUTCOME>true</OUTCOME><OUTCOME>false</OUTCOME></VARIABLE>
<DEFINITION><FOR>family-out</FOR><TABLE>0.15 <!-- it is --> 0.85</TABLE></DEFINITION>
<DEFINITION><FOR>bowel problem</FOR><TABLE>0.01 0.99</TABLE></DEFINITION>
<DEFINITION><FOR>dog-out</FOR><GIVEN>bowel problem</GIVEN><GIVEN>family-out</GIVEN>
<TABLE>0.99 0.01 0.97 0.03 0.9 0.1 0.3 0.7</TABLE></DEFINITION></NETWORK></BIF>`

func TestReadXMLBIF(t *testing.T) {
	m, err := ReadXMLBIF(strings.NewReader(dog), uai.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"family-out", "bowel problem", "dog-out"}; !reflect.DeepEqual(m.Names, want) {
		t.Errorf("%q, want %q", m.Names, want)
	}
	if want := []string{"<yes>", "no"}; !reflect.DeepEqual(m.States[1], want) {
		t.Errorf("%q, want %q", m.States[1], want)
	}
	want := factorgraph.Factor{Scope: []int{1, 0, 2}, Table: &tensor.Dense{Shape: []int{2, 2, 2},
		Data: []float64{0.99, 0.01, 0.97, 0.03, 0.9, 0.1, 0.3, 0.7}}}
	if !reflect.DeepEqual(m.Factors[2], want) {
		t.Errorf("%v, want %v", m.Factors[2], want)
	}
}

func TestReadDSC(t *testing.T) {
	m, err := ReadDSC(strings.NewReader(`belief network
		node a { name: "A; with {"; type : discrete [ 2 ] = { "1", "0" }; position: (1, 2); }
		node b { type: discrete[3]; }
		node "the child" { type = discrete[2] = { low, high }; }
		probability(a) { 0.25, .75; }
		probability(b) { default: 0.5, 0.25, 0.25; }
		probability("the child" | a, b) { (0, 0): 1, 0; (0 1) 0.5, 0.5; (1, 2): 0.125, 0.875;
			("1", 2): 0, 1; default: 0.75, 0.25; }`), uai.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if want := [][]string{{"1", "0"}, nil, {"low", "high"}}; !reflect.DeepEqual(m.States, want) {
		t.Errorf("%v, want %v", m.States, want)
	}
	want := []float64{1, 0, 0.5, 0.5, 0, 1, 0.75, 0.25, 0.75, 0.25, 0.125, 0.875}
	if got := m.Factors[2].Table.(*tensor.Dense).Data; !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestErrorsNameThePlace(t *testing.T) {
	const nodes = "node a { states = (\"x\" \"y\"); }\nnode b { states = (\"x\" \"y\"); }\npotential (a) { data = (0.5 0.5); }\n"
	const vars = `<BIF><NETWORK><VARIABLE><NAME>a</NAME><OUTCOME>x</OUTCOME><OUTCOME>y</OUTCOME></VARIABLE>`
	const types = "node a { type: discrete[2] = {\"x\", \"y\"}; }\nnode b { type: discrete[2] = {\"x\", \"y\"}; }\n" +
		"probability(a) { 0.5, 0.5; }\n"
	for _, c := range []struct {
		read       func(io.Reader, uai.Limits) (*factorgraph.Model, error)
		text, want string
	}{
		{ReadNET, nodes, `net: line 2, column 1: invalid model: node "b" has no table`},
		{ReadNET, nodes + "potential (b | a) { data = (0.5 0.5 0.5); }",
			`line 4, column 40: invalid model: the potential of "b": a parenthesis closes after 3 numbers, 4 are needed`},
		{ReadNET, nodes + "potential (b | a) { data = 0.5 0.5 0.5 0.5 0.5; }", `the potential of "b": more than 4 numbers`},
		{ReadNET, nodes + "potential (b | a) { data = ((0.5) (0.5 0.5 0.5)); }",
			`line 4, column 33: invalid model: the potential of "b": a parenthesis`},
		{ReadNET, nodes + "potential (b | a) { data = (((0.5 0.5)(0.5 0.5))); }",
			`more than 2 parentheses within each other, it has 1 parents`},
		{ReadNET, nodes + "potential (b | a) { data = (0.5 0.5 0.5 x); }",
			`line 4, column 41: syntax error: the potential of "b": "x" is not a number`},
		{ReadNET, nodes + "potential (b | a) { }", `line 2, column 1: invalid model: the table of "b" is unknown: btn fit learns it`},
		{ReadNET, nodes + "potential (b | a) { model_nodes = ();\n model_data = (max(a)); }",
			`line 5, column 2: invalid model: the potential of "b" is the formula (max(a)), numbers are read`},
		{ReadNET, nodes + "potential (b | c) { }", `line 4, column 16: invalid model: no node has the name "c"`},
		{ReadNET, nodes + "node a { states = (\"x\"); }", `line 4, column 1: invalid model: node "a" is there twice`},
		{ReadNET, nodes + "node c { }", `node "c" has 0 states`},
		{ReadNET, nodes + "node c { states = (\"x\" \"x\"); }", `node "c": state "x" is there twice`},
		{ReadNET, nodes + "node c { states = (\"x\"; }",
			`line 4, column 23: syntax error: node "c": states: ";" is found where ';' is needed`},
		{ReadNET, nodes + "decision d { states = (\"x\"); }",
			`line 4, column 1: invalid model: "d" is of the kind decision: a model has discrete chance nodes only`},
		{ReadNET, nodes + "continuous node d { }", `"d" is of the kind continuous`},
		{ReadNET, nodes + "instance d : e (f = g);", `"d" is of the kind instance`},
		{ReadNET, "class c { node a { states = (\"x\"); }", `node "a" has no table`},
		{ReadXMLBIF, vars, `xmlbif: line 1, column 90: syntax error: XML syntax error on line 1: unexpected EOF`},
		{ReadXMLBIF, vars + `</NETWORK></BIF>`, `line 1, column 15: invalid model: node "a" has no table`},
		{ReadXMLBIF, vars + `<DEFINITION><FOR>b</FOR></DEFINITION></NETWORK></BIF>`, `no node has the name "b"`},
		{ReadXMLBIF, vars + `<DEFINITION><FOR>a</FOR></DEFINITION></NETWORK></BIF>`, `the table of "a" is unknown: btn fit learns it`},
		{ReadXMLBIF, vars + `<DEFINITION><TABLE>1</TABLE></DEFINITION></NETWORK></BIF>`, `a DEFINITION needs one FOR`},
		{ReadXMLBIF, vars + `<DEFINITION><FOR>a</FOR><TABLE>1</TABLE></DEFINITION></NETWORK></BIF>`, `node "a": 1 numbers, 2 are needed`},
		{ReadXMLBIF, `<BIF><NETWORK><VARIABLE TYPE="decision"><NAME>d</NAME></VARIABLE></NETWORK></BIF>`, `"d" is of the kind decision`},
		{ReadXMLBIF, `<BIF><NETWORK><VARIABLE></VARIABLE></NETWORK></BIF>`, `a VARIABLE needs one NAME`},
		{ReadXMLBIF, `<?xml version="1.0" encoding="Shift_JIS"?><BIF>` + "\xe4</BIF>", `its encoding "Shift_JIS" is not read`},
		{ReadXMLBIF, `<smile/>`, `the element "smile" where bif is needed`},
		{ReadDSC, types, `dsc: line 2, column 1: invalid model: node "b" has no table`},
		{ReadDSC, types + "probability(b | a) { (0): 0.5, 0.5; }", `line 4, column 1: invalid model: node "b": no row for (a = y)`},
		{ReadDSC, types + "probability(b | a) { (2): 0.5, 0.5; }", `line 4, column 23: invalid model: node "a" has no state 2, it has 2`},
		{ReadDSC, types + "probability(b | a) { (z): 0.5, 0.5; }", `line 4, column 23: invalid model: node "a" has no state "z"`},
		{ReadDSC, types + "probability(b | a) { (0, 1): 0.5, 0.5; }", `node "b": a row names 2 states, it has 1 parents`},
		{ReadDSC, types + "probability(b | a) { (): 0.5, 0.5; }", `node "b": a row names 0 states, it has 1 parents`},
		{ReadDSC, types + "probability(b | a) { 0.5, 0.5; }", `node "b": "0.5," is found where a row is needed`},
		{ReadDSC, types + "probability(b | a) { function: max; }", `node "b" is given by the function "max", rows of numbers are read`},
		{ReadDSC, "node a { type: continuous; }", `node "a" has the type "continuous", discrete is read`},
		{ReadDSC, "node a { type: discrete[3] = {\"x\"}; }", `node "a" has 1 states, 3 are announced`},
		{ReadDSC, "utility u { }", `"u" is of the kind utility`},
	} {
		_, err := c.read(strings.NewReader(c.text), uai.Limits{})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %s", c.text, err, c.want)
		} else if code := fault.CodeOf(err); code != fault.BadInput && code != fault.Unsupported {
			t.Errorf("%q: code %s", c.text, code)
		}
	}
}
