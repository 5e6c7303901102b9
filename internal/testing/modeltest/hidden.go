package modeltest

// Two-mode mixtures: a switch between a wide mode and a narrow one that is heavier, so that few states hold most of Z.

import (
	"math"
	"math/rand/v2"

	"github.com/basetensor/basetensor/internal/models/generate"
	"github.com/basetensor/basetensor/pkg/factorgraph"
)

// edge is a coupling J x_i x_j.
type edge struct {
	i, j     int
	coupling float64
}

// wide adds weak couplings, and returns ln Z of them at high temperature: n ln 2 + Σ ln cosh J.
func (b *builder) wide(n int, edges []edge) float64 {
	for _, e := range edges {
		b.couple(e.i, e.j, e.coupling)
	}
	return lnWide(n, edges)
}

func lnWide(n int, edges []edge) float64 {
	ln := float64(n) * math.Ln2
	for _, e := range edges {
		ln += math.Log(math.Cosh(e.coupling))
	}
	return ln
}

// narrow ties variables to a state drawn at random where a switch has this value: the state has the weight e^(ln + excess) there, couplings
// included, and e^−penalty for each variable that differs.
func (b *builder) narrow(r *rand.Rand, tied []int, edges []edge, switched, value int, ln, excess, penalty float64) {
	state := make([]int, len(b.Domains))
	for _, v := range tied {
		state[v] = r.IntN(2)
	}
	each := (uncoupled(ln, edges, state) + excess) / float64(len(tied))
	for _, v := range tied {
		entries := b.table(switched, v)
		for k := range entries {
			entries[k] = 1
		}
		entries[2*value+state[v]], entries[2*value+1-state[v]] = math.Exp(each), math.Exp(each-penalty)
	}
}

// uncoupled is ln − Σ J x_i x_j in a state.
func uncoupled(ln float64, edges []edge, state []int) float64 {
	for _, e := range edges {
		ln -= e.coupling * float64((2*state[e.i]-1)*(2*state[e.j]-1))
	}
	return ln
}

// regularEdges are couplings U(−0.3, 0.3) on a random 3-regular graph.
func regularEdges(r *rand.Rand, n int, seed uint64) ([]edge, error) { return sparse(r, n, 0.3, seed) }

// sparse are couplings U(−a, a) on a random 3-regular graph.
func sparse(r *rand.Rand, n int, a float64, seed uint64) (list []edge, err error) {
	scopes, err := regularScopes(n, seed)
	for _, scope := range scopes {
		list = append(list, edge{scope[0], scope[1], uniform(r, a)})
	}
	return list, err
}

// regularScopes are the edges of a random 3-regular graph.
func regularScopes(n int, seed uint64) (list [][]int, err error) {
	m, err := generate.RandomRegular(n, 3, generate.Ising{Seed: seed})
	if err != nil {
		return nil, err
	}
	for _, f := range m.Factors {
		if len(f.Scope) == 2 {
			list = append(list, f.Scope)
		}
	}
	return list, nil
}

// denseEdges are couplings N(0, 0.49/n) of all pairs.
func denseEdges(r *rand.Rand, n int, _ uint64) (list []edge, _ error) {
	for i := range n {
		for j := range i {
			list = append(list, edge{j, i, sherrington(r, n, 0.7)})
		}
	}
	return list, nil
}

// hidden has a wide mode on a graph, and a narrow one.
func hidden(stream string, penalty float64, graph func(r *rand.Rand, n int, seed uint64) ([]edge, error)) generator {
	return func(n int, excess float64, seed uint64) (*factorgraph.Model, error) {
		r := random(seed, stream)
		edges, err := graph(r, n, seed)
		if err != nil {
			return nil, err
		}
		b := variables(n+1, 2)
		b.narrow(r, UpTo(n), edges, n, 1, b.wide(n, edges), excess, penalty)
		return &b.Model, nil
	}
}

// hiddenThree has a wide mode, one that is narrow in a random half of the variables, and a narrow one, on a grid.
func hiddenThree(side int, excess float64, seed uint64) (*factorgraph.Model, error) {
	r := random(seed, "hidden three")
	n, pairs := lattice(false, side, side)
	half, chosen := r.Perm(n)[:n/2], make([]bool, n)
	for _, v := range half {
		chosen[v] = true
	}
	var edges, inside []edge
	for _, p := range pairs {
		e := edge{p[0], p[1], uniform(r, 0.3)}
		edges = append(edges, e)
		if chosen[e.i] && chosen[e.j] {
			inside = append(inside, e)
		}
	}
	b := variables(n+1, 2)
	b.Domains[n] = 3
	ln := b.wide(n, edges)
	b.narrow(r, half, inside, n, 1, lnWide(len(half), nil), excess/2, 6)
	b.narrow(r, UpTo(n), edges, n, 2, ln, excess, 6)
	return &b.Model, nil
}

// hiddenPair has a switch for either half of the variables, so four modes; the switches agree rather than not.
func hiddenPair(n int, excess float64, seed uint64) (*factorgraph.Model, error) {
	r := random(seed, "hidden pair")
	edges, err := regularEdges(r, n, seed)
	if err != nil {
		return nil, err
	}
	b := variables(n+2, 2)
	b.wide(n, edges)
	for k, half := range [][]int{UpTo(n)[:n/2], UpTo(n)[n/2:]} {
		var inside []edge
		for _, e := range edges {
			if e.i/(n/2) == k && e.j/(n/2) == k {
				inside = append(inside, e)
			}
		}
		b.narrow(r, half, inside, n+k, 1, lnWide(len(half), inside), excess, 6)
	}
	b.couple(n, n+1, 0.5)
	return &b.Model, nil
}

// needle adds the weight of all states times e^excess to a single one, by a chain of variables that say whether the first ones are right.
func needle(n int, excess float64, seed uint64) (*factorgraph.Model, error) {
	r := random(seed, "needle")
	edges, err := sparse(r, n, 0.4, seed)
	if err != nil {
		return nil, err
	}
	b := variables(2*n, 2)
	ln := b.wide(n, edges)
	state := make([]int, n)
	for i := range n {
		right := r.IntN(2)
		state[i] = right
		if i == 0 {
			entries := b.table(i, n)
			entries[2*right+1], entries[2*(1-right)] = 1, 1
			continue
		}
		// chain before, variable, chain: 1 from 1 and the right value alone
		entries := b.table(n+i-1, i, n+i)
		entries[0], entries[2], entries[4+2*right+1], entries[4+2*(1-right)] = 1, 1, 1, 1
	}
	b.add([]int{2*n - 1}, 1, math.Exp(uncoupled(ln, edges, state)+excess))
	return &b.Model, nil
}
