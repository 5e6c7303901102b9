package modeltest

// Two-mode mixtures: a switch between a wide mode and a narrow one that is heavier, so that few states hold most of Z.

import (
	"math"
	"math/rand/v2"

	"github.com/basetensor/basetensor/internal/models/generate"
	"github.com/basetensor/basetensor/pkg/factorgraph"
)

// edge is a coupling J x_i x_j of the spins i and j.
type edge struct {
	i, j     int
	coupling float64
}

// addCouplings appends a factor for each coupling of n spins.
func (b *builder) addCouplings(edges []edge) {
	for _, e := range edges {
		b.addCoupling(e.i, e.j, e.coupling)
	}
}

// highTemperatureLnZ approximates ln Z of n spins with weak couplings as n ln 2 + Σ ln cosh J, the leading term at high temperature.
func highTemperatureLnZ(n int, edges []edge) float64 {
	ln := float64(n) * math.Ln2
	for _, e := range edges {
		ln += math.Log(math.Cosh(e.coupling))
	}
	return ln
}

// narrowMode is one heavy state of some spins in the part of a model where a switch variable has one value.
type narrowMode struct {
	tied           []int   // the spins that the mode fixes
	edges          []edge  // the couplings between them, which the model has already
	switchVariable int     // where it has switchValue, the mode exists
	switchValue    int     //
	lnWeight       float64 // ln of the weight of the state, couplings included, without excess
	excess         float64 // is added to lnWeight
	penalty        float64 // minus ln of the factor for each spin that differs from the state
}

// addNarrowMode draws the state of the tied spins at random and appends a factor over the switch and each of them. Where the switch has
// the mode's value, the factors of the state multiply to its weight, divided by the weight of its couplings; elsewhere they are 1.
func (b *builder) addNarrowMode(r *rand.Rand, mode narrowMode) {
	state := make([]int, len(b.Domains))
	for _, v := range mode.tied {
		state[v] = r.IntN(2)
	}
	lnFactor := (lnWithoutCouplings(mode.lnWeight, mode.edges, state) + mode.excess) / float64(len(mode.tied))
	for _, v := range mode.tied {
		entries := b.addTable(mode.switchVariable, v)
		for k := range entries {
			entries[k] = 1
		}
		row := entries[2*mode.switchValue:]
		row[state[v]], row[1-state[v]] = math.Exp(lnFactor), math.Exp(lnFactor-mode.penalty)
	}
}

// lnWithoutCouplings returns ln − Σ J x_i x_j for a state of spins, where state[i] = 0 is x_i = −1 and state[i] = 1 is x_i = +1.
func lnWithoutCouplings(ln float64, edges []edge, state []int) float64 {
	for _, e := range edges {
		ln -= e.coupling * float64((2*state[e.i]-1)*(2*state[e.j]-1))
	}
	return ln
}

// regularEdges draws couplings U(−0.3, 0.3) on a random 3-regular graph of n spins.
func regularEdges(r *rand.Rand, n int, seed uint64) ([]edge, error) {
	return regularCouplings(r, n, 0.3, seed)
}

// regularCouplings draws couplings U(−a, a) on a random 3-regular graph of n spins. The graph follows from the seed, the couplings from r.
func regularCouplings(r *rand.Rand, n int, a float64, seed uint64) (list []edge, err error) {
	scopes, err := regularScopes(n, seed)
	for _, scope := range scopes {
		list = append(list, edge{scope[0], scope[1], uniform(r, a)})
	}
	return list, err
}

// regularScopes returns the edges of a random 3-regular graph of n vertices, as scopes of two variables.
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

// denseEdges draws couplings N(0, 0.49/n) of all pairs of n spins.
func denseEdges(r *rand.Rand, n int, _ uint64) (list []edge, _ error) {
	for i := range n {
		for j := range i {
			list = append(list, edge{j, i, sherringtonLaw(r, n, 0.7)})
		}
	}
	return list, nil
}

// hidden returns a generator of models with two modes that a binary switch, variable n, chooses between. At 0 the n spins have only the
// weak couplings of a graph (the wide mode). At 1 one random state weighs e^excess times all of the wide mode, and each spin that
// differs from it costs a factor e^−penalty.
func hidden(stream string, penalty float64, graph func(r *rand.Rand, n int, seed uint64) ([]edge, error)) generator {
	return func(n int, excess float64, seed uint64) (*factorgraph.Model, error) {
		r := newStream(seed, stream)
		edges, err := graph(r, n, seed)
		if err != nil {
			return nil, err
		}
		b := newBuilder(n+1, 2)
		b.addCouplings(edges)
		b.addNarrowMode(r, narrowMode{
			tied: UpTo(n), edges: edges, switchVariable: n, switchValue: 1,
			lnWeight: highTemperatureLnZ(n, edges), excess: excess, penalty: penalty,
		})
		return &b.Model, nil
	}
}

