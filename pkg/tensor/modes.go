// Maps along every mode: the reparameterisation of a
// tensor in its own form where that form allows it.

package tensor

import (
	"fmt"
	"slices"
)

// MaxEntries is the largest table that ApplyModes writes a tensor out to: 2^22 entries.
const MaxEntries = 1 << 22

// ApplyModes applies maps[ℓ], a Shape[ℓ] × Shape[ℓ] matrix (row-major;
// nil: the identity), along every mode ℓ,
//
//	out[a] = Σ_b t[b] Π_ℓ maps[ℓ][a_ℓ, b_ℓ].
//
// With the inverses of the maps of the legs it is Lemma 1. A dense table stays dense, O(entries · Σ
// dims); CP stays CP, on its vectors, O(rank · Σ dims²). A symmetric tensor stays symmetric when
// all legs have one dimension, one level map and one matrix, by
//
//	out_k = Σ_c S_c [z^c] Π_a (Σ_b M[a,b] z^b)^{k_a}
//
// with levels a = value (Krawtchouk polynomials for the Hadamard matrix, d = 2); so does a
// symmetry-CP tensor whose vectors are also the same on all legs. Any other tensor becomes a dense
// table, of at most MaxEntries entries. t is not changed; nil maps for all modes return t itself. It
// returns ErrShape if the maps do not fit, ErrNotFinite for a map or a result that is not finite, and
// ErrUnsupportedMap if a dense table would be needed and is too large. Source: Hamid and Braun,
// Lemma 1.
func ApplyModes(t Tensor, maps [][]float64) (Tensor, error) {
	isIdentity, err := checkMaps(t, maps)
	if err != nil {
		return nil, err
	}
	if isIdentity {
		return t, nil
	}

	switch t := t.(type) {
	case *Dense:
		return t.applyModes(maps)
	case *CP:
		return t.applyModes(maps)
	case *Symmetric:
		if terms, levels, ok, err := t.asSymmetryCP().applyCommon(maps); ok || err != nil {
			if err != nil {
				return nil, err
			}
			return &Symmetric{Shape: t.Shape, Levels: levels, Values: terms[0].S}, nil // it has one term, with weight 1
		}
	case *SymmetryCP:
		if terms, levels, ok, err := t.applyCommon(maps); ok || err != nil {
			if err != nil {
				return nil, err
			}
			return &SymmetryCP{Shape: t.Shape, Levels: levels, Terms: terms}, nil
		}
	}

	dense, err := ToDense(t, MaxEntries)
	if err != nil {
		return nil, fmt.Errorf("%w: a symmetric form over %d legs keeps its form only under one "+
			"map for all legs of one dimension; use identity maps, give the factor as CP, or "+
			"allow a larger table (%w)", ErrUnsupportedMap, len(maps), err)
	}
	return dense.applyModes(maps)
}

// checkMaps returns an error if the maps do not fit t or are not finite. isIdentity is true if all maps are nil.
func checkMaps(t Tensor, maps [][]float64) (isIdentity bool, err error) {
	if t == nil {
		return false, fmt.Errorf("%w: nil tensor", ErrShape)
	}
	dims := t.Dims()
	if len(maps) != len(dims) {
		return false, fmt.Errorf("%w: maps for %d modes, the tensor has %d",
			ErrShape, len(maps), len(dims))
	}

	isIdentity = true
	for mode, m := range maps {
		if m == nil {
			continue
		}
		isIdentity = false
		if len(m) != dims[mode]*dims[mode] {
			return false, fmt.Errorf("%w: map of mode %d has %d entries, %d×%d are needed",
				ErrShape, mode, len(m), dims[mode], dims[mode])
		}
		if err := finite(m, "map of mode %d, entry", mode); err != nil {
			return false, err
		}
	}
	return isIdentity, nil
}

// applyModes returns the table with the maps applied mode after mode: mapped[·,a,·] = Σ_b M[a,b] data[·,b,·]. The dots are the modes
// before and after the mode of M; those after it are runs of stride entries.
func (t *Dense) applyModes(maps [][]float64) (*Dense, error) {
	data := slices.Clone(t.Data)
	strideOf := strides(t.Shape)
	for mode, m := range maps {
		if m == nil {
			continue
		}
		d := t.Shape[mode]
		stride := strideOf[mode]

		mapped := make([]float64, len(data))
		for block := 0; block < len(data); block += d * stride { // one index of the modes before
			for a := range d {
				row := mapped[block+a*stride:][:stride]
				for b := range d {
					f := m[a*d+b]
					if f == 0 {
						continue
					}
					for i, x := range data[block+b*stride:][:stride] {
						row[i] += f * x
					}
				}
			}
		}
		data = mapped
	}

	if err := finite(data, "mapped entry"); err != nil {
		return nil, err
	}
	return &Dense{Shape: t.Shape, Data: data}, nil
}

// applyModes returns the CP tensor whose vectors are the maps applied to those of t. Vectors that are the identity become the columns of
// the map.
func (t *CP) applyModes(maps [][]float64) (*CP, error) {
	out := &CP{Shape: t.Shape, Weights: t.Weights, Vectors: slices.Clone(t.Vectors)}
	for mode, m := range maps {
		if m == nil {
			continue
		}
		d := t.Shape[mode]

		mapped := make([]float64, len(t.Weights)*d)
		for i := range t.Weights {
			v := t.vector(i, mode, d)
			for a := range d {
				for b, x := range v {
					mapped[i*d+a] += m[a*d+b] * x
				}
			}
		}

		if err := finite(mapped, "mode %d, mapped vector entry", mode); err != nil {
			return nil, err
		}
		out.Vectors[mode] = mapped
	}
	return out, nil
}
