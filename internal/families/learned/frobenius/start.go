package frobenius

// Seeded starting points of components.

import (
	"math"
	"math/rand/v2"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// newPart returns a part of the class with random unit vectors. Try 0 draws positive vectors near
// the uniform one, which suits factors that are mostly positive; try 1 positive vectors of any
// direction; later ones vectors of either sign. The draw is a function of seed, start, component and
// try.
func newPart(sp *space, class btn.Class, seed uint64, start, component, try int) *part {
	p := &part{class: class, term: term{r: make([][]float64, len(sp.dims))}}
	if class != btn.ClassRankOne {
		s := countspace.New(sp.shape)
		p.s = &s
	}
	rng := rand.New(rand.NewPCG(seed, uint64(start)<<42|uint64(component)<<10|uint64(try)))
	for leg, d := range sp.dims {
		if class == btn.ClassSymmetric {
			p.r[leg] = ones(d)
			continue
		}
		p.r[leg] = randomVector(rng, d, try)
	}
	return p
}

// randomVector draws a unit vector: near all ones, of one sign, or of either, by the number of the
// try.
func randomVector(rng *rand.Rand, d, try int) []float64 {
	v := make([]float64, d)
	square := 0.0
	for x := range v {
		g := rng.NormFloat64()
		switch try % 3 {
		case 0:
			v[x] = 1 + 0.3*g
		case 1:
			v[x] = math.Abs(g)
		default:
			v[x] = g
		}
		square += v[x] * v[x]
	}

	if square == 0 {
		return ones(d)
	}
	for x := range v {
		v[x] /= math.Sqrt(square)
	}
	return v
}

// randomMaps returns a random orthogonal map per leg that takes one, where starts after the first
// begin when maps are learned: the orthogonal factor of a Gaussian matrix.
func (sp *space) randomMaps(seed uint64, start int) [][]float64 {
	rng := rand.New(rand.NewPCG(seed, uint64(start)<<42|1<<41))
	rot := make([][]float64, len(sp.dims))
	for c, core := range sp.cores {
		if !sp.rotatable(c) {
			continue
		}
		for _, leg := range core.Legs {
			draw := square(sp.dims[leg])
			for x := range draw {
				for y := range draw[x] {
					draw[x][y] = scaled.FromFloat(rng.NormFloat64())
				}
			}
			rot[leg] = nearestOrthogonal(draw)
		}
	}

	return rot
}
