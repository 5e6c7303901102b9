package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/pkg/uai"
)

// TestGeneratedModels reads back the command's models, from its output and from its file.
func TestGeneratedModels(t *testing.T) {
	for args, want := range map[string][2]int{ // variables, factors
		"ising grid --rows 2 --columns 3":                      {6, 13},
		"ising tree -n 7":                                      {7, 13},
		"ising bipartite --left 2 --right 3 --attractive":      {5, 11},
		"ising complete -n 4 --domain 3":                       {4, 10},
		"constraints -n 9 --constraints 12 --domain 3":         {9, 12},
		"latent hopfield -n 12 -k 2 --seed 3":                  {12, 78},
		"latent potts -n 5 -q 4 --field 0 --noise 0.1":         {5, 10},
		"random -n 9 --degree 2 --max-domain 3 --strength 0.5": {9, 6},
	} {
		var out, problems bytes.Buffer
		if code := run(t.Context(), append([]string{"generate"}, strings.Fields(args)...), &out,
			&problems); code != 0 {
			t.Fatalf("%s: exit code %d: %s", args, code, problems.String())
		}
		file := filepath.Join(t.TempDir(), "m.uai")
		if code := run(t.Context(), append([]string{"generate"}, strings.Fields(args+" -o "+file)...),
			&problems, &problems); code != 0 {
			t.Fatalf("%s: exit code %d: %s", args, code, problems.String())
		}
		written, err := os.ReadFile(file)
		if err != nil || !bytes.Equal(written, out.Bytes()) {
			t.Errorf("%s: the file is not what is printed (%v)", args, err)
		}
		m, err := uai.Read(&out, uai.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if len(m.Domains) != want[0] || len(m.Factors) != want[1] {
			t.Errorf("%s: %d variables, %d factors, want %v", args, len(m.Domains), len(m.Factors), want)
		}
	}
	var problems bytes.Buffer
	if code := run(t.Context(), []string{"generate", "random", "--arity", "30"}, &problems,
		&problems); code != 3 ||
		!strings.Contains(problems.String(), "arity 30, 1 to 10") {
		t.Errorf("exit code %d: %s", code, problems.String())
	}
}
