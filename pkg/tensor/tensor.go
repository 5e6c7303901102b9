// Package tensor holds tensors in the forms this project computes with:
// dense, CP, symmetric, symmetry-CP.
//
// Indices are row-major with the last index fastest, as in UAI files.
// No form materialises another unless asked.
package tensor

import (
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// Tensor is one of *Dense, *CP, *Symmetric, *SymmetryCP.
type Tensor interface {
	// Dims returns the dimension of every mode. The caller must not change it.
	Dims() []int
	sealed()
}

// Dense is a table of all entries.
type Dense struct {
	Shape []int
	Data  []float64 // Π Shape entries, last index fastest
}

// CP is Σ_t Weights[t] ⊗_ℓ Vectors[ℓ][t,:].
type CP struct {
	Shape   []int
	Weights []float64 // rank entries
	// Vectors[ℓ] is rank × Shape[ℓ], row-major; nil means the identity (rank == Shape[ℓ]).
	Vectors [][]float64
}

// Symmetric is a function of the count vector: entry x is Values[count(x)] under Levels.
type Symmetric struct {
	Shape  []int
	Levels countspace.Levels
	Values scaled.Vector // over the box Levels.Shape(); counts that no x has are ignored
}

// SymmetryRankOne is S ∘ R, S symmetric and R = ⊗ v_ℓ.
type SymmetryRankOne struct {
	Alpha float64
	S     scaled.Vector // over the box of the tensor's levels
	R     [][]float64   // R[ℓ] has Shape[ℓ] entries; nil means all ones
}

// SymmetryCP is Σ_i α_i S^(i) ∘ R^(i) with one set of levels.
type SymmetryCP struct {
	Shape  []int
	Levels countspace.Levels
	Terms  []SymmetryRankOne
}

// Dims returns the dimension of every mode.
func (t *Dense) Dims() []int { return t.Shape }

// Dims returns the dimension of every mode.
func (t *CP) Dims() []int { return t.Shape }

// Dims returns the dimension of every mode.
func (t *Symmetric) Dims() []int { return t.Shape }

// Dims returns the dimension of every mode.
func (t *SymmetryCP) Dims() []int { return t.Shape }

func (*Dense) sealed()      {}
func (*CP) sealed()         {}
func (*Symmetric) sealed()  {}
func (*SymmetryCP) sealed() {}

// LegWeights are a component's weights on one leg, split by level: a Dim × D matrix, row-major.
// W[x·D + a] is the weight of value x at level a. Without learned maps row x has one entry, v[x] at
// level λ(x); a learned map O mixes values, W[x, a] = Σ_{y: λ(y)=a} O[x, y] v[y].
type LegWeights []float64
