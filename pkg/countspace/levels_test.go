package countspace

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/pkg/scaled"
)

func TestLevelsOfMixedDomains(t *testing.T) {
	l := TwoLevels([]int{2, 1, 5, 3})
	if err := l.Validate([]int{2, 1, 5, 3}); err != nil {
		t.Fatal(err)
	}
	// the leg of one value is never above level 0
	if got := l.Shape(); !slices.Equal(got, []int{4}) {
		t.Errorf("shape %v, want [4]", got)
	}
	id, err := Identity([]int{3, 3})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := id.Size(); n != 9 || err != nil || id.Validate([]int{3, 3}) != nil {
		t.Errorf("three values on two legs: size %d, %v", n, err)
	}
	if _, err := Identity([]int{2, 3}); err == nil ||
		!strings.Contains(err.Error(), "leg 1 has dimension 3") {
		t.Errorf("identity levels of mixed domains: %v", err)
	}
	if !l.Equal(TwoLevels([]int{2, 1, 5, 3})) || l.Equal(TwoLevels([]int{2, 1, 5})) ||
		l.Equal(TwoLevels([]int{2, 1, 5, 2})) ||
		l.Equal(Levels{D: 3, Of: l.Of}) {
		t.Error("Equal is wrong")
	}
}

func TestValidateNamesTheFault(t *testing.T) {
	for _, c := range []struct {
		l    Levels
		want string
	}{
		{Levels{}, "0 levels, 1 to 256 are possible"},
		{Levels{D: 300}, "300 levels, 1 to 256 are possible"},
		{Levels{D: 2, Of: [][]uint8{{0, 1}}}, "levels of 1 legs, the network has 2"},
		{Levels{D: 2, Of: [][]uint8{{0, 1}, {0, 1}}},
			"leg 1 has levels of 2 values, its dimension is 3"},
		{Levels{D: 2, Of: [][]uint8{{0, 1}, {0, 1, 2}}}, "leg 1 puts value 2 at level 2 of 2"},
	} {
		if err := c.l.Validate([]int{2, 3}); !errors.Is(err, ErrLevels) ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.l, err, c.want)
		}
	}
}

func TestSizeIsChecked(t *testing.T) {
	if n, err := size(nil); n != 1 || err != nil {
		t.Errorf("no variables: %d, %v", n, err)
	}
	if n, err := size([]int{3, 4, 5}); n != 60 || err != nil {
		t.Errorf("3×4×5: %d, %v", n, err)
	}
	for _, c := range []struct {
		shape []int
		want  string
	}{
		{[]int{3, 0}, "side 1 of the box is 0"},
		{[]int{math.MaxInt, 2}, "too many coefficients"},
		{[]int{1 << 31, 1 << 31}, "too many coefficients"},
	} {
		if _, err := size(c.shape); !errors.Is(err, ErrSize) ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.shape, err, c.want)
		}
	}
	dims := make([]int, 4000)
	for i := range dims {
		dims[i] = 20
	}
	l, err := Identity(dims)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Size(); !errors.Is(err, ErrSize) {
		t.Errorf("4001^19 coefficients: %v", err)
	}
	if _, err := (Levels{}).Size(); !errors.Is(err, ErrLevels) {
		t.Errorf("no levels: %v", err)
	}
}

func TestLinearStaysWithinTheBoxOfItsLevels(t *testing.T) {
	p := Linear([]float64{2, 0, -3})
	if !slices.Equal(p.Shape, []int{1, 2}) || p.At([]int{0, 1}) != scaled.FromFloat(-3) ||
		p.At([]int{0, 0}) != scaled.FromFloat(2) {
		t.Errorf("2 − 3z₂ is %v", p)
	}
	if q := Linear([]float64{0, 1, 1}); !q.At([]int{1, 1}).IsZero() ||
		q.At([]int{1, 0}) != scaled.One ||
		q.At([]int{0, 1}) != scaled.One {
		t.Errorf("z₁ + z₂ is %v", q)
	}
	if !p.At([]int{5, 5}).IsZero() || !p.At([]int{0, -1}).IsZero() {
		t.Error("a coefficient outside the box is not 0")
	}
}

func ExampleProduct() {
	// Three coins; level 1 is heads. The coefficient of z² is the probability of two heads.
	coins := []Poly{Linear([]float64{0.5, 0.5}), Linear([]float64{0.75, 0.25}),
		Linear([]float64{0.25, 0.75})}
	fmt.Println(Product(1, coins, nil).At([]int{2}).Float64())
	// Output: 0.40625
}
