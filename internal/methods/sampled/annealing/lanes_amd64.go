package annealing

// The loops of amd64.

import "golang.org/x/sys/cpu"

// vectors reports whether the loops use AVX2 and FMA. Tests switch it off.
var vectors = hasVectors

var hasVectors = cpu.X86.HasAVX2 && cpu.X86.HasFMA

//go:noescape
func sweepVector(a *sweepArgs)

//go:noescape
func fieldsVector(a *fieldArgs)

//go:noescape
func crowdVector(a *crowdArgs)

//go:noescape
func powersVector(a *powerArgs)

//go:noescape
func sumOutVector(a *upArgs)

//go:noescape
func drawVector(a *downArgs)
