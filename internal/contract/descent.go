package contract

// Assignments: found or drawn on the way back through the network's tables.

import (
	"context"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/descent"
	"github.com/basetensor/basetensor/internal/problem"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// descents eliminates slices along a path and goes back through them. Their Z is 0.
type descents struct{ planned }

// Contract implements Engine.
func (descents) Contract(
	ctx context.Context, p *problem.Problem, part btn.Part, want problem.Want,
) (btn.Value, error) {
	q := part.(*btn.Descent)
	if err := query.CheckSet(domains(p.Net), want.Map); err != nil {
		return btn.Value{}, err
	}
	prepared, err := p.Descent(ctx, q.Along.Ask, want.Map)
	if err != nil {
		return btn.Value{}, err
	}

	var value btn.Value
	if value.Flops, err = prepared.Flops(ctx, q.Along, q.To-q.From); err != nil {
		return btn.Value{}, err
	}
	o := descent.Options{Memory: p.Memory, Threads: p.Threads, From: q.From, To: q.To}
	switch q.Along.Ask {
	case btn.AskMPE:
		value.Found, err = prepared.Best(ctx, q.Along, o)
	case btn.AskMap:
		value.Found, err = prepared.BestOf(ctx, q.Along, o)
	case btn.AskSamples:
		if err := query.CheckSamples(len(p.Net.Variables), want.Samples); err != nil {
			return btn.Value{}, err
		}
		value.Drawn, err = prepared.Draw(ctx, q.Along, want.Samples, want.Seed, o)
	default:
		return btn.Value{}, fault.New(fault.BadInput, "contract: a descent asks for %.40q", q.Along.Ask)
	}
	return value, err
}
