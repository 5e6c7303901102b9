package region

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestCoreAndSplitByDefinition compares with repeated passes over all legs.
func TestCoreAndSplitByDefinition(t *testing.T) {
	several := 0
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 9))
		g, err := newGraph(random(8+rng.IntN(12), 10+rng.IntN(14), 1, seed).Hypergraph())
		if err != nil {
			t.Fatal(err)
		}
		cut := newCutter(g)
		for range 5 {
			var legs []int32
			for leg := range g.indexOf {
				if rng.IntN(8) > 0 {
					legs = append(legs, int32(leg))
				}
			}
			want := coreByDefinition(g, legs)
			core := cut.core(slices.Clone(legs))
			if !slices.Equal(core, want) {
				t.Fatalf("seed %d: the core of %v is %v, want %v", seed, legs, core, want)
			}
			if len(core) == 0 {
				continue
			}
			var parts [][]int32
			cut.split(core, func(part []int32) { parts = append(parts, slices.Clone(part)) })
			wanted := partsByDefinition(g, want)
			if !slices.EqualFunc(parts, wanted, slices.Equal) {
				t.Fatalf("seed %d: the parts of %v are %v, want %v", seed, want, parts, wanted)
			}
			if len(parts) > 1 {
				several++
			}
		}
	}
	if several < 10 {
		t.Errorf("only %d sets had several parts", several)
	}
}

func coreByDefinition(g *graph, legs []int32) []int32 {
	for {
		left := slices.DeleteFunc(slices.Clone(legs), func(leg int32) bool {
			i, t := 0, 0
			for _, other := range legs {
				if g.indexOf[other] == g.indexOf[leg] {
					i++
				}
				if g.tableOf[other] == g.tableOf[leg] {
					t++
				}
			}
			return i < 2 || t < 2
		})
		if len(left) == len(legs) {
			return left
		}
		legs = left
	}
}

func partsByDefinition(g *graph, legs []int32) (parts [][]int32) {
	for len(legs) > 0 {
		part := []int32{legs[0]}
		for grown := true; grown; {
			grown = false
			for _, leg := range legs {
				touches := func(o int32) bool { return g.indexOf[o] == g.indexOf[leg] || g.tableOf[o] == g.tableOf[leg] }
				if !slices.Contains(part, leg) && slices.ContainsFunc(part, touches) {
					part = append(part, leg)
					grown = true
				}
			}
		}
		slices.Sort(part)
		parts = append(parts, part)
		legs = slices.DeleteFunc(slices.Clone(legs), func(leg int32) bool { return slices.Contains(part, leg) })
	}
	return parts
}

// TestBytes: the memory predicted for a worker is the memory it holds.
func TestBytes(t *testing.T) {
	e := grid(6, 6, 0.5, 1)
	f := planFamily(t, e, Options{Kind: Windows, Size: 6})
	p, err := Prepare(context.Background(), e, propagate(t, e), f)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorker(f.graph, p.gauge)
	legs, _ := f.source.region(0, w)
	if _, prog := w.ratio(legs, false); f.Bytes != 8*float64(prog.Entries) || f.Flops != prog.Flops {
		t.Errorf("%d entries, %v bytes predicted; %v flops, %v predicted",
			prog.Entries, f.Bytes, prog.Flops, f.Flops)
	}
}

// TestLargeLatticesArePriced: the windows in the middle stand for all, to the flop.
func TestLargeLatticesArePriced(t *testing.T) {
	e := grid(70, 90, 0.5, 1)
	o := Options{Kind: Windows, Size: 3}
	if f, est := planFamily(t, e, o), estimate(t, e, o); f.Len() <= maxPriced || f.Flops != est.Flops {
		t.Errorf("%d windows take %v flops, predicted %v", f.Len(), est.Flops, f.Flops)
	}
}
