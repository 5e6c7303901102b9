package cached

import (
	"strings"

	"github.com/basetensor/basetensor/internal/engine/pairwise"
	"github.com/basetensor/basetensor/internal/message"
)

// NumericKind names the arithmetic that the last bits of this process's numbers depend on: the processor's, and the vector instructions
// that the kernels were built with.
func NumericKind() string {
	if v := pairwise.Vector(); v != "" {
		return message.NumericKind() + "-" + strings.ToLower(v)
	}
	return message.NumericKind()
}
