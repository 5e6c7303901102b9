package learned

// Walks over the legs of one core: the contribution of B to the equations of each leg, while the vectors of the legs before it change.

import (
	"slices"

	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// coreWalk visits the legs of a core in order of its modes.
type coreWalk interface {
	// numerator returns ⟨B, Q with the present leg at coordinate y and weight 1⟩ for every learned
	// coordinate y.
	numerator() ([]scaled.Number, error)
	// advance moves to the next leg, after the present one has its new vector.
	advance()
}

// newCoreWalk returns the cheapest walk over core c for vectors r (as they are at the time of each
// call) and environment t of the core: one chain per term for CP and for symmetric forms whose
// levels fit, O(n²) for n legs of the core; the polynomials of one leg at a time for others.
func (sp *space) newCoreWalk(c int, r [][]float64, t countspace.Poly) (coreWalk, error) {
	legs := sp.cores[c].Legs
	switch core := sp.cores[c].T.(type) {
	case *tensor.CP:
		if len(legs) > 2 {
			return sp.walkCP(core, legs, r, t)
		}
	case *tensor.Symmetric:
		return sp.walkSymmetric(c, &tensor.SymmetryCP{Shape: core.Shape, Levels: core.Levels,
			Terms: []tensor.SymmetryRankOne{{Alpha: 1, S: core.Values}}}, r, t)
	case *tensor.SymmetryCP:
		return sp.walkSymmetric(c, core, r, t)
	}
	return &polyWalk{sp: sp, core: c, r: r, t: t}, nil
}

// polyWalk asks the core for the polynomials of each leg in turn.
type polyWalk struct {
	sp   *space
	core int
	r    [][]float64
	t    countspace.Poly
	mode int
}

// numerator implements coreWalk, by the polynomials of the core for each value of the present leg.
func (w *polyWalk) numerator() ([]scaled.Number, error) {
	core := w.sp.cores[w.core]
	leg := core.Legs[w.mode]
	polys, err := w.sp.legPolys(w.core, w.mode, w.r)
	if err != nil {
		return nil, err
	}
	return w.sp.legProducts(leg, polys, w.t), nil
}

// advance moves to the next leg. The polynomials of a leg are computed anew from r.
func (w *polyWalk) advance() { w.mode++ }

// termWalk is a chain per rank-one or symmetry-rank-one term of the core.
type termWalk struct {
	sp     *space
	legs   []int
	levels countspace.Levels // of the chains, by mode
	r      [][]float64
	terms  []coreTerm
	mode   int
}

// coreTerm is one term of the core with the chain that walks over it.
type coreTerm struct {
	weight scaled.Number
	v      [][]float64 // by mode, in learned coordinates; nil for all ones
	chain  *chain
}

// walkCP returns a walk over a CP core. Every term has a chain: the environment is its symmetric part, and its vectors are multiplied by
// R.
func (sp *space) walkCP(
	core *tensor.CP, legs []int, r [][]float64, t countspace.Poly,
) (coreWalk, error) {
	w := &termWalk{sp: sp, legs: legs, r: r, levels: sp.coreLevels(legs)}

	for i, weight := range core.Weights {
		term := coreTerm{weight: scaled.FromFloat(weight), v: make([][]float64, len(legs))}
		for mode, leg := range legs {
			n := sp.dims[leg]
			v := make([]float64, n)
			if core.Vectors[mode] == nil {
				v[i] = 1
			} else {
				copy(v, core.Vectors[mode][i*n:(i+1)*n])
			}
			term.v[mode] = sp.toLearned(leg, v)
		}
		if err := w.addTerm(term, t); err != nil {
			return nil, err
		}
	}

	return w, nil
}

// toLearned returns Oᵀv: the vector v of a leg, given in the coordinates x of the network, in the learned coordinates y.
func (sp *space) toLearned(leg int, v []float64) []float64 {
	o := sp.rot[leg]
	if o == nil {
		return v
	}
	out := make([]float64, len(v))
	for x := range v {
		for y := range v {
			out[y] += o[x*len(v)+y] * v[x]
		}
	}
	return out
}

// walkSymmetric returns a walk over a symmetric core. If there is only one level, the chains have the levels of the core. Otherwise these
// have to be the levels of the space, and no leg may have a map; if that does not hold, it returns a polyWalk.
func (sp *space) walkSymmetric(
	c int, core *tensor.SymmetryCP, r [][]float64, t countspace.Poly,
) (coreWalk, error) {
	legs := sp.cores[c].Legs
	w := &termWalk{sp: sp, legs: legs, r: r, levels: core.Levels}
	counted := sp.levels.D > 1
	fits := !counted || core.Levels.D == sp.levels.D
	for mode, leg := range legs {
		fits = fits && (!counted || slices.Equal(core.Levels.Of[mode], sp.levels.Of[leg])) && sp.rot[leg] == nil
	}
	if !fits {
		return &polyWalk{sp: sp, core: c, r: r, t: t}, nil
	}

	for _, term := range core.Terms {
		s := countspace.Poly{Shape: core.Levels.Shape(), Coef: term.S}
		if counted {
			s = countspace.Hadamard(s, t)
		} else {
			s = s.Scale(t.Coef.At(0))
		}
		v := term.R
		if v == nil {
			v = make([][]float64, len(legs))
		}
		if err := w.addTerm(coreTerm{weight: scaled.FromFloat(term.Alpha), v: v}, s); err != nil {
			return nil, err
		}
	}

	return w, nil
}

// addTerm adds a term with its symmetric part s.
func (w *termWalk) addTerm(term coreTerm, s countspace.Poly) error {
	chain, err := newChain(s, len(w.legs), w.sp.ops, func(mode int) (countspace.Poly, error) {
		return w.piece(term, mode), nil
	})
	term.chain = chain
	w.terms = append(w.terms, term)
	return err
}

// piece returns Σ_y v[y] r[y] z^λ(y) for one mode of a term.
func (w *termWalk) piece(term coreTerm, mode int) countspace.Poly {
	row := make([]float64, w.levels.D)
	for y, r := range w.r[w.legs[mode]] {
		if v := term.v[mode]; v != nil {
			r *= v[y]
		}
		row[w.levels.Of[mode][y]] += r
	}
	return countspace.Linear(row)
}

// numerator implements coreWalk: the sum over the terms of the core, each by the environment of the present leg in its chain.
func (w *termWalk) numerator() ([]scaled.Number, error) {
	of := w.levels.Of[w.mode]
	out := make([]scaled.Number, len(of))
	for _, term := range w.terms {
		env, err := term.chain.legEnvironment(w.levels.D)
		if err != nil {
			return nil, err
		}
		for y, a := range of {
			x := term.weight.Mul(env[a])
			if v := term.v[w.mode]; v != nil {
				x = x.Mul(scaled.FromFloat(v[y]))
			}
			out[y] = out[y].Add(x)
		}
	}
	return out, nil
}

// advance moves all chains past the present leg, with its new vector.
func (w *termWalk) advance() {
	for _, term := range w.terms {
		term.chain.advance(w.piece(term, w.mode))
	}
	w.mode++
}
