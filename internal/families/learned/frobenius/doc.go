// Package frobenius turns a base tensor network into a parametric tensor decomposition B ≈ B̃ = Σ_i
// α_i Q^(i) by minimising the Frobenius norm ‖B − B̃‖ (section "Base Tensor Frobenius Norm
// Minimisation" of Hamid and Braun):
//
//	‖B − Σ_i α_i Q^(i)‖² = ‖B‖² + αᵀGα − 2αᵀb,   G_ij = ⟨Q^(i), Q^(j)⟩,   b_i = ⟨B, Q^(i)⟩.
//
// Nothing here materialises B: norms multiply over the cores, scalar products are contractions in
// count space. All quantities carry exponents, so 10,000 legs neither overflow nor underflow.
//
// Learn fits components and weights; Cost estimates the work beforehand; FitWeights is the last
// step alone, for a G and a b of one's own.
//
// The decomposition never sees the links: evidence and unary factors change no number in this
// package.
package frobenius
