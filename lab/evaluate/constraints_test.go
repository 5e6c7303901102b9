package evaluate

import (
	"math"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/pkg/query"
)

// TestConstraintsAreWithinWhatIsStated: parity codes and colourings like those that were stated
// within 7e-13 and 0.047, and were off by 4e-3 and 0.63.
func TestConstraintsAreWithinWhatIsStated(t *testing.T) {
	seeds := uint64(5)
	if testing.Short() {
		seeds = 2
	}
	method := Settings("bond-4", query.Settings{Method: query.MethodTruncated, Bond: 4, Memory: 512 << 10})
	stated := 0
	for _, x := range []instance{
		{family: parities, size: 48, strength: 0.06},
		{family: colourings, size: 44, strength: 1.8},
	} {
		for x.seed = 20; x.seed < 20+seeds; x.seed++ {
			m, err := x.build()
			if err != nil {
				t.Fatal(err)
			}
			exact, err := solved(t.Context(), x, m, false)
			if err != nil {
				t.Fatal(err)
			}
			got, err := method.Solve(t.Context(), m, false)
			if err != nil || math.IsInf(exact.LnZ, -1) { // a total at or below 0, or no room; Z = 0 no estimate can show
				t.Logf("%s: ln Z = %v, %v", x, exact.LnZ, err)
				continue
			}
			off := math.Abs(got.LnZ - exact.LnZ)
			t.Logf("%s: off by %.2g, stated %.2g", x, off, got.Uncertainty)
			if off > 3*got.Uncertainty+settled {
				t.Errorf("%s: off by %v, stated %v", x, off, got.Uncertainty)
			}
			if got.Uncertainty > settled {
				stated++
			}
		}
	}
	if stated < 2 {
		t.Errorf("%d models have an uncertainty to check", stated)
	}
}

func TestImpossibleModelsAreCountedApart(t *testing.T) {
	rows := []Row{
		{
			Method:      "m",
			LnZ:         1,
			Estimate:    1,
			Error:       0.2,
			Uncertainty: 0.1,
		}, {Method: "m", LnZ: math.Inf(-1), Estimate: 1, Error: math.Inf(1), Uncertainty: 1},
		{Method: "m", LnZ: math.Inf(-1), Estimate: math.NaN(), Error: math.NaN(), Uncertainty: math.NaN()},
	}
	if got, want := calibrate(rows, ""), (calibrated{
		models:     1,
		impossible: 2,
		answered:   1,
		within:     1,
		stated:     0.1,
		err:        0.2,
	}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	s := constraintSummary(rows)
	if !strings.Contains(s, "2 of Z = 0, 1 answered; 1 models") || strings.Contains(s, "outside") {
		t.Errorf("summary %q", s)
	}
}
