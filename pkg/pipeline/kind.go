package pipeline

import (
	"strings"

	"github.com/basetensor/basetensor/internal/pairwise"
	"github.com/basetensor/basetensor/pkg/wire"
)

// numericKind names the arithmetic that the last bits of this process's numbers depend on: the processor's, and the vector instructions
// that the kernels were built with.
func numericKind() string {
	if v := pairwise.Vector(); v != "" {
		return wire.NumericKind() + "-" + strings.ToLower(v)
	}
	return wire.NumericKind()
}
