package formats_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/models/named"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/formats"
	"github.com/basetensor/basetensor/pkg/uai"
)

// displayed are networks whose nodes a and b are shown as "Visit to Asia?" and "Tuberculosis", and c and d alike.
var displayed = map[string]string{
	"m.xdsl": `<smile version="1.0"><nodes>
<cpt id="a"><state id="no"/><state id="yes"/><probabilities>0.5 0.5</probabilities></cpt>
<cpt id="b"><state id="no"/><state id="yes"/><probabilities>0.5 0.5</probabilities></cpt>
<cpt id="c"><state id="no"/><state id="yes"/><probabilities>0.5 0.5</probabilities></cpt>
<cpt id="d"><state id="no"/><state id="yes"/><probabilities>0.5 0.5</probabilities></cpt>
</nodes><extensions><genie version="1.0"><comment><name>a</name></comment>
<node id="a"><name>Visit to
 Asia?</name><interior color="e5f6f7"/></node>
<submodel id="s"><name>Part</name><node id="b"><name>Tuberculosis</name></node><node id="other"><name>Other</name></node></submodel>
<node id="c"><name>Same</name></node><node id="d"><name>Same</name></node>
</genie></extensions></smile>`,
	"m.net": `net { }
node a { label = "Visit to Asia?"; states = ("no" "yes"); }
node b { states = ("no" "yes"); label = "Tuberculosis"; }
node c { label = "Same"; states = ("no" "yes"); }
node d { label = "Same"; states = ("no" "yes"); }
potential (a) { data = (0.5 0.5); } potential (b) { data = (0.5 0.5); }
potential (c) { data = (0.5 0.5); } potential (d) { data = (0.5 0.5); }`,
	"m.dsc": `belief network "t"
node a { name: "Visit to Asia?"; type: discrete[2] = { "no", "yes" }; }
node b { type: discrete[2] = { "no", "yes" }; name: "Tuberculosis"; }
node c { name: "Same"; type: discrete[2] = { "no", "yes" }; }
node d { name = "Same"; type: discrete[2] = { "no", "yes" }; }
probability (a) { 0.5, 0.5; } probability (b) { 0.5, 0.5; } probability (c) { 0.5, 0.5; } probability (d) { 0.5, 0.5; }`,
}

// TestDisplayNames: evidence and targets name a node by the name that its program shows, too. Two nodes that are shown alike are told
// apart by their ids alone. XDSL, NET, DSC and native files keep display names.
func TestDisplayNames(t *testing.T) {
	for file, text := range displayed {
		for _, as := range []formats.Format{"", formats.XDSL, formats.NET, formats.DSC, formats.JSON} {
			m, err := formats.Read(strings.NewReader(text), "", file, uai.Limits{})
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			if as != "" {
				var b bytes.Buffer
				if err := formats.Write(&b, as, m); err != nil {
					t.Fatal(err)
				}
				if m, err = formats.Read(&b, as, "", uai.Limits{}); err != nil {
					t.Fatalf("%s as %s: %v", file, as, err)
				}
			}
			l, err := m.Labels()
			if err != nil {
				t.Fatal(err)
			}
			e, err := named.Evidence(l, `{"Visit to Asia?": "yes", "b": "no"}`)
			if err != nil || len(e.Hard) != 2 || e.Hard[0].Var != 0 || e.Hard[1].Var != 1 {
				t.Errorf("%s as %s: %v, %v", file, as, e, err)
			}
			if e, err = named.Evidence(l, "Visit to Asia?=yes"); err != nil || len(e.Hard) != 1 || e.Hard[0].Var != 0 {
				t.Errorf("%s as %s: %v, %v", file, as, e, err)
			}
			targets, err := named.Variables(l, []string{"Tuberculosis", "a", "c"})
			if err != nil || !slices.Equal(targets, []int{1, 0, 2}) {
				t.Errorf("%s as %s: %v, %v", file, as, targets, err)
			}
			const want = `"Same" is a display name of 2 variables, variable "c" and variable "d" among them`
			if _, err := named.Variables(l, []string{"Same"}); fault.CodeOf(err) != fault.BadInput || !strings.Contains(err.Error(), want) {
				t.Errorf("%s as %s: %v", file, as, err)
			}
			if !slices.Equal(m.Names, []string{"a", "b", "c", "d"}) {
				t.Errorf("%s as %s: %q", file, as, m.Names)
			}
		}
	}
}
