package ranked

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// tree is a complete tree of choices with a cost per node.
type tree struct {
	options int
	levels  int
	cost    map[string]float64 // of a node by its choices
	least   map[string]float64 // with the best of the rest
	chosen  []byte
	costs   []float64
}

func draw(rng *rand.Rand, ties bool) *tree {
	t := &tree{options: 1 + rng.IntN(3), levels: rng.IntN(6), cost: map[string]float64{}, least: map[string]float64{}}
	var grow func(at string) float64
	grow = func(at string) float64 {
		t.cost[at] = rng.Float64()
		if ties {
			t.cost[at] = float64(rng.IntN(2))
		}
		if rng.IntN(6) == 0 {
			t.cost[at] = math.Inf(1)
		}
		least := 0.0
		if len(at) < t.levels {
			least = math.Inf(1)
			for o := range t.options {
				least = min(least, grow(at+string(rune(o))))
			}
		}
		t.least[at] = t.cost[at] + least
		return t.least[at]
	}
	grow("")
	t.chosen = make([]byte, t.levels)
	return t
}

func (t *tree) Choose(level, option int) { t.chosen[level] = byte(option) }

func (t *tree) Costs(level int) []float64 {
	t.costs = t.costs[:0]
	at := string(t.chosen[:level])
	for o := range t.options {
		t.costs = append(t.costs, t.least[at+string(rune(o))])
	}
	least := slices.Min(t.costs)
	for o := range t.costs {
		t.costs[o] -= least
	}
	return t.costs
}

// TestList: the cheapest ways in order, each once, as sorting finds them.
func TestList(t *testing.T) {
	for seed := range uint64(2000) {
		rng := rand.New(rand.NewPCG(seed, 1))
		c := draw(rng, seed%3 == 0)
		var want []float64
		for at := range c.cost {
			sum := 0.0
			for k := range len(at) + 1 {
				sum += c.cost[at[:k]]
			}
			if len(at) == c.levels && !math.IsInf(sum, 1) {
				want = append(want, sum)
			}
		}
		if len(want) == 0 {
			continue
		}
		slices.Sort(want)
		most := 1 + rng.IntN(len(want)+3)
		limit := math.Inf(1)
		if seed%2 == 1 {
			limit = rng.Float64() * 3
		}
		seen := map[string]bool{}
		n := 0
		all, err := List(context.Background(), c.levels, c, most, func(cost float64) float64 {
			if math.Abs(cost+want[0]-want[n]) > 1e-12 || seen[string(c.chosen)] {
				t.Fatalf("seed %d: way %d, %v, costs %v more than the first, not %v", seed, n, c.chosen, cost, want[n]-want[0])
			}
			seen[string(c.chosen)] = true
			n++
			return limit
		})
		switch {
		case err != nil:
			t.Fatal(err)
		case all != (n == len(want)):
			t.Fatalf("seed %d: %d of %d ways, all: %v", seed, n, len(want), all)
		case n < min(most, len(want)) && want[n]-want[0] < limit-1e-12:
			t.Fatalf("seed %d: ended after %d of %d ways", seed, n, len(want))
		}
	}
}

// free has independent choices.
type free struct{ costs [][]float64 }

func (f free) Choose(int, int)           {}
func (f free) Costs(level int) []float64 { return f.costs[level] }

// TestListDropsWhatIsTooLate: with more ways met than are kept the list is the same.
func TestListDropsWhatIsTooLate(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var f free
	for range 400 {
		f.costs = append(f.costs, []float64{0, rng.Float64(), rng.Float64()})
	}
	lists := [2][]float64{}
	for k, most := range []int{40, 800} { // the second drops none among its first
		if _, err := List(context.Background(), len(f.costs), f, most, func(cost float64) float64 {
			lists[k] = append(lists[k], cost)
			return math.Inf(1)
		}); err != nil {
			t.Fatal(err)
		}
	}
	if len(lists[0]) != 40 || !slices.Equal(lists[0], lists[1][:40]) || !slices.IsSorted(lists[1]) {
		t.Errorf("%v, then %v", lists[0], lists[1][:40])
	}
	ended, end := context.WithCancel(context.Background())
	end()
	if _, err := List(ended, len(f.costs), f, 40, func(float64) float64 { return 0 }); err == nil {
		t.Error("the context has ended, and no error says so")
	}
}
