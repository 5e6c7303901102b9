package trees_test

import (
	"math"
	"reflect"
	"testing"

	"github.com/basetensor/basetensor/internal/engine/trees"
)

// TestProjectorsAsBytes: written bytes are read, and cut, longer or strange ones are errors.
func TestProjectorsAsBytes(t *testing.T) {
	e := grid(6, 6, 0.7, 3)
	plan := trees.Attempts(e.Hypergraph(), 2, 4, 1)[0]
	v := contract(t, e, plan, trees.Options{Bond: 2, Keep: true})
	if len(v.Projectors.Pairs) == 0 || v.Projectors.Bytes() == 0 {
		t.Fatal("nothing was truncated")
	}
	b, err := v.Projectors.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	var got trees.Projectors
	if err := got.UnmarshalBinary(b); err != nil || !reflect.DeepEqual(&got, v.Projectors) {
		t.Fatalf("read back: %v", err)
	}
	cost, err := trees.Evaluate(e.Hypergraph(), plan, 2)
	if err != nil || float64(v.Projectors.Bytes()) > cost.Projectors+64*float64(len(got.Pairs)) || cost.Projectors == 0 {
		t.Errorf("%d bytes of projectors, predicted %v, %v", v.Projectors.Bytes(), cost.Projectors, err)
	}
	pair := &got.Pairs[0]
	pair.Rows = math.MaxInt
	huge, err := got.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	pair.Rows, pair.Cols = 0, 0
	empty, err := got.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string][]byte{"nothing": nil, "cut": b[:len(b)-8],
		"longer": append(b[:len(b):len(b)], 1, 2), "huge": huge, "empty": empty, "other": append([]byte("X"), b[1:]...)} {
		if err := got.UnmarshalBinary(bad); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
