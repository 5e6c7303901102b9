package formats_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/formats"
	"github.com/basetensor/basetensor/pkg/uai"
)

// drawn are networks whose node a is drawn at x = 94, 246 below the top, and b at x = 310 and 67.
var drawn = map[string]string{
	"m.xdsl": `<smile version="1.0"><nodes>
<cpt id="a"><state id="no"/><state id="yes"/><probabilities>0.5 0.5</probabilities></cpt>
<cpt id="b"><state id="no"/><state id="yes"/><probabilities>0.5 0.5</probabilities></cpt>
</nodes><extensions><genie version="1.0" app="GeNIe 4.1">
<node id="a"><name>A</name><position>64 226 124 266</position></node>
<submodel id="s"><position>0 0 9 9</position><node id="b"><position>280 47 340 87</position></node></submodel>
</genie></extensions></smile>`,
	// Hugin's y grows upwards
	"m.net": `net { node_size = (76 36); }
node a { position = (94 -246); states = ("no" "yes"); } node b { states = ("no" "yes"); position = (310 -67); }
potential (a) { data = (0.5 0.5); } potential (b) { data = (0.5 0.5); }`,
	"m.bif": `network unknown { }
variable a { type discrete [ 2 ] { no, yes }; property position = (94, 246) ; }
variable b { property "position = (310, 67)"; type discrete [ 2 ] { no, yes }; property colour = red; }
probability ( a ) { table 0.5, 0.5; } probability ( b ) { table 0.5, 0.5; }`,
	"m.xml": `<BIF VERSION="0.3"><NETWORK><NAME>n</NAME>
<VARIABLE TYPE="nature"><NAME>a</NAME><OUTCOME>no</OUTCOME><OUTCOME>yes</OUTCOME><PROPERTY>position = (94, 246)</PROPERTY></VARIABLE>
<VARIABLE TYPE="nature"><NAME>b</NAME><OUTCOME>no</OUTCOME><OUTCOME>yes</OUTCOME><PROPERTY>position = (310,67)</PROPERTY></VARIABLE>
<DEFINITION><FOR>a</FOR><TABLE>0.5 0.5</TABLE></DEFINITION><DEFINITION><FOR>b</FOR><TABLE>0.5 0.5</TABLE></DEFINITION>
</NETWORK></BIF>`,
}

// TestLayout: where a file draws its nodes is in the model, and in XDSL, NET and native files that are written; with a node
// that is not drawn, or not at a number, there is none.
func TestLayout(t *testing.T) {
	want := []float64{94, 246, 310, 67}
	for file, text := range drawn {
		m, err := formats.Read(strings.NewReader(text), "", file, uai.Limits{})
		if err != nil || !slices.Equal(m.Layout, want) {
			t.Fatalf("%s: %v, %v", file, m, err)
		}
		for _, as := range []formats.Format{formats.XDSL, formats.NET, formats.JSON} {
			if back := copyIn(t, m, as); !slices.Equal(back.Layout, want) {
				t.Errorf("%s as %s: %v", file, as, back.Layout)
			}
		}
		for _, lost := range []string{"94", "246"} {
			other := strings.NewReplacer(lost, "x", "64", "x", "266", "x").Replace(text)
			partly, err := formats.Read(strings.NewReader(other), "", file, uai.Limits{})
			if err != nil || partly.Layout != nil {
				t.Errorf("%s without %s: %v, %v", file, lost, partly, err)
			}
		}
		m.Layout = nil // GeNIe shows no node without a place: what is written then is no layout
		for _, as := range []formats.Format{formats.XDSL, formats.NET} {
			if back := copyIn(t, m, as); back.Layout != nil {
				t.Errorf("%s as %s has the layout %v", file, as, back.Layout)
			}
		}
	}
}

// copyIn is a model after it was written in a format and read.
func copyIn(t *testing.T, m *factorgraph.Model, as formats.Format) *factorgraph.Model {
	t.Helper()
	var b bytes.Buffer
	if err := formats.Write(&b, as, m); err != nil {
		t.Fatal(err)
	}
	back, err := formats.Read(&b, as, "", uai.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return back
}
