package modeltest

// Models whose users ask for the most probable assignment, and whose width no elimination reaches: images, radio links, warehouses.

import (
	"fmt"
	"math"
	"slices"

	"github.com/basetensor/basetensor/pkg/factorgraph"
)

const (
	greys       = 4  // of an image
	frequencies = 24 // that a radio link may have
)

// denoise is an n×n image of four greys, patches around random points, seen with noise N(0, σ²) and smoothed by a Potts model.
func denoise(n int, sigma float64, seed uint64) (*factorgraph.Model, error) {
	if n < 1 || n > 1000 || !(sigma > 0) {
		return nil, fmt.Errorf("modeltest: an image of %d rows, noise %g", n, sigma)
	}
	r := random(seed, "denoise")
	const patches, smooth = 24, 1.2
	var centres [patches][2]float64
	for k := range centres {
		centres[k] = [2]float64{r.Float64() * float64(n), r.Float64() * float64(n)}
	}
	b := variables(n*n, greys)
	for i := range n * n {
		nearest, least := 0, math.Inf(1)
		for k, c := range centres {
			if d := math.Hypot(c[0]-float64(i/n), c[1]-float64(i%n)); d < least {
				nearest, least = k, d
			}
		}
		seen := float64(nearest%greys) + sigma*r.NormFloat64()
		entries := b.table(i)
		for grey := range entries {
			entries[grey] = math.Exp(-(seen - float64(grey)) * (seen - float64(grey)) / (2 * sigma * sigma))
		}
	}
	for i := range n * n {
		if i%n+1 < n {
			b.pair(i, i+1, 1, math.Exp(-smooth))
		}
		if i/n+1 < n {
			b.pair(i, i+n, 1, math.Exp(-smooth))
		}
	}
	return &b.Model, nil
}

// radio is a frequency assignment: n links between random places, two and two of them half of the band apart, and for each link so many
// near ones from which its frequency should differ by a distance, at a cost where it does not.
func radio(n int, near float64, seed uint64) (*factorgraph.Model, error) {
	if n < 4 || n > 10_000 || !(near >= 0) || near > 20 {
		return nil, fmt.Errorf("modeltest: %d links, %g near ones each", n, near)
	}
	r := random(seed, "radio")
	b := variables(n, frequencies)
	place := make([][2]float64, n)
	for i := range place {
		place[i] = [2]float64{r.Float64(), r.Float64()}
	}
	table := func(i, j int, cost func(apart int) float64) {
		entries := b.table(i, j)
		for k := range entries {
			apart := k/frequencies - k%frequencies
			entries[k] = math.Exp(-cost(max(apart, -apart)))
		}
	}
	for i := 0; i+1 < n; i += 2 {
		table(i, i+1, func(apart int) float64 {
			if apart == frequencies/2 {
				return 0
			}
			return math.Inf(1)
		})
	}
	for pairs := int(near * float64(n) / 2); pairs > 0; pairs-- {
		// the nearest of some others, which keeps interference local
		i, j, least := r.IntN(n), -1, math.Inf(1)
		for range 8 {
			k := r.IntN(n)
			if d := math.Hypot(place[i][0]-place[k][0], place[i][1]-place[k][1]); k/2 != i/2 && d < least {
				j, least = k, d
			}
		}
		if j < 0 {
			continue
		}
		distance, cost := 1+r.IntN(6), math.Pow(10, float64(r.IntN(3)))/10
		table(i, j, func(apart int) float64 { return cost * float64(max(0, distance-apart)) })
	}
	for i := range n {
		b.weigh(i, func() float64 { return -0.01 * r.Float64() })
	}
	return &b.Model, nil
}

// warehouses supplies n shops from n/2 warehouses at random places: a shop's value is its warehouse, which costs its distance and is to be
// open at a cost.
func warehouses(n int, opening float64, seed uint64) (*factorgraph.Model, error) {
	stores := n / 2
	if stores < 1 || stores > 64 || !(opening >= 0) {
		return nil, fmt.Errorf("modeltest: %d shops, an opening costs %g", n, opening)
	}
	r := random(seed, "warehouses")
	place := func() [2]float64 { return [2]float64{r.Float64(), r.Float64()} }
	b := variables(n, stores)
	b.Domains = append(b.Domains, slices.Repeat([]int{2}, stores)...)
	sites := make([][2]float64, stores)
	for w := range sites {
		sites[w] = place()
		b.add([]int{n + w}, 1, math.Exp(-opening*(0.5+r.Float64())))
	}
	for shop := range n {
		from, entries := place(), b.table(shop)
		for w := range entries {
			entries[w] = math.Exp(-10 * math.Hypot(from[0]-sites[w][0], from[1]-sites[w][1]))
		}
		for w := range stores {
			supplied := b.table(shop, n+w)
			for k := range supplied {
				supplied[k] = 1
			}
			supplied[2*w] = 0
		}
	}
	return &b.Model, nil
}
