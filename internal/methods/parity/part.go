// Package parity contracts base tensors whose factors depend on parities of binary variables alone: codes, p-spin models, gauge
// models, planted exclusive-ors.
//
// A factor of the variables S is f(⊕_{i∈S} x_i), two numbers. Of m factors, r have parities that are independent over GF(2): these
// parities are variables u_1 … u_r, which take all values equally often, 2^(n−r) assignments of x each. Every other factor is one of the
// parity of some of the u. With k = m − r of these,
//
//	Z = 2^(n−r) Σ_s D(s) Π_j f_j(s_j),   D(s) = Σ_{u: A u = s} Π_i f_i(u_i)
//
// where s are the k parities. D is found by adding one u after the other, D(s) ← f(0) D(s) + f(1) D(s ⊕ a): 2^k numbers, r times. No term
// is below 0, whatever the signs of couplings. Weights of single variables and evidence are factors of one variable.
//
// The mean of (−1)^{x_v} is 0 if x_v is no parity of some u. Else it is the same sum with f_i(1) of these u negated, over Z. By
// Walsh–Hadamard transform that is a sum over 2^k terms, Π over all factors of f(0) ± f(1), whose logarithms are one transform of their
// halves' differences.
//
// Cost: r 2^k, and k 2^k for each variable's marginal.
package parity

import "github.com/basetensor/basetensor/internal/network/btn"

// Parities is B as a function of parities. How its factors depend on each other follows from the network and its evidence.
type Parities struct{}

// Class implements btn.Part.
func (*Parities) Class() btn.Class { return btn.ClassParity }

// About implements btn.Part. If a value leaves the range of float64, that is a doubt.
func (*Parities) About() btn.About { return btn.About{KeepsRange: true} }

// Fits implements btn.Part: it returns an error unless all variables are binary. Whether the tables depend on parities is seen when they
// are read.
func (*Parities) Fits(n *btn.Network) error {
	for v := range n.Variables {
		if d := n.Variables[v].Domain; d != 2 {
			return btn.Misfit("variable %d has %d values, parities are of two", v, d)
		}
	}
	return nil
}
