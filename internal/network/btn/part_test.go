package btn_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	_ "github.com/basetensor/basetensor/internal/methods"
	"github.com/basetensor/basetensor/internal/methods/closed"
	"github.com/basetensor/basetensor/internal/methods/exact"
	regionparts "github.com/basetensor/basetensor/internal/methods/regions"
	truncatedparts "github.com/basetensor/basetensor/internal/methods/truncated"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// Parts that fit small(): legs of dimension 2, 2 and 3; link 0 has legs 0 and 1,
// link 1 has leg 2, link 2 has none; the first core has legs 2 and 0, the second one leg 1.

func fitFrame() *btn.Frame {
	return &btn.Frame{Levels: countspace.TwoLevels([]int{2, 2, 3}),
		Rotations: [][]float64{nil, {0, 1, 1, 0}, make([]float64, 9)}}
}

func fitVectors() [][]float64 { return [][]float64{{1, 2}, nil, {1, 2, 3}} }

func fitRankOne() *closed.RankOne { return &closed.RankOne{Frame: fitFrame(), R: fitVectors()} }

func fitCP() *closed.CP {
	return &closed.CP{Frame: fitFrame(), Tensor: &tensor.CP{
		Shape: []int{2, 2, 3}, Weights: []float64{1, 2}, Vectors: [][]float64{nil, {1, 2, 3, 4},
			{1, 2, 3, 4, 5, 6}}}}
}

func fitSymmetric() *closed.SymmetryRankOne {
	return &closed.SymmetryRankOne{Frame: fitFrame(), S: countspace.New([]int{4}), R: fitVectors()}
}

func fitElimination() *exact.Elimination { return &exact.Elimination{Order: []int{1, 0}, Flops: 10} }

func fitSlices() *exact.Slices {
	return &exact.Slices{Tree: &exact.Tree{Shape: "x", Tables: 2, Merges: []int{0, 1}, Count: 6},
		From: 2, To: 5}
}

func fitGroups() *exact.Groups {
	return &exact.Groups{Of: &exact.MarginalGroups{Shape: "x", Groups: make([]exact.MarginalGroup, 3)},
		From: 1, To: 3}
}

func fitProduct() *exact.Product {
	return &exact.Product{Factors: []btn.ProductFactor{
		{Links: []int{0, 1}, Estimate: &btn.Estimate{Parts: []btn.Part{fitRankOne(),
			fitElimination()}}},
		{Links: []int{2}, Estimate: &btn.Estimate{Alpha: []scaled.Number{scaled.One},
			Parts: []btn.Part{&closed.RankOne{Frame: &btn.Frame{}}}}},
	}}
}

func fitTruncated() *truncatedparts.Truncated {
	along := &truncatedparts.TruncatedPlan{Family: query.FamilyTree, Number: 3, Shape: "x"}
	return &truncatedparts.Truncated{Plan: along, Bond: 4, Slice: btn.Slice{Variables: []int{1, 0}, At: 5}}
}

func fitRegions() *regionparts.Regions {
	return &regionparts.Regions{Kind: "balls", Size: 4, From: 3, To: regionparts.WholeShare}
}

// spoilt returns a part that fits with something wrong.
func spoilt[P btn.Part](fit func() P, spoil func(P)) btn.Part {
	p := fit()
	spoil(p)
	return p
}

// TestPartsThatFit: of every class, each at its limits.
func TestPartsThatFit(t *testing.T) {
	for class, parts := range map[btn.Class][]btn.Part{
		btn.ClassRankOne: {
			fitRankOne(),
			&closed.RankOne{Frame: &btn.Frame{}},
			&closed.RankOne{Frame: &btn.Frame{Closed: true}, R: make([][]float64, 3)},
		},
		btn.ClassCP: {fitCP(), &closed.CP{Frame: &btn.Frame{}, Tensor: &tensor.CP{ // no term at all
			Shape: []int{2, 2, 3}, Vectors: [][]float64{{}, {}, {}}}}},
		btn.ClassSymmetric: {spoilt(fitSymmetric, func(p *closed.SymmetryRankOne) { p.R = nil })},
		btn.ClassSymmetryRankOne: {
			fitSymmetric(),
			spoilt(fitSymmetric, func(p *closed.SymmetryRankOne) { p.R = make([][]float64, 3) }),
			spoilt(fitSymmetric, func(p *closed.SymmetryRankOne) { p.S.Coef.Exp = nil }),
		},
		btn.ClassElimination: {fitElimination(), &exact.Elimination{}},
		btn.ClassSlices: {
			fitSlices(),
			spoilt(fitSlices, func(p *exact.Slices) { p.From, p.To = 0, 6 }),
			spoilt(fitSlices, func(p *exact.Slices) { p.From, p.To = 6, 6 }),
		},
		btn.ClassGroups: {fitGroups(),
			spoilt(fitGroups, func(p *exact.Groups) { p.From, p.To = 0, 3 })},
		btn.ClassProduct: {fitProduct()},
		btn.ClassTruncated: {
			fitTruncated(),
			spoilt(fitTruncated, func(p *truncatedparts.Truncated) {
				p.Plan.Family, p.Plan.Masked = query.FamilySweep, true
			}),
			spoilt(fitTruncated, func(p *truncatedparts.Truncated) { p.Bond, p.Slice = 1, btn.Slice{} }),
		},
		btn.ClassRegions: {
			fitRegions(),
			&regionparts.Regions{Kind: btn.KindBethe, To: regionparts.WholeShare},
			spoilt(fitRegions, func(p *regionparts.Regions) { p.To = p.From }),
		},
	} {
		for i, p := range parts {
			if err := p.Fits(small()); err != nil || p.Class() != class {
				t.Errorf("part %d of class %s: %v, class %s", i, class, err, p.Class())
			}
		}
	}
}

