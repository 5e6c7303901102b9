package truth

// Dense tables of pairs with hidden signs, and one entry that deviates.

import (
	"math"

	"github.com/basetensor/basetensor/internal/testing/modeltest"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
)

// deviations are the relative changes of one entry of one table: claims of exactness are withheld, or right to Tolerance.
var deviations = []float64{0, 1e-12, 1e-9, 1e-6, 1e-3, -1}

// latent draws n spins with hidden signs, every pair coupled alike up to these, a field on each, and one entry of one pair that deviates.
// Its truth is a sum over the number of spins that agree with their signs, by the values of the pair: all tables have the entries a where
// two of these agree and b where they differ, so that their product is a^(pairs alike) · b^(pairs that differ).
func (d *drawer) latent(c *Case) Truth {
	n := d.size(34, 48, 9)
	c.Model = &factorgraph.Model{Domains: make([]int, n)}
	coupling := (0.1 + 1.5*d.Rand.Float64()) / float64(n)
	if d.Chance(0.3) {
		coupling = -coupling
	}
	alike, differ := math.Exp(coupling), math.Exp(-coupling)
	sign, fields := make([]int, n), make([][]oracle.Number, n)
	for v := range n {
		c.Model.Domains[v] = 2
		sign[v] = d.Rand.IntN(2)
		f := dense([]int{2}, math.Exp(0.3*d.Rand.NormFloat64()), math.Exp(0.3*d.Rand.NormFloat64()))
		if d.Chance(0.02) {
			f.Data[d.Rand.IntN(2)] = 0
		}
		c.add(f, v)
		fields[v] = oracle.ExactEntries(f)
	}
	first, deviation := d.Rand.IntN(n-1), modeltest.Pick(d.Rand, deviations...)
	second := first + 1 + d.Rand.IntN(n-1-first)
	place := d.Rand.IntN(4)
	var special []oracle.Number // the table of the pair
	for j := range n {
		for i := range j {
			t := dense([]int{2, 2}, alike, differ, differ, alike)
			if sign[i] != sign[j] {
				t.Data[0], t.Data[1], t.Data[2], t.Data[3] = differ, alike, alike, differ
			}
			if i == first && j == second {
				t.Data[place] *= 1 + deviation
				special = oracle.ExactEntries(t)
			}
			c.add(t, i, j)
		}
	}

	rest := []oracle.Number{oracle.One} // by the number of spins that agree with their signs, but for the pair's
	for v := range n {
		if v != first && v != second {
			rest = timesLinear(rest, fields[v][1-sign[v]], fields[v][sign[v]])
		}
	}
	a, b := powers(oracle.FromFloat(alike, 0), n*(n-1)/2), powers(oracle.FromFloat(differ, 0), n*(n-1)/2)
	z := oracle.Number{}
	for x := range 4 {
		agree := 0
		if x>>1 == sign[first] {
			agree++
		}
		if x&1 == sign[second] {
			agree++
		}
		own := fields[first][x>>1].Mul(fields[second][x&1]).Mul(special[x])
		for k, e := range rest {
			unlike := (k + agree) * (n - k - agree)
			like := n*(n-1)/2 - unlike
			if agree == 1 { // the pair's entry is in its own table
				unlike--
			} else {
				like--
			}
			z = z.Add(own.Mul(e).Mul(a[like]).Mul(b[unlike]))
		}
	}
	c.Settings = query.Settings{Method: modeltest.Pick(d.Rand, query.MethodAuto, query.MethodExact), Seed: c.Settings.Seed}
	c.Queries = []query.Query{{Marginals: d.Chance(0.5)}}
	return Truth{Z: z}
}

// powers lists x^0 to x^n.
func powers(x oracle.Number, n int) []oracle.Number {
	out := []oracle.Number{oracle.One}
	for range n {
		out = append(out, out[len(out)-1].Mul(x))
	}
	return out
}
