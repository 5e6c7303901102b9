package message

// Encoded forms of parts that hold tensors, polynomials or estimates. All other parts are written as they are.

import (
	"fmt"

	"github.com/basetensor/basetensor/internal/form"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// tensorForm is the form of a btn.Tensorial part.
type tensorForm struct {
	Tensor *Tensor     `msgpack:"tensor,omitempty"`
	Box    *[]int      `msgpack:"box,omitempty"`
	S      *Scaled     `msgpack:"s,omitempty"`
	R      [][]float64 `msgpack:"r,omitempty"`

	target btn.Tensorial
}

// Forms of a btn.Compound, its factors, and btn.Frame.
type compoundForm struct {
	Factors []factorForm `msgpack:"factors"`

	target btn.Compound
}

type factorForm struct {
	Links    []int        `msgpack:"links"`
	Estimate estimateBlob `msgpack:"estimate"`
}

type frameForm struct {
	Closed    bool        `msgpack:"closed,omitempty"`
	Levels    Levels      `msgpack:"levels"`
	Rotations [][]float64 `msgpack:"rotations,omitempty"`
}

// newTensorForm returns the encoded form of a part that has tensors: a tensor in CP form, a polynomial with its shape
// (Box) and its coefficients (S), or vectors by leg (R). What the part does not have is nil.
func newTensorForm(p btn.Tensorial) (*tensorForm, error) {
	tensors := p.Tensors()
	f := &tensorForm{R: tensors.R}
	if tensors.CP != nil {
		t, err := newTensor(tensors.CP)
		if err != nil {
			return nil, err
		}
		f.Tensor = &t
	}
	if tensors.S != nil {
		s := newScaled(tensors.S.Coef)
		f.Box, f.S = &tensors.S.Shape, &s
	}
	return f, nil
}

// toPart decodes the tensors of the form and sets them in its target, the part, which it returns.
func (f *tensorForm) toPart() (btn.Part, error) {
	tensors := btn.Tensors{R: f.R}
	if f.Tensor != nil {
		t, err := f.Tensor.Decode(&form.Tensors{}) // memory for one tensor
		if err != nil {
			return nil, under("tensor", err)
		}
		cp, ok := t.(*tensor.CP)
		if !ok {
			return nil, invalid("tensor.kind", "%q is not cp", f.Tensor.Kind)
		}
		tensors.CP = cp
	}

	// A polynomial has its shape in Box and its coefficients in S.
	if (f.Box == nil) != (f.S == nil) {
		return nil, invalid("box", "it has no s, or s has no box")
	}
	if f.S != nil {
		n, ok := product(*f.Box)
		if !ok {
			return nil, invalid("box", "%v", *f.Box)
		}
		if err := f.S.Check(n); err != nil {
			return nil, under("s", err)
		}
		tensors.S = &countspace.Poly{Shape: *f.Box, Coef: f.S.Decode()}
	}

	// A class takes only the tensors that belong to it.
	f.target.SetTensors(tensors)
	if taken := f.target.Tensors(); (taken.CP == nil) != (tensors.CP == nil) || (taken.S == nil) != (tensors.S == nil) {
		return nil, invalid("tensor", "a part of class %s has other tensors", f.target.Class())
	}
	return f.target, nil
}

// toPart decodes the factors of the form, each an estimate, and sets them as the pieces of its target, the part, which it
// returns. common has the values that parts of these estimates share.
func (f *compoundForm) toPart(common []any) (btn.Part, error) {
	pieces := make([]btn.ProductFactor, len(f.Factors))
	for k := range f.Factors {
		e, err := f.Factors[k].Estimate.decodeWith(common)
		if err != nil {
			return nil, under(fmt.Sprintf("factors[%d]", k), err)
		}
		pieces[k] = btn.ProductFactor{Links: f.Factors[k].Links, Estimate: &e}
	}
	f.target.SetPieces(pieces)
	return f.target, nil
}
