package message

// Forms of parts that hold tensors, polynomials or estimates; all others are written as they are.

import (
	"fmt"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/form"
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// partForm is the encoded form of parts of a class, where it is not the part itself.
type partForm interface{ part() (btn.Part, error) }

// partForms has the forms of classes that contain tensors, polynomials or estimates.
var partForms = map[btn.Class]func() partForm{
	btn.ClassRankOne:         func() partForm { return new(rankOneForm) },
	btn.ClassCP:              func() partForm { return new(cpForm) },
	btn.ClassSymmetric:       func() partForm { return new(symmetricForm) },
	btn.ClassSymmetryRankOne: func() partForm { return new(symmetricForm) },
	btn.ClassProduct:         func() partForm { return new(productForm) },
}

type rankOneForm struct {
	R [][]float64 `msgpack:"r,omitempty"`
}

type cpForm struct {
	Tensor Tensor `msgpack:"tensor"`
}

type symmetricForm struct {
	Box []int       `msgpack:"box"`
	S   Scaled      `msgpack:"s"`
	R   [][]float64 `msgpack:"r,omitempty"`
}

// Forms of btn.Product, its factors, and btn.Frame.
type productForm struct {
	Factors []factorForm `msgpack:"factors"`
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

func (f *rankOneForm) part() (btn.Part, error) { return &btn.RankOne{R: f.R}, nil }

func (f *cpForm) part() (btn.Part, error) {
	t, err := f.Tensor.Decode(&form.Tensors{})
	if err != nil {
		return nil, under("tensor", err)
	}
	cp, ok := t.(*tensor.CP)
	if !ok {
		return nil, invalid("tensor.kind", "%q is not cp", f.Tensor.Kind)
	}
	return &btn.CP{Tensor: cp}, nil
}

func (f *symmetricForm) part() (btn.Part, error) {
	n, ok := product(f.Box)
	if !ok {
		return nil, invalid("box", "%v", f.Box)
	}
	if err := f.S.Check(n); err != nil {
		return nil, under("s", err)
	}
	return &btn.SymmetryRankOne{S: countspace.Poly{Shape: f.Box, Coef: f.S.Decode()}, R: f.R}, nil
}

func (f *productForm) part() (btn.Part, error) { return f.product(nil) }

func (f *productForm) product(common []any) (btn.Part, error) {
	p := &btn.Product{Factors: make([]btn.ProductFactor, len(f.Factors))}
	for k := range f.Factors {
		e, err := f.Factors[k].Estimate.decode(common)
		if err != nil {
			return nil, under(fmt.Sprintf("factors[%d]", k), err)
		}
		p.Factors[k] = btn.ProductFactor{Links: f.Factors[k].Links, Estimate: &e}
	}
	return p, nil
}
