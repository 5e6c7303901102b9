package admission

import (
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/query"
)

// Asked describes the cost of a request as far as it is known before anything is computed.
type Asked struct {
	Domains  []int // of the variables; nil: not known yet
	Bytes    int   // of the request, decoded
	Queries  []query.Query
	Settings query.Settings // as they were sent: zeros are defaults
}

// AtLeast returns a lower bound of the cost of a request, and the cost that it declares: memory,
// the budget of a method that spends one, components and work of a decomposition that is learned. A
// request of the default settings is taken to declare only the cost that always arises.
func (a Asked) AtLeast() Cost {
	s := a.Settings
	numbers := 0.0 // that the answer has
	values := 0.0
	work := 0.0  // beside those
	extra := 0.0 // queries that others take
	for _, d := range a.Domains {
		values += float64(d)
	}
	for i := range a.Queries {
		q := &a.Queries[i]
		numbers++
		switch {
		case len(q.Targets) > 0:
			for _, v := range q.Targets {
				if v >= 0 && v < len(a.Domains) {
					numbers += float64(a.Domains[v])
				}
			}
		case q.Marginals:
			numbers += values
		}
		if q.MPE {
			numbers += float64(len(a.Domains) * max(1, q.Best))
		}
		numbers += float64(len(q.Map)) + float64(q.Samples)*float64(max(1, len(a.Domains)))
		if ask := q.Information; ask != nil && ask.Target >= 0 && ask.Target < len(a.Domains) {
			observable := values
			if len(ask.Candidates) > 0 {
				observable = 0
				for _, v := range ask.Candidates {
					if v >= 0 && v < len(a.Domains) {
						observable += float64(a.Domains[v])
					}
				}
			}
			numbers += float64(a.Domains[ask.Target]) * observable
			extra += float64(a.Domains[ask.Target])
		}
		joint := 1.0
		for _, v := range q.Joint {
			if v >= 0 && v < len(a.Domains) {
				joint *= float64(a.Domains[v])
			}
		}
		if btn.Parametric(*q) {
			numbers += values // a factor has as many at least, where it has the variable
		}
		if len(q.Joint) > 0 {
			numbers += joint
		}
		if q.Cases != nil {
			work += float64(len(q.Cases.Rows)) * float64(len(a.Domains))
		}
	}

	c := Cost{
		Flops: numbers + work,
		Bytes: max(float64(a.Bytes), 8*numbers, float64(s.Memory)),
		Parts: float64(len(a.Queries)) + extra,
	}
	switch s.Method {
	case query.MethodSymmetryCP:
		c.LearnFlops = s.LearnFlops
		if s.WithDefaults().Objective == query.ObjectiveFrobenius {
			c.Parts *= float64(max(1, s.Components))
		} else {
			c.Flops = max(c.Flops, s.Budget)
		}
	case query.MethodTruncated, query.MethodRegions, query.MethodSampled:
		c.Flops = max(c.Flops, s.Budget)
	}
	return c
}
