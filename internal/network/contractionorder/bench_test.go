package contractionorder

// Speed of the search, in moves per second and in proposals, trees and pieces.

import (
	"context"
	"math/rand/v2"
	"testing"
)

// benchGrid is a 20×20 grid of binary indices with a tensor per edge.
func benchGrid() Hypergraph {
	const side = 20
	h := Hypergraph{}
	for i := range side * side {
		h.Dims = append(h.Dims, 2)
		if i%side+1 < side {
			h.Edges = append(h.Edges, []int{i, i + 1})
		}
		if i+side < side*side {
			h.Edges = append(h.Edges, []int{i, i + side})
		}
	}
	return h
}

var benchObjective = objective{log2Write: 4 * oneBit, limit: noLimit}

func BenchmarkSweep(b *testing.B) {
	n := newSlicedNetwork(benchGrid(), nil)
	rng := rand.NewPCG(1, 1)
	w := newWorkingTree(n, greedyTree(n, greedyRule{alpha: oneBit}, rng).mergeRemaining())
	w.movesSpent = 0
	scratch := make([]uint64, n.words)
	for b.Loop() {
		w.sweep(&benchObjective, oneBit/8, rng, scratch)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*(len(n.edges)-1)), "ns/rotation")
	b.ReportMetric(float64(w.movesSpent)/b.Elapsed().Seconds(), "moves/s")
}

func BenchmarkGreedy(b *testing.B) {
	n := newSlicedNetwork(benchGrid(), nil)
	rng := rand.NewPCG(1, 1)
	moves := int64(0)
	for b.Loop() {
		p := greedyTree(n, greedyRule{alpha: oneBit, temperature: oneBit / 4}, rng)
		moves += p.movesSpent
	}
	b.ReportMetric(float64(moves)/b.Elapsed().Seconds(), "moves/s")
}

func BenchmarkDissect(b *testing.B) {
	n := newSlicedNetwork(benchGrid(), nil)
	rng := rand.NewPCG(1, 1)
	total := int64(0)
	for b.Loop() {
		_, moves := dissect(n, dissection{imbalance: 48, openCost: oneBit / 4, pieceSize: pieceTables}, rng, nil)
		total += moves
	}
	b.ReportMetric(float64(total)/b.Elapsed().Seconds(), "moves/s")
}

func BenchmarkReconfigure(b *testing.B) {
	n := newSlicedNetwork(benchGrid(), nil)
	start := newWorkingTree(n, greedyTree(n, greedyRule{alpha: oneBit}, rand.NewPCG(1, 1)).mergeRemaining())
	for _, k := range []int{6, 8, 10} {
		b.Run(string(rune('0'+k/10))+string(rune('0'+k%10)), func(b *testing.B) {
			moves := int64(0)
			for b.Loop() {
				w := start.clone()
				newReconfigurer(w, benchObjective, k).run(noLimit)
				moves += w.movesSpent
			}
			b.ReportMetric(float64(moves)/b.Elapsed().Seconds(), "moves/s")
		})
	}
}

func BenchmarkSearch(b *testing.B) {
	h := benchGrid()
	moves, flops := int64(0), 0.0
	for b.Loop() {
		p, err := Search(context.Background(), h, Options{Seed: 1})
		if err != nil {
			b.Fatal(err)
		}
		moves += p.Moves
		flops = p.Cost.Flops
	}
	b.ReportMetric(float64(moves)/b.Elapsed().Seconds(), "moves/s")
	b.ReportMetric(flops, "flops")
}
