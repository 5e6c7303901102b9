package exact

// Forms of a problem.

import (
	"context"
	"fmt"

	"github.com/basetensor/basetensor/internal/network/problem"
)

// slot is the slot of a problem for its network simplified for contraction trees.
type slot struct{ marginals, joint bool }

// Of returns the network of a problem simplified for contraction trees. If set is not empty, it has an index over the cells of the joint
// marginal of set. The problem keeps the form of the last set and the form without one. Errors: those of PrepareJoint.
func Of(ctx context.Context, p *problem.Problem, marginals bool, set []int) (*Prepared, error) {
	return problem.Form(ctx, p, slot{marginals: marginals, joint: len(set) > 0}, fmt.Sprint(set), func() (*Prepared, error) {
		return PrepareJoint(ctx, p.Net, marginals, set, p.Memory)
	})
}
