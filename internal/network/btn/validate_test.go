package btn_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// small returns a valid network: legs 0, 1 of dimension 2 and leg 2 of dimension 3;
// a dense core and a CP core; the links of two variables and one link without legs.
func small() *btn.Network {
	return &btn.Network{
		Dims: []int{2, 2, 3},
		Maps: []btn.Map{btn.Hadamard(), btn.Identity(), btn.DCT(3)},
		Cores: []btn.Core{
			{Legs: []int{2, 0}, T: &tensor.Dense{Shape: []int{3, 2},
				Data: []float64{1, 2, 3, 4, 5, 6}}},
			{Legs: []int{1}, T: &tensor.CP{Shape: []int{2}, Weights: []float64{1, 2},
				Vectors: [][]float64{nil}}},
		},
		Links: []btn.Link{
			{Legs: []int{0, 1}, T: &tensor.CP{Shape: []int{2, 2}, Weights: []float64{3, 4},
				Vectors: [][]float64{{1, 1, 1, -1}, nil}}},
			{Legs: []int{2}, T: &tensor.CP{Shape: []int{3}, Weights: []float64{1, 1, 2},
				Vectors: [][]float64{nil}}},
			{Legs: nil, T: &tensor.CP{Shape: []int{}, Weights: []float64{1, 5},
				Vectors: [][]float64{}}},
		},
		Variables: []btn.Variable{{Domain: 2, Link: 0}, {Domain: 3, Link: 1}, {Domain: 2, Link: 2}},
		Scale:     scaled.FromFloat(2),
		Choice:    query.CoresAreFactors,
	}
}

func TestDefinitionBaseTensorNetwork(t *testing.T) {
	if err := small().Validate(); err != nil {
		t.Fatalf("valid network: %v", err)
	}
	empty := &btn.Network{Scale: scaled.One}
	if err := empty.Validate(); err != nil {
		t.Errorf("a network without legs needs no core: %v", err)
	}
	for _, c := range []struct {
		name  string
		spoil func(*btn.Network)
		want  string
	}{
		{"dimension 0", func(n *btn.Network) { n.Dims[1] = 0 }, "leg 1 has dimension 0"},
		{"no core", func(n *btn.Network) { n.Cores = nil }, "3 legs and no core tensor"},
		{"uncovered leg", func(n *btn.Network) { n.Cores = n.Cores[:1] }, "leg 1 is in no core"},
		{"cores not disjoint", func(n *btn.Network) { n.Cores = append(n.Cores, n.Cores[1]) },
			"leg 1 is in core 1 and in core 2"},
		{"free leg", func(n *btn.Network) { n.Links = n.Links[:1]; n.Variables = nil },
			"leg 2 is in no link"},
		{"leg in two links", func(n *btn.Network) { n.Links = append(n.Links, n.Links[1]) },
			"leg 2 is in link 1 and in link 3"},
		{"leg twice in a core", func(n *btn.Network) {
			n.Cores[0] = btn.Core{Legs: []int{0, 0},
				T: &tensor.Dense{Shape: []int{2, 2}, Data: make([]float64, 4)}}
		}, "leg 0 is in core 0 and in core 0"},
		{"leg out of range", func(n *btn.Network) { n.Links[1].Legs = []int{3} },
			"link 1 names leg 3, there are 3"},
		{"dimensions disagree", func(n *btn.Network) { n.Cores[0].Legs = []int{0, 2} },
			"core 0 has dimension 3 on leg 0, the leg has 2"},
		{"order", func(n *btn.Network) { n.Links[0].Legs = []int{0} },
			"link 0 is a tensor of order 2 on 1 legs"},
		{"no tensor", func(n *btn.Network) { n.Links[2].T = nil }, "link 2 has no tensor"},
		{"tensor invalid", func(n *btn.Network) {
			n.Cores[0].T.(*tensor.Dense).Data[3] = math.NaN()
		}, "core 0:"},
		{"maps missing", func(n *btn.Network) { n.Maps = n.Maps[:2] }, "2 maps for 3 legs"},
		{"map size", func(n *btn.Network) { n.Maps[2].A = make([]float64, 8) },
			"map of leg 2 has 8 entries"},
		{"map entry", func(n *btn.Network) { n.Maps[2].A[4] = math.Inf(1) },
			"map of leg 2, entry 4 is +Inf"},
		{"variable's link", func(n *btn.Network) { n.Variables[1].Link = 7 },
			"variable 1 points at link 7, there are 3"},
		{"variable's form", func(n *btn.Network) {
			n.Links[1].T = &tensor.Dense{Shape: []int{3}, Data: []float64{1, 1, 2}}
		}, "variable 1 points at link 1, which is not in CP form"},
		{"variable's rank", func(n *btn.Network) { n.Variables[1].Domain = 2 },
			"variable 1 has 2 values, link 1 has 3 terms"},
		{"shared link", func(n *btn.Network) { n.Variables[2].Link = 0 },
			"variable 2 points at link 0, another variable does too"},
		{"scale", func(n *btn.Network) { n.Scale.Mant = math.NaN() }, "scale is NaN"},
		{"choice", func(n *btn.Network) { n.Choice = "both" }, `choice of cores "both" is unknown`},
	} {
		n := small()
		c.spoil(n)
		err := n.Validate()
		if !errors.Is(err, btn.ErrInvalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got error %v, want one with %q", c.name, err, c.want)
		}
	}
	if err := (*btn.Network)(nil).Validate(); !errors.Is(err, btn.ErrInvalid) {
		t.Errorf("nil network: %v", err)
	}
}

