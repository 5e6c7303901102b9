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

// formKey is the key of prepared tables among the forms of a problem that are computed once.
type formKey struct {
	ask btn.Ask
	set string // variables of a marginal MAP assignment
}

// PreparedOf returns the problem's network prepared for the question ask. set has the variables of a marginal MAP assignment. It is
// computed once for each question. Errors: those of Prepare.
func PreparedOf(ctx context.Context, p *problem.Problem, ask btn.Ask, set []int) (*Prepared, error) {
	key := formKey{ask: ask}
	if ask == btn.AskMap {
		key.set = fmt.Sprint(set)
	}
	return problem.Form(ctx, p, key, nil, func() (*Prepared, error) { return Prepare(ctx, p.Net, ask, set, p.Memory) })
}

// Contract implements contraction.Contractor: it eliminates the slices p.From ≤ s < p.To along the path, and finds or draws assignments on
// the way back. The value has no share of Z.
func (p *Descent) Contract(ctx context.Context, instance *problem.Problem, want btn.Want) (btn.Value, error) {
	if err := query.CheckSet(contraction.Domains(instance.Net), want.Map); err != nil {
		return btn.Value{}, err
	}
	prepared, err := PreparedOf(ctx, instance, p.Along.Ask, want.Map)
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
		value.Found, err = prepared.BestOfSet(ctx, p.Along, o)
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
