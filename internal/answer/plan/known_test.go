package plan

import (
	"testing"

	"github.com/basetensor/basetensor/internal/methods/proposal"
	"github.com/basetensor/basetensor/internal/models/generate"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/reparam"
)

// TestLargeNetworksAreKnown by their digests: the keys of what is learned of them, at every job, are those of facts made anew, and differ
// between networks; slots are not kept.
func TestLargeNetworksAreKnown(t *testing.T) {
	key := func(net *btn.Network, f *proposal.Facts) string {
		j := &proposal.Job{Net: net, Facts: f}
		return j.Key("learned", contractionorder.Hypergraph{})
	}
	known, seen := new(NetworkMemory), map[string]bool{}
	for seed := range uint64(2) {
		m, err := generate.Grid(60, 60, generate.Ising{Delta: 1, Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		net, err := reparam.Build(t.Context(), m, reparam.Options{})
		if err != nil || len(net.Cores)+len(net.Links) <= keepTensors {
			t.Fatalf("%d tensors, %v", len(net.Cores)+len(net.Links), err)
		}
		want, made := key(net, proposal.NewFacts(net, nil)), 0
		for range 3 {
			f := known.factsOf(net)
			if got := key(net, f.Facts); got != want || f.coreSpan != spanOfCores(net) {
				t.Errorf("seed %d: key %s, want %s", seed, got, want)
			}
			if _, err := proposal.Fact(t.Context(), f.Facts, "slot", func() (int, error) { made++; return made, nil }); err != nil {
				t.Fatal(err)
			}
		}
		if made != 3 || seen[want] {
			t.Errorf("seed %d: a slot is made %d times, the key is another network's: %v", seed, made, seen[want])
		}
		seen[want] = true
	}
}
