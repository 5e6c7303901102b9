package ladder

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/pkg/query"
)

// cubic is the price of a plan whose flops grow like the cube of the bond, up to a bond that is large enough
// for anything.
func cubic(unit float64, enough int) price {
	return func(bond int) (flops, bytes float64, err error) {
		b := float64(min(bond, enough))
		return unit * b * b * b, 8 * b * b, nil
	}
}

func TestLadderStaysWithinTheBudget(t *testing.T) {
	for _, budget := range []float64{1e3, 1e4, 1e5, 1e6, 1e8} {
		rungs, err := buildRungs([]price{
			cubic(1, policy.MostBond), cubic(2, policy.MostBond),
		}, query.Settings{Budget: budget, Memory: 1 << 40})
		if err != nil || len(rungs) == 0 {
			t.Fatal(rungs, err)
		}
		total := 0.0
		for _, r := range rungs[1:] {
			total += r.cost.Flops
		}
		if total += rungs[0].cost.Flops; len(rungs) > 1 && total > budget {
			t.Errorf("budget %g: %g flops in %v", budget, total, rungs)
		}
		last := rungs[len(rungs)-1]
		if next := cubicAt(last.bond+last.bond/4) * 3; budget >= 1e5 && total+next < budget {
			t.Errorf("budget %g: %g spent, and bond %d would fit", budget, total, last.bond+last.bond/4)
		}
	}
}

func cubicAt(bond int) float64 { return math.Pow(float64(bond), 3) }

func TestLadderEndsWhereGrowthMeansNothing(t *testing.T) {
	rungs, err := buildRungs([]price{cubic(1, 20), cubic(1, 20)}, query.Settings{Budget: 1e12, Memory: 1 << 40})
	if err != nil || len(rungs) != 6 || rungs[5].bond != 32 {
		t.Errorf("%v, %v: want bonds 8, 16, 32, twice each", rungs, err)
	}
}

func TestLadderUpToABondThatWasAskedFor(t *testing.T) {
	rungs, err := buildRungs([]price{
		cubic(1e9, policy.MostBond), cubic(1, policy.MostBond),
	}, query.Settings{Bond: 32, Budget: 1, Memory: 1 << 40})
	if err != nil || len(rungs) != 6 || rungs[0].bond != 8 || rungs[5].bond != 32 || rungs[5].plan != 1 {
		t.Errorf("%v, %v", rungs, err)
	}
	if rungs, err := buildRungs([]price{cubic(1, policy.MostBond)}, query.Settings{Bond: 1, Memory: 1 << 40}); err != nil ||
		len(rungs) != 1 || rungs[0].bond != 1 {
		t.Errorf("%v, %v", rungs, err)
	}
}

func TestLadderStaysWithinTheMemory(t *testing.T) {
	rungs, err := buildRungs([]price{
		cubic(1, policy.MostBond), cubic(1e-3, policy.MostBond),
	}, query.Settings{Budget: 1e30, Memory: 8 * 40 * 40})
	if err != nil || rungs[len(rungs)-1].bond != 40 {
		t.Errorf("%v, %v: want the largest bond that fits, 40", rungs, err)
	}
	for _, r := range rungs {
		if r.cost.Bytes > 8*40*40 {
			t.Errorf("bond %d takes %g bytes", r.bond, r.cost.Bytes)
		}
	}
}

// TestALatePriceEndsTheLadder with the rungs before it. Every bond is priced once.
func TestALatePriceEndsTheLadder(t *testing.T) {
	for _, asked := range []int{0, 1, 2, 5} {
		calls := map[int]int{}
		late := price(func(bond int) (float64, float64, error) {
			if calls[bond]++; len(calls) > asked {
				return 0, 0, context.DeadlineExceeded
			}
			return cubic(1, policy.MostBond)(bond)
		})
		rungs, err := buildRungs([]price{late.memoised()}, query.Settings{Budget: 1e12, Memory: 1 << 40})
		if !errors.Is(err, context.DeadlineExceeded) || len(rungs) != max(asked-1, 0) && len(rungs) != asked {
			t.Errorf("%d prices: %v, %v", asked, rungs, err)
		}
	}
	calls := 0
	once := price(func(bond int) (float64, float64, error) {
		calls++
		return cubic(1, 20)(bond)
	}).memoised()
	rungs, err := buildRungs([]price{once}, query.Settings{Budget: 1e12, Memory: 1 << 40})
	if err != nil || len(rungs) != 3 || calls != 4 {
		t.Errorf("%v, %v: %d prices of four bonds", rungs, err, calls)
	}
}
