package form

import (
	"fmt"

	"github.com/basetensor/basetensor/internal/base/codec"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// WritePieces writes an array of n pieces: tensor i with a list of its modes, as piece(i) returns them. A piece is a map with two keys:
// name, for the modes, and "table", for the tensor. Pieces are encoded one at a time, so that the encoded form of all of them is never in
// memory.
func WritePieces(w *codec.Writer, name string, n int, piece func(i int) (modes []int, t tensor.Tensor)) error {
	if err := w.ArrayLen(n); err != nil {
		return err
	}
	p := pieceWriter{writer: w}
	for i := range n {
		modes, t := piece(i)
		p.encoded = codec.AppendText(codec.AppendMap(p.encoded[:0], 2), name)
		p.encoded = codec.AppendText(codec.AppendInts(p.encoded, modes), "table")
		if err := p.writeTensor(t); err != nil {
			return codec.WithField(fmt.Sprintf("[%d]", i), err)
		}
	}
	return nil
}

// pieceWriter writes pieces one after the other.
type pieceWriter struct {
	writer  *codec.Writer
	encoded []byte // the current piece, as far as it is encoded
}

// writeTensor ends the current piece, a list of modes and a tensor: it writes what p.encoded has of it, and the tensor t after that.
// Tensors of the two common kinds are encoded directly, and all others by the codec of Tensor.
func (p *pieceWriter) writeTensor(t tensor.Tensor) error {
	switch t := t.(type) {
	case *tensor.Dense:
		if len(t.Data) > 0 {
			p.beginTensor(3, KindDense, t.Shape) // three fields: kind, shape and data
			p.encoded = codec.AppendFloats(codec.AppendText(p.encoded, "data"), t.Data)
			return p.writer.WriteEncoded(p.encoded)
		}
	case *tensor.CP:
		if len(t.Weights) > 0 && len(t.Vectors) > 0 {
			p.beginTensor(4, KindCP, t.Shape) // four fields: kind, shape, weights and vectors
			p.encoded = codec.AppendFloats(codec.AppendText(p.encoded, "weights"), t.Weights)
			p.encoded = codec.AppendLists(codec.AppendText(p.encoded, "vectors"), t.Vectors)
			return p.writer.WriteEncoded(p.encoded)
		}
	}
	// Other kinds, and empty lists, which the codec leaves out.
	table, err := NewTensor(t)
	if err == nil {
		err = p.writer.WriteEncoded(p.encoded)
	}
	if err != nil {
		return err
	}
	return p.writer.Value(&table)
}

// beginTensor encodes the beginning of a tensor: a map of some number of fields, and the first two of these, kind and shape.
func (p *pieceWriter) beginTensor(fields int, kind string, shape []int) {
	p.encoded = codec.AppendText(codec.AppendText(codec.AppendMap(p.encoded, fields), "kind"), kind)
	p.encoded = codec.AppendInts(codec.AppendText(p.encoded, "shape"), shape)
}
