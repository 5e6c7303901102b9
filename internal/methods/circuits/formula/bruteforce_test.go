package formula

// The oracle of this package: the sum of a formula by enumeration.

import (
	"math/big"
	"math/rand/v2"
)

// precision of sums, in bits.
const precision = 200

// enumerated is Z and Σ over the assignments with X_v = a, by atom, from the definition. Values of variables are tried one after the
// other; a clause is looked at when its last variable has one.
type enumerated struct {
	f       *Formula
	weights []float64 // by atom
	clauses [][][]Literal
	tables  [][]Table
	values  []int
	z       *big.Float
	atoms   []*big.Float
	unclear map[int]bool      // auxiliary variables that the links do not determine
	first   map[string][]byte // the first assignment of all variables by the links
}

// enumerate sums f under weights of the atoms (nil: 1).
func enumerate(f *Formula, weights []float64) *enumerated {
	e := &enumerated{f: f, weights: weights, clauses: make([][][]Literal, len(f.Domains)+1), tables: make([][]Table, len(f.Domains)+1),
		values: make([]int, len(f.Domains)), z: new(big.Float).SetPrec(precision), unclear: map[int]bool{}, first: map[string][]byte{}}
	variable := make([]int, f.Atoms())
	for v, d := range f.Domains {
		for a := range d {
			variable[f.FirstAtom(v)+a] = v
		}
	}
	for range f.Atoms() {
		e.atoms = append(e.atoms, new(big.Float).SetPrec(precision))
	}
	for _, c := range f.Clauses {
		last := 0
		for _, l := range c {
			last = max(last, variable[l.Atom()]+1)
		}
		e.clauses[last] = append(e.clauses[last], c)
	}
	for _, t := range f.Tables {
		last := 0
		for _, v := range t.Scope {
			last = max(last, int(v)+1)
		}
		e.tables[last] = append(e.tables[last], t)
	}
	scale := new(big.Float).SetPrec(precision).SetFloat64(f.Scale.Mant)
	scale.SetMantExp(scale, int(f.Scale.Exp))
	e.from(0, scale)
	return e
}

// from multiplies in the factors of the first v variables, and recurses.
func (e *enumerated) from(v int, p *big.Float) {
	for _, c := range e.clauses[v] {
		holds := false
		for _, l := range c {
			u := 0
			for u+1 < v && e.f.FirstAtom(u+1) <= l.Atom() {
				u++
			}
			holds = holds || (e.values[u] == l.Atom()-e.f.FirstAtom(u)) != l.IsNegative()
		}
		if !holds {
			return
		}
	}
	for _, t := range e.tables[v] {
		at := 0
		for _, u := range t.Scope {
			at = at*e.f.Domains[u] + e.values[u]
		}
		p = new(big.Float).Mul(p, big.NewFloat(t.Values[at]))
	}
	if v == len(e.f.Domains) {
		e.count(p)
		return
	}
	for a := range e.f.Domains[v] {
		e.values[v] = a
		q := p
		if e.weights != nil {
			q = new(big.Float).Mul(p, big.NewFloat(e.weights[e.f.FirstAtom(v)+a]))
		}
		e.from(v+1, q)
	}
}

func (e *enumerated) count(p *big.Float) {
	e.z.Add(e.z, p)
	var links, all []byte
	for v, a := range e.values {
		e.atoms[e.f.FirstAtom(v)+a].Add(e.atoms[e.f.FirstAtom(v)+a], p)
		if all = append(all, byte(a)); v < e.f.Links {
			links = append(links, byte(a))
		}
	}
	first, known := e.first[string(links)]
	if !known {
		e.first[string(links)] = all
		return
	}
	for v := range all {
		if all[v] != first[v] {
			e.unclear[v] = true
		}
	}
}

// near reports whether two sums of positive numbers are the same but for rounding.
func near(a, b *big.Float) bool {
	if a.Sign() == 0 || b.Sign() == 0 {
		return a.Sign() == b.Sign()
	}
	d := new(big.Float).Sub(a, b)
	d.Quo(d, b)
	x, _ := d.Float64()
	return x < 1e-12 && x > -1e-12
}

// randomWeights draws a weight per atom of the links, some of them 0; 1 for the others.
func randomWeights(rng *rand.Rand, f *Formula) []float64 {
	w := make([]float64, f.Atoms())
	for i := range w {
		if w[i] = 1; i < f.FirstAtom(f.Links) {
			w[i] = float64(rng.IntN(5)) / 3
		}
	}
	return w
}
