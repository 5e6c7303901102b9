package learned

// Updates of one component against the residual of the others, in closed form: R for a fixed S, leg by leg, then S for that R.

import (
	"context"
	"math"

	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// vectorSweep solves the vectors of part i leg by leg, with everything else fixed, and returns the new vectors by leg and the products
// under them. The least-squares solution for value a of leg ℓ is
//
//	v_ℓ[a] = Σ_c S_{c+e(a)} P^{−ℓ,a}_c / Σ_c S²_{c+e(a)} N^{−ℓ}_c
//
// e(a) adds the value a to the counts c. P^{−ℓ,a} is the count polynomial of the residual (the base tensor less the other parts) with leg ℓ
// fixed at a. N^{−ℓ} is the count polynomial of the squared vectors of all legs but ℓ. If the denominator is 0, the entry changes nothing
// and stays. Then v_ℓ is normalised: the scale of S∘R is left to the weights. Cost: O(n²) multiply-adds for every component at two levels,
// and the walks over the cores (newCoreWalk).
func (m *model) vectorSweep(ctx context.Context, i int) ([][]float64, products, error) {
	s := newSweep(m, i)
	if err := s.newChains(); err != nil {
		return nil, products{}, err
	}
	for c, core := range m.sp.cores {
		if err := ctx.Err(); err != nil {
			return nil, products{}, err
		}
		// The environment of the core: the part and all other cores, with new vectors in those before it.
		environment, err := s.base.environment(m.sp.coreBox(c))
		if err != nil {
			return nil, products{}, err
		}

		// Solve its legs one after the other.
		walk, err := m.sp.newCoreWalk(c, s.vectors, environment)
		if err != nil {
			return nil, products{}, err
		}
		for _, leg := range core.Legs {
			if err := s.solveLeg(leg, walk); err != nil {
				return nil, products{}, err
			}
			walk.advance()
		}

		// Move past the core, with its new vectors.
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

// newSweep returns a sweep over the legs of part i, without chains.
func newSweep(m *model, i int) *sweep {
	s := &sweep{m: m, current: i, scale: m.fit.Alpha[i]}
	s.vectors = append([][]float64(nil), m.parts[i].r...)
	if s.scale.IsZero() {
		s.scale = scaled.One
	}
	return s
}

// newChains makes the chains of a sweep. A part is S∘R: a symmetric tensor S, as a polynomial in count space (part.s), times a product R
// of vectors, one for each leg. A chain is a scalar product in count space, Σ_c S_c [z^c] Π_j p_j(z), with pieces p_j. newChain
// contracts it backwards once.
//
//   - s.base is the scalar product of the base tensor with the current part. Its pieces are the cores of the base tensor under the
//     vectors. The base tensor has no S of its own, so S is that of the part.
//   - s.pairs[k] is the scalar product of the current part with part k, which may be itself. Its pieces are the legs. S is the product of
//     the two parts' S, coefficient by coefficient (Hadamard).
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
	for k, partK := range s.m.parts {
		s.pairs[k], err = newChain(countspace.Hadamard(self.s, partK.s), len(sp.order), sp.ops, func(j int) (countspace.Poly, error) {
			return s.piece(k, sp.order[j]), nil
		})
		if err != nil {
			return err
		}
	}

	return nil
}

// piece returns the polynomial of one leg in the product of the current part with part k, Σ_y v[y] w[y] z^{level(y)}, for their vectors v
// and w on the leg. For the current part itself both are its new vector.
func (s *sweep) piece(k, leg int) countspace.Poly {
	w := s.m.parts[k].r[leg]
	if k == s.current {
		w = s.vectors[leg]
	}
	return countspace.Linear(s.m.sp.levelSums(leg, s.vectors[leg], w))
}

// solveLeg solves the vector of one leg of the current part, which the walk over its core has reached. Then it moves s.pairs past the leg:
// the chains over the legs for the scalar products of the current part with each part.
//
// The least-squares value of entry x is numerator/denominator. The numerator is the scalar product of the residual with the current part:
// that of the base tensor less those of the other parts times their weights α. The denominator is the current part's own squared norm. In
// both, the part has weight 1 at x.
func (s *sweep) solveLeg(leg int, walk coreWalk) error {
	numerator, err := walk.numerator()
	if err != nil {
		return err
	}
	var denominator []scaled.Number
	for k := range s.pairs {
		if k != s.current && s.m.fit.Alpha[k].IsZero() { // it takes nothing from the residual
			continue
		}
		environment, err := s.pairs[k].legEnvironment(s.m.sp.levels.D) // by level of the leg
		if err != nil {
			return err
		}
		if k == s.current {
			denominator = environment
			continue
		}
		for x, v := range s.m.parts[k].r[leg] {
			level := s.m.sp.levels.Of[leg][x]
			overlap := environment[level].Mul(scaled.FromFloat(v)).Mul(s.m.fit.Alpha[k])
			numerator[x] = numerator[x].Sub(overlap)
		}
	}

	s.setVector(leg, numerator, denominator)
	for k := range s.pairs {
		s.pairs[k].advance(s.piece(k, leg))
	}
	return nil
}

// setVector sets the vector of a leg to numerator/denominator, normalised, and s.scale to the norm that it had before. The numerator is by
// value, the denominator by level. If the denominator of an entry is 0, the entry stays as it was. If all entries become 0, the vector
// stays as it was. Levels divide the values of a leg: those of level 0 are not counted, those of level a > 0 count in variable a.
func (s *sweep) setVector(leg int, numerator, denominator []scaled.Number) {
	old := s.vectors[leg]
	v := make([]scaled.Number, len(old))
	var largest scaled.Number
	for x := range v {
		if d := denominator[s.m.sp.levels.Of[leg][x]]; d.Sign() > 0 {
			v[x] = numerator[x].Div(d)
		} else {
			v[x] = s.scale.Mul(scaled.FromFloat(old[x])) // old is normalised, v is not: scale is the norm that old is taken to have
		}
		if a := v[x].Abs(); a.Cmp(largest) > 0 {
			largest = a
		}
	}

	if largest.IsZero() || !largest.IsFinite() {
		return // the residual is orthogonal to everything this leg can do: keep the direction
	}

	// Normalise it as float64.
	vector := make([]float64, len(old))
	square := 0.0
	for x := range vector {
		vector[x] = v[x].Div(largest).Float64()
		square += vector[x] * vector[x]
	}

	norm := math.Sqrt(square)
	for x := range vector {
		vector[x] /= norm
	}
	s.scale = largest.Mul(scaled.FromFloat(norm))
	s.vectors[leg] = vector
}

// products returns the count polynomials of the current part under its new vectors: with the base tensor, with itself, and with each other
// part. Each is the product of the pieces of a chain: of the cores for the base tensor, of the legs for the parts. A chain's prefix is the
// product of the pieces that the sweep has passed, so after the last leg it is the whole product.
func (s *sweep) products() products {
	result := products{
		base:   s.base.prefix,
		self:   s.pairs[s.current].prefix,
		others: make([]countspace.Poly, len(s.pairs)),
	}
	for k, c := range s.pairs {
		if k != s.current {
			result.others[k] = c.prefix
		}
	}
	return result
}

// symmetricStep returns the S that minimises ‖residual − S∘R‖ for the vectors R of part i. The residual is the base tensor less the other
// parts. q are the products of the part under R.
//
//	S_c = P_c / N_c,   P_c = [z^c]⟨residual, R⟩,   N_c = [z^c] Π_ℓ (Σ_x v_ℓ[x]² z^λ(x))
//
// λ(x) is the level of value x of a leg. S_c is 0 if N_c is 0. S is then scaled so that ‖S∘R‖ is about 1 and its coefficients stay in range
// from sweep to sweep.
func (m *model) symmetricStep(i int, q products) countspace.Poly {
	target := countspace.Crop(q.base, m.sp.shape)
	for k, partK := range m.parts {
		if k == i || m.fit.Alpha[k].IsZero() {
			continue
		}
		target = target.Sub(countspace.Hadamard(q.others[k], partK.s).Scale(m.fit.Alpha[k]))
	}

	// Divide by N, and sum up ‖S∘R‖² = Σ_c S_c² N_c.
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
