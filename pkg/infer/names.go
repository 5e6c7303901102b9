package infer

import (
	"github.com/basetensor/basetensor/internal/btn"
)

// The methods.
const (
	Auto       = btn.MethodAuto       // exact if it fits, else an estimate with its uncertainty
	Exact      = btn.MethodExact      // exact, or refused with the figures
	SymmetryCP = btn.MethodSymmetryCP // the paper's learned decomposition
	Truncated  = btn.MethodTruncated  // truncated legs with a growing bond
	Regions    = btn.MethodRegions    // regions around belief propagation
	Circuit    = btn.MethodCircuit    // exact, by an arithmetic circuit, or refused
	Sampled    = btn.MethodSampled    // a random decomposition, with bounds at a stated probability
)
