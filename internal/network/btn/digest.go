package btn

// The digest that identifies the base tensor.

import (
	"github.com/basetensor/basetensor/internal/base/digest"
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// baseEncoding is the version of the encoding; a change of the bytes below changes it.
const baseEncoding = "basetensor base v1"

// BaseDigest identifies B, the product of the cores, and its coordinates: SHA-256 over the canonical bytes of dims, maps, cores and choice.
// It does not depend on links, weights, evidence or Scale, so that all queries on one base tensor share one decomposition. An object that
// depends on the links between legs too, as an elimination order does, needs more than this digest to identify it.
//
// The encoding is versioned, every list is preceded by its length and every integer and float64 has 8 bytes, little endian. Two entries
// have the same bytes if and only if they have the same value: −0 is written as 0, and a scaled number in its normal form.
func (n *Network) BaseDigest() [digest.Size]byte {
	e := encoder{digest.New()}
	e.Text(baseEncoding)
	e.Text(string(n.Choice))
	e.Ints(n.Dims)
	e.Int(len(n.Maps))
	for _, m := range n.Maps {
		e.Text(string(m.Kind))
		e.optionalList(m.A)
	}

	e.Int(len(n.Cores))
	for _, c := range n.Cores {
		e.Ints(c.Legs)
		e.tensor(c.T)
	}
	return e.Sum()
}

// Digest returns a digest that identifies the network as a whole: that of BaseDigest, the links, the links of the variables, and Scale, in
// the same encoding.
func (n *Network) Digest() [digest.Size]byte {
	e := encoder{digest.New()}
	e.Text("basetensor network v1")
	base := n.BaseDigest()
	e.Bytes(base[:])

	e.Int(len(n.Links))
	for _, l := range n.Links {
		e.Ints(l.Legs)
		e.tensor(l.T)
	}

	e.Int(len(n.Variables))
	for _, v := range n.Variables {
		e.Int(v.Domain)
		e.Int(v.Link)
	}

	e.Float(n.Scale.Mant)
	e.Word(uint64(n.Scale.Exp))
	return e.Sum()
}

// encoder writes canonical bytes of tensors into a digest.
type encoder struct{ *digest.Builder }

// DigestTensor adds a tensor to a digest, with its form, its shape and all its numbers.
func DigestTensor(b *digest.Builder, t tensor.Tensor) { encoder{b}.tensor(t) }

// optionalList writes a list that may be nil, which stands for the identity or for ones. nil and an empty list are written differently.
func (e encoder) optionalList(list []float64) {
	if list == nil {
		e.Int(-1)
		return
	}
	e.Floats(list)
}

// scaledVector writes the length of a vector of scaled numbers, and the mantissa and the exponent of each in its normal form.
func (e encoder) scaledVector(v scaled.Vector) {
	e.Int(v.Len())
	for i := range v.Len() {
		number := v.At(i)
		e.Float(number.Mant)
		e.Word(uint64(number.Exp))
	}
}

// levels writes the levels of the values of all legs: the number of levels, the number of legs, and per leg the level of each value.
func (e encoder) levels(l countspace.Levels) {
	e.Int(l.D)
	e.Int(len(l.Of))
	for _, levelOfValue := range l.Of {
		e.Bytes(levelOfValue)
	}
}

// tensor writes a tensor: the name of its form, its shape, and the numbers of the form.
func (e encoder) tensor(t tensor.Tensor) {
	switch t := t.(type) {
	case *tensor.Dense:
		e.Text("dense")
		e.Ints(t.Shape)
		e.Floats(t.Data)
	case *tensor.CP:
		e.Text("cp")
		e.Ints(t.Shape)
		e.Floats(t.Weights)
		e.Int(len(t.Vectors))
		for _, v := range t.Vectors {
			e.optionalList(v)
		}
	case *tensor.Symmetric:
		e.Text("symmetric")
		e.Ints(t.Shape)
		e.levels(t.Levels)
		e.scaledVector(t.Values)
	case *tensor.SymmetryCP:
		e.Text("symmetry-cp")
		e.Ints(t.Shape)
		e.levels(t.Levels)
		e.Int(len(t.Terms))
		for _, term := range t.Terms {
			e.Float(term.Alpha)
			e.scaledVector(term.S)
			e.Int(len(term.R))
			for _, r := range term.R {
				e.optionalList(r)
			}
		}
	}
}
