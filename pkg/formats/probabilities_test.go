package formats_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/formats"
	"github.com/basetensor/basetensor/pkg/uai"
)

// TestNoProbabilities: a table of a Bayesian network with a negative number, NaN or an infinity is refused, with the place, in every
// format.
func TestNoProbabilities(t *testing.T) {
	dsc := `belief network "t"
node rain { type : discrete[2] = { "no", "yes" }; }
probability ( rain ) { 0.8, 0.2; }`
	texts := map[string]string{"m.dsc": dsc}
	for _, file := range []string{"m.bif", "m.net", "m.xdsl", "m.xml", "m.uai", "m.json"} {
		text, err := os.ReadFile(filepath.Join("testdata", "turned", file))
		if err != nil {
			t.Fatal(err)
		}
		texts[file] = string(text)
	}
	for file, text := range texts {
		for _, number := range []string{"-0.2", "NaN", "nan", "inf", "-Infinity", "1e999", "-1e-300"} {
			wrong := strings.Replace(text, "0.2", number, 1)
			m, err := formats.Read(strings.NewReader(wrong), "", file, uai.Limits{})
			if err == nil {
				t.Errorf("%s with %s: %v", file, number, m.Factors[0].Table)
				continue
			}
			place := "line "
			if file == "m.json" && strings.HasPrefix(number, "-") && number != "-Infinity" {
				place = `the table of "rain" (line 4): entry 1 ("rain" = "yes") is ` + number
			} else if file == "m.json" {
				place = "modeljson: " // JSON has no such number
			}
			if fault.CodeOf(err) != fault.BadInput || !strings.Contains(err.Error(), place) {
				t.Errorf("%s with %s: %v", file, number, err)
			}
		}
	}
}
