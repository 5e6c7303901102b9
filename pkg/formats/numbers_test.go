package formats_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/base/decimal"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/formats"
	"github.com/basetensor/basetensor/pkg/tensor"
	"github.com/basetensor/basetensor/pkg/uai"
)

// one is a model of one variable in every format, with two numbers; the second is in line 3 at least where the format has lines.
var one = map[formats.Format]string{
	formats.UAI:  "MARKOV 1 2 1 1 0\n2\n%s %s",
	formats.JSON: "{\"basetensor_model\":1,\"variables\":[{\"domain\":2}],\n\"factors\":[{\"scope\":[0],\"dense\":{\"values\":[%s,\n%s]}}]}",
	formats.BIF:  "network n { }\nvariable a { type discrete [ 2 ] { x, y }; }\nprobability ( a ) { table %s, %s; }",
	formats.XMLBIF: "<BIF><NETWORK><VARIABLE><NAME>a</NAME><OUTCOME>x</OUTCOME><OUTCOME>y</OUTCOME></VARIABLE>\n" +
		"<DEFINITION><FOR>a</FOR>\n<TABLE>%s %s</TABLE></DEFINITION></NETWORK></BIF>",
	formats.XDSL: "<smile><nodes>\n<cpt id=\"a\"><state id=\"x\"/><state id=\"y\"/>\n" +
		"<probabilities>%s %s</probabilities></cpt></nodes></smile>",
	formats.NET: "net { }\nnode a { states = (\"x\" \"y\"); }\npotential (a) { data = (%s %s); }",
	formats.DSC: "belief network \"n\"\nnode a { type : discrete [ 2 ] = { \"x\", \"y\" }; }\nprobability ( a ) { %s, %s; }",
	formats.CNF: "p cnf 1 0\nc p weight 1 %s 0\nc p weight -1 %s 0\n",
	formats.DNE: "bnet n {\nnode a { states = (x, y);\nprobs = (%s, %s); }; };",
	formats.DSL: "net n {\nnode a { TYPE = CPT; DEFINITION = { NAMESTATES = (x, y);\nPROBABILITIES = (%s, %s); }; }; };",
	formats.PGMX: "<ProbModelXML><ProbNet type=\"BayesianNetwork\"><Variables><Variable name=\"a\">\n" +
		"<States><State name=\"x\"/><State name=\"y\"/></States></Variable></Variables>" +
		"<Potentials><Potential type=\"Table\"><Variables><Variable name=\"a\"/></Variables>\n" +
		"<Values>%s %s</Values></Potential></Potentials></ProbNet></ProbModelXML>",
	formats.FG: "1\n1 0 2 2\n0 %s 1 %s\n",
}

// TestNumbersBeyondFloat64: no format reads a number beyond float64 as 0 or with fewer digits.
func TestNumbersBeyondFloat64(t *testing.T) {
	for as, text := range one {
		for _, number := range []string{"1e-400", "1e-310", "5e-324", "1e400", "0." + strings.Repeat("0", 350) + "1"} {
			_, err := formats.Read(strings.NewReader(fmt.Sprintf(text, "0.5", number)), as, "", uai.Limits{})
			if fault.CodeOf(err) != fault.BadInput || !strings.Contains(err.Error(), "line 3") ||
				!strings.Contains(err.Error(), "beyond the range of float64") {
				t.Errorf("%s: %.20s: %v", as, number, err)
			}
		}
		for _, number := range []string{"0e-400", "1e-300", "2.2250738585072014e-308", "4.9406564584124654e-324"} {
			m, err := formats.Read(strings.NewReader(fmt.Sprintf(text, "0.5", number)), as, "", uai.Limits{})
			want, _ := decimal.Parse(number)
			if err != nil || m.Factors[0].Table.(*tensor.Dense).Data[map[bool]int{true: 0, false: 1}[as == formats.CNF]] != want {
				t.Errorf("%s: %s: %v, %v", as, number, m, err)
			}
		}
	}
}

// TestSmallNumbersComeBack: numbers of fewer than 53 bits are written so that they are read again.
func TestSmallNumbersComeBack(t *testing.T) {
	for as := range one {
		m := &factorgraph.Model{Domains: []int{2}, Names: []string{"1"}, Bayes: true, Factors: []factorgraph.Factor{
			{Scope: []int{0}, Table: &tensor.Dense{Shape: []int{2}, Data: []float64{1, 5e-324}}}}}
		var b bytes.Buffer
		err := formats.Write(&b, as, m)
		if err != nil && strings.Contains(err.Error(), "is not written") {
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", as, err)
		}
		back, err := formats.Read(&b, as, "", uai.Limits{})
		if err != nil || back.Factors[0].Table.(*tensor.Dense).Data[1] != 5e-324 {
			t.Errorf("%s: %v, %v", as, back, err)
		}
	}
}
