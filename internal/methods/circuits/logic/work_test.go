package logic

import "testing"

// TestWorkAfterSimplification: the work of logical preprocessing is subtracted from the search's.
func TestWorkAfterSimplification(t *testing.T) {
	for _, c := range [][3]int64{{0, 7, 0}, {10, 7, 3}, {10, 12, 1}} {
		if got := remainingWork(c[0], c[1]); got != c[2] {
			t.Errorf("after %d of %d steps %d are left, want %d", c[1], c[0], got, c[2])
		}
	}
}
