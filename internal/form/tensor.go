package form

import (
	"fmt"
	"math"

	"github.com/basetensor/basetensor/internal/base/arena"
	"github.com/basetensor/basetensor/internal/base/codec"
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// The kinds of Tensor.
const (
	KindDense      = "dense"
	KindCP         = "cp"
	KindSymmetric  = "symmetric"
	KindSymmetryCP = "symmetry-cp"
)

// Tensor is a tensor of one of the four kinds on the wire.
type Tensor struct {
	Kind    string      `msgpack:"kind"`
	Shape   []int       `msgpack:"shape"`
	Data    []float64   `msgpack:"data,omitempty"`    // dense: Π shape entries, last index fastest
	Weights []float64   `msgpack:"weights,omitempty"` // cp: rank entries
	Vectors [][]float64 `msgpack:"vectors,omitempty"` // cp: per mode rank × shape[ℓ], row-major; null: the identity
	Levels  *Levels     `msgpack:"levels,omitempty"`  // symmetric, symmetry-cp
	Values  *Scaled     `msgpack:"values,omitempty"`  // symmetric: over the box of the levels
	Terms   []Term      `msgpack:"terms,omitempty"`   // symmetry-cp
}

// Term is α S ∘ R on the wire.
type Term struct {
	Alpha float64     `msgpack:"alpha"`
	S     Scaled      `msgpack:"s"`
	R     [][]float64 `msgpack:"r"` // null entry: all ones
}

// Scaled is a list of scaled numbers on the wire: entry i is Mant[i]·2^Exp[i].
type Scaled struct {
	Mant []float64 `msgpack:"m"`
	Exp  []int64   `msgpack:"e,omitempty"` // absent: all 0
}

// Levels are levels on the wire: leg ℓ has table Tables[Legs[ℓ]], a byte per value.
type Levels struct {
	D      int      `msgpack:"d"`
	Tables [][]byte `msgpack:"tables"`
	Legs   []int    `msgpack:"legs"`
}

// NewScaled returns a vector of scaled numbers as it goes on the wire. It shares the vector's slices.
func NewScaled(v scaled.Vector) Scaled { return Scaled{Mant: v.Mant, Exp: v.Exp} }

// Decode returns a vector of scaled numbers from the wire, without checks. It shares v's slices.
func (v Scaled) Decode() scaled.Vector { return scaled.Vector{Mant: v.Mant, Exp: v.Exp} }

// NewTensor returns a tensor of one of the four kinds as it goes on the wire. It shares t's slices. It returns an error for any other type.
func NewTensor(t tensor.Tensor) (Tensor, error) {
	switch t := t.(type) {
	case *tensor.Dense:
		return Tensor{Kind: KindDense, Shape: t.Shape, Data: t.Data}, nil
	case *tensor.CP:
		return Tensor{Kind: KindCP, Shape: t.Shape, Weights: t.Weights, Vectors: t.Vectors}, nil
	case *tensor.Symmetric:
		levels, values := NewLevels(t.Levels), NewScaled(t.Values)
		return Tensor{Kind: KindSymmetric, Shape: t.Shape, Levels: &levels, Values: &values}, nil
	case *tensor.SymmetryCP:
		levels := NewLevels(t.Levels)
		w := Tensor{Kind: KindSymmetryCP, Shape: t.Shape, Levels: &levels, Terms: make([]Term, len(t.Terms))}
		for i, term := range t.Terms {
			w.Terms[i] = Term{Alpha: term.Alpha, S: NewScaled(term.S), R: term.R}
			if term.R == nil { // all ones throughout
				w.Terms[i].R = make([][]float64, len(t.Shape))
			}
		}
		return w, nil
	}
	return Tensor{}, fmt.Errorf("%w: a tensor of type %T", codec.ErrInvalid, t)
}

// Tensors is memory for the decoded tensors of one message or blob, which may have millions of them: it allocates many at a time.
type Tensors struct {
	dense arena.Slab[tensor.Dense]
	cp    arena.Slab[tensor.CP]
}

// Check returns the error that Decode would return.
func (w *Tensor) Check() error {
	if w.Kind == KindDense {
		return w.checkDense()
	}
	_, err := w.Decode(&Tensors{})
	return err
}

// checkDense returns an error unless the tensor has an entry for each combination of values of its modes.
func (w *Tensor) checkDense() error {
	if err := w.checkShape(); err != nil {
		return err
	}
	if n, ok := Product(w.Shape); !ok || n != len(w.Data) {
		return codec.Invalid("data", "%d entries do not fill shape %v", len(w.Data), w.Shape)
	}
	return nil
}

// checkShape returns an error unless every mode has at least one value, and not too many.
func (w *Tensor) checkShape() error {
	for p, d := range w.Shape {
		if d < 1 || d > math.MaxInt32 {
			return codec.Invalid("shape", "mode %d has %d values", p, d)
		}
	}
	return nil
}

// Decode returns a tensor from the wire, after it has checked the length of every list against the shape. It allocates the tensor in
// memory, which is that of many tensors. The tensor shares w's slices.
func (w *Tensor) Decode(memory *Tensors) (tensor.Tensor, error) {
	if err := w.checkShape(); err != nil {
		return nil, err
	}
	switch w.Kind {
	case KindDense:
		if err := w.checkDense(); err != nil {
			return nil, err
		}
		t := &memory.dense.Make(1)[0] // cut from memory for many tensors
		t.Shape, t.Data = w.Shape, w.Data
		return t, nil
	case KindCP:
		if err := w.checkVectors(); err != nil {
			return nil, err
		}
		t := &memory.cp.Make(1)[0]
		t.Shape, t.Weights, t.Vectors = w.Shape, w.Weights, w.Vectors
		return t, nil
	case KindSymmetric:
		levels, vectors, err := w.levels() // vectors: the number of count vectors
		switch {
		case err != nil:
			return nil, err
		case w.Values == nil:
			return nil, codec.Missing("values")
		}
		if err := w.Values.Check(vectors); err != nil { // a value for each count vector
			return nil, codec.WithField("values", err)
		}
		return &tensor.Symmetric{Shape: w.Shape, Levels: levels, Values: w.Values.Decode()}, nil
	case KindSymmetryCP:
		return w.symmetryCP()
	}
	return nil, codec.Invalid("kind", "%.40q is none of dense, cp, symmetric, symmetry-cp", w.Kind)
}

// checkVectors returns an error unless a tensor in CP form has a vector for each mode: rank × shape[mode] numbers, or nil for the identity,
// which needs a rank of shape[mode]. The rank is the number of weights.
func (w *Tensor) checkVectors() error {
	rank := len(w.Weights)
	if len(w.Vectors) != len(w.Shape) {
		return codec.Invalid("vectors", "%d for %d modes", len(w.Vectors), len(w.Shape))
	}
	for p, v := range w.Vectors {
		n, ok := Product([]int{rank, w.Shape[p]})
		switch {
		case v == nil && rank != w.Shape[p]:
			return codec.Invalid(fmt.Sprintf("vectors[%d]", p), "the identity of %d values with rank %d", w.Shape[p], rank)
		case v != nil && (!ok || len(v) != n):
			return codec.Invalid(fmt.Sprintf("vectors[%d]", p), "%d entries for rank %d and %d values", len(v), rank, w.Shape[p])
		}
	}
	return nil
}

// levels returns the tensor's levels, decoded and checked, and the number of their count vectors, which is the number of
// values of a symmetric tensor.
func (w *Tensor) levels() (l countspace.Levels, vectors int, err error) {
	if w.Levels == nil {
		return countspace.Levels{}, 0, codec.Missing("levels")
	}
	l, err = w.Levels.Decode()
	if err != nil {
		return l, 0, codec.WithField("levels", err)
	}
	if err := CheckLevels(l, w.Shape); err != nil {
		return l, 0, codec.WithField("levels", err)
	}
	vectors, ok := Product(l.Shape())
	if !ok {
		return l, 0, codec.Invalid("levels", "the count vectors overflow")
	}
	return l, vectors, nil
}

// symmetryCP decodes a tensor of kind symmetry-cp: Σ α S ∘ R over its terms. Every S has a value for each count vector of the levels, and
// every R a vector for each mode.
func (w *Tensor) symmetryCP() (tensor.Tensor, error) {
	levels, vectors, err := w.levels() // vectors: the number of count vectors
	if err != nil {
		return nil, err
	}
	t := &tensor.SymmetryCP{Shape: w.Shape, Levels: levels, Terms: make([]tensor.SymmetryRankOne, len(w.Terms))}
	for i, term := range w.Terms {
		err := codec.WithField("s", term.S.Check(vectors))
		if err == nil {
			err = CheckRankOne(term.R, w.Shape)
		}
		if err != nil {
			return nil, codec.WithField(fmt.Sprintf("terms[%d]", i), err)
		}
		t.Terms[i] = tensor.SymmetryRankOne{Alpha: term.Alpha, S: term.S.Decode(), R: term.R}
	}
	return t, nil
}

// CheckRankOne returns an error unless r, a tensor of rank one, has a vector for each mode: of shape[mode] numbers, or nil for ones.
func CheckRankOne(r [][]float64, shape []int) error {
	if len(r) != len(shape) {
		return codec.Invalid("r", "%d vectors for %d modes", len(r), len(shape))
	}
	for p, v := range r {
		if v != nil && len(v) != shape[p] {
			return codec.Invalid(fmt.Sprintf("r[%d]", p), "%d entries for %d values", len(v), shape[p])
		}
	}
	return nil
}

// Check returns an error unless there are n numbers, and an exponent for each of them or none at all.
func (v *Scaled) Check(n int) error {
	switch {
	case len(v.Mant) != n:
		return codec.Invalid("m", "%d entries, the count vectors are %d", len(v.Mant), n)
	case v.Exp != nil && len(v.Exp) != n:
		return codec.Invalid("e", "%d exponents for %d entries", len(v.Exp), n)
	}
	return nil
}

// CheckFinite returns an error if a number of the tensor is NaN or ±Inf. Decode has to have accepted the tensor.
func (w *Tensor) CheckFinite() error {
	var memory [8][]float64 // for most tensors enough lists without an allocation
	lists := append(append(memory[:0], w.Data, w.Weights), w.Vectors...)
	if w.Values != nil {
		lists = append(lists, w.Values.Mant)
	}
	for _, term := range w.Terms {
		lists = append(append(lists, []float64{term.Alpha}, term.S.Mant), term.R...)
	}
	for _, list := range lists {
		if k := NotFinite(list); k >= 0 {
			return fmt.Errorf("%w: entry %d of a list is %v", codec.ErrInvalid, k, list[k])
		}
	}
	return nil
}

// Product returns the product of the dimensions of a shape, which must not be negative, and whether it fits an int.
func Product(shape []int) (int, bool) {
	n := 1
	for _, d := range shape {
		if d != 0 && n > math.MaxInt/d {
			return 0, false
		}
		n *= d
	}
	return n, true
}
