package branching

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/basetensor/basetensor/pkg/fault"
)

// drawNetwork draws a small network: tables of one to four variables, forbidden combinations, ties, costs of any size.
func drawNetwork(rng *rand.Rand) *Network {
	n := &Network{Domains: make([]int, 2+rng.IntN(7))}
	size := 1
	for v := range n.Domains {
		n.Domains[v] = 1 + rng.IntN(4)
		if size*n.Domains[v] > 400 {
			n.Domains[v] = 1
		}
		size *= n.Domains[v]
	}
	kind := rng.IntN(5)
	zeros := []float64{0, 0, 0.1, 0.3}[rng.IntN(4)]
	arity := 2 + rng.IntN(3)
	for range 1 + rng.IntN(2*len(n.Domains)+2) {
		f := Factor{Scope: rng.Perm(len(n.Domains))[:min(len(n.Domains), 1+rng.IntN(arity))]}
		size := 1
		for _, v := range f.Scope {
			size *= n.Domains[v]
		}
		for range size {
			var x float64
			switch kind {
			case 0:
				x = -math.Log(rng.Float64())
			case 1:
				x = float64(rng.IntN(3)) // ties
			case 2:
				x = math.Exp(rng.NormFloat64()*8) * float64(1-2*rng.IntN(2)) // wild
			case 3:
				x = 5 * rng.NormFloat64()
			case 4:
				x = float64(rng.IntN(2)) * math.Ln2
			}
			if rng.Float64() < zeros {
				x = math.Inf(1)
			}
			f.Costs = append(f.Costs, x)
		}
		n.Factors = append(n.Factors, f)
	}
	return n
}

// sortedCosts returns the costs of all assignments that are not forbidden, in ascending order.
func sortedCosts(n *Network) (costs []float64) {
	values := make([]int, len(n.Domains))
	for {
		if c := n.Cost(values); !math.IsInf(c, 1) {
			costs = append(costs, c)
		}
		v := len(values) - 1
		for ; v >= 0; v-- {
			if values[v]++; values[v] < n.Domains[v] {
				break
			}
			values[v] = 0
		}
		if v < 0 {
			slices.Sort(costs)
			return costs
		}
	}
}

// tolerance returns a bound of the rounding of a network's bound: a unit and a quarter for every table, and that of float64.
func tolerance(n *Network) float64 {
	m, possible := n.merge()
	if !possible {
		return 0
	}
	unit, _ := m.unit()
	return unit*1.25*float64(len(n.Factors)+len(n.Domains)) + (m.roundingError+math.Abs(m.constant.Value()))*0x1p-49
}

// TestEqualToEnumeration: the optimum is that of enumeration, and no bound is above it, wherever the search stops.
func TestEqualToEnumeration(t *testing.T) {
	for seed := range uint64(4000) {
		n := drawNetwork(rand.New(rand.NewPCG(seed, 1)))
		want := math.Inf(1)
		if costs := sortedCosts(n); len(costs) > 0 {
			want = costs[0]
		}
		for _, work := range []int64{0, 1, 100, 1000} {
			r, err := Solve(context.Background(), n, Options{Work: work})
			if err != nil {
				t.Fatal(err)
			}
			slack := tolerance(n)
			switch {
			case r.Bound > want:
				t.Fatalf("seed %d, %d work: bound %v, the optimum is %v", seed, work, r.Bound, want)
			case r.Values != nil && n.Cost(r.Values) != r.Cost:
				t.Fatalf("seed %d: cost %v, said to be %v", seed, n.Cost(r.Values), r.Cost)
			case r.Cost < want:
				t.Fatalf("seed %d: cost %v below the optimum %v", seed, r.Cost, want)
			case work == 0 && !r.Proved:
				t.Fatalf("seed %d: not proved: %+v", seed, r)
			case r.Proved && r.Cost > want+slack:
				t.Fatalf("seed %d: proved %v, the optimum is %v (slack %g)", seed, r.Cost, want, slack)
			case r.Proved && r.Cost-r.Bound > slack:
				t.Fatalf("seed %d: proved %v with bound %v (slack %g)", seed, r.Cost, r.Bound, slack)
			}
		}
	}
}

// TestStartOfAnotherNetwork is refused.
func TestStartOfAnotherNetwork(t *testing.T) {
	n, _ := glass(2, 2, rand.New(rand.NewPCG(1, 1)))
	for _, start := range [][]int{{0, 1, 0}, {0, 1, 2, 0}, {0, -1, 0, 0}} {
		if _, err := Solve(t.Context(), n, Options{Start: start}); fault.CodeOf(err) != fault.BadInput {
			t.Errorf("%v: %v", start, err)
		}
	}
}

