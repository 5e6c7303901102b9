package methods_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/methods/closed"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contraction"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// TestPartRefuses: what Fits finds is bad input.
// Every way not to fit is a case of package btn's tests.
func TestPartRefuses(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(*btn.Network, *closed.SymmetryRankOne) btn.Part
		want  string
	}{
		{"vectors", func(_ *btn.Network, q *closed.SymmetryRankOne) btn.Part {
			q.R = q.R[:3]
			return q
		}, "vectors for 3 legs, the network has 6"},
		{"vector", func(_ *btn.Network, q *closed.SymmetryRankOne) btn.Part {
			q.R[2] = []float64{1}
			return q
		}, "vector of leg 2 has 1 entries"},
		{"no levels", func(_ *btn.Network, q *closed.SymmetryRankOne) btn.Part {
			q.Frame.Levels = countspace.Levels{}
			return q
		}, "levels"},
		{"levels' legs", func(_ *btn.Network, q *closed.SymmetryRankOne) btn.Part {
			q.Frame.Levels.Of = q.Frame.Levels.Of[1:]
			return q
		}, "levels of 5 legs"},
		{"S", func(_ *btn.Network, q *closed.SymmetryRankOne) btn.Part {
			q.S = countspace.New([]int{6})
			return q
		},
			"S has 6 counts at level 1, the levels have 7"},
		{"S's variables", func(_ *btn.Network, q *closed.SymmetryRankOne) btn.Part {
			q.S = countspace.New([]int{7, 1})
			return q
		},
			"S has 2 count variables"},
		{"S's entries", func(_ *btn.Network, q *closed.SymmetryRankOne) btn.Part {
			q.S.Coef.Exp = []int64{1}
			return q
		}, "S has 7 coefficients"},
		{"S not finite", func(_ *btn.Network, q *closed.SymmetryRankOne) btn.Part {
			q.S.Coef.Mant[1] = math.Inf(1)
			return q
		}, "not finite"},
		{"rotations", func(_ *btn.Network, q *closed.SymmetryRankOne) btn.Part {
			q.Frame.Rotations = make([][]float64, 2)
			return q
		}, "2 learned maps for 6 legs"},
		{"rotation", func(_ *btn.Network, q *closed.SymmetryRankOne) btn.Part {
			q.Frame.Rotations = make([][]float64, 6)
			q.Frame.Rotations[4] = []float64{1}
			return q
		}, "learned map of leg 4 has 1 entries"},
		{"no CP", func(_ *btn.Network, q *closed.SymmetryRankOne) btn.Part {
			return &closed.CP{Frame: q.Frame}
		},
			"a CP tensor over all 6 legs is needed"},
		{"CP rank", func(n *btn.Network, q *closed.SymmetryRankOne) btn.Part {
			return &closed.CP{Frame: q.Frame,
				Tensor: &tensor.CP{Shape: n.Dims, Weights: []float64{1},
					Vectors: make([][]float64, 6)}}
		}, "identity vectors on leg 0 need rank 2, the rank is 1"},
	} {
		net, e := largeNetwork(6, 1, btn.ClassSymmetryRankOne)
		part := c.spoil(net, e.Parts[0].(*closed.SymmetryRankOne))
		_, err := plain(net, part)
		named := err != nil && strings.Contains(err.Error(), c.want) &&
			strings.Contains(err.Error(), string(part.Class()))
		if !errors.Is(err, btn.ErrPart) || fault.CodeOf(err) != fault.BadInput || !named {
			t.Errorf("%s: got %v, want one with %q", c.name, err, c.want)
		}
	}
	net, e := largeNetwork(6, 1, btn.ClassSymmetryRankOne)
	if _, err := plain(net, nil); fault.CodeOf(err) != fault.BadInput {
		t.Errorf("no part: %v", err)
	}
	e.Parts[0].(*closed.SymmetryRankOne).R[0][0] = math.NaN()
	if _, err := plain(net, e.Parts[0]); !errors.Is(err, tensor.ErrNotFinite) {
		t.Errorf("NaN in R: %v", err)
	}
}

