package client

// A factor graph in, its answer out.

import (
	"context"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
)

// Ask submits a factor graph with queries, or for its ln Z alone, and waits for the answer, which
// has one result per query. Its job has an id that nobody else has, and default settings; to choose
// these, use wire.NewRequest, Submit and Wait. A request that was damaged on its way is sent again under another id.
// The end of ctx ends the wait, not the job. The errors are as of wire.NewRequest, Submit and Wait; a query's own error is in its result.
func (c *Client) Ask(
	ctx context.Context, m *factorgraph.Model, queries ...query.Query,
) (*wire.Answer, error) {
	request, err := wire.NewRequest(m, queries...)
	if err != nil {
		return nil, err
	}
	var answer *wire.Answer
	for range mostSendings {
		request.Job = c.newJob()
		if _, err := c.Submit(ctx, request); err != nil {
			return nil, err
		}
		answer, err = c.Wait(ctx, request.Job)
		isDamaged := err == nil && answer.Error != nil && answer.Error.Code == fault.Damaged
		if !isDamaged {
			break
		}
	}
	return answer, err
}
