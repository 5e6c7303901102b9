package bayesnet

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/tensor"
	"github.com/basetensor/basetensor/pkg/uai"
)

// TestUnknownTables: in every format a table of -1, of ? or of nothing is uniform for a caller that asks for the names of its node, and
// an error with this word for others; rows that are known stay.
func TestUnknownTables(t *testing.T) {
	type read = func(io.Reader, uai.Limits) (*factorgraph.Model, error)
	const (
		bif = "network n { } variable a { type discrete [2] { x, y }; } variable b { type discrete [2] { x, y }; } probability (a) { %s }"
		dsc = "belief network node a { type: discrete [2] = { x, y }; } node b { type: discrete [2] = { x, y }; } probability (a) { %s }"
		net = "net { } node a { states = (\"x\" \"y\"); } node b { states = (\"x\" \"y\"); } potential (a) { %s }"
		xml = "<BIF><NETWORK><VARIABLE><NAME>a</NAME><OUTCOME>x</OUTCOME><OUTCOME>y</OUTCOME></VARIABLE>" +
			"<VARIABLE><NAME>b</NAME><OUTCOME>x</OUTCOME><OUTCOME>y</OUTCOME></VARIABLE><DEFINITION><FOR>a</FOR>%s</DEFINITION>"
		xdsl = `<smile><nodes><cpt id="a"><state id="x"/><state id="y"/>%s</cpt><cpt id="b"><state id="x"/><state id="y"/><parents>a</parents>`
	)
	for _, c := range []struct {
		read       read
		text, want string
	}{
		{ReadBIF, fmt.Sprintf(bif, "table -1 -1;") + "probability (b | a) { table -1, -1, -1, -1; }", "[a b] [0.5 0.5] [0.5 0.5 0.5 0.5]"},
		{ReadBIF, fmt.Sprintf(bif, "table ?, ?;") + "probability (b | a) { (y) ? ?; (x) 0.1 0.9; }", "[a b] [0.5 0.5] [0.1 0.9 0.5 0.5]"},
		{ReadBIF, fmt.Sprintf(bif, "") + "probability (b | a) { table 0.1 0.2 0.9 0.8; }", "[a] [0.5 0.5] [0.1 0.9 0.2 0.8]"},
		{ReadDSC, fmt.Sprintf(dsc, "-1, -1;") + "probability (b | a) { (0): 0.1, 0.9; (1): -1.0, -1.0; }", "[a b] [0.5 0.5] [0.1 0.9 0.5 0.5]"},
		{ReadDSC, fmt.Sprintf(dsc, "") + "probability (b | a) { }", "[a b] [0.5 0.5] [0.5 0.5 0.5 0.5]"},
		{
			ReadNET, fmt.Sprintf(net, "data = (-1 -1);") + "potential (b | a) { data = ((-1 -1) (0.2 0.8)); }",
			"[a b] [0.5 0.5] [0.5 0.5 0.2 0.8]",
		},
		{ReadNET, fmt.Sprintf(net, "") + "potential (b | a) { }", "[a b] [0.5 0.5] [0.5 0.5 0.5 0.5]"},
		{
			ReadXMLBIF, fmt.Sprintf(xml, "<TABLE>-1 -1</TABLE>") +
				"<DEFINITION><FOR>b</FOR><GIVEN>a</GIVEN></DEFINITION></NETWORK></BIF>", "[a b] [0.5 0.5] [0.5 0.5 0.5 0.5]",
		},
		{
			ReadXDSL, fmt.Sprintf(xdsl, "<probabilities>? ?</probabilities>") + "</cpt></nodes></smile>", "[a b] [0.5 0.5] [0.5 0.5 0.5 0.5]",
		},
	} {
		var names []string
		m, err := c.read(strings.NewReader(c.text), uai.Limits{Unknown: func(node string) { names = append(names, node) }})
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		got := fmt.Sprint(names, m.Factors[0].Table.(*tensor.Dense).Data, m.Factors[1].Table.(*tensor.Dense).Data)
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.text, got, c.want)
		}
		_, err = c.read(strings.NewReader(c.text), uai.Limits{})
		if fault.CodeOf(err) != fault.BadInput || !strings.Contains(err.Error(), `the table of "a" is unknown: btn fit learns it`) {
			t.Errorf("%s: %v", c.text, err)
		}
	}
	for text, want := range map[string]string{
		"table -1 0.5;":  `node "a": a row has 1 unknown entries of 2: all are to be known, or none`,
		"table -2 0.5;":  `"-2" is not a probability`,
		"table -1 -1 1;": `node "a", after 2 numbers`,
	} {
		_, err := ReadBIF(strings.NewReader(fmt.Sprintf(bif, text)+"probability (b) { table 1 0; }"), uai.Limits{Unknown: func(string) {}})
		if fault.CodeOf(err) != fault.BadInput || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	noisy := `<smile><nodes><noisymax id="a"><state id="x"/><state id="y"/><parameters>-1 -1</parameters></noisymax></nodes></smile>`
	if _, err := ReadXDSL(strings.NewReader(noisy), uai.Limits{Unknown: func(string) {}}); err == nil ||
		!strings.Contains(err.Error(), "parameters of a noisy-max are unknown") {
		t.Errorf("%v", err)
	}
}
