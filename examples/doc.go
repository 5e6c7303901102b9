// Package examples holds models to run and their evidence; README.md says what each is and what its answer is.
// Its tests hold the answers against computations of their own.
package examples
