// The competition's files, where they are at hand: BTN_DATA names their folder.

package uai

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/pkg/factorgraph"
)

// damaged names a file that is refused, and why: 118 of its 191 clauses were lost in conversion and stand
// there as factors over no variables with the entry 0, so Z is 0 by the file, while its .PR (log10 of
// 593962746002226256572855) counts the models of the original formula. Nothing read from this file can reach
// that number.
var damaged = map[string]string{
	"sat-grid-pbl-0010.cnf": "uai: line 343: invalid model: factor 73: all entries are 0",
}

func TestCompetitionFiles(t *testing.T) {
	root := os.Getenv("BTN_DATA")
	if root == "" {
		t.Skip("BTN_DATA is not set: no competition files")
	}
	// Variables by the files' own headers, read without this package.
	variables := map[string]int{"Grids_11": 100, "Grids_15": 400, "Pedigree_11": 385, "relational_3": 1000,
		"Alchemy_11": 440,
		"CSP_11":     82, "CSP_13": 100, "ObjectDetection_11": 60, "log-1.cnf": 939,
		"complete20_mixed_1.0_s0": 20, "grid100x14_mixed_1.0_s0": 1400}
	models, err := filepath.Glob(filepath.Join(root, "*", "*.uai"))
	if err != nil || len(models) == 0 {
		t.Skipf("no models under BTN_DATA: %v", err)
	}
	for _, path := range models {
		name := strings.TrimSuffix(filepath.Base(path), ".uai")
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if testing.Short() && len(text) > 1<<20 {
			continue
		}
		m, err := Read(bytes.NewReader(text), Limits{})
		if reason, ok := damaged[name]; ok {
			if err == nil || err.Error() != reason {
				t.Errorf("%s: got %v, want %s", name, err, reason)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err := m.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if want, ok := variables[name]; ok && len(m.Domains) != want {
			t.Errorf("%s: %d variables, want %d", name, len(m.Domains), want)
		}
		if words := strings.Fields(string(text)); len(words) != countWords(m.Stats().Variables, len(m.Factors),
			totalOrder(m.Factors), m.Stats().Entries) {
			t.Errorf("%s: %d words do not add up to the model's counts", name, len(words))
		}
		var b bytes.Buffer
		if err := Write(&b, m); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		back, err := Read(&b, Limits{})
		if err == nil {
			back.Lines, m.Lines, back.RowLines, m.RowLines = nil, nil, nil, nil
		}
		if err != nil || !reflect.DeepEqual(back, m) {
			t.Errorf("%s: not the same after writing and reading: %v", name, err)
		}
		checkBeside(t, path, m.Domains)
	}
}

// countWords is the length of a model file in words: kind, two counts, domains, per factor an order, a scope, a length.
func countWords(variables, factors, order, entries int) int {
	return 3 + variables + 2*factors + order + entries
}

// checkBeside reads the evidence and the solutions beside a model.
func checkBeside(t *testing.T, path string, domains []int) {
	t.Helper()
	open := func(suffix string) *os.File {
		f, err := os.Open(path + suffix)
		if err != nil {
			return nil
		}
		t.Cleanup(func() { _ = f.Close() })
		return f
	}
	if f := open(".evid"); f != nil {
		if _, err := ReadEvidence(f, domains); err != nil {
			t.Errorf("%s.evid: %v", path, err)
		}
	}
	if f := open(".PR"); f != nil {
		if _, err := ReadPR(f); err != nil {
			t.Errorf("%s.PR: %v", path, err)
		}
	}
	if f := open(".MAR"); f != nil {
		mar, err := ReadMAR(f)
		if err != nil || len(mar) != len(domains) {
			t.Errorf("%s.MAR: %d variables of %d, %v", path, len(mar), len(domains), err)
			return
		}
		for i, p := range mar {
			sum := 0.0
			for _, v := range p {
				sum += v
			}
			// Six digits a value.
			if len(p) != domains[i] || math.Abs(sum-1) > 1e-5*float64(len(p)) {
				t.Errorf("%s.MAR: variable %d: %d values that sum to %v", path, i, len(p), sum)
			}
		}
	}
}

func totalOrder(factors []factorgraph.Factor) int {
	n := 0
	for _, f := range factors {
		n += len(f.Scope)
	}
	return n
}
