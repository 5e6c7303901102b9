package cases

import (
	"context"
	"time"

	"github.com/basetensor/basetensor/pkg/wire"
)

// Ask submits a job, once there is room for it, and waits for its answer. If nobody serves it, tell is called with the
// reason; tell may be nil.
func Ask(ctx context.Context, pipeline Pipeline, request wire.Request, tell func(error)) (*wire.Answer, error) {
	if err := (&Sweep{}).submit(ctx, pipeline, request); err != nil {
		return nil, err
	}
	answer, err := pipeline.WaitTelling(ctx, request.Job, tell)
	if err != nil && ctx.Err() != nil { // nobody waits any more
		cancelCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = pipeline.Cancel(cancelCtx, request.Job, "interrupted")
	}
	return answer, err
}
