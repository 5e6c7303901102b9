package region

import (
	"context"
	"encoding/json"
	"math"
	"reflect"
	"testing"

	"github.com/basetensor/basetensor/internal/sumproduct"
	"github.com/basetensor/basetensor/pkg/fault"
)

// TestGrowthEnds: sizes rise until all of a small model is one region, where the answer is exact.
func TestGrowthEnds(t *testing.T) {
	tables := random(9, 11, 1, 3)
	for name, c := range map[string]struct {
		e    *sumproduct.Expression
		kind string
	}{
		"grid":         {grid(3, 5, 0.8, 1), Auto},
		"grid, balls":  {grid(3, 4, 0.8, 1), Balls},
		"grid, cycles": {grid(3, 3, 0.8, 1), Loops},
		"tables":       {tables, Auto},
		"a tree":       {ising(3, [][2]int{{0, 1}, {1, 2}}, 1, 3), Auto},
	} {
		g := NewGrowth(c.e.Hypergraph(), Options{Kind: c.kind})
		s := propagated(t, c.e)
		last, families, size := s.LnZ(), 0, 0
		for {
			f, err := g.Next(context.Background())
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if f == nil {
				break
			}
			est, err := Run(context.Background(), c.e, s, f, 1)
			if err != nil {
				t.Fatal(err)
			}
			if f.Options.Size <= size || f.Flops <= 0 {
				t.Errorf("%s: size %d after %d, %v flops", name, f.Options.Size, size, f.Flops)
			}
			last, size = est.LnZ, f.Options.Size
			families++
		}
		if want, _ := exactly(t, c.e); math.Abs(last-want) > rounding {
			t.Errorf("%s: %d families end at %v, exact is %v", name, families, last, want)
		}
	}
	g := NewGrowth(grid(9, 9, 1, 1).Hypergraph(), Options{MaxWidth: 4})
	var err error
	for f := new(Family); f != nil && err == nil; {
		f, err = g.Next(context.Background())
	}
	if fault.CodeOf(err) != fault.OverBudget {
		t.Errorf("a width of 4 ends with %v", err)
	}
}

// TestListing: a family survives as data, and gives the same bits; what does not fit is refused.
func TestListing(t *testing.T) {
	e := grid(5, 5, 0.8, 1)
	for _, o := range []Options{{Kind: Windows, Size: 3}, {Kind: Loops, Size: 8, Radius: 2, Marginals: true}} {
		f := planned(t, e, o)
		raw, err := json.Marshal(f.Listing())
		if err != nil {
			t.Fatal(err)
		}
		var l Listing
		if err := json.Unmarshal(raw, &l); err != nil {
			t.Fatal(err)
		}
		back, err := FromListing(e.Hypergraph(), &l)
		if err != nil {
			t.Fatal(err)
		}
		s := propagated(t, e)
		a, errA := Run(context.Background(), e, s, f, 1)
		b, errB := Run(context.Background(), e, s, back, 2)
		if errA != nil || errB != nil || !reflect.DeepEqual(a, b) {
			t.Errorf("%v: %v, %v, %v, %v", o, a, b, errA, errB)
		}
	}
	l := planned(t, e, Options{Kind: Cycles, Size: 6}).Listing()
	for name, spoil := range map[string]func(*Listing){
		"leg":     func(l *Listing) { l.Legs = append([]int32{999}, l.Legs[1:]...) },
		"size":    func(l *Listing) { l.Sizes = append([]int32{-1}, l.Sizes[1:]...) },
		"legs":    func(l *Listing) { l.Legs = l.Legs[1:] },
		"weights": func(l *Listing) { l.Alpha = l.Alpha[1:] },
		"windows": func(l *Listing) { l.Options = Options{Kind: Windows} },
	} {
		bad := *l
		spoil(&bad)
		if _, err := FromListing(e.Hypergraph(), &bad); fault.CodeOf(err) != fault.BadInput {
			t.Errorf("%s: %v", name, err)
		}
	}
}
