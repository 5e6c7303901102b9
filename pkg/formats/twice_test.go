package formats_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/formats"
	"github.com/basetensor/basetensor/pkg/uai"
)

// TestTwoModels: a file with two models in one is refused in these words, in every format, with the line of the second.
func TestTwoModels(t *testing.T) {
	for file, c := range map[string]struct {
		begins string // the text of the second model from its root on
		second string
	}{
		"m.bif": {"network", "line 6, column 1:"}, "m.net": {"net", "line 6, column 1:"}, "m.xdsl": {"<smile", "line 5, column 29:"},
		"m.xml": {"<BIF", "line 12, column 1:"}, "m.uai": {"BAYES", "line 11:"}, "m.json": {"{", "line 6, column 1:"},
		"m.dsc": {"belief", "line 4, column 1:"}, "class.net": {"class", "line 3, column 1:"},
	} {
		var text string
		switch file {
		case "m.dsc":
			text = "belief network \"t\"\nnode rain { type : discrete[2] = { \"no\", \"yes\" }; }\nprobability ( rain ) { 0.8, 0.2; }\n"
		case "class.net":
			text = "class a { node rain { states = (\"no\" \"yes\"); }\npotential ( rain ) { data = (0.8 0.2); } }\n"
		default:
			data, err := os.ReadFile(filepath.Join("testdata", "turned", file))
			if err != nil {
				t.Fatal(err)
			}
			text = string(data)
		}
		_, err := formats.Read(strings.NewReader(text+text[strings.Index(text, c.begins):]), "", file, uai.Limits{})
		if fault.CodeOf(err) != fault.BadInput || !strings.Contains(err.Error(), "a second model begins here, and a file has one") ||
			!strings.Contains(err.Error(), c.second) {
			t.Errorf("%s: %v, want %s", file, err, c.second)
		}
	}
}

// TestTwice: a table or a node that is there twice is refused with both lines.
func TestTwice(t *testing.T) {
	for file, c := range map[string]struct{ table, node string }{
		"m.bif": {"probability ( rain ) { table 0.8, 0.2; }\n", "variable rain { type discrete [ 2 ] { no, yes }; }\n"},
		"m.net": {"potential ( rain ) { data = (0.8 0.2); }\n", "node rain { states = (\"no\" \"yes\"); }\n"},
		"m.xml": {"<DEFINITION><FOR>rain</FOR><TABLE>0.8 0.2</TABLE></DEFINITION>\n",
			"<VARIABLE TYPE=\"nature\"><NAME>rain</NAME><OUTCOME>no</OUTCOME><OUTCOME>yes</OUTCOME></VARIABLE>\n"},
		"m.xdsl": {"", "<cpt id=\"rain\"><state id=\"no\"/><state id=\"yes\"/><probabilities>0.8 0.2</probabilities></cpt>\n"},
	} {
		data, err := os.ReadFile(filepath.Join("testdata", "turned", file))
		if err != nil {
			t.Fatal(err)
		}
		text := string(data)
		for what, part := range map[string]string{
			`node "rain" has two tables, the first on line `: c.table, `node "rain" is there twice, first on line `: c.node,
		} {
			if part == "" {
				continue
			}
			at := strings.Index(text, part)
			if at < 0 {
				t.Fatalf("%s: no %q", file, part)
			}
			first := 1 + strings.Count(text[:at], "\n")
			_, err := formats.Read(strings.NewReader(text[:at]+part+text[at:]), "", file, uai.Limits{})
			want, place := fmt.Sprint(what, first), fmt.Sprintf("line %d,", first+1)
			if fault.CodeOf(err) != fault.BadInput || !strings.HasSuffix(err.Error(), want) || !strings.Contains(err.Error(), place) {
				t.Errorf("%s: %v, want %s", file, err, want)
			}
		}
	}
}
