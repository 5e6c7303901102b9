package compiled

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/internal/network/contractionorder"
)

// BenchmarkStep is one step of K tables.
func BenchmarkStep(b *testing.B) {
	for _, c := range []struct {
		name string
		h    contractionorder.Hypergraph
	}{
		{"1of2", contractionorder.Hypergraph{Dims: []int{2, 2}, Edges: [][]int{{0, 1}}}},
		{"2of2x2", contractionorder.Hypergraph{Dims: []int{2, 2}, Edges: [][]int{{0}, {0, 1}}}},
		{"2of1x40", contractionorder.Hypergraph{Dims: []int{40}, Edges: [][]int{{0}, {0}}}},
		{"2of40", contractionorder.Hypergraph{Dims: []int{40, 2}, Edges: [][]int{{0}, {0, 1}}}},
		{"2of40x40", contractionorder.Hypergraph{Dims: []int{40, 40}, Edges: [][]int{{0}, {0, 1}}}},
		{"3of2x8", contractionorder.Hypergraph{Dims: []int{2, 2, 2, 2}, Edges: [][]int{{0, 1, 2}, {0, 2}, {0, 3}}}},
		{"4of2x8", contractionorder.Hypergraph{Dims: []int{2, 2, 2, 2}, Edges: [][]int{{0}, {0, 1, 2}, {0, 2}, {0, 3}}}},
		{"4of2x64", contractionorder.Hypergraph{Dims: []int{2, 2, 2, 2, 2, 2, 2}, Edges: [][]int{{0}, {0, 1, 2, 3, 4, 5}, {0, 2}, {0, 6}}}},
		{"4of4x256", contractionorder.Hypergraph{Dims: []int{4, 4, 4, 4, 4}, Edges: [][]int{{0}, {0, 1, 2, 3}, {0, 2}, {0, 4}}}},
	} {
		order := make([]int, len(c.h.Dims))
		for i := range order {
			order[i] = i
		}
		var steps []*contractionorder.Step
		contractionorder.WalkPlainly(context.Background(), c.h, order, func(s *contractionorder.Step) bool {
			steps = append(steps, s)
			return len(steps) < 1
		})
		for mask := range 2 {
			need := make([]bool, len(c.h.Edges))
			for k := range need {
				need[k] = k < 2 || mask == 1
			}
			p := New(c.h, steps, need)
			var m Memory
			m.Prepare(p, true)
			for t := range c.h.Edges {
				m.Tables[t] = make([]float64, p.sizes[t])
				for i := range m.Tables[t] {
					m.Tables[t][i] = rand.Float64()
				}
			}
			if mask == 0 {
				b.Run(fmt.Sprintf("%s/forward", c.name), func(b *testing.B) {
					for b.Loop() {
						p.Forward(&m, 0)
					}
				})
			}
			b.Run(fmt.Sprintf("%s/backward%d", c.name, mask), func(b *testing.B) {
				for b.Loop() {
					p.Backward(&m, 0)
				}
			})
		}
	}
}
