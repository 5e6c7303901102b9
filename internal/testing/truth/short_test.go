package truth

import (
	"runtime"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/testing/modeltest"
)

// shortModels is the number of models of each profile that `make test` draws; `make truth` draws
// 20,000.
const shortModels = 400

// shortStructured is the number of structured ones, where `make truth` takes 300.
const shortStructured = 28

// shortSeed is the seed of the short form.
const shortSeed = 7

// TestShortForm runs a small number of cases of each profile and of the structured ones: there is no violation, and results of all kinds
// occur.
func TestShortForm(t *testing.T) {
	var out strings.Builder
	s := &Session{Out: &out, Workers: runtime.GOMAXPROCS(0), Limits: DefaultLimits}
	tally := &Tally{}
	for _, p := range []modeltest.Profile{modeltest.Wild, modeltest.Tame} {
		s.RunCases(shortModels, Random(p, shortSeed), tally)
	}
	s.RunCases(shortStructured, Structured(shortSeed), tally)
	var counts strings.Builder
	tally.Print(&counts)
	t.Log(counts.String())
	hasManyValues := tally.Exact >= shortModels && tally.Zeros >= shortModels/10
	if !hasManyValues || tally.Marginals == 0 || tally.Ratios == 0 || tally.Joints == 0 {
		t.Error("the models do not cover what they should")
	}
	for class, n := range tally.Violations {
		t.Errorf("%d × %s", n, class)
	}
	if t.Failed() {
		t.Logf("%s", out.String())
	}
}
