package frobenius

// R given S, leg by leg: alternating least squares with environments in count space.

import (
	"context"
	"math"

	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// vectorSweep visits every leg of part i once and returns the part with its new R and its products.
// On each leg
//
//	v_ℓ[a] = Σ_c S_{c+e(a)} P^{−ℓ,a}_c / Σ_c S²_{c+e(a)} N^{−ℓ}_c,
//
// the least-squares solution in v_ℓ with everything else fixed; an entry whose denominator is 0
// changes nothing and stays. P is the base tensor's count polynomial with the leg fixed at a less
// the other components'. Then v_ℓ is normalised: the scale of S∘R is left to the weights. Cost:
// O(n²) multiply-adds for every component at two levels, plus the walks over the cores (see
// newCoreWalk).
func (m *model) vectorSweep(ctx context.Context, i int) (*part, products, error) {
	s := newSweep(m, i)
	if err := s.start(); err != nil {
		return nil, products{}, err
	}
	for c, core := range m.sp.cores {
		if err := ctx.Err(); err != nil {
			return nil, products{}, err
		}
		t, err := s.base.environment(m.sp.coreBox(c, s.d))
		if err != nil {
			return nil, products{}, err
		}

		walk, err := m.sp.newCoreWalk(c, s.r, t, s.d)
		if err != nil {
			return nil, products{}, err
		}
		for _, leg := range core.Legs {
			if err := s.leg(leg, walk); err != nil {
				return nil, products{}, err
			}
			walk.advance()
		}

		p, err := m.sp.corePoly(c, s.r, s.d)
		if err != nil {
			return nil, products{}, err
		}
		s.base.advance(p)
	}

	return s.finish()
}

// sweep is one pass over the legs of a part.
type sweep struct {
	m    *model
	i    int
	d    int         // levels of the part itself
	r    [][]float64 // new vectors on the legs already visited, old ones after
	base *chain
	// pairs[k] belongs to S_i∘S_k with the legs' products v_i·v_k; at i itself it is the
	// denominator's. nil where α_k is 0.
	pairs  []*chain
	levels []int // levels of pairs[k]
	scale  scaled.Number
}

// newSweep prepares a sweep over the legs of part i.
func newSweep(m *model, i int) *sweep {
	s := &sweep{m: m, i: i, scale: m.fit.Alpha[i]}
	s.r = append([][]float64(nil), m.parts[i].r...)
	if s.scale.IsZero() {
		s.scale = scaled.One
	}
	return s
}

// start contracts all cores of S backwards.
func (s *sweep) start() error {
	sp, self := s.m.sp, s.m.parts[s.i]
	core, d := self.core(sp.levels)
	s.d = d
	var err error
	s.base, err = newChain(core, len(sp.cores), sp.ops, func(c int) (countspace.Poly, error) {
		return sp.corePoly(c, s.r, d)
	})
	if err != nil {
		return err
	}

	s.pairs, s.levels = make([]*chain, len(s.m.parts)), make([]int, len(s.m.parts))
	for k, other := range s.m.parts {
		core, d := self.joint(other.term, sp.levels)
		s.levels[k] = d
		s.pairs[k], err = newChain(core, len(sp.order), sp.ops, func(j int) (countspace.Poly, error) {
			return s.piece(k, sp.order[j]), nil
		})
		if err != nil {
			return err
		}
	}

	return nil
}

// piece is the polynomial of one leg in the product of part i with part k.
func (s *sweep) piece(k, leg int) countspace.Poly {
	other := s.m.parts[k].r[leg]
	if k == s.i {
		other = s.r[leg]
	}
	return countspace.Linear(s.m.sp.row(leg, s.r[leg], other, s.levels[k]))
}

// leg solves for the vector of one leg, which the walk over its core has reached, and moves all
// pairs past it.
func (s *sweep) leg(leg int, walk coreWalk) error {
	numerator, err := walk.numerator()
	if err != nil {
		return err
	}
	var denominator []scaled.Number
	for k := range s.pairs {
		if k != s.i && s.m.fit.Alpha[k].IsZero() {
			continue
		}
		env, err := s.pairs[k].legEnvironment(s.levels[k])
		if err != nil {
			return err
		}
		if k == s.i {
			denominator = env
			continue
		}
		for x, v := range s.m.parts[k].r[leg] {
			sub := env[s.m.sp.level(leg, x, s.levels[k])].Mul(scaled.FromFloat(v)).Mul(s.m.fit.Alpha[k])
			numerator[x] = numerator[x].Sub(sub)
		}
	}

	s.solve(leg, numerator, denominator)
	for k := range s.pairs {
		s.pairs[k].advance(s.piece(k, leg))
	}
	return nil
}

// solve sets v_ℓ = numerator/denominator, normalised.
func (s *sweep) solve(leg int, numerator, denominator []scaled.Number) {
	old := s.r[leg]
	v := make([]scaled.Number, len(old))
	var most scaled.Number
	for x := range v {
		if n := denominator[s.m.sp.level(leg, x, s.levels[s.i])]; n.Sign() > 0 {
			v[x] = numerator[x].Div(n)
		} else {
			v[x] = s.scale.Mul(scaled.FromFloat(old[x]))
		}
		if a := v[x].Abs(); a.Cmp(most) > 0 {
			most = a
		}
	}

	if most.IsZero() || !most.IsFinite() {
		return // the residual is orthogonal to everything this leg can do: keep the direction
	}
	fresh := make([]float64, len(old))
	square := 0.0
	for x := range fresh {
		fresh[x] = v[x].Div(most).Float64()
		square += fresh[x] * fresh[x]
	}

	norm := math.Sqrt(square)
	for x := range fresh {
		fresh[x] /= norm
	}
	s.scale = most.Mul(scaled.FromFloat(norm))
	s.r[leg] = fresh
}

// finish returns the swept part with the products that the passes have built up.
func (s *sweep) finish() (*part, products, error) {
	q := products{
		base:   s.base.prefix,
		self:   s.pairs[s.i].prefix,
		others: make([]countspace.Poly, len(s.pairs)),
	}
	for k, c := range s.pairs {
		if k != s.i {
			q.others[k] = c.prefix
		}
	}
	p := *s.m.parts[s.i]
	p.r = s.r
	return &p, q, nil
}
