package lower

import (
	"context"
	"testing"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// ring is the network of n binary variables, each in two factors, with identity maps.
func ring(n int) *btn.Network {
	net := &btn.Network{Scale: scaled.One, Maps: make([]btn.Map, 2*n)}
	for i := range n {
		net.Dims = append(net.Dims, 2, 2)
		net.Cores = append(net.Cores,
			btn.Core{Legs: []int{2 * i, 2*i + 1},
				T: &tensor.Dense{Shape: []int{2, 2}, Data: []float64{1, 2, 3, 4}}})
		legs := []int{2 * i, (2*i + 2*n - 1) % (2 * n)}
		net.Links = append(net.Links, btn.Link{
			Legs: legs,
			T: &tensor.CP{Shape: []int{2, 2}, Weights: []float64{0.5, 0.25},
				Vectors: [][]float64{nil, nil}},
		})
		net.Variables = append(net.Variables, btn.Variable{Domain: 2, Link: i})
	}
	return net
}

// Expressions of a million tables are a few large lists, not some for every table.
func TestAllocationsPerTable(t *testing.T) {
	const n = 5000
	net := ring(n)
	for name, f := range map[string]func() error{
		"Build": func() error { _, err := Build(context.Background(), net); return err },
		"Shape": func() error { _, err := Shape(context.Background(), net); return err },
	} {
		per := testing.AllocsPerRun(3, func() {
			if err := f(); err != nil {
				t.Fatal(err)
			}
		}) / (2 * n)
		if per > 0.1 {
			t.Errorf("%s: %.2f allocations per table", name, per)
		}
	}
}

// An unrestricted table is copied as it is: the same entries as axis by axis.
func TestPlainTablesAreWhatGatheringMakesOfThem(t *testing.T) {
	l, err := newLayout(context.Background(), ring(5), form{})
	if err != nil {
		t.Fatal(err)
	}
	e, err := Build(context.Background(), ring(5))
	if err != nil {
		t.Fatal(err)
	}
	for k, r := range l.tables {
		if !l.isPlain(r) {
			t.Fatalf("table %d is restricted", k)
		}
		if g := l.livingGrid(r); len(g.axes) != len(r.nodes) || len(e.Tables[k].Data) != len(r.data) {
			t.Errorf("table %d: %d axes, %d modes", k, len(g.axes), len(r.nodes))
		}
	}
	diagonal := ring(1) // both modes of its one factor are the same variable
	if l, err = newLayout(context.Background(), diagonal, form{}); err != nil ||
		l.isPlain(l.tables[len(l.tables)-1]) {
		t.Errorf("a diagonal is taken for a plain table: %v", err)
	}
	if e, err = Build(context.Background(), diagonal); err != nil || len(e.Tables[1].Data) != 2 ||
		e.Tables[1].Data[1]/e.Tables[1].Data[0] != 4 {
		t.Errorf("diagonal of [1 2; 3 4]: %+v, %v", e, err)
	}
}
