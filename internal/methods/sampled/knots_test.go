package sampled

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestKnotsFollowTheSquareRoot of what parts of the path add to the variance: four times as much in the second half makes its rungs twice
// as dense, but for the even share. Parts that move together add four times a part's variance within.
func TestKnotsFollowTheSquareRoot(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	const parts, chains = 16, 200_000
	gains := make([][]float64, parts)
	for k := range gains {
		gains[k] = make([]float64, chains)
		for c := range gains[k] {
			gains[k][c] = r.NormFloat64()
			if k >= parts/2 {
				gains[k][c] *= 2
			}
		}
	}
	at := placeKnots(gains)
	// The first half of β has a third of the rungs, a half of those that are even; the smoothing blurs one part.
	share := (1-evenShare)/3 + evenShare/2
	k := int(share * parts)
	got := (float64(k) + (0.5-at[k-1])/(at[k]-at[k-1])) / parts
	if math.Abs(got-share) > 0.015 {
		t.Errorf("half of the path is reached after %v of the rungs, not %v: %v", got, share, at)
	}

	copy(gains[3], gains[2])
	copy(gains[1], gains[2])
	together := placeKnots(gains)
	if a, b := together[2]-together[1], at[2]-at[1]; !(a < 0.8*b) {
		t.Errorf("parts that move together have steps of %v of β, others %v", a, b)
	}
	last := 0.0
	for _, x := range together {
		if !(x > last) {
			t.Fatalf("knots %v do not rise", together)
		}
		last = x
	}
	if last != 1 {
		t.Errorf("the last knot is %v", last)
	}
	for _, none := range [][][]float64{gains[:4], make([][]float64, 0)} {
		if got := placeKnots(none); got != nil {
			t.Errorf("knots of %d parts: %v", len(none), got)
		}
	}
}
