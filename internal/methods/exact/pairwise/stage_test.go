package pairwise

import (
	"context"
	"math/rand/v2"
	"testing"
)

// shuffledMerge is a merge of two tables over indices of several dimensions in random sequence, of as many
// multiplications as most at most. group is by index: 0 batch, 1 and 2 of one table, 3 summed.
func shuffledMerge(rng *rand.Rand, weights [4]int, most int) (x *spec, a, b, out layout, dims []int) {
	s := &shape{}
	var stays []int
	dimensions := []int{2, 2, 2, 3, 4, 5, 8}
	total := 0
	for _, w := range weights {
		total += w
	}
	work := 1
	for {
		d := dimensions[rng.IntN(len(dimensions))]
		if work *= d; work > most {
			break
		}
		v := len(s.dims)
		s.dims = append(s.dims, d)
		s.summingMerge = append(s.summingMerge, rng.IntN(5))
		group, n := 0, rng.IntN(total)
		for n >= weights[group] {
			n -= weights[group]
			group++
		}
		if group != 2 {
			a.index = append(a.index, v)
		}
		if group != 1 {
			b.index = append(b.index, v)
		}
		if group != 3 {
			stays = append(stays, v)
		}
	}
	for _, l := range []*layout{&a, &b} {
		rng.Shuffle(len(l.index), func(i, j int) { l.index[i], l.index[j] = l.index[j], l.index[i] })
		l.stride = make([]int, len(l.index))
		step := 1
		for i := len(l.index) - 1; i >= 0; i-- {
			l.stride[i] = step
			step *= s.dims[l.index[i]]
		}
	}
	x, out = s.planMerge(a, b, stays)
	return x, a, b, out, s.dims
}

// places lists where a table has the entries of all combinations of values, the last index the fastest.
func placesOf(l layout, dims []int) []int {
	list := []int{0}
	for v, d := range dims {
		step := l.strideOf(v)
		var next []int
		for _, at := range list {
			for i := range d {
				next = append(next, at+i*step)
			}
		}
		list = next
	}
	return list
}

// TestShuffledMergesAgainstOneLoop compares merges of large tables in any sequence with one loop over all
// products. Entries are small integers, so sums are exact.
func TestShuffledMergesAgainstOneLoop(t *testing.T) {
	rng := rand.New(rand.NewPCG(29, 1))
	staged := map[kind]int{}
	for round := range 80 {
		weights := [][4]int{{3, 3, 3, 1}, {6, 1, 0, 1}, {1, 0, 0, 0}, {0, 0, 0, 1}, {3, 1, 1, 1}, {1, 4, 0, 1}}[round%6]
		if round >= 60 {
			weights = [4]int{3, 1, 3, 5} // sums of more values than a block has
		}
		x, la, lb, lo, dims := shuffledMerge(rng, weights, 1<<19)
		inA, inB, inOut := placesOf(la, dims), placesOf(lb, dims), placesOf(lo, dims)
		table := func(places []int) []float64 {
			size := 0
			for _, at := range places {
				size = max(size, at+1)
			}
			data := make([]float64, size)
			for i := range data {
				data[i] = float64(rng.IntN(7) - 3)
			}
			return data
		}
		a, b, got := table(inA), table(inB), table(inOut)
		want := make([]float64, len(got))
		for i, at := range inOut {
			want[at] += a[inA[i]] * b[inB[i]]
		}
		var m merger
		if err := m.run(context.Background(), 1+round%3, x, a, b, got); err != nil {
			t.Fatal(err)
		}
		for i := range want {
			if got[i] != want[i] {
				t.Fatalf("round %d, kind %d: entry %d is %v, want %v", round, x.kind, i, got[i], want[i])
			}
		}
		if x.staged[0].size+x.staged[1].size > 0 {
			staged[x.kind]++
		}
	}
	for _, k := range []kind{panel, blend, inner, batched} {
		if staged[k] < 3 {
			t.Errorf("kind %d was staged %d times", k, staged[k])
		}
	}
}
