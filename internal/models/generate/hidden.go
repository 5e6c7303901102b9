package generate

// Two-mode mixtures: a switch between a wide mode and a narrow one that is heavier, so that few states hold most of Z.

import (
	"math"
	"math/rand/v2"

	"github.com/basetensor/basetensor/pkg/factorgraph"
)

// edge is a coupling J x_i x_j.
type edge struct {
	i, j     int
	coupling float64
}

// wide adds weak couplings, and returns ln Z of them at high temperature: n ln 2 + Σ ln cosh J.
func (b *builder) wide(n int, edges []edge) float64 {
	ln := float64(n) * math.Ln2
	for _, e := range edges {
		b.couple(e.i, e.j, e.coupling)
		ln += math.Log(math.Cosh(e.coupling))
	}
	return ln
}

// narrow ties variables to a state drawn at random where a switch has this value: the state has the weight e^(ln + excess) there, couplings
// included, and e^−penalty for each variable that differs.
func (b *builder) narrow(r *rand.Rand, variables []int, edges []edge, switched, value int, ln, excess, penalty float64) {
	state := make([]float64, b.domains[switched]+len(b.domains))
	for _, v := range variables {
		state[v] = float64(2*r.IntN(2) - 1)
	}
	for _, e := range edges {
		ln -= e.coupling * state[e.i] * state[e.j]
	}
	each := (ln + excess) / float64(len(variables))
	for _, v := range variables {
		entries := make([]float64, 2*b.domains[switched])
		for k := range entries {
			entries[k] = 1
		}
		same := int(state[v]+1) / 2
		entries[2*value+same], entries[2*value+1-same] = math.Exp(each), math.Exp(each-penalty)
		b.add([]int{switched, v}, entries...)
	}
}

// sparse are couplings U(−a, a) on a random 3-regular graph.
func sparse(r *rand.Rand, n int, a float64, seed uint64) (list []edge, err error) {
	graph, err := RandomRegular(n, 3, Ising{Seed: seed})
	if err != nil {
		return nil, err
	}
	for _, f := range graph.Factors {
		if len(f.Scope) == 2 {
			list = append(list, edge{f.Scope[0], f.Scope[1], uniform(r, a)})
		}
	}
	return list, nil
}

func hidden(n int, excess float64, seed uint64) (*factorgraph.Model, error) {
	r := random(seed, "hidden")
	edges, err := sparse(r, n, 0.3, seed)
	if err != nil {
		return nil, err
	}
	b := spins(n + 1)
	b.narrow(r, UpTo(n), edges, n, 1, b.wide(n, edges), excess, 6)
	return b.model(), nil
}

func hiddenDense(n int, excess float64, seed uint64) (*factorgraph.Model, error) {
	r := random(seed, "hidden dense")
	var edges []edge
	for i := range n {
		for j := range i {
			edges = append(edges, edge{j, i, 0.7 * r.NormFloat64() / math.Sqrt(float64(n))})
		}
	}
	b := spins(n + 1)
	b.narrow(r, UpTo(n), edges, n, 1, b.wide(n, edges), excess, 10)
	return b.model(), nil
}

// hiddenThree has a wide mode, one that is narrow in a random half of the variables, and a narrow one, on a grid.
func hiddenThree(side int, excess float64, seed uint64) (*factorgraph.Model, error) {
	r := random(seed, "hidden three")
	n, pairs := lattice(false, side, side)
	var edges, inside []edge
	half := r.Perm(n)[:n/2]
	chosen := map[int]bool{}
	for _, v := range half {
		chosen[v] = true
	}
	for _, p := range pairs {
		e := edge{p[0], p[1], uniform(r, 0.3)}
		edges = append(edges, e)
		if chosen[e.i] && chosen[e.j] {
			inside = append(inside, e)
		}
	}
	b := spins(n + 1)
	b.domains[n] = 3
	ln := b.wide(n, edges)
	b.narrow(r, half, inside, n, 1, float64(len(half))*math.Ln2, excess/2, 6)
	b.narrow(r, UpTo(n), edges, n, 2, ln, excess, 6)
	return b.model(), nil
}

// hiddenPair has a switch for either half of the variables, so four modes; the switches agree rather than not.
func hiddenPair(n int, excess float64, seed uint64) (*factorgraph.Model, error) {
	r := random(seed, "hidden pair")
	edges, err := sparse(r, n, 0.3, seed)
	if err != nil {
		return nil, err
	}
	b := spins(n + 2)
	b.wide(n, edges)
	for k, half := range [][]int{UpTo(n)[:n/2], UpTo(n)[n/2:]} {
		var inside []edge
		ln := float64(len(half)) * math.Ln2
		for _, e := range edges {
			if e.i/(n/2) == k && e.j/(n/2) == k {
				inside = append(inside, e)
				ln += math.Log(math.Cosh(e.coupling))
			}
		}
		b.narrow(r, half, inside, n+k, 1, ln, excess, 6)
	}
	b.couple(n, n+1, 0.5)
	return b.model(), nil
}

// needle adds the weight of all states times e^excess to a single one, by a chain of variables that say whether the first ones are right.
func needle(n int, excess float64, seed uint64) (*factorgraph.Model, error) {
	r := random(seed, "needle")
	edges, err := sparse(r, n, 0.4, seed)
	if err != nil {
		return nil, err
	}
	b := spins(2 * n)
	ln := b.wide(n, edges)
	state := make([]float64, n)
	for i := range n {
		right := r.IntN(2)
		state[i] = float64(2*right - 1)
		if i == 0 {
			b.add([]int{i, n}, indicators(4, 2*right+1, 2*(1-right))...)
			continue
		}
		// chain before, variable, chain: 1 from 1 and the right value alone
		b.add([]int{n + i - 1, i, n + i}, indicators(8, 0, 2, 4+2*right+1, 4+2*(1-right))...)
	}
	for _, e := range edges {
		ln -= e.coupling * state[e.i] * state[e.j]
	}
	b.add([]int{2*n - 1}, 1, math.Exp(ln+excess))
	return b.model(), nil
}

// indicators are n zeros, but for ones at these places.
func indicators(n int, ones ...int) []float64 {
	list := make([]float64, n)
	for _, at := range ones {
		list[at] = 1
	}
	return list
}
