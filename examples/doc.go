// Package examples holds models to run and their evidence; README.md describes each with its answer.
// Its tests hold the answers against computations of their own.
package examples
