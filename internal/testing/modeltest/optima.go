package modeltest

// Models whose users ask for the most probable assignment, and whose width no elimination reaches: images, radio links, warehouses.

import (
	"fmt"
	"math"
	"slices"

	"github.com/basetensor/basetensor/pkg/factorgraph"
)

const (
	greys       = 4  // grey values of a pixel
	frequencies = 24 // frequencies that a radio link may have
)

// denoise returns the posterior of an image of n × n pixels of four greys (variable row·n + column) that was seen with noise N(0, σ²). The
// true image has 24 patches of one grey, the cells nearest to random centres. Its prior is a Potts model: neighbours that differ cost
// e^−1.2.
func denoise(n int, sigma float64, seed uint64) (*factorgraph.Model, error) {
	if n < 1 || n > 1000 || !(sigma > 0) {
		return nil, fmt.Errorf("modeltest: an image of %d rows, noise %g", n, sigma)
	}
	r := newStream(seed, "denoise")
	const patches, penalty = 24, 1.2
	var centres [patches][2]float64
	for k := range centres {
		centres[k] = [2]float64{r.Float64() * float64(n), r.Float64() * float64(n)}
	}

	// Likelihoods of the pixels.
	b := newBuilder(n*n, greys)
	for i := range n * n {
		nearest, distance := 0, math.Inf(1)
		for k, c := range centres {
			if d := math.Hypot(c[0]-float64(i/n), c[1]-float64(i%n)); d < distance {
				nearest, distance = k, d
			}
		}
		noisy := float64(nearest%greys) + sigma*r.NormFloat64()
		entries := b.addTable(i)
		for grey := range entries {
			entries[grey] = math.Exp(-(noisy - float64(grey)) * (noisy - float64(grey)) / (2 * sigma * sigma))
		}
	}

	// The prior, over pairs of neighbours in a row and in a column.
	for i := range n * n {
		if i%n+1 < n {
			b.addEqualityFactor(i, i+1, 1, math.Exp(-penalty))
		}
		if i/n+1 < n {
			b.addEqualityFactor(i, i+n, 1, math.Exp(-penalty))
		}
	}
	return &b.Model, nil
}

// addDistanceCost appends a factor over the frequencies of two radio links: e^−cost(|difference|).
func (b *builder) addDistanceCost(i, j int, cost func(difference int) float64) {
	entries := b.addTable(i, j)
	for k := range entries {
		difference := k/frequencies - k%frequencies
		entries[k] = math.Exp(-cost(max(difference, -difference)))
	}
}

// radio returns a frequency assignment problem. Variable i is the frequency of radio link i of n, each at a random place.
//
//   - Links 2k and 2k + 1 must be exactly half of the band apart.
//   - About interferers·n/2 random pairs of near links should differ by a random distance of 1 to 6, at a cost for each step that lacks.
//   - Each frequency of a link has a small random cost, which breaks ties.
func radio(n int, interferers float64, seed uint64) (*factorgraph.Model, error) {
	if n < 4 || n > 10_000 || !(interferers >= 0) || interferers > 20 {
		return nil, fmt.Errorf("modeltest: %d links, %g near ones each", n, interferers)
	}
	r := newStream(seed, "radio")
	b := newBuilder(n, frequencies)
	place := make([][2]float64, n)
	for i := range place {
		place[i] = [2]float64{r.Float64(), r.Float64()}
	}

	for i := 0; i+1 < n; i += 2 {
		b.addDistanceCost(i, i+1, func(difference int) float64 {
			if difference == frequencies/2 {
				return 0
			}
			return math.Inf(1)
		})
	}

	for range int(interferers * float64(n) / 2) {
		// Interference is local: j is the nearest of eight random links that are not the partner of i.
		i, j, nearest := r.IntN(n), -1, math.Inf(1)
		for range 8 {
			k := r.IntN(n)
			if d := math.Hypot(place[i][0]-place[k][0], place[i][1]-place[k][1]); k/2 != i/2 && d < nearest {
				j, nearest = k, d
			}
		}
		if j < 0 {
			continue
		}
		distance, costPerStep := 1+r.IntN(6), math.Pow(10, float64(r.IntN(3)))/10
		b.addDistanceCost(i, j, func(difference int) float64 { return costPerStep * float64(max(0, distance-difference)) })
	}

	for i := range n {
		b.addValueWeights(i, func() float64 { return -0.01 * r.Float64() })
	}
	return &b.Model, nil
}

// warehouses returns a facility location problem: n shops are supplied from n/2 warehouses, all at random places in the unit square.
// The value of variable shop < n is its warehouse; variable n + w is 1 if warehouse w is open. ln of the weight of an assignment is minus
// its cost: 10 times the distance of each shop from its warehouse, and opening times U(½, 3/2) for each open one. A shop cannot be
// supplied from a closed warehouse.
func warehouses(n int, opening float64, seed uint64) (*factorgraph.Model, error) {
	stores := n / 2
	if stores < 1 || stores > 64 || !(opening >= 0) {
		return nil, fmt.Errorf("modeltest: %d shops, an opening costs %g", n, opening)
	}
	r := newStream(seed, "warehouses")
	randomPlace := func() [2]float64 { return [2]float64{r.Float64(), r.Float64()} }
	b := newBuilder(n, stores)
	b.Domains = append(b.Domains, slices.Repeat([]int{2}, stores)...)

	sites := make([][2]float64, stores)
	for w := range sites {
		sites[w] = randomPlace()
		b.addFactor([]int{n + w}, 1, math.Exp(-opening*(0.5+r.Float64())))
	}

	for shop := range n {
		place, entries := randomPlace(), b.addTable(shop)
		for w := range entries {
			entries[w] = math.Exp(-10 * math.Hypot(place[0]-sites[w][0], place[1]-sites[w][1]))
		}

		// Entry 2·(warehouse of the shop) + (w is open): 0 if the shop has the closed warehouse w.
		for w := range stores {
			supply := b.addTable(shop, n+w)
			for k := range supply {
				supply[k] = 1
			}
			supply[2*w] = 0
		}
	}
	return &b.Model, nil
}
