package exact

// Forms of a problem.

import (
	"context"
	"fmt"

	"github.com/basetensor/basetensor/internal/network/problem"
)

// slot names the form under which a problem keeps its network simplified for contraction trees.
type slot struct{ marginals, joint bool }

// PreparedOf returns the network of a problem simplified for contraction trees, for the marginals of all variables and for the joint
// marginal of set, if they are asked for. The problem keeps the form of the last set and the form without one. Errors: those of
// PrepareJoint.
func PreparedOf(ctx context.Context, p *problem.Problem, marginals bool, set []int) (*Prepared, error) {
	return problem.Form(ctx, p, slot{marginals: marginals, joint: len(set) > 0}, fmt.Sprint(set), func() (*Prepared, error) {
		return PrepareJoint(ctx, p.Net, marginals, set, p.Memory)
	})
}
