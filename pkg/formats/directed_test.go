package formats_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/pkg/formats"
	"github.com/basetensor/basetensor/pkg/uai"
)

// TestNetworksAreDirected: Bayesian networks of every format, with tables of any number of digits, functions and noisy-max, are known to be
// directed once their rows are normalised.
func TestNetworksAreDirected(t *testing.T) {
	files := []string{"../../examples/engine.xdsl", "../../examples/asia.uai"}
	if data := os.Getenv("BTN_DATA"); data != "" {
		for _, ending := range []string{"*.bif.gz", "*.net", "*.bifxml"} {
			more, _ := filepath.Glob(filepath.Join(data, "bn", ending))
			files = append(files, more...)
		}
	}
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		m, err := formats.Read(f, "", file, uai.Limits{})
		_ = f.Close()
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		normal, rounding := m.Normalised()
		if !normal.Directed() || strings.Contains(file, "engine") && rounding.Rows > 0 {
			t.Errorf("%s: not directed, or %+v", filepath.Base(file), rounding)
		}
	}
}