// hiddenThree returns a model of spins on a grid with weak couplings and a switch of three values, variable n. At 0 all spins are free,
// at 1 a random half of them is tied to a random state, at 2 all of them are. The state at 1 has the weight e^(excess/2) times that of
// all states of its half without couplings, the state at 2 e^excess times that of all states.
func hiddenThree(side int, excess float64, seed uint64) (*factorgraph.Model, error) {
	r := newStream(seed, "hidden three")
	n, pairs := openLattice(side, side)
	half, isInHalf := r.Perm(n)[:n/2], make([]bool, n)
	for _, v := range half {
		isInHalf[v] = true
	}
	var edges, halfEdges []edge
	for _, p := range pairs {
		e := edge{p[0], p[1], uniform(r, 0.3)}
		edges = append(edges, e)
		if isInHalf[e.i] && isInHalf[e.j] {
			halfEdges = append(halfEdges, e)
		}
	}

	b := newBuilder(n+1, 2)
	b.Domains[n] = 3
	b.addCouplings(edges)
	b.addNarrowMode(r, narrowMode{
		tied: half, edges: halfEdges, switchVariable: n, switchValue: 1,
		lnWeight: highTemperatureLnZ(len(half), nil), excess: excess / 2, penalty: 6,
	})
	b.addNarrowMode(r, narrowMode{
		tied: UpTo(n), edges: edges, switchVariable: n, switchValue: 2,
		lnWeight: highTemperatureLnZ(n, edges), excess: excess, penalty: 6,
	})
	return &b.Model, nil
}

// hiddenPair returns a model of n spins on a random 3-regular graph with weak couplings and two binary switches, variables n and n + 1,
// for the first and the second half of the spins: a half is tied to a random state if its switch is 1. So there are four modes. The
// switches are coupled, so that they prefer to be equal.
func hiddenPair(n int, excess float64, seed uint64) (*factorgraph.Model, error) {
	r := newStream(seed, "hidden pair")
	edges, err := regularEdges(r, n, seed)
	if err != nil {
		return nil, err
	}
	b := newBuilder(n+2, 2)
	b.addCouplings(edges)
	for k, half := range [][]int{UpTo(n)[:n/2], UpTo(n)[n/2:]} {
		var halfEdges []edge
		for _, e := range edges {
			if e.i/(n/2) == k && e.j/(n/2) == k {
				halfEdges = append(halfEdges, e)
			}
		}
		b.addNarrowMode(r, narrowMode{
			tied: half, edges: halfEdges, switchVariable: n + k, switchValue: 1,
			lnWeight: highTemperatureLnZ(len(half), halfEdges), excess: excess, penalty: 6,
		})
	}
	b.addCoupling(n, n+1, 0.5)
	return &b.Model, nil
}

// needle returns a model of n weakly coupled spins in which one random state weighs e^excess times all others together. Variable n + i of
// a chain is 1 if spins 0 to i all have the value of that state, so the last one alone knows whether the state is met and carries its
// weight.
func needle(n int, excess float64, seed uint64) (*factorgraph.Model, error) {
	r := newStream(seed, "needle")
	edges, err := regularCouplings(r, n, 0.4, seed)
	if err != nil {
		return nil, err
	}
	b := newBuilder(2*n, 2)
	b.addCouplings(edges)
	ln := highTemperatureLnZ(n, edges)
	state := make([]int, n)
	for i := range n {
		value := r.IntN(2)
		state[i] = value
		if i == 0 {
			// Entry 2·spin + chain: the first chain variable is 1 if spin 0 has the state's value.
			entries := b.addTable(i, n)
			entries[2*value+1], entries[2*(1-value)] = 1, 1
			continue
		}

		// Entry 4·(chain before) + 2·spin + chain: the chain variable is 1 if the one before is 1 and the spin has the state's value.
		entries := b.addTable(n+i-1, i, n+i)
		entries[0], entries[2], entries[4+2*value+1], entries[4+2*(1-value)] = 1, 1, 1, 1
	}
	b.addFactor([]int{2*n - 1}, 1, math.Exp(lnWithoutCouplings(ln, edges, state)+excess))
	return &b.Model, nil
}
