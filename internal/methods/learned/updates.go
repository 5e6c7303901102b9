package learned

// Updates of one component against the residual of the others, in closed form: R for a fixed S, leg by leg, then S for that R.

import (
	"context"
	"math"

	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// vectorSweep visits every leg of part i once and returns its new R and the products under it.
// On each leg
//
//	v_ℓ[a] = Σ_c S_{c+e(a)} P^{−ℓ,a}_c / Σ_c S²_{c+e(a)} N^{−ℓ}_c,
//
// the least-squares solution in v_ℓ with everything else fixed; an entry whose denominator is 0
// changes nothing and stays. P is the base tensor's count polynomial with the leg fixed at a less
// the other components'. Then v_ℓ is normalised: the scale of S∘R is left to the weights. Cost:
// O(n²) multiply-adds for every component at two levels, plus the walks over the cores (see
// newCoreWalk).
func (m *model) vectorSweep(ctx context.Context, i int) ([][]float64, products, error) {
	s := newSweep(m, i)
	if err := s.newChains(); err != nil {
		return nil, products{}, err
	}
	for c, core := range m.sp.cores {
		if err := ctx.Err(); err != nil {
			return nil, products{}, err
		}
		t, err := s.base.environment(m.sp.coreBox(c))
		if err != nil {
			return nil, products{}, err
		}

		walk, err := m.sp.newCoreWalk(c, s.vectors, t)
		if err != nil {
			return nil, products{}, err
		}
		for _, leg := range core.Legs {
			if err := s.solveLeg(leg, walk); err != nil {
				return nil, products{}, err
			}
			walk.advance()
		}

		p, err := m.sp.corePoly(c, s.vectors)
		if err != nil {
			return nil, products{}, err
		}
		s.base.advance(p)
	}

	return s.vectors, s.products(), nil
}

// sweep is one pass over the legs of a part, the current one: it solves them against what the other parts leave of the base tensor.
type sweep struct {
	m       *model
	current int         // i: the number of the part that is solved
	vectors [][]float64 // v_i by leg: new on the legs already visited, old after them
	base    *chain      // over the cores: the base tensor with the current part
	// pairs[k] is the chain over the legs of the scalar product of the current part with part k: S_i∘S_k with the products v_i·v_k of each
	// leg. pairs[current] is the part's own norm.
	pairs []*chain
	scale scaled.Number // α_i, or 1 if that is 0; later the norm that the vector solved last had before it was normalised
}

// newSweep prepares a sweep over the legs of part i.
func newSweep(m *model, i int) *sweep {
	s := &sweep{m: m, current: i, scale: m.fit.Alpha[i]}
	s.vectors = append([][]float64(nil), m.parts[i].r...)
	if s.scale.IsZero() {
		s.scale = scaled.One
	}
	return s
}

// newChains makes the chains over all cores and over all pairs of parts, each of which is contracted backwards once.
func (s *sweep) newChains() error {
	sp, self := s.m.sp, s.m.parts[s.current]
	var err error
	s.base, err = newChain(self.s, len(sp.cores), sp.ops, func(c int) (countspace.Poly, error) {
		return sp.corePoly(c, s.vectors)
	})
	if err != nil {
		return err
	}

	s.pairs = make([]*chain, len(s.m.parts))
	for k, other := range s.m.parts {
		s.pairs[k], err = newChain(countspace.Hadamard(self.s, other.s), len(sp.order), sp.ops, func(j int) (countspace.Poly, error) {
			return s.piece(k, sp.order[j]), nil
		})
		if err != nil {
			return err
		}
	}

	return nil
}

// piece returns the polynomial of one leg in the product of part i with part k.
func (s *sweep) piece(k, leg int) countspace.Poly {
	other := s.m.parts[k].r[leg]
	if k == s.current {
		other = s.vectors[leg]
	}
	return countspace.Linear(s.m.sp.row(leg, s.vectors[leg], other))
}

// solveLeg sets the vector of one leg of the current part, which the walk over its core has reached, and moves all pairs past it. The
// vector is that of least squares. For each value x, the numerator is the scalar product of the current part with the residual: that with
// the base tensor less those with the other parts, times their weights α. The denominator is the current part's own squared norm. Both are
// taken with weight 1 at x.
func (s *sweep) solveLeg(leg int, walk coreWalk) error {
	numerator, err := walk.numerator()
	if err != nil {
		return err
	}
	var denominator []scaled.Number
	for k := range s.pairs {
		if k != s.current && s.m.fit.Alpha[k].IsZero() {
			continue
		}
		env, err := s.pairs[k].legEnvironment(s.m.sp.levels.D) // by level of the leg
		if err != nil {
			return err
		}
		if k == s.current {
			denominator = env
			continue
		}
		for x, v := range s.m.parts[k].r[leg] {
			level := s.m.sp.levels.Of[leg][x]
			overlap := env[level].Mul(scaled.FromFloat(v)).Mul(s.m.fit.Alpha[k])
			numerator[x] = numerator[x].Sub(overlap)
		}
	}

	s.solve(leg, numerator, denominator)
	for k := range s.pairs {
		s.pairs[k].advance(s.piece(k, leg))
	}
	return nil
}

// solve sets v_ℓ to numerator/denominator, normalised. The numerator is by value, the denominator by level. An entry whose denominator is
// 0 stays as it was. If all entries become 0, the
// vector stays as it was.
func (s *sweep) solve(leg int, numerator, denominator []scaled.Number) {
	old := s.vectors[leg]
	v := make([]scaled.Number, len(old))
	var largest scaled.Number
	for x := range v {
		if n := denominator[s.m.sp.levels.Of[leg][x]]; n.Sign() > 0 {
			v[x] = numerator[x].Div(n)
		} else {
			v[x] = s.scale.Mul(scaled.FromFloat(old[x]))
		}
		if a := v[x].Abs(); a.Cmp(largest) > 0 {
			largest = a
		}
	}

	if largest.IsZero() || !largest.IsFinite() {
		return // the residual is orthogonal to everything this leg can do: keep the direction
	}
	fresh := make([]float64, len(old))
	square := 0.0
	for x := range fresh {
		fresh[x] = v[x].Div(largest).Float64()
		square += fresh[x] * fresh[x]
	}

	norm := math.Sqrt(square)
	for x := range fresh {
		fresh[x] /= norm
	}
	s.scale = largest.Mul(scaled.FromFloat(norm))
	s.vectors[leg] = fresh
}

// products returns the products that the chains have built up after the last leg.
func (s *sweep) products() products {
	q := products{
		base:   s.base.prefix,
		self:   s.pairs[s.current].prefix,
		others: make([]countspace.Poly, len(s.pairs)),
	}
	for k, c := range s.pairs {
		if k != s.current {
			q.others[k] = c.prefix
		}
	}
	return q
}

// symmetricStep returns the S that minimises ‖residual − S∘R‖ for part i's R, the residual of
// the other components:
//
//	S_c = P_c / N_c,   P_c = [z^c]⟨residual, R⟩,   N_c = [z^c] Π_ℓ (Σ_x v_ℓ[x]² z^λ(x)),
//
// and 0 where N_c is 0. S is then scaled so that ‖S∘R‖ is near 1 and its coefficients stay in range
// from sweep to sweep.
func (m *model) symmetricStep(i int, q products) countspace.Poly {
	target := countspace.Crop(q.base, m.sp.shape)
	for k, other := range m.parts {
		if k == i || m.fit.Alpha[k].IsZero() {
			continue
		}
		target = target.Sub(countspace.Hadamard(q.others[k], other.s).Scale(m.fit.Alpha[k]))
	}

	norm := countspace.Crop(q.self, m.sp.shape)
	s := countspace.New(m.sp.shape)
	var square scaled.Number
	c := make([]int, len(s.Shape))
	for j := range s.Size() {
		if n := norm.Coef.At(j); n.Sign() > 0 {
			x := target.Coef.At(j).Div(n)
			s.Set(c, x)
			square = square.Add(x.Mul(x).Mul(n))
		}
		advanceIndex(c, s.Shape)
	}

	if square.IsZero() {
		return s
	}
	return s.Scale(scaled.One.Div(square.Sqrt()))
}
