package region

import "testing"

// TestSharesAreTheWhole: parts follow each other without gap, from the first region to the last,
// for any numbers of both.
func TestSharesAreTheWhole(t *testing.T) {
	for _, n := range []int{0, 1, 3, 1000, 200_000} {
		for _, parts := range []int{1, 2, 7, 1024} {
			at := 0
			for k := range parts {
				from, to := RegionsBetween(n, ShareBound(k, parts), ShareBound(k+1, parts))
				if from != at || to < from {
					t.Fatalf("part %d of %d has regions %d to %d of %d, want from %d", k, parts, from, to, n, at)
				}
				at = to
			}
			if at != n {
				t.Errorf("%d parts have %d regions of %d", parts, at, n)
			}
		}
	}
}