// TestEveryClassHasAnEngine: an empty part of a class is refused for what it lacks,
// or contracted, but not for want of an engine.
func TestEveryClassHasAnEngine(t *testing.T) {
	net, _ := largeNetwork(6, 1, btn.ClassRankOne)
	for _, class := range []btn.Class{
		btn.ClassRankOne, btn.ClassCP, btn.ClassSymmetric, btn.ClassSymmetryRankOne,
		btn.ClassProduct, btn.ClassElimination, btn.ClassSlices, btn.ClassGroups,
		btn.ClassTruncated, btn.ClassRegions,
	} {
		part, ok := btn.NewPart(class)
		if !ok {
			t.Errorf("class %s cannot be made", class)
			continue
		}
		if q, ok := part.(*closed.SymmetryRankOne); ok && class == btn.ClassSymmetryRankOne {
			q.R = make([][]float64, len(net.Dims))
		}
		if part.Class() != class {
			t.Errorf("class %s makes a part of class %s", class, part.Class())
		}
		if _, err := plain(net, part); err == nil || strings.Contains(err.Error(), "no engine") {
			t.Errorf("class %s: %v", class, err)
		}
	}
}

func TestMemoryBudget(t *testing.T) {
	net, e := largeNetwork(100, 1, btn.ClassSymmetric)
	within := func(bytes int64) error {
		_, err := contraction.Part(context.Background(),
			problem.New(net, problem.Options{Memory: bytes}), e.Parts[0], btn.Want{})
		return err
	}
	err := within(1000)
	if !errors.Is(err, contraction.ErrMemory) || fault.CodeOf(err) != fault.OverBudget ||
		!strings.Contains(err.Error(), "101 coefficients needs 6464 bytes, the budget is 1000") {
		t.Errorf("got %v", err)
	}
	if err := within(6464); err != nil {
		t.Errorf("within the budget: %v", err)
	}
}

// stopping is a context that ends after a number of looks at it.
type stopping struct {
	context.Context
	looks int
}

func (s *stopping) Err() error {
	if s.looks--; s.looks < 0 {
		return context.Canceled
	}
	return nil
}

// TestContextIsLookedAtBetweenPieces:
// whatever the moment a contraction is stopped, it says so, and looks often enough.
func TestContextIsLookedAtBetweenPieces(t *testing.T) {
	for _, class := range []btn.Class{btn.ClassSymmetryRankOne, btn.ClassRankOne} {
		net, e := largeNetwork(300, 1, class)
		for looks := 0; ; looks++ {
			_, err := contraction.Part(&stopping{context.Background(), looks},
				problem.New(net, problem.Options{}), e.Parts[0], btn.Want{})
			if err == nil {
				if looks < len(net.Links) {
					t.Errorf("class %s: the context was looked at %d times for %d links",
						class, looks, len(net.Links))
				}
				break
			}
			if !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
		}
	}
}

// TestSameBitsEveryTime: contraction has no order of its own to lose.
func TestSameBitsEveryTime(t *testing.T) {
	net, e := largeNetwork(200, 1, btn.ClassSymmetryRankOne)
	first, err := plain(net, e.Parts[0])
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if v, _ := plain(net, e.Parts[0]); v != first {
			t.Errorf("%v, then %v", first, v)
		}
	}
}

// TestZeroLink: a zero link makes Z exactly 0 in every class.
func TestZeroLink(t *testing.T) {
	for _, class := range []btn.Class{btn.ClassSymmetryRankOne, btn.ClassRankOne} {
		net, e := largeNetwork(50, 1, class)
		net.Links[3].T = &tensor.Dense{Shape: net.Links[3].T.Dims(),
			Data: make([]float64, 1<<len(net.Links[3].Legs))}
		v, err := plain(net, e.Parts[0])
		if err != nil || v.Z != (scaled.Number{}) {
			t.Errorf("class %s: %v, %v", class, v, err)
		}
	}
}
