package plan

// Maps that a network came with: what they cost in digits, said beforehand.

import (
	"github.com/basetensor/basetensor/internal/btn"
)

// mapWarnings warns where legs have maps other than the identity: the tensors were multiplied by their
// inverses, and entries 10^-16 of the largest beside them are rounding. Z does not depend on maps, and its
// digits do.
func mapWarnings(net *btn.Network) []string {
	for _, m := range net.Maps {
		if m.A != nil {
			return []string{"not marked exact: the network has maps on its legs, and entries far below " +
				"the largest of a tensor are lost in their rounding"}
		}
	}
	return nil
}
