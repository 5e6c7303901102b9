package form

import (
	"fmt"

	"github.com/basetensor/basetensor/internal/base/codec"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// WritePieces writes n tensors, each as a map of its modes, under a name, and its "table". They are written one at a time: the encoded
// form of all tables together never exists.
func WritePieces(w *codec.Writer, name string, n int, at func(i int) (modes []int, t tensor.Tensor)) error {
	if err := w.ArrayLen(n); err != nil {
		return err
	}
	p := pieceWriter{to: w}
	for i := range n {
		modes, t := at(i)
		p.b = codec.AppendText(codec.AppendMap(p.b[:0], 2), name)
		p.b = codec.AppendText(codec.AppendInts(p.b, modes), "table")
		if err := p.tensor(t); err != nil {
			return codec.Under(fmt.Sprintf("[%d]", i), err)
		}
	}
	return nil
}

// pieceWriter writes pieces one after the other.
type pieceWriter struct {
	to *codec.Writer
	b  []byte // of the current one
}

// tensor writes what there is of a piece, and a tensor after it.
func (p *pieceWriter) tensor(t tensor.Tensor) error {
	switch t := t.(type) {
	case *tensor.Dense:
		if len(t.Data) > 0 {
			p.begin(3, KindDense, t.Shape)
			p.b = codec.AppendFloats(codec.AppendText(p.b, "data"), t.Data)
			return p.to.Raw(p.b)
		}
	case *tensor.CP:
		if len(t.Weights) > 0 && len(t.Vectors) > 0 {
			p.begin(4, KindCP, t.Shape)
			p.b = codec.AppendFloats(codec.AppendText(p.b, "weights"), t.Weights)
			p.b = codec.AppendLists(codec.AppendText(p.b, "vectors"), t.Vectors)
			return p.to.Raw(p.b)
		}
	}
	table, err := NewTensor(t)
	if err == nil {
		err = p.to.Raw(p.b)
	}
	if err != nil {
		return err
	}
	return p.to.Value(&table)
}

// begin begins a tensor of some fields.
func (p *pieceWriter) begin(fields int, kind string, shape []int) {
	p.b = codec.AppendText(codec.AppendText(codec.AppendMap(p.b, fields), "kind"), kind)
	p.b = codec.AppendInts(codec.AppendText(p.b, "shape"), shape)
}
