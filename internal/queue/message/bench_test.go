package message

import (
	"testing"

	"github.com/basetensor/basetensor/internal/base/codec"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
	"github.com/basetensor/basetensor/pkg/wire"
)

// chainNetwork is a network of 2·n legs: n pairwise factors as cores, n variables of two values as
// links.
func chainNetwork(n int) *btn.Network {
	net := &btn.Network{
		Dims:   make([]int, 2*n),
		Maps:   make([]btn.Map, 2*n),
		Scale:  scaled.One,
		Choice: query.CoresAreFactors,
	}
	for i := range net.Dims {
		net.Dims[i], net.Maps[i].Kind = 2, query.MapIdentity
	}
	for j := range n {
		net.Cores = append(
			net.Cores,
			btn.Core{
				Legs: []int{2 * j, 2*j + 1},
				T:    &tensor.Dense{Shape: []int{2, 2}, Data: []float64{1, 2, 3, float64(j)}},
			},
		)
		net.Links = append(net.Links, btn.Link{
			Legs: []int{2*j + 1, (2*j + 2) % (2 * n)},
			T: &tensor.CP{
				Shape:   []int{2, 2},
				Weights: []float64{0.5, 1.5},
				Vectors: [][]float64{nil, nil},
			},
		})
		net.Variables = append(net.Variables, btn.Variable{Domain: 2, Link: j})
	}
	return net
}

func BenchmarkNetworkBlob(b *testing.B) {
	n := chainNetwork(5000) // 10,000 legs
	blob, err := EncodeNetwork(n)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("encode", func(b *testing.B) {
		b.SetBytes(int64(len(blob)))
		for b.Loop() {
			if _, err := EncodeNetwork(n); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("scan", func(b *testing.B) {
		b.SetBytes(int64(len(blob)))
		for b.Loop() {
			if err := codec.Scan(blob, MaxBlob); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("decode", func(b *testing.B) {
		b.SetBytes(int64(len(blob)))
		for b.Loop() {
			if _, err := DecodeNetwork(blob); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkTask(b *testing.B) {
	var m wire.Message
	for _, s := range sampleMessages() {
		if s.Name() == "task" {
			m = s
		}
	}
	payload, err := wire.Encode(m)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("encode", func(b *testing.B) {
		for b.Loop() {
			if _, err := wire.Encode(m); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("decode", func(b *testing.B) {
		for b.Loop() {
			if err := wire.Decode(payload, new(Task)); err != nil {
				b.Fatal(err)
			}
		}
	})
}
