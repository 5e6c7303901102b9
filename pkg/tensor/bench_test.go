package tensor

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/scaled"
)

func benchWeights(r *rand.Rand, dims []int, d int) []LegWeights {
	w := make([]LegWeights, len(dims))
	for leg, dim := range dims {
		for range dim * d {
			w[leg] = append(w[leg], 0.1+r.Float64())
		}
	}
	return w
}

func BenchmarkCountPoly(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	pair, five := []int{2, 2}, []int{2, 3, 4, 3, 2}
	wide := slices.Repeat([]int{2}, 16)
	variable := &CP{Shape: slices.Repeat([]int{2}, 1000), Weights: []float64{1, 1},
		Vectors: make([][]float64, 1000)}
	levels, _ := countspace.Identity(variable.Shape)
	core := &Symmetric{
		Shape:  variable.Shape,
		Levels: levels,
		Values: scaled.Vector{Mant: slices.Repeat([]float64{1}, 1001)},
	}
	some := &Symmetric{Shape: variable.Shape[:100],
		Levels: countspace.TwoLevels(variable.Shape[:100]),
		Values: scaled.Vector{Mant: slices.Repeat([]float64{1}, 101)}}
	for _, c := range []struct {
		name string
		t    Tensor
	}{
		{"pair", randomDense(r, pair)}, {"five", randomDense(r, five)}, {"dense16",
			randomDense(r, wide)},
		{"variable1000", variable}, {"symmetric1000", core}, {"symmetric100", some},
	} {
		for d := 1; d <= 2; d++ {
			w := benchWeights(r, c.t.Dims(), d)
			if c.name == "symmetric1000" && d == 2 {
				for leg := range w {
					w[leg][1], w[leg][2] = 0, 0 // every value at its own level
				}
			}
			b.Run(fmt.Sprintf("%s/levels=%d", c.name, d), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, err := CountPoly(c.t, w, d, nil); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkLegPolys(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	variable := &CP{Shape: slices.Repeat([]int{2}, 1000), Weights: []float64{1, 1},
		Vectors: make([][]float64, 1000)}
	for _, c := range []struct {
		name string
		t    Tensor
	}{
		{"pair", randomDense(r, []int{2, 2})}, {
			"dense10", randomDense(r, slices.Repeat([]int{2}, 10)),
		}, {"variable1000", variable},
	} {
		w := benchWeights(r, c.t.Dims(), 2)
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := LegPolys(c.t, w, 2, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
