package bayesnet

import (
	"fmt"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/pkg/uai"
)

// TestIntervalStates: intervals are states without quotes, and rows name them; lists that were read as words before stay words.
func TestIntervalStates(t *testing.T) {
	for list, want := range map[string][]string{
		"(0,20], (20,99]":             {"(0,20]", "(20,99]"},
		"(0, 1,999], (1,999, Inf)":    {"(0, 1,999]", "(1,999, Inf)"},
		"[0;20[, [20;99[":             {"[0;20[", "[20;99["},
		"]-inf;0], ]0;1], ]1;+inf[":   {"]-inf;0]", "]0;1]", "]1;+inf["},
		"( 0 ,  20 ), yes, [20,\n30)": {"( 0 , 20 )", "yes", "[20, 30)"},
		"<5, >=5":                     {"<5", ">=5"},
		"(0-20), [low, high]":         {"(0-20)", "[low", "high]"},
		"none or low, (0,1]":          {"none or low", "(0,1]"},
		"a b":                         {"a", "b"},
	} {
		text := fmt.Sprintf("variable x { type discrete [ %d ] { %s }; }\nvariable z { type discrete [ 2 ] { yes, no }; }\n", len(want), list) +
			"variable y { type discrete [ 2 ] { yes, no }; }\nprobability ( z ) { table 0.5, 0.5; }\n" +
			"probability ( x ) { table 0.5" + strings.Repeat(", 0.5", len(want)-1) + "; }\nprobability ( y | x, z ) {\n"
		for _, state := range want {
			text += fmt.Sprintf("(%s, no) 0.25, 0.75;\n(%s, yes) 0.5, 0.5;\n", state, state)
		}
		m, err := ReadBIF(strings.NewReader(text+"}"), uai.Limits{})
		if err != nil {
			t.Errorf("%s: %v\n%s", list, err, text)
			continue
		}
		if got := strings.Join(m.States[0], "|"); got != strings.Join(want, "|") {
			t.Errorf("%s: %q, want %q", list, m.States[0], want)
		}
	}
	for list, want := range map[string]string{
		"(0,20], (20,99], (99,100]": "has 6 states, 2 are announced",
		"[0;20], ]20;99], x":        "has 3 states, 2 are announced",
		"a; b":                      `";" is found where a name is needed`,
	} {
		_, err := ReadBIF(strings.NewReader("variable x { type discrete [ 2 ] { "+list+" }; }"), uai.Limits{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", list, err)
		}
	}
}
