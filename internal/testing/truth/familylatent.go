package truth

// Dense tables of pairs with hidden signs, and one entry that deviates.

import (
	"math"

	"github.com/basetensor/basetensor/internal/testing/modeltest"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
)

// deviations lists relative changes of one entry of one table. A claim of exactness must hold to Tolerance for all of them.
var deviations = []float64{0, 1e-12, 1e-9, 1e-6, 1e-3, -1}

// latent draws a model of n spins that hides a symmetry. Each spin v has a hidden sign; it is "up" if its value is sign[v]. The table of
// each pair has the entry e^J if both are up or both are not, and e^−J otherwise, so relabelled values would show that the spins are
// interchangeable. Each spin has a field. One entry of the table of one pair, first and second, deviates.
//
// Given the values of that pair and the number k of other spins that are up, all tables but that of the pair multiply to
// e^(J·like) · e^(−J·unlike), where like and unlike count the pairs of spins that are equal and different. The truth is a sum over these.
func (d *drawer) latent(c *Case) Truth {
	n := d.size(34, 48, 9)
	c.Model = &factorgraph.Model{Domains: make([]int, n)}
	coupling := (0.1 + 1.5*d.Rand.Float64()) / float64(n)
	if d.Chance(0.3) {
		coupling = -coupling
	}
	likeEntry, unlikeEntry := math.Exp(coupling), math.Exp(-coupling)

	// Signs and fields.
	sign, fields := make([]int, n), make([][]oracle.Number, n)
	for v := range n {
		c.Model.Domains[v] = 2
		sign[v] = d.Rand.IntN(2)
		f := dense([]int{2}, math.Exp(0.3*d.Rand.NormFloat64()), math.Exp(0.3*d.Rand.NormFloat64()))
		if d.Chance(0.02) {
			f.Data[d.Rand.IntN(2)] = 0
		}
		c.addFactor(f, v)
		fields[v] = oracle.ExactEntries(f)
	}

	// Tables of all pairs; an entry of the pair (first, second) deviates.
	first, deviation := d.Rand.IntN(n-1), modeltest.Pick(d.Rand, deviations...)
	second := first + 1 + d.Rand.IntN(n-1-first)
	deviantEntry := d.Rand.IntN(4)
	var deviantTable []oracle.Number
	for j := range n {
		for i := range j {
			t := dense([]int{2, 2}, likeEntry, unlikeEntry, unlikeEntry, likeEntry)
			if sign[i] != sign[j] {
				t.Data[0], t.Data[1], t.Data[2], t.Data[3] = unlikeEntry, likeEntry, likeEntry, unlikeEntry
			}
			if i == first && j == second {
				t.Data[deviantEntry] *= 1 + deviation
				deviantTable = oracle.ExactEntries(t)
			}
			c.addFactor(t, i, j)
		}
	}

	// othersUp[k] is the total weight of the fields of the other spins over their assignments with k spins up.
	othersUp := []oracle.Number{oracle.One}
	for v := range n {
		if v != first && v != second {
			othersUp = timesLinear(othersUp, fields[v][1-sign[v]], fields[v][sign[v]])
		}
	}

	// The sum over the four values of the pair and over k.
	pairs := n * (n - 1) / 2
	likePowers, unlikePowers := powers(oracle.FromFloat(likeEntry, 0), pairs), powers(oracle.FromFloat(unlikeEntry, 0), pairs)
	z := oracle.Number{}
	for x := range 4 {
		up := 0 // spins of the pair that are up
		if x>>1 == sign[first] {
			up++
		}
		if x&1 == sign[second] {
			up++
		}
		pairWeight := fields[first][x>>1].Mul(fields[second][x&1]).Mul(deviantTable[x])
		for k, weight := range othersUp {
			unlike := (k + up) * (n - k - up)
			like := pairs - unlike
			if up == 1 { // without the pair itself, whose table is in pairWeight
				unlike--
			} else {
				like--
			}
			z = z.Add(pairWeight.Mul(weight).Mul(likePowers[like]).Mul(unlikePowers[unlike]))
		}
	}

	c.Settings = query.Settings{Method: modeltest.Pick(d.Rand, query.MethodAuto, query.MethodExact), Seed: c.Settings.Seed}
	c.Queries = []query.Query{{Marginals: d.Chance(0.5)}}
	return Truth{Z: z}
}

// powers returns the list x^0, x^1, …, x^n.
func powers(x oracle.Number, n int) []oracle.Number {
	out := []oracle.Number{oracle.One}
	for range n {
		out = append(out, out[len(out)-1].Mul(x))
	}
	return out
}
