package infer

import (
	"context"

	"github.com/basetensor/basetensor/internal/answer/stage"
	"github.com/basetensor/basetensor/pkg/query"
)

// Run answers a request by the four stages in a row: reparameterise, learn, contract chunk by chunk until the answer has settled,
// aggregate. Where ctx has a deadline and the answer grows, it is the best estimate so far, as in the pipeline. Failures of single
// queries are in their results; the error returned is the whole request's.
func Run(ctx context.Context, r Request) ([]query.Result, error) {
	return stage.Run(ctx, stage.Request(r), nil)
}
