package streams

import (
	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/query"
)

// assumedWork is the cost of messages by stage until a worker has stated it. For small messages it is an assumption of
// this program, for other tasks the price of plans.
var assumedWork = map[string]message.Work{
	query.StageReparam:   {Seconds: 0.5e-3},
	query.StageLearn:     {Seconds: 1e-3},
	query.StageContract:  {Seconds: 0.5e-3, Flops: policy.Rate},
	query.StageAggregate: {Seconds: 0.5e-3},
}
