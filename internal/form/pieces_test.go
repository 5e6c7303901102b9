package form

import (
	"bytes"
	"math"
	"slices"
	"testing"

	"github.com/basetensor/basetensor/internal/base/codec"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// pieces are encoded by WritePieces, plain pieces by their struct.
type (
	pieces []piece
	plain  struct {
		List []piece `msgpack:"list"`
	}
	written struct {
		List pieces `msgpack:"list"`
	}
	piece struct {
		Legs  []int  `msgpack:"legs"`
		Table Tensor `msgpack:"table"`
	}
)

func (l *pieces) Encode(w *codec.Writer) error {
	return WritePieces(w, "legs", len(*l), func(i int) ([]int, tensor.Tensor) {
		t, _ := (*l)[i].Table.Decode(&Tensors{})
		return (*l)[i].Legs, t
	})
}

func (*pieces) Decode(*codec.Reader, int) error { return nil }

// TestPiecesHaveTheBytesOfTheirStruct: lists of every width of length and of numbers.
func TestPiecesHaveTheBytesOfTheirStruct(t *testing.T) {
	numbers := []int{
		0, 1, 127, 128, 255, 256, 65535, 65536, math.MaxUint32, math.MaxUint32 + 1, math.MaxInt,
		-1, -32, -33, -128, -129, -32768, -32769, math.MinInt32, math.MinInt32 - 1, math.MinInt,
	}
	var list []piece
	for _, n := range []int{1, 2, 15, 16, 31, 32, 8191, 8192, 70000} {
		data := make([]float64, n)
		for k := range data {
			data[k] = float64(k) / 3
		}
		list = append(list,
			piece{numbers, Tensor{Kind: KindDense, Shape: []int{n}, Data: data}},
			piece{slices.Repeat([]int{7}, n), Tensor{Kind: KindCP, Shape: []int{n, 1}, Weights: data, Vectors: [][]float64{nil, data}}},
			piece{nil, Tensor{Kind: KindCP, Shape: slices.Repeat([]int{1}, n), Weights: []float64{2}, Vectors: make([][]float64, n)}},
		)
	}
	list = append(list,
		piece{[]int{}, Tensor{Kind: KindDense, Shape: []int{}, Data: []float64{3}}},
		piece{[]int{}, Tensor{Kind: KindCP, Shape: []int{}, Weights: []float64{}, Vectors: [][]float64{}}},
		piece{[]int{0}, Tensor{
			Kind: KindSymmetric, Shape: []int{2}, Levels: &Levels{D: 2, Tables: [][]byte{{0, 1}}, Legs: []int{0}},
			Values: &Scaled{Mant: []float64{1, 2}, Exp: scaled.Vector{}.Exp},
		}},
	)
	for _, canonical := range []bool{false, true} {
		want, err := codec.Marshal("list", &plain{list}, canonical)
		if err != nil {
			t.Fatal(err)
		}
		got, err := codec.Marshal("list", &written{list}, canonical)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("canonical %t: %v, %d bytes, want %d", canonical, err, len(got), len(want))
		}
	}
}
