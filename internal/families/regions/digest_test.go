package regions

import (
	"testing"

	"github.com/basetensor/basetensor/internal/network/proposal"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
)

// TestTheKeyOfMessagesStays: they are cached under it.
func TestTheKeyOfMessagesStays(t *testing.T) {
	e := &sumproduct.Expression{Dims: []int{2, 3}, Support: [][]int{nil, {0, 2, 3}}, Tables: []sumproduct.Table{
		{Scope: []int{1, 0}, Data: []float64{1, -2, 0.5, 0, 1e300, 3}},
		{Scope: []int{}, Data: []float64{7}},
	}}
	if got := messagesKey(e, 1<<63+5, 9); got != "btn:v1:messages:"+proposal.AlgorithmVersion+":"+
		"522d07aa8119d9995e8858606eb20312bbe602d8d1238958957d86e42e8ebee7" {
		t.Errorf("the key of messages is %s", got)
	}
}
