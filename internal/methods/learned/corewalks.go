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
	// numerator returns, for every learned coordinate y of the present leg, ⟨B, Q⟩ for the component Q with the leg at y with weight 1.
	numerator() ([]scaled.Number, error)
	// advance moves to the next leg, after the present one has its new vector.
	advance()
}

// newCoreWalk returns the cheapest walk over the legs of core c. At each leg it gives the scalar product of B with a component, for each
// value of the leg in the component. r are the component's vectors by leg, read at the time of each call. t is the environment of the core:
// the component and all other cores as a count polynomial. CP cores, and symmetric ones whose levels fit, have a chain for each term, O(n²)
// for n legs. Other cores are asked for the polynomials of one leg at a time. Levels divide the values of a leg: those of level 0 are not
// counted, those of level a > 0 count in variable a.
func (sp *space) newCoreWalk(c int, r [][]float64, t countspace.Poly) (coreWalk, error) {
	legs := sp.cores[c].Legs
	switch core := sp.cores[c].T.(type) {
	case *tensor.CP:
		if len(legs) > 2 { // for one or two legs polynomials cost less than chains
			return sp.walkCP(core, legs, r, t)
		}
	case *tensor.Symmetric:
		oneTerm := []tensor.SymmetryRankOne{{Alpha: 1, S: core.Values}}
		return sp.walkSymmetric(c, &tensor.SymmetryCP{Shape: core.Shape, Levels: core.Levels, Terms: oneTerm}, r, t)
	case *tensor.SymmetryCP:
		return sp.walkSymmetric(c, core, r, t)
	}
	return &polyWalk{sp: sp, core: c, r: r, t: t}, nil
}

// polyWalk asks the core for the polynomials of each leg in turn.
type polyWalk struct {
	sp   *space
	core int
	r    [][]float64     // the component's vectors, by leg
	t    countspace.Poly // environment of the core
	mode int             // the present leg, among those of the core
}

// numerator implements coreWalk: the scalar products of the environment with the core's polynomials for each value of the present leg.
func (w *polyWalk) numerator() ([]scaled.Number, error) {
	core := w.sp.cores[w.core]
	leg := core.Legs[w.mode]
	polys, err := w.sp.legPolys(w.core, w.mode, w.r)
	if err != nil {
		return nil, err
	}
	return w.sp.legProducts(leg, polys, w.t), nil
}

// advance implements coreWalk. The polynomials of the next leg are computed from r when they are asked for.
func (w *polyWalk) advance() { w.mode++ }

// termWalk is a chain per rank-one or symmetry-rank-one term of the core.
type termWalk struct {
	sp     *space
	legs   []int
	levels countspace.Levels // of the chains, by mode
	r      [][]float64       // the component's vectors, by leg
	terms  []coreTerm
	mode   int // the present leg, among those of the core
}

// coreTerm is one term of the core with the chain that walks over it.
type coreTerm struct {
	weight scaled.Number
	v      [][]float64 // by mode, in learned coordinates; nil for all ones
	chain  *chain
}

// walkCP returns a walk over the legs of a CP core. t is the environment of the core: the component and all other cores as a count
// polynomial. r are the component's vectors by leg. Each term of the core has a chain over t with a piece for each leg, made of the term's
// vector times the component's vector. Without vectors on a leg, term i has the unit vector of value i.
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

// toLearned returns Oᵀv for the learned map O of a leg: the vector v, which is in the network's coordinates x, in the learned coordinates
// y.
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

// walkSymmetric returns a walk over the legs of symmetric core c with a chain for each term. This needs legs without maps, and a space with
// one level or with the levels of the core. Otherwise it returns a polyWalk, which asks the core for the polynomials of one leg at a time.
// r are the component's vectors by leg. t is the environment of the core: the component and all other cores. Levels divide the values of a
// leg: those of level 0 are not counted, those of level a > 0 count in variable a.
func (sp *space) walkSymmetric(
	c int, core *tensor.SymmetryCP, r [][]float64, t countspace.Poly,
) (coreWalk, error) {
	legs := sp.cores[c].Legs
	w := &termWalk{sp: sp, legs: legs, r: r, levels: core.Levels}
	isCounted := sp.levels.D > 1
	levelsFit := !isCounted || core.Levels.D == sp.levels.D
	for mode, leg := range legs {
		hasSameLevels := !isCounted || slices.Equal(core.Levels.Of[mode], sp.levels.Of[leg])
		levelsFit = levelsFit && hasSameLevels && sp.rot[leg] == nil
	}
	if !levelsFit {
		return &polyWalk{sp: sp, core: c, r: r, t: t}, nil
	}

	for _, term := range core.Terms {
		// S of the term times the environment, which has the same counts, or one number.
		s := countspace.Poly{Shape: core.Levels.Shape(), Coef: term.S}
		if isCounted {
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

// addTerm adds a term of the core, with a chain over its symmetric part s.
func (w *termWalk) addTerm(term coreTerm, s countspace.Poly) error {
	chain, err := newChain(s, len(w.legs), w.sp.ops, func(mode int) (countspace.Poly, error) {
		return w.piece(term, mode), nil
	})
	term.chain = chain
	w.terms = append(w.terms, term)
	return err
}

// piece returns the polynomial of one leg in the chain of a term: Σ_y v[y] r[y] z^{level(y)}, for the term's vector v and the component's
// vector r. Levels divide the values of a leg: those of level 0 are not counted, those of level a > 0 count in variable a.
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

// numerator implements coreWalk: for value y of the present leg, the sum over the terms of the core of weight · v[y] · environment[level of
// y]. v is the term's vector on the leg, and the environment, by level, is what the term's other legs give.
func (w *termWalk) numerator() ([]scaled.Number, error) {
	levelOf := w.levels.Of[w.mode]
	out := make([]scaled.Number, len(levelOf))
	for _, term := range w.terms {
		environment, err := term.chain.legEnvironment(w.levels.D)
		if err != nil {
			return nil, err
		}
		for y, level := range levelOf {
			x := term.weight.Mul(environment[level])
			if v := term.v[w.mode]; v != nil {
				x = x.Mul(scaled.FromFloat(v[y]))
			}
			out[y] = out[y].Add(x)
		}
	}
	return out, nil
}

// advance implements coreWalk: it moves all chains past the present leg, which has its new vector.
func (w *termWalk) advance() {
	for _, term := range w.terms {
		term.chain.advance(w.piece(term, w.mode))
	}
	w.mode++
}
