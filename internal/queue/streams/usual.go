package streams

import (
	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/query"
)

// usual is the assumed cost of messages until a worker has stated it: for small ones an assumption
// of this program, for other tasks the price of plans.
var usual = map[string]message.Work{
	query.StageReparam:   {Seconds: 0.5e-3},
	query.StageLearn:     {Seconds: 1e-3},
	query.StageContract:  {Seconds: 0.5e-3, Flops: policy.Rate},
	query.StageAggregate: {Seconds: 0.5e-3},
}
