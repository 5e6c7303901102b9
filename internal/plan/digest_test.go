package plan

import (
	"testing"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/contractionorder"
	"github.com/basetensor/basetensor/internal/sumproduct"
)

// TestKeysStay: decompositions and messages are cached under them.
func TestKeysStay(t *testing.T) {
	e := &sumproduct.Expression{Dims: []int{2, 3}, Support: [][]int{nil, {0, 2, 3}}, Tables: []sumproduct.Table{
		{Scope: []int{1, 0}, Data: []float64{1, -2, 0.5, 0, 1e300, 3}},
		{Scope: []int{}, Data: []float64{7}},
	}}
	if got := messagesKey(e, 1<<63+5, 9); got != "btn:v1:messages:"+AlgorithmVersion+":"+
		"522d07aa8119d9995e8858606eb20312bbe602d8d1238958957d86e42e8ebee7" {
		t.Errorf("the key of messages is %s", got)
	}
	a := &assigner{settings: btn.Settings{Memory: 1 << 31}, facts: &facts{digest: [32]byte{1, 2, 3}}}
	shape := contractionorder.Hypergraph{Dims: []int{2, 3, 300}, Edges: [][]int{{0, 1}, {}, {2, 0}}}
	if got := a.key("exact seed=7", shape); got != "btn:v1:decomposition:"+AlgorithmVersion+":"+
		"fd1a5fd69de075360a42a3b180294004d4c3362fa582e8eb9efbaf65ac168bb1" {
		t.Errorf("the key of a decomposition is %s", got)
	}
}
