package generate

// Random tensors of the tractable forms, with the decomposition that each one is.

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// drawer draws entries, of either sign if negative is set.
type drawer struct {
	rng      *rand.Rand
	negative bool
}

// number draws from ±[½, 1½).
func (d drawer) number() float64 {
	x := 0.5 + d.rng.Float64()
	if d.negative && d.rng.IntN(2) == 0 {
		x = -x
	}
	return x
}

// numbers draws n of them.
func (d drawer) numbers(n int) []float64 {
	list := make([]float64, n)
	for i := range list {
		list[i] = d.number()
	}
	return list
}

// links deals the legs, shuffled, to dense links of 1 to widest legs.
func (d drawer) links(dims []int, widest int) []btn.Link {
	var links []btn.Link
	for legs := d.rng.Perm(len(dims)); len(legs) > 0; {
		n := min(1+d.rng.IntN(widest), len(legs))
		shape, size := make([]int, n), 1
		for k, l := range legs[:n] {
			shape[k] = dims[l]
			size *= dims[l]
		}
		links = append(links, btn.Link{Legs: legs[:n:n], T: &tensor.Dense{Shape: shape, Data: d.numbers(size)}})
		legs = legs[n:]
	}
	return links
}

// core draws the core tensor and returns it with its exact estimate.
func (d drawer) core(o Options, dims []int) (tensor.Tensor, *btn.Estimate, error) {
	frame := &btn.Frame{Closed: true}
	exact := func(parts ...btn.Part) *btn.Estimate {
		return &btn.Estimate{
			Rule:    btn.Linear,
			Slices:  1,
			Parts:   parts,
			Quality: &btn.Quality{Exact: true, LnNormError: math.Inf(-1)},
		}
	}
	if o.Core == CoreCP {
		t := &tensor.CP{Shape: dims, Weights: d.numbers(o.Rank), Vectors: make([][]float64, len(dims))}
		for l, dim := range dims {
			t.Vectors[l] = d.numbers(o.Rank * dim)
		}
		return t, exact(&btn.CP{Frame: frame, Tensor: t}), nil
	}

	levels, err := levelsOf(o, dims)
	if err != nil {
		return nil, nil, err
	}
	frame.Levels = levels
	if o.Core == CoreSymmetric {
		s, err := d.symmetric(levels)
		if err != nil {
			return nil, nil, err
		}
		return &tensor.Symmetric{
			Shape:  dims,
			Levels: levels,
			Values: s.Coef,
		}, exact(&btn.SymmetryRankOne{Frame: frame, S: s}), nil
	}

	t := &tensor.SymmetryCP{Shape: dims, Levels: levels}
	e := exact()
	for range o.Rank {
		s, err := d.symmetric(levels)
		if err != nil {
			return nil, nil, err
		}
		term := tensor.SymmetryRankOne{Alpha: d.number(), S: s.Coef, R: make([][]float64, len(dims))}
		for l, dim := range dims {
			term.R[l] = d.numbers(dim)
		}
		t.Terms = append(t.Terms, term)
		e.Alpha = append(e.Alpha, scaled.FromFloat(term.Alpha))
		e.Parts = append(e.Parts, &btn.SymmetryRankOne{Frame: frame, S: s, R: term.R})
	}

	return t, e, nil
}

// levelsOf is the paper's λ = identity for equal dimensions, {0, the rest} for mixed ones.
func levelsOf(o Options, dims []int) (countspace.Levels, error) {
	if o.Dim == o.MaxDim {
		return countspace.Identity(dims)
	}
	return countspace.TwoLevels(dims), nil
}

// symmetric draws S over the count space: ln |S| walks by up to ½ from each entry to the next.
func (d drawer) symmetric(levels countspace.Levels) (countspace.Poly, error) {
	size, err := levels.Size()
	if err != nil {
		return countspace.Poly{}, err
	}
	if size > maxTable {
		return countspace.Poly{}, fmt.Errorf("%w: a count space of %d entries, at most %d",
			ErrOptions, size, maxTable)
	}

	s := countspace.New(levels.Shape())
	ln := 0.0
	for i := range size {
		x := scaled.FromLog(ln)
		if d.negative && d.rng.IntN(2) == 0 {
			x = x.Neg()
		}
		s.Coef.Mant[i], s.Coef.Exp[i] = x.Mant, x.Exp
		ln += d.rng.Float64() - 0.5
	}

	return s, nil
}