// TestPartsThatDoNotFit: each field wrong once.
func TestPartsThatDoNotFit(t *testing.T) {
	type misfit struct {
		part btn.Part
		want string
	}
	var all []misfit
	add := func(part btn.Part, want string) { all = append(all, misfit{part, want}) }

	for _, frame := range []struct {
		spoil func(**btn.Frame)
		want  string
	}{
		{func(f **btn.Frame) { *f = nil }, "it has no frame"},
		{func(f **btn.Frame) { (*f).Rotations = (*f).Rotations[:2] }, "2 learned maps for 3 legs"},
		{func(f **btn.Frame) { (*f).Rotations[2] = make([]float64, 4) },
			"learned map of leg 2 has 4 entries, dimension 3"},
	} {
		add(spoilt(fitRankOne, func(p *closed.RankOne) { frame.spoil(&p.Frame) }), frame.want)
		add(spoilt(fitCP, func(p *closed.CP) { frame.spoil(&p.Frame) }), frame.want)
		add(spoilt(fitSymmetric, func(p *closed.SymmetryRankOne) { frame.spoil(&p.Frame) }),
			frame.want)
	}
	for _, vectors := range []struct {
		spoil func(*[][]float64)
		want  string
	}{
		{func(r *[][]float64) { *r = (*r)[:2] }, "vectors for 2 legs, the network has 3"},
		{func(r *[][]float64) { *r = append(*r, nil) }, "vectors for 4 legs, the network has 3"},
		{func(r *[][]float64) { (*r)[2] = []float64{1, 2} },
			"vector of leg 2 has 2 entries, the leg has dimension 3"},
	} {
		add(spoilt(fitRankOne, func(p *closed.RankOne) { vectors.spoil(&p.R) }), vectors.want)
		add(spoilt(fitSymmetric, func(p *closed.SymmetryRankOne) { vectors.spoil(&p.R) }),
			vectors.want)
	}

	const whole = "a CP tensor over all 3 legs is needed"
	add(spoilt(fitCP, func(p *closed.CP) { p.Tensor = nil }), whole)
	add(spoilt(fitCP, func(p *closed.CP) { p.Tensor.Shape = p.Tensor.Shape[:2] }), whole)
	add(spoilt(fitCP, func(p *closed.CP) { p.Tensor.Vectors = p.Tensor.Vectors[:2] }), whole)
	add(spoilt(fitCP, func(p *closed.CP) { p.Tensor.Shape[1] = 3 }),
		"the CP tensor has dimension 3 on leg 1, the leg has 2")
	add(spoilt(fitCP, func(p *closed.CP) { p.Tensor.Vectors[2] = nil }),
		"identity vectors on leg 2 need rank 3, the rank is 2")
	add(spoilt(fitCP, func(p *closed.CP) { p.Tensor.Vectors[1] = []float64{1, 2} }),
		"vectors of leg 1 have 2 entries, 2 terms of dimension 2")
	add(spoilt(fitCP, func(p *closed.CP) { p.Tensor.Weights = []float64{1} }),
		"identity vectors on leg 0 need rank 2, the rank is 1")

	symmetric := func(spoil func(*closed.SymmetryRankOne), want string) {
		add(spoilt(fitSymmetric, spoil), want)
	}
	symmetric(func(p *closed.SymmetryRankOne) { p.Frame.Levels = countspace.Levels{} }, "0 levels")
	symmetric(func(p *closed.SymmetryRankOne) { p.Frame.Levels.Of = p.Frame.Levels.Of[1:] },
		"levels of 2 legs, the network has 3")
	symmetric(func(p *closed.SymmetryRankOne) { p.Frame.Levels.Of[2] = []uint8{0, 1} },
		"leg 2 has levels of 2 values")
	symmetric(func(p *closed.SymmetryRankOne) { p.Frame.Levels.Of[2] = []uint8{0, 1, 2} },
		"leg 2 puts value 2 at level 2 of 2")
	symmetric(func(p *closed.SymmetryRankOne) { p.S = countspace.New([]int{4, 1}) },
		"S has 2 count variables, the levels have 1")
	symmetric(func(p *closed.SymmetryRankOne) { p.S = countspace.New([]int{5}) },
		"S has 5 counts at level 1, the levels have 4")
	symmetric(func(p *closed.SymmetryRankOne) { p.S.Coef.Mant = p.S.Coef.Mant[:3] },
		"S has 3 coefficients")
	symmetric(func(p *closed.SymmetryRankOne) { p.S.Coef.Exp = p.S.Coef.Exp[:3] },
		"its shape [4] needs 4")
	symmetric(func(p *closed.SymmetryRankOne) { p.S.Coef.Mant[3] = math.NaN() },
		"S has an entry that is not finite")

	add(spoilt(fitElimination, func(p *exact.Elimination) { p.Flops = -1 }), "-1 flops")
	add(spoilt(fitElimination, func(p *exact.Elimination) { p.Flops = math.NaN() }), "NaN flops")

	add(spoilt(fitSlices, func(p *exact.Slices) { p.Tree = nil }), "it has no tree")
	add(spoilt(fitSlices, func(p *exact.Slices) { p.Tree.Count = 0 }), "0 slices")
	add(spoilt(fitSlices, func(p *exact.Slices) { p.From = -1 }), "slices -1 to 5 of 6")
	add(spoilt(fitSlices, func(p *exact.Slices) { p.To = 1 }), "slices 2 to 1 of 6")
	add(spoilt(fitSlices, func(p *exact.Slices) { p.To = 7 }), "slices 2 to 7 of 6")

	add(spoilt(fitGroups, func(p *exact.Groups) { p.Of = nil }), "it has no groups")
	add(spoilt(fitGroups, func(p *exact.Groups) { p.From = -1 }), "groups -1 to 3 of 3")
	add(spoilt(fitGroups, func(p *exact.Groups) { p.To = 0 }), "groups 1 to 0 of 3")
	add(spoilt(fitGroups, func(p *exact.Groups) { p.To = 4 }), "groups 1 to 4 of 3")

	product := func(spoil func(*exact.Product), want string) { add(spoilt(fitProduct, spoil), want) }
	product(func(p *exact.Product) { p.Factors = nil }, "the factors have 0 of 3 links")
	product(func(p *exact.Product) { p.Factors = p.Factors[:1] }, "the factors have 2 of 3 links")
	product(func(p *exact.Product) { p.Factors[1].Links = []int{3} },
		"factor 1 has link 3, which does not exist")
	product(func(p *exact.Product) { p.Factors[1].Links = []int{-1} },
		"factor 1 has link -1, which does not exist")
	product(func(p *exact.Product) { p.Factors[1].Links = []int{2, 0} }, "factor 1 has link 0")
	product(func(p *exact.Product) { p.Factors[0].Links, p.Factors[1].Links = []int{0}, []int{1, 2} },
		"core 0 is in two factors")
	const own = "factor 0 has no estimate of its own"
	product(func(p *exact.Product) { p.Factors[0].Estimate = nil }, own)
	product(func(p *exact.Product) { p.Factors[0].Estimate.Parts = nil }, own)
	product(func(p *exact.Product) { p.Factors[0].Estimate.Alpha = []scaled.Number{scaled.One} }, own)
	for _, other := range []btn.Part{nil, fitProduct(), fitTruncated(),
		&regionparts.Regions{Kind: btn.KindBethe}} {
		product(func(p *exact.Product) { p.Factors[0].Estimate.Parts[1] = other },
			"factor 0, part 1: it is of no class that an exact estimate has")
	}
	const inside = "factor 1, part 0: btn: the part does not fit the network: 3 learned maps " +
		"for 0 legs"
	product(func(p *exact.Product) { p.Factors[1].Estimate.Parts[0] = fitRankOne() }, inside)

	for _, slice := range []struct {
		is   btn.Slice
		want string
	}{
		{btn.Slice{Variables: []int{3}}, "it fixes variable 3 of 3"},
		{btn.Slice{Variables: []int{-1}}, "it fixes variable -1 of 3"},
		{btn.Slice{Variables: []int{1, 0}, At: 6}, "slice 6 of 6"},
		{btn.Slice{Variables: []int{1, 0}, At: -1}, "slice -1 of 6"},
		{btn.Slice{At: 1}, "slice 1 of 1"},
	} {
		add(spoilt(fitTruncated, func(p *truncatedparts.Truncated) { p.Slice = slice.is }), slice.want)
	}
	truncated := func(spoil func(*truncatedparts.Truncated), want string) {
		add(spoilt(fitTruncated, spoil), want)
	}
	truncated(func(p *truncatedparts.Truncated) { p.Plan = nil }, "it has no tree and no sweep")
	truncated(func(p *truncatedparts.Truncated) { p.Plan.Family = query.FamilyRegions },
		`"regions" is no family`)
	truncated(func(p *truncatedparts.Truncated) { p.Plan.Family = "" }, `"" is no family`)
	truncated(func(p *truncatedparts.Truncated) { p.Bond = 0 }, "bond 0")

	regions := func(spoil func(*regionparts.Regions), want string) { add(spoilt(fitRegions, spoil), want) }
	regions(func(p *regionparts.Regions) { p.Size = -1 }, "regions of size -1")
	regions(func(p *regionparts.Regions) { p.From = -1 }, "regions from -1 to")
	regions(func(p *regionparts.Regions) { p.To = 2 }, "regions from 3 to 2 of")
	regions(func(p *regionparts.Regions) { p.To = regionparts.WholeShare + 1 }, "regions from 3 to")

	for _, c := range all {
		if err := c.part.Fits(small()); !errors.Is(err, btn.ErrPart) ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("class %s: got %v, want %q", c.part.Class(), err, c.want)
		}
	}
}