func TestLegLink(t *testing.T) {
	if got, want := small().LinkOfLeg(), []int{0, 0, 1}; !slices.Equal(got, want) {
		t.Errorf("legs are in links %v, want %v", got, want)
	}
}

func TestLnLinks(t *testing.T) {
	// By hand: L0 = 3·[1 1]⊗[1 0] + 4·[1 −1]⊗[0 1] = [3 4; 3 −4], ‖L0‖² = 50; ‖L1‖² = 6; L2 = 6;
	// Scale 2.
	want := math.Log(2 * math.Sqrt(50) * math.Sqrt(6) * 6)
	if got, err := btn.LnLinks(t.Context(), small()); err != nil || math.Abs(got-want) > 1e-14*want {
		t.Errorf("LnLinks = %v, want %v", got, want)
	}
	n := small()
	n.Links[1].T.(*tensor.CP).Weights = []float64{0, 0, 0}
	if got, err := btn.LnLinks(t.Context(), n); err != nil || !math.IsInf(got, -1) {
		t.Errorf("LnLinks with a zero link = %v, want −Inf", got)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := btn.LnLinks(ended, n); !errors.Is(err, context.Canceled) {
		t.Errorf("LnLinks in a context that has ended: %v", err)
	}
}

// TestBaseDigest changes one thing at a time.
func TestBaseDigest(t *testing.T) {
	base := small().BaseDigest()
	if small().BaseDigest() != base {
		t.Fatal("equal networks have different digests")
	}
	flip := func(f *float64) { *f = math.Float64frombits(math.Float64bits(*f) ^ 1) }
	for name, c := range map[string]struct {
		edit func(*btn.Network)
		same bool
	}{
		"last bit of a core entry": {func(n *btn.Network) {
			flip(&n.Cores[0].T.(*tensor.Dense).Data[5])
		}, false},
		"last bit of a CP weight": {func(n *btn.Network) {
			flip(&n.Cores[1].T.(*tensor.CP).Weights[1])
		}, false},
		"last bit of a map": {func(n *btn.Network) { flip(&n.Maps[2].A[8]) }, false},
		"explicit identity vectors": {func(n *btn.Network) {
			n.Cores[1].T.(*tensor.CP).Vectors[0] = []float64{1, 0, 0, 1}
		}, false},
		"order of a core's legs": {func(n *btn.Network) { n.Cores[0].Legs = []int{0, 2} },
			false},
		"order of cores": {func(n *btn.Network) {
			n.Cores[0], n.Cores[1] = n.Cores[1], n.Cores[0]
		}, false},
		"choice": {func(n *btn.Network) { n.Choice = query.CoresAreVariables },
			false},
		"dims":    {func(n *btn.Network) { n.Dims[0] = 4 }, false},
		"no maps": {func(n *btn.Network) { n.Maps = nil }, false},
		"link weights": {func(n *btn.Network) {
			n.Links[0].T.(*tensor.CP).Weights[0] = 9
		}, true},
		"link shape": {func(n *btn.Network) { n.Links = n.Links[:2] }, true},
		"scale": {func(n *btn.Network) { n.Scale = scaled.FromFloat(77) },
			true},
		"zero against negative zero": {func(n *btn.Network) {
			n.Cores[0].T.(*tensor.Dense).Data[0] = 0
		}, false},
	} {
		n := small()
		c.edit(n)
		if got := n.BaseDigest() == base; got != c.same {
			t.Errorf("%s: digest equal is %v, want %v", name, got, c.same)
		}
	}
	zero, minus := small(), small()
	zero.Cores[0].T.(*tensor.Dense).Data[0] = 0
	minus.Cores[0].T.(*tensor.Dense).Data[0] = math.Copysign(0, -1)
	if zero.BaseDigest() != minus.BaseDigest() {
		t.Error("0 and −0 have different digests")
	}
}

// TestBaseDigestIsPinned: cached decompositions are found by this number;
// a change of the bytes changes the version too.
func TestBaseDigestIsPinned(t *testing.T) {
	n := &btn.Network{
		Dims: []int{2, 2},
		Maps: []btn.Map{{Kind: query.MapGiven, A: []float64{1, 1, 1, -1}}, btn.Identity()},
		Cores: []btn.Core{{Legs: []int{1, 0},
			T: &tensor.Dense{Shape: []int{2, 2}, Data: []float64{1, 2, 3, 4}}}},
		Choice: query.CoresAreFactors,
	}
	const want = "453cc42ce0fa812b12580c1d8c740e70e0711afa63575766d8f49e5a23edae2a"
	if got := fmt.Sprintf("%x", n.BaseDigest()); got != want {
		t.Errorf("digest %s, pinned is %s", got, want)
	}
}

// TestDigestIsPinned: over a tensor of every kind, nil and empty lists, and a scale.
func TestDigestIsPinned(t *testing.T) {
	levels := countspace.TwoLevels([]int{2, 3})
	n := &btn.Network{
		Dims: []int{2, 3, 2, 3},
		Cores: []btn.Core{
			{Legs: []int{0, 1}, T: &tensor.Symmetric{Shape: []int{2, 3}, Levels: levels,
				Values: scaled.FromFloats([]float64{1, 0, -3})}},
			{Legs: []int{2, 3}, T: &tensor.SymmetryCP{Shape: []int{2, 3}, Levels: levels,
				Terms: []tensor.SymmetryRankOne{
					{Alpha: -2, S: scaled.FromFloats([]float64{4, 5, 6}),
						R: [][]float64{nil, {1, 2, 3}}},
				}}},
		},
		Links: []btn.Link{{Legs: []int{0, 2},
			T: &tensor.CP{Shape: []int{2, 2}, Weights: []float64{1, 0.5},
				Vectors: [][]float64{nil, {}}}}},
		Variables: []btn.Variable{{Domain: 2, Link: 0}},
		Scale:     scaled.Number{Mant: 1.5, Exp: -7},
		Choice:    query.CoresAreVariables,
	}
	const want = "7c94c8f9a33ab5260f962af15f417de233e6b79599669d25a035fdd40c452020"
	if got := fmt.Sprintf("%x", n.Digest()); got != want {
		t.Errorf("digest %s, pinned is %s", got, want)
	}
}

func TestBaseDigestSymmetricKinds(t *testing.T) {
	levels := countspace.TwoLevels([]int{2, 3})
	symmetric := func(mant float64, exp int64) *btn.Network {
		values := scaled.Vector{Mant: []float64{1, mant, 3}, Exp: []int64{0, exp, 0}}
		return &btn.Network{Dims: []int{2, 3},
			Cores: []btn.Core{{Legs: []int{0, 1},
				T: &tensor.Symmetric{Shape: []int{2, 3}, Levels: levels, Values: values}}}}
	}
	if symmetric(1, 1).BaseDigest() != symmetric(2, 0).BaseDigest() {
		t.Error("two forms of the number 2 have different digests")
	}
	if symmetric(1, 1).BaseDigest() == symmetric(1, 2).BaseDigest() {
		t.Error("an exponent is not in the digest")
	}
	term := func(r []float64, alpha float64) *btn.Network {
		n := symmetric(1, 0)
		n.Cores[0].T = &tensor.SymmetryCP{Shape: []int{2, 3}, Levels: levels,
			Terms: []tensor.SymmetryRankOne{{
				Alpha: alpha, S: scaled.Vector{Mant: []float64{1, 1, 3}}, R: [][]float64{r, nil}}}}
		return n
	}
	if term([]float64{1, 2}, 1).BaseDigest() == term([]float64{1, 3}, 1).BaseDigest() {
		t.Error("R is not in the digest")
	}
	if term([]float64{1, 2}, 1).BaseDigest() == term([]float64{1, 2}, 2).BaseDigest() {
		t.Error("α is not in the digest")
	}
	if term(nil, 1).BaseDigest() == symmetric(1, 0).BaseDigest() {
		t.Error("the kind is not in the digest")
	}
}
