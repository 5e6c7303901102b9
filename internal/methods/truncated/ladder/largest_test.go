package ladder

import (
	"testing"

	"github.com/basetensor/basetensor/pkg/query"
)

// TestTheLargestBondIsFoundBetweenTwo: the last rung is the largest bond, in eighths of the one before, that the rest of the budget holds,
// and few prices are asked for it.
func TestTheLargestBondIsFoundBetweenTwo(t *testing.T) {
	for want := 18; want <= 30; want += 2 {
		asked := 0
		cubic := price(func(bond int) (float64, float64, error) {
			asked++
			return float64(bond * bond * bond), 1, nil
		}).memoised()
		budget := float64(8*8*8 + 16*16*16 + want*want*want)
		rungs, err := buildRungs([]price{cubic}, query.Settings{Budget: budget + 1, Memory: 10})
		last := rungs[len(rungs)-1].bond
		if want == 18 {
			if last != 16 { // hardly more than what is there
				t.Errorf("up to 18: the last bond is %d", last)
			}
		} else if err != nil || last != want {
			t.Errorf("the last bond is %d, want %d: %v", last, want, err)
		}
		if asked > 7 { // 8, 16, 32, and three between
			t.Errorf("up to %d: %d prices", want, asked)
		}
	}
}
