package proposal

// Offers: the answer to "why was this chosen?".

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/basetensor/basetensor/internal/network/btn"
)

// Offer is a line for people about how a plan was chosen: what a method offered, why it offered nothing, or which rule decided.
type Offer struct {
	Way  string `json:"way"`  // the name of a row, "elimination", or "rule" (Rule)
	Said string `json:"said"` // the text
}

// Offers is the list of offers for a query, in the sequence in which they were made. A plan from the cache adds none.
type Offers struct {
	mu   sync.Mutex
	list []Offer
}

// List returns the offers so far. The caller must not change them.
func (o *Offers) List() []Offer {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.list
}

// offersKey is the key of Offers in a context.
type offersKey struct{}

// WithOffers returns a context under which methods add their offers to a list.
func WithOffers(ctx context.Context, offers *Offers) context.Context {
	return context.WithValue(ctx, offersKey{}, offers)
}

// AddOffer adds an offer to the list of ctx: a text about the proposal of the method, or the row of a table, with the name way. It does
// nothing if ctx collects no offers (WithOffers).
func AddOffer(ctx context.Context, way, format string, args ...any) {
	o, _ := ctx.Value(offersKey{}).(*Offers)
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.list = append(o.list, Offer{Way: way, Said: fmt.Sprintf(format, args...)})
}

// Rule is Offer.Way of a text about the rule that decided.
const Rule = "rule"

// addOffer adds to the offers of ctx a text about what the method of a row proposed (assignment), or why it proposed nothing (err, or
// nil). It adds none if err is the end of ctx.
func (r Row) addOffer(ctx context.Context, assignment *btn.Assignment, err error) {
	var expensive TooExpensive
	isCollected := ctx.Value(offersKey{}) != nil
	isEndOfContext := err != nil && ctx.Err() != nil
	switch {
	case !isCollected, isEndOfContext:
	case errors.As(err, &expensive):
		AddOffer(ctx, r.Name, "%v", err)
	case err != nil:
		AddOffer(ctx, r.Name, "no: %v", err)
	case assignment == nil:
		AddOffer(ctx, r.Name, "no: not for this model and query")
	case r.Reason != "":
		AddOffer(ctx, r.Name, "%s; taken because %s", describePrice(assignment), r.Reason)
	default:
		AddOffer(ctx, r.Name, "%s", describePrice(assignment))
	}
}

// describePrice returns the price of a proposal in words. For estimates that grow it is the sum of all flops and the largest memory.
func describePrice(a *btn.Assignment) string {
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
