package exact

import (
	"testing"

	"github.com/basetensor/basetensor/internal/network/contractionorder"
)

// TestDigestStays: trees are stored under the digest of the hypergraph that they are of.
func TestDigestStays(t *testing.T) {
	h := contractionorder.Hypergraph{Dims: []int{2, 3, 300}, Edges: [][]int{{0, 1}, {}, {2, 0}}}
	if got := Digest(h); got != "01d80166896894d4c0a915c15d86fe1895558148365b98cfec4bc8d5957c3b62" {
		t.Errorf("the digest of %+v is %s", h, got)
	}
}
