package streams

import (
	"github.com/basetensor/basetensor/internal/message"
	"github.com/basetensor/basetensor/internal/policy"
	"github.com/basetensor/basetensor/pkg/query"
)

// usual is what messages are taken to cost a worker until one has said what they do: small ones
// an assumption of this program, tasks that are not small what plans are priced by.
var usual = map[string]message.Work{
	query.StageReparam:   {Seconds: 0.5e-3},
	query.StageLearn:     {Seconds: 1e-3},
	query.StageContract:  {Seconds: 0.5e-3, Flops: policy.Rate},
	query.StageAggregate: {Seconds: 0.5e-3},
}
