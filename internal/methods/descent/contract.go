package descent

// Assignments: found or drawn on the way back through the network's tables.

import (
	"context"
	"fmt"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contraction"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// slot is the place of tables of terms among the forms of a problem, by question.
type slot struct {
	ask btn.Ask
	set string // of a marginal MAP assignment
}

// Of returns the problem's network as tables of terms, for a question; set are the variables of a
// marginal MAP assignment. Errors: those of Prepare.
func Of(ctx context.Context, p *problem.Problem, ask btn.Ask, set []int) (*Prepared, error) {
	at := slot{ask: ask}
	if ask == btn.AskMap {
		at.set = fmt.Sprint(set)
	}
	return problem.Form(ctx, p, at, nil, func() (*Prepared, error) { return Prepare(ctx, p.Net, ask, set, p.Memory) })
}

// Contract implements contraction.Contractor: it eliminates slices along a path and goes back through them. Z is 0.
func (p *Descent) Contract(ctx context.Context, instance *problem.Problem, want btn.Want) (btn.Value, error) {
	if err := query.CheckSet(contraction.Domains(instance.Net), want.Map); err != nil {
		return btn.Value{}, err
	}
	prepared, err := Of(ctx, instance, p.Along.Ask, want.Map)
	if err != nil {
		return btn.Value{}, err
	}

	var value btn.Value
	if value.Flops, err = prepared.Flops(ctx, p.Along, p.To-p.From); err != nil {
		return btn.Value{}, err
	}
	o := Options{Memory: instance.Memory, Threads: instance.Threads, From: p.From, To: p.To, Best: want.Best}
	switch p.Along.Ask {
	case btn.AskMPE:
		value.Found, err = prepared.Best(ctx, p.Along, o)
	case btn.AskMap:
		value.Found, err = prepared.BestOf(ctx, p.Along, o)
	case btn.AskSamples:
		if err := query.CheckSamples(len(instance.Net.Variables), want.Samples); err != nil {
			return btn.Value{}, err
		}
		value.Drawn, err = prepared.Draw(ctx, p.Along, want.Samples, want.Seed, o)
	default:
		return btn.Value{}, fault.New(fault.BadInput, "contract: a descent asks for %.40q", p.Along.Ask)
	}
	return value, err
}
