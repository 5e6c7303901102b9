package proposal

// Offers: the answer to "why was this chosen?".

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/basetensor/basetensor/internal/network/btn"
)

// Offer is what one way offered for a query, or why it offered nothing, or the rule that decided.
type Offer struct {
	Way  string `json:"way"` // a name of the families, "elimination", or "rule"
	Said string `json:"said"`
}

// Offers collects the offers of a query in the sequence in which they were made. A plan from the cache brings no offers.
type Offers struct {
	mu   sync.Mutex
	list []Offer
}

// List returns the offers so far, not to be changed.
func (o *Offers) List() []Offer {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.list
}

// offersKey is the key of Offers in a context.
type offersKey struct{}

// Collect returns a context under which offers are collected.
func Collect(ctx context.Context, into *Offers) context.Context {
	return context.WithValue(ctx, offersKey{}, into)
}

// Note collects an offer, if offers are collected under ctx.
func Note(ctx context.Context, way, format string, args ...any) {
	o, _ := ctx.Value(offersKey{}).(*Offers)
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.list = append(o.list, Offer{Way: way, Said: fmt.Sprintf(format, args...)})
}

// Rule is the way of an Offer that says which rule decided.
const Rule = "rule"

// note notes what the method of a row offered, or why it offered nothing.
func (r Row) note(ctx context.Context, found *btn.Assignment, err error) {
	var dear TooDear
	switch {
	case ctx.Value(offersKey{}) == nil || err != nil && ctx.Err() != nil: // nobody collects, or nobody waits any more
	case errors.As(err, &dear):
		Note(ctx, r.Name, "%v", err)
	case err != nil:
		Note(ctx, r.Name, "no: %v", err)
	case found == nil:
		Note(ctx, r.Name, "no: not for this model and query")
	case r.Reason != "":
		Note(ctx, r.Name, "%s; taken because %s", price(found), r.Reason)
	default:
		Note(ctx, r.Name, "%s", price(found))
	}
}

// price is what a proposal takes, in words.
func price(a *btn.Assignment) string {
	if a.Plan == nil || len(a.Plan.Estimates) == 0 {
		return "nothing is left to compute"
	}
	if a.Plan.Grows() {
		flops, bytes := 0.0, 0.0
		for k := range a.Plan.Estimates {
			flops += a.Plan.Estimates[k].Cost.Flops
			bytes = max(bytes, a.Plan.Estimates[k].Cost.Bytes)
		}
		estimates := "one estimate"
		if n := len(a.Plan.Estimates); n > 1 {
			estimates = fmt.Sprintf("%d estimates that grow", n)
		}
		return fmt.Sprintf("%s, %.3g flops, %.3g bytes at a time", estimates, flops, bytes)
	}
	cost := a.Plan.Estimates[0].Cost
	if a.Cost != nil {
		cost = *a.Cost
	}
	return fmt.Sprintf("%.3g flops, %.3g bytes at a time", cost.Flops, cost.Bytes)
}
