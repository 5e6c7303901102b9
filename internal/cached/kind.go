package cached

import (
	"strings"

	"github.com/basetensor/basetensor/internal/engine/pairwise"
	"github.com/basetensor/basetensor/internal/message"
)

// NumericKind identifies the arithmetic on which the last bits of this process's numbers depend:
// the processor's, and the vector instructions for which the kernels were built.
func NumericKind() string {
	if v := pairwise.Vector(); v != "" {
		return message.NumericKind() + "-" + strings.ToLower(v)
	}
	return message.NumericKind()
}
