package annealing

// The loops of amd64.

import "golang.org/x/sys/cpu"

// vectors reports whether the loops use AVX2 and FMA. Tests switch it off.
var vectors = hasVectors

var hasVectors = cpu.X86.HasAVX2 && cpu.X86.HasFMA

// sweepVector takes a step at each spin in turn, in all eight chains.
//
//go:noescape
func sweepVector(a *sweepArgs)

// fieldsVector computes the fields of eight spins in all eight chains.
//
//go:noescape
func fieldsVector(a *fieldArgs)

// crowdVector takes a step at each index in turn, in all eight chains.
//
//go:noescape
func crowdVector(a *crowdArgs)

// powersVector computes y = 2^{−βx} for every coupling x.
//
//go:noescape
func powersVector(a *powerArgs)

// sumOutVector sums out some spins in all eight chains, the last first.
//
//go:noescape
func sumOutVector(a *upArgs)

// drawVector draws the spins of a forest in all eight chains, the first first.
//
//go:noescape
func drawVector(a *downArgs)
