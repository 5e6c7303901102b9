package exact

// Forms of a problem.

import (
	"context"
	"fmt"

	"github.com/basetensor/basetensor/internal/network/problem"
)

// slot keeps apart the forms of a problem for contraction trees.
type slot struct{ marginals, joint bool }

// Of returns the problem's network simplified for contraction trees, with an index over the cells of the
// joint marginal of a set where there is one. The problem keeps the forms of one set, the last, and those
// without. Errors: those of PrepareJoint.
func Of(ctx context.Context, p *problem.Problem, marginals bool, set []int) (*Prepared, error) {
	return problem.Form(ctx, p, slot{marginals: marginals, joint: len(set) > 0}, fmt.Sprint(set), func() (*Prepared, error) {
		return PrepareJoint(ctx, p.Net, marginals, set, p.Memory)
	})
}
