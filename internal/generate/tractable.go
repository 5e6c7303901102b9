// Package generate makes models whose answers are known or comparable: base tensor networks with a
// tractable core, read backwards as factor graphs of any treewidth with known Z, and Ising models.
package generate

// Networks with a symmetric, CP or symmetry-CP core: the paper's "learned high-treewidth factor
// graphs starting from tractable BTNs".

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/contract"
	"github.com/basetensor/basetensor/internal/problem"
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// ErrOptions says that what was asked for cannot be generated.
var ErrOptions = errors.New("generate: options")

// Core names the form of the core tensor.
type Core string

const (
	CoreSymmetric  Core = "symmetric"   // Lemma 3
	CoreCP         Core = "cp"          // Lemma 2
	CoreSymmetryCP Core = "symmetry-cp" // Lemma 4
)

// Options describe a network with one core over all legs. The zero value of a field means its
// default.
type Options struct {
	Core Core // default symmetric
	Legs int  // default 20
	Dim  int  // smallest dimension of a leg, default 2
	// largest, default Dim; where they differ a symmetric part has two levels, {0, the rest}, else λ
	// is the identity
	MaxDim   int
	Rank     int  // terms of a CP or symmetry-CP core, default 3
	Widest   int  // links have 1 to Widest legs, default 3
	Negative bool // entries of either sign; else all are positive
	// the core as a table of all its entries (at most 2^22), so that its structure has to be found
	Dense bool
	Seed  uint64 // of everything drawn
}

// Planted is a model with its answer.
type Planted struct {
	Network  *btn.Network       // direct: without variables, legs have no maps
	Estimate *btn.Estimate      // B, exactly
	Model    *factorgraph.Model // the network read backwards: Z(Model) = Z(Network)
	Z        scaled.Number      // the partition function
	LnZ      float64            // ln |Z| in nats
}

// bounds of what is generated, before anything is allocated.
const (
	maxLegs   = 100_000
	maxDim    = 64
	maxRank   = 1000
	maxWidest = 12
	maxTable  = 1 << 22
)

// withDefaults replaces zeros by the defaults.
func (o Options) withDefaults() Options {
	set := func(field *int, value int) {
		if *field == 0 {
			*field = value
		}
	}
	if o.Core == "" {
		o.Core = CoreSymmetric
	}
	set(&o.Legs, 20)
	set(&o.Dim, 2)
	set(&o.MaxDim, o.Dim)
	set(&o.Rank, 3)
	set(&o.Widest, 3)
	return o
}

// validate refuses what is out of bounds, with ErrOptions.
func (o Options) validate() error {
	switch o.Core {
	case CoreSymmetric, CoreCP, CoreSymmetryCP:
	default:
		return fmt.Errorf("%w: unknown core %q (symmetric, cp, symmetry-cp)", ErrOptions, o.Core)
	}

	for _, c := range []struct {
		name             string
		value, low, high int
	}{
		{"legs", o.Legs, 1, maxLegs}, {"smallest dimension", o.Dim, 1, maxDim},
		{"largest dimension", o.MaxDim, o.Dim, maxDim},
		{"rank", o.Rank, 1, maxRank}, {"widest link", o.Widest, 1, maxWidest},
	} {
		if c.value < c.low || c.value > c.high {
			return fmt.Errorf("%w: %s %d, %d to %d are possible", ErrOptions, c.name, c.value, c.low, c.high)
		}
	}

	if size := math.Pow(float64(o.MaxDim), float64(o.Widest)); size > maxTable {
		return fmt.Errorf("%w: a link of %d legs of dimension %d has %.0f entries, at most %d",
			ErrOptions, o.Widest, o.MaxDim, size, maxTable)
	}
	return nil
}

// Tractable draws a network with one tractable core and random dense links, and contracts it.
//
// A symmetric S is a random walk in ln S over the counts, at most a factor e^½ from one count to the
// next, so that all counts matter; other entries are uniform in [½, 1½), links too. The model has
// one variable per leg, one factor for the core, over all of them (treewidth n − 1), and one per
// link.
//
// Errors: ErrOptions, and those of contract.Part.
// Cost: n²/2 multiply-adds per term for two levels, the count space's box for more.
func Tractable(ctx context.Context, o Options) (*Planted, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	d := drawer{rng: rand.New(rand.NewPCG(o.Seed, 0x6274)), negative: o.Negative}
	dims := make([]int, o.Legs)
	for l := range dims {
		dims[l] = o.Dim + d.rng.IntN(o.MaxDim-o.Dim+1)
	}

	core, dec, err := d.core(o, dims)
	if err != nil {
		return nil, err
	}
	if o.Dense {
		if core, err = tensor.ToDense(core, maxTable); err != nil {
			return nil, fmt.Errorf("%w: dense core: %w", ErrOptions, err)
		}
	}

	net := &btn.Network{
		Dims:  dims,
		Cores: []btn.Core{{Legs: upTo(len(dims)), T: core}},
		Links: d.links(dims, o.Widest),
		Scale: scaled.One,
	}
	model, err := Backwards(net)
	if err != nil {
		return nil, err
	}
	return answer(ctx, &Planted{Network: net, Estimate: dec, Model: model})
}

// answer contracts p's estimate (Lemma 5) and fills in what is known of it.
func answer(ctx context.Context, p *Planted) (*Planted, error) {
	z := make([]scaled.Number, len(p.Estimate.Parts))
	for i := range z {
		v, err := contract.Part(ctx, problem.New(p.Network, problem.Options{}),
			p.Estimate.Parts[i], problem.Want{})
		if err != nil {
			return nil, err
		}
		z[i] = v.Z
	}

	p.Z = scaled.SumProducts(p.Estimate.Weights(), z)
	p.LnZ = p.Z.LogAbs()
	normSq, err := tensor.NormSq(p.Network.Cores[0].T)
	if err != nil {
		return nil, err
	}
	p.Estimate.Quality.ConditionGram = 1
	p.Estimate.Quality.LnNormB = normSq.LogAbs() / 2
	return p, nil
}

// Backwards reads a network as a factor graph with the same Z: legs become variables, cores and
// links become factors, and a Scale other than 1 a factor of order zero. The network must be valid;
// its tensors are shared.
func Backwards(net *btn.Network) (*factorgraph.Model, error) {
	if err := net.Validate(); err != nil {
		return nil, err
	}
	m := &factorgraph.Model{Domains: net.Dims}
	for _, c := range net.Cores {
		m.Factors = append(m.Factors, factorgraph.Factor{Scope: c.Legs, Table: c.T})
	}

	for _, l := range net.Links {
		m.Factors = append(m.Factors, factorgraph.Factor{Scope: l.Legs, Table: l.T})
	}
	if net.Scale != scaled.One {
		// A symmetric tensor of order zero: the one form whose single entry may have any range.
		constant := &tensor.Symmetric{Shape: []int{}, Levels: countspace.Levels{D: 1, Of: [][]uint8{}},
			Values: scaled.Vector{Mant: []float64{net.Scale.Mant}, Exp: []int64{net.Scale.Exp}}}
		m.Factors = append(m.Factors, factorgraph.Factor{Scope: []int{}, Table: constant})
	}

	return m, m.Validate()
}

// upTo lists 0 to n − 1.
func upTo(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}
