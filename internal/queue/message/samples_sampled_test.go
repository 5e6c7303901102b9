package message

import (
	"errors"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/methods/bounding"
	"github.com/basetensor/basetensor/internal/methods/sampled"
	"github.com/basetensor/basetensor/internal/methods/truncated"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/query"
)

// drawn is what kinds of independent draws have.
func drawn(kind sampled.Kind, order ...int) sampled.Independent {
	return sampled.Independent{Base: sampled.Base{Kind: kind}, Order: order}
}

// components is an estimate of sampled components of each kind, two parts each, and one of bounds of each kind.
func (r random) components(sweep *truncated.TruncatedPlan) []btn.Estimate {
	pool := btn.Estimate{Rule: btn.Pooled, Track: string(query.FamilySampled), Slices: 1, Cost: r.cost()}
	chains := func() sampled.Base { return sampled.Base{Kind: sampled.ByAnnealing} }
	buckets := func(kind sampled.Kind) sampled.Independent {
		d := drawn(kind, r.Perm(3)...)
		d.Entries, d.Each, d.Setup = 16, 100*r.Float64(), 100*r.Float64()
		return d
	}
	for _, along := range []sampled.Sampling{
		&sampled.Annealing{Base: chains(), Rungs: 1 + r.IntN(99), Metropolis: r.IntN(2) == 0, Product: true, Of: 20},
		&sampled.Annealing{Base: chains(), Rungs: 1 + r.IntN(99), Forests: true},
		&sampled.MiniBuckets{Independent: buckets(sampled.ByMiniBuckets)},
		&sampled.Slices{Independent: buckets(sampled.BySlices), Rest: 1 + r.IntN(3)},
		&sampled.Sweep{Independent: buckets(sampled.BySweep), Sweep: sweep, Bond: 4, Defence: 1e-4},
		&sampled.Beliefs{Independent: buckets(sampled.ByBeliefs), Follow: 0.1, Defence: 1e-2},
	} {
		b := along.About()
		b.Shape, b.Seed, b.Spread = digestA, r.Uint64(), r.Float64()
		pool.Parts = append(pool.Parts, &sampled.Sampled{Sampling: along, To: 8}, &sampled.Sampled{Sampling: along, From: 8, To: 20})
	}
	return []btn.Estimate{pool, {Rule: btn.Bounding, Slices: 1, Cost: r.cost(), Parts: []btn.Part{
		&bounding.Bound{Kind: bounding.MiniBuckets, Shape: digestA, Order: r.Perm(3), Entries: 64},
		&bounding.Bound{Kind: bounding.Determinant, Shape: digestA, Rounds: 9},
		&bounding.Bound{Kind: bounding.Bethe, Shape: digestA, Rounds: 9},
	}}}
}

// TestKindsOfOtherVersionsAreNamed: a kind of drawing components that this version does not have is refused by its name.
func TestKindsOfOtherVersionsAreNamed(t *testing.T) {
	along := &sampled.MiniBuckets{Independent: drawn("dice")}
	b, err := EncodePlan(&btn.Plan{Estimates: []btn.Estimate{{Parts: []btn.Part{&sampled.Sampled{Sampling: along, To: 1}}}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := DecodePlan(b); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), `"dice" is no kind of this version`) {
		t.Error(err)
	}
}
