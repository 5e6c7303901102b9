// Package btn holds the types that pass between the stages: the base tensor network, the plans that
// answer queries, their estimates and parts, and the values of contracting them. It computes
// nothing beyond validating and identifying them.
package btn

import (
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// Map is the invertible matrix A on one leg:
// Dim × Dim, row-major, rows x (the variable), columns x̄ (the leg).
type Map struct {
	Kind query.MapKind
	A    []float64 // nil means the identity
}

// Core is a core tensor: its modes are Legs, in order.
type Core struct {
	Legs []int
	T    tensor.Tensor
}

// Link is a linked tensor: its modes are Legs, in order. A link without legs is a number.
type Link struct {
	Legs []int
	T    tensor.Tensor
}

// Network is a base tensor network: the cores are pairwise disjoint and cover all legs,
// and every leg joins one core and one link. Its value is Z = Scale · Σ_x̄ Π_c B^(c) Π_j L^(j).
type Network struct {
	Dims  []int // dimension of every leg
	Maps  []Map // per leg, as applied by the reparameterisation; nil: the identity on all
	Cores []Core
	Links []Link
	// Variables says where the weights of each variable of the factor graph are;
	// nil for a network built directly.
	Variables []Variable
	// Scale is the product of the factors of order zero,
	// and of the common factors of the weights.
	Scale    scaled.Number
	Choice   query.CoreChoice // empty for a network built directly
	Warnings []string         // about the model, for every answer; no part of the digests
	// Rounded lists the links whose weights Condition has rounded, one entry per likelihood. A network that is conditioned once more keeps
	// the entries that it had.
	Rounded []int
	// Directed reports whether the network is a Bayesian one without evidence. Then each core is the conditional probability table of the
	// variable on its last leg, given the variables on the other legs. The weights of a variable without such a core are its
	// probabilities. All other weights and the scale are 1. See Relevant.
	Directed bool
	// Numbers has, for every variable, its number in the network that this one was cut from, ascending. It is nil if this network was not
	// cut from another. Messages to users name variables by these numbers.
	Numbers []int
	// Likelihoods is how many cores at the end of Cores are evidence and no part of the model (WithLikelihoodTensors).
	Likelihoods int
}

// ModelCores returns the cores that are part of the model. It leaves out the cores of likelihoods, which are the last ones.
func (n *Network) ModelCores() []Core { return n.Cores[:len(n.Cores)-n.Likelihoods] }

// Number returns the number that variable v has in the network that n was cut from, or v if n was not cut from another.
func (n *Network) Number(v int) int {
	if n.Numbers == nil {
		return v
	}
	return n.Numbers[v]
}

// Variable places a variable's weights: Links[Link].T is a *tensor.CP whose Weights are w_i(x),
// one rank-one term per value x (V^(i) itself, or an order-one link with the identity).
type Variable struct {
	Domain int
	Link   int
}
