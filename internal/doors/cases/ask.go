package cases

import (
	"context"
	"time"

	"github.com/basetensor/basetensor/pkg/wire"
)

// Ask submits a job, once there is room for it, and waits for its answer. If nobody serves it, tell is called with the
// reason; tell may be nil.
func Ask(ctx context.Context, p Pipeline, m wire.Request, tell func(error)) (*wire.Answer, error) {
	if err := (&Sweep{}).submit(ctx, p, m); err != nil {
		return nil, err
	}
	answer, err := p.WaitTelling(ctx, m.Job, tell)
	if err != nil && ctx.Err() != nil { // nobody waits any more
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = p.Cancel(last, m.Job, "interrupted")
	}
	return answer, err
}