// TestSliceCount: a product of domains, as far as an int64 goes.
func TestSliceCount(t *testing.T) {
	n := &btn.Network{Variables: []btn.Variable{{Domain: 1 << 31}, {Domain: 3}}}
	for _, c := range []struct {
		variables []int
		want      int64
	}{{nil, 1}, {[]int{1}, 3}, {[]int{0, 1}, 3 << 31}, {[]int{0, 0, 1}, math.MaxInt64},
		{[]int{0, 0, 0, 0}, math.MaxInt64}} {
		if got := (btn.Slice{Variables: c.variables}).Count(n); got != c.want {
			t.Errorf("slices of variables %v: %d, want %d", c.variables, got, c.want)
		}
	}
}

// TestPartsShare: a part's shared data goes to another part of its class,
// and another class's does not.
func TestPartsShare(t *testing.T) {
	parts := []btn.Part{fitRankOne(), fitCP(), fitSymmetric(), fitSlices(), fitGroups(),
		fitTruncated()}
	for i, p := range parts {
		for k, q := range parts {
			fresh, ok := btn.NewPart(q.Class())
			if !ok {
				t.Fatalf("class %s cannot be made", q.Class())
			}
			takes := i == k || i < 3 && k < 3 // frames
			if got := btn.SetSharedData(fresh, btn.SharedData(p)); got != takes || takes &&
				btn.SharedData(fresh) != btn.SharedData(p) {
				t.Errorf("a part of class %s takes what class %s has: %v",
					q.Class(), p.Class(), got)
			}
		}
	}
	if p, ok := btn.NewPart("lattice"); ok || p != nil {
		t.Errorf("a class that does not exist makes %v", p)
	}
}

// TestResultFields: truncated legs and regions are described, parts outside a
// sequence are not.
func TestResultFields(t *testing.T) {
	for _, c := range []struct {
		part btn.Part
		want query.EstimateResult
	}{
		{fitTruncated(), query.EstimateResult{Family: query.FamilyTree, Plan: 3, Bond: 4}},
		{fitRegions(), query.EstimateResult{Family: query.FamilyRegions, Kind: "balls", Size: 4}},
		{fitRankOne(), query.EstimateResult{}}, {fitCP(), query.EstimateResult{}}, {fitSymmetric(),
			query.EstimateResult{}},
		{fitElimination(), query.EstimateResult{}},
		{fitSlices(), query.EstimateResult{}}, {fitGroups(), query.EstimateResult{}}, {fitProduct(),
			query.EstimateResult{}},
	} {
		if got := c.part.About().Result; got != c.want {
			t.Errorf("class %s: %+v, want %+v", c.part.Class(), got, c.want)
		}
	}
}
