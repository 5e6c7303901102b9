package infer

// Names of what requests and results are made of.

import (
	"github.com/basetensor/basetensor/internal/btn"
)

type (
	// Settings decide by which method a request is answered, and within which budgets. The zero value of a field means its default.
	Settings = btn.Settings
	// Result is the answer to one query: ln Z in nats, how it was obtained, and how far to trust it.
	Result = btn.Result
	// Method is the way to an answer.
	Method = btn.Method
)

// The methods.
const (
	Auto       = btn.MethodAuto       // exact if it fits, else an estimate that says how right it is
	Exact      = btn.MethodExact      // exact, or refused with the figures
	SymmetryCP = btn.MethodSymmetryCP // the paper's learned decomposition
	Truncated  = btn.MethodTruncated  // truncated legs with a growing bond
	Regions    = btn.MethodRegions    // regions around belief propagation
)
