package btn

// The digest that identifies the base tensor.

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"math"

	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// baseEncoding is the version of the encoding; a change of the bytes below changes it.
const baseEncoding = "basetensor base v1"

// BaseDigest identifies B and its coordinates: SHA-256 over the canonical bytes of dims, maps, cores and choice. It does
// not depend on links, weights, evidence or Scale, so that all queries on one base tensor share one decomposition. What
// depends on how links join the legs too, as an elimination order does, needs more than this digest to identify it.
//
// The encoding is versioned, every list is preceded by its length and every integer and float64 has 8 bytes, little
// endian. Any difference in a stored entry changes the digest, but for two that are no difference in value: −0 is
// written as 0, and a scaled number in its normal form.
func (n *Network) BaseDigest() [sha256.Size]byte {
	e := newEncoder(baseEncoding)
	e.text(string(n.Choice))
	e.ints(n.Dims)
	e.int(len(n.Maps))
	for _, m := range n.Maps {
		e.text(string(m.Kind))
		e.optional(m.A)
	}
	e.int(len(n.Cores))
	for _, c := range n.Cores {
		e.ints(c.Legs)
		e.tensor(c.T)
	}
	return e.sum()
}

// Digest identifies the network as a whole: BaseDigest, and links, places of variables and Scale in the same encoding.
func (n *Network) Digest() [sha256.Size]byte {
	e := newEncoder("basetensor network v1")
	base := n.BaseDigest()
	e.bytes(base[:])
	e.int(len(n.Links))
	for _, l := range n.Links {
		e.ints(l.Legs)
		e.tensor(l.T)
	}
	e.int(len(n.Variables))
	for _, v := range n.Variables {
		e.int(v.Domain)
		e.int(v.Link)
	}
	e.float(n.Scale.Mant)
	e.u64(uint64(n.Scale.Exp))
	return e.sum()
}

// encoder writes canonical bytes into a hash.
type encoder struct {
	h   hash.Hash
	buf []byte
}

func newEncoder(version string) *encoder {
	e := &encoder{h: sha256.New(), buf: make([]byte, 0, 1<<13)}
	e.text(version)
	return e
}

func (e *encoder) sum() (out [sha256.Size]byte) {
	e.h.Write(e.buf)
	e.buf = e.buf[:0]
	e.h.Sum(out[:0])
	return out
}

func (e *encoder) u64(u uint64) {
	if len(e.buf)+8 > cap(e.buf) {
		e.h.Write(e.buf)
		e.buf = e.buf[:0]
	}
	e.buf = binary.LittleEndian.AppendUint64(e.buf, u)
}

func (e *encoder) int(i int) { e.u64(uint64(int64(i))) }

func (e *encoder) bytes(b []byte) {
	e.int(len(b))
	e.h.Write(e.buf)
	e.buf = e.buf[:0]
	e.h.Write(b)
}

func (e *encoder) text(s string) { e.bytes([]byte(s)) }

func (e *encoder) ints(list []int) {
	e.int(len(list))
	for _, i := range list {
		e.int(i)
	}
}

func (e *encoder) float(f float64) {
	if f == 0 {
		f = 0 // −0
	}
	e.u64(math.Float64bits(f))
}

func (e *encoder) floats(list []float64) {
	e.int(len(list))
	for _, f := range list {
		e.float(f)
	}
}

// optional tells nil (the identity, or all ones) from an empty list.
func (e *encoder) optional(list []float64) {
	if list == nil {
		e.int(-1)
		return
	}
	e.floats(list)
}

func (e *encoder) vector(v scaled.Vector) {
	e.int(v.Len())
	for i := range v.Len() {
		a := v.At(i)
		e.float(a.Mant)
		e.u64(uint64(a.Exp))
	}
}

func (e *encoder) levels(l countspace.Levels) {
	e.int(l.D)
	e.int(len(l.Of))
	for _, of := range l.Of {
		e.bytes(of)
	}
}

func (e *encoder) tensor(t tensor.Tensor) {
	switch t := t.(type) {
	case *tensor.Dense:
		e.text("dense")
		e.ints(t.Shape)
		e.floats(t.Data)
	case *tensor.CP:
		e.text("cp")
		e.ints(t.Shape)
		e.floats(t.Weights)
		e.int(len(t.Vectors))
		for _, v := range t.Vectors {
			e.optional(v)
		}
	case *tensor.Symmetric:
		e.text("symmetric")
		e.ints(t.Shape)
		e.levels(t.Levels)
		e.vector(t.Values)
	case *tensor.SymmetryCP:
		e.text("symmetry-cp")
		e.ints(t.Shape)
		e.levels(t.Levels)
		e.int(len(t.Terms))
		for _, term := range t.Terms {
			e.float(term.Alpha)
			e.vector(term.S)
			e.int(len(term.R))
			for _, r := range term.R {
				e.optional(r)
			}
		}
	}
}
