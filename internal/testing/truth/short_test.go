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

func TestShortForm(t *testing.T) {
	var out strings.Builder
	s := &Session{Out: &out, Workers: runtime.GOMAXPROCS(0), Limits: DefaultLimits}
	all := &Tally{}
	for _, p := range []modeltest.Profile{modeltest.Wild, modeltest.Tame} {
		s.Cases(shortModels, Random(p, shortSeed), all)
	}
	s.Cases(shortStructured, Structured(shortSeed), all)
	var counts strings.Builder
	all.Print(&counts)
	t.Log(counts.String())
	if all.Exact < shortModels || all.Zeros < shortModels/10 || all.Marginals == 0 || all.Ratios == 0 ||
		all.Joints == 0 {
		t.Error("the models do not cover what they should")
	}
	for class, n := range all.Violations {
		t.Errorf("%d × %s", n, class)
	}
	if t.Failed() {
		t.Logf("%s", out.String())
	}
}