// TestListEqualToEnumeration: a list has the costs that enumeration finds, each assignment once, and wherever the search stops nothing
// below the bound is missing.
func TestListEqualToEnumeration(t *testing.T) {
	for seed := range uint64(3000) {
		rng := rand.New(rand.NewPCG(seed, 2))
		n := drawNetwork(rng)
		want := sortedCosts(n)
		best := 2 + rng.IntN([]int{3, 20, 500}[seed%3])
		for _, work := range []int64{0, 1, 300, 3000} {
			o := Options{Work: work, Count: best}
			if r, err := Solve(context.Background(), n, Options{Work: 50}); err == nil && seed%2 == 1 {
				o.Start = r.Values
			}
			r, err := Solve(context.Background(), n, o)
			if err != nil {
				t.Fatal(err)
			}
			slack := tolerance(n)
			got := r.Others
			if r.Values != nil {
				got = slices.Insert(slices.Clone(r.Others), 0, r.Values)
			}
			last, missing := math.Inf(-1), slices.Clone(want)
			seen := map[string]bool{}
			for k, values := range got {
				cost := n.Cost(values)
				at, found := slices.BinarySearch(missing, cost)
				if !found || cost < last || k == 0 && cost != r.Cost {
					t.Fatalf("seed %d: assignment %d costs %v after %v, %v are left", seed, k, cost, last, missing)
				}
				missing, last = slices.Delete(missing, at, at+1), cost
				key := ""
				for _, a := range values {
					key += string(rune(a))
				}
				if seen[key] {
					t.Fatalf("seed %d: %v twice", seed, values)
				}
				seen[key] = true
			}
			switch {
			case len(missing) > 0 && r.Bound > missing[0]:
				t.Fatalf("seed %d, %d work: bound %v, and %v is not listed", seed, work, r.Bound, missing[0])
			case work == 0 && (!r.Proved || len(got) != min(best, len(want))):
				t.Fatalf("seed %d: %d of %d assignments, proved: %v", seed, len(got), len(want), r.Proved)
			case r.Proved && len(missing) > 0 && last-r.Bound > slack:
				t.Fatalf("seed %d: proved to %v with bound %v (slack %g)", seed, last, r.Bound, slack)
			case work == 0 && len(want) < best && !math.IsInf(r.Bound, 1):
				t.Fatalf("seed %d: all %d are listed, and the bound is %v", seed, len(want), r.Bound)
			}
		}
	}
}

// TestImages: an image of 40×40 with four greys, noisy and smooth, is proved at the root: message passing gives the bound, and what it
// suggests the assignment.
func TestImages(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const n, greys = 40, 4
	image := &Network{Domains: make([]int, n*n)}
	smooth := make([]float64, greys*greys)
	for k := range smooth {
		if k%(greys+1) != 0 {
			smooth[k] = 1.2
		}
	}
	for i := range n * n {
		image.Domains[i] = greys
		seen := float64((i/n/10+i%n/10)%greys) + 0.7*rng.NormFloat64()
		costs := make([]float64, greys)
		for a := range costs {
			costs[a] = (seen - float64(a)) * (seen - float64(a))
		}
		image.Factors = append(image.Factors, Factor{[]int{i}, costs})
		if i%n+1 < n {
			image.Factors = append(image.Factors, Factor{[]int{i, i + 1}, smooth})
		}
		if i/n+1 < n {
			image.Factors = append(image.Factors, Factor{[]int{i, i + n}, smooth})
		}
	}
	r, err := Solve(t.Context(), image, Options{Work: 6e6})
	if err != nil || !r.Proved || r.Stats.Nodes > 1000 {
		t.Errorf("%v: cost %v, bound %v, proved %v in %d nodes", err, r.Cost, r.Bound, r.Proved, r.Stats.Nodes)
	}
}

// glass returns a grid of spins with random couplings, and its optimum. That is computed spin by spin along the rows over the states of the
// last row.
func glass(rows, columns int, rng *rand.Rand) (*Network, float64) {
	network := &Network{Domains: slices.Repeat([]int{2}, rows*columns)}
	couple := func(x, y int) float64 {
		j := rng.NormFloat64()
		network.Factors = append(network.Factors, Factor{[]int{x, y}, []float64{-j, j, j, -j}})
		return j
	}
	least := make([]float64, 1<<columns) // by the last spin of each column
	for x := range rows * columns {
		c := x % columns
		var up, left float64
		if x >= columns {
			up = couple(x-columns, x)
		}
		if c > 0 {
			left = couple(x-1, x)
		}
		next := make([]float64, len(least))
		for state := range next {
			spin := state >> c & 1
			cost := -left
			if c > 0 && state>>(c-1)&1 != spin {
				cost = left
			}
			above := [2]float64{up, up}
			above[spin] = -up
			next[state] = cost + min(above[0]+least[state&^(1<<c)], above[1]+least[state|1<<c])
		}
		least = next
	}
	return network, slices.Min(least)
}

// nodewiseSolver returns a solver for that work, with its root open, that does not search along separators.
func nodewiseSolver(t *testing.T, n *Network, work int64) *solver {
	s, possible := newSolver(t.Context(), n)
	if !possible {
		t.Fatal("nothing is possible")
	}
	s.workLimit, s.openBytesLimit, s.isNodewise = work, 256<<20, true
	s.openRoot()
	return s
}

// TestNeighbourhoods: the search of neighbourhoods comes within a part in 200 of the optimum long before there is a proof; changes of few
// values only stay a part in 100 away.
func TestNeighbourhoods(t *testing.T) {
	excess, total := 0.0, 0.0
	for seed := range uint64(4) {
		n, optimum := glass(40, 12, rand.New(rand.NewPCG(seed, 3)))
		r := nodewiseSolver(t, n, 2e7).searchAndReport()
		if r.Proved {
			t.Fatalf("seed %d: %+v", seed, r)
		}
		if r.Cost < optimum-1e-9 || r.Bound > optimum {
			t.Errorf("seed %d: cost %v, bound %v, the optimum is %v", seed, r.Cost, r.Bound, optimum)
		}
		excess, total = excess+r.Cost-optimum, total-optimum
	}
	if excess > total/200 {
		t.Errorf("%.3g nats above the optima, of %.4g", excess, total)
	}
}
