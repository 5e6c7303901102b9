package message

// Forms of parts that hold tensors, polynomials or estimates; all others are written as they are.

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

	of btn.Tensorial
}

// Forms of a btn.Compound, its factors, and btn.Frame.
type compoundForm struct {
	Factors []factorForm `msgpack:"factors"`

	of btn.Compound
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

// newTensorForm returns the form of a part.
func newTensorForm(p btn.Tensorial) (*tensorForm, error) {
	of := p.Tensors()
	f := &tensorForm{R: of.R}
	if of.CP != nil {
		t, err := newTensor(of.CP)
		if err != nil {
			return nil, err
		}
		f.Tensor = &t
	}
	if of.S != nil {
		s := newScaled(of.S.Coef)
		f.Box, f.S = &of.S.Shape, &s
	}
	return f, nil
}

// part returns the part of the form.
func (f *tensorForm) part() (btn.Part, error) {
	of := btn.Tensors{R: f.R}
	if f.Tensor != nil {
		t, err := f.Tensor.Decode(&form.Tensors{})
		if err != nil {
			return nil, under("tensor", err)
		}
		cp, ok := t.(*tensor.CP)
		if !ok {
			return nil, invalid("tensor.kind", "%q is not cp", f.Tensor.Kind)
		}
		of.CP = cp
	}
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
		of.S = &countspace.Poly{Shape: *f.Box, Coef: f.S.Decode()}
	}
	f.of.SetTensors(of)
	if has := f.of.Tensors(); (has.CP == nil) != (of.CP == nil) || (has.S == nil) != (of.S == nil) {
		return nil, invalid("tensor", "a part of class %s has other tensors", f.of.Class())
	}
	return f.of, nil
}

// part returns the part of the form, whose estimates refer to common.
func (f *compoundForm) part(common []any) (btn.Part, error) {
	pieces := make([]btn.ProductFactor, len(f.Factors))
	for k := range f.Factors {
		e, err := f.Factors[k].Estimate.decode(common)
		if err != nil {
			return nil, under(fmt.Sprintf("factors[%d]", k), err)
		}
		pieces[k] = btn.ProductFactor{Links: f.Factors[k].Links, Estimate: &e}
	}
	f.of.SetPieces(pieces)
	return f.of, nil
}
