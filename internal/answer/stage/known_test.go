package stage

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/methods/proposal"
	"github.com/basetensor/basetensor/internal/methods/search"
	"github.com/basetensor/basetensor/internal/models/generate"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// lnWeight is ln of the product of a model's factors, tables all of them, at values of its variables.
func lnWeight(m *factorgraph.Model, values []int) (ln float64) {
	for _, f := range m.Factors {
		at := 0
		for _, v := range f.Scope {
			at = at*m.Domains[v] + values[v]
		}
		ln += math.Log(f.Table.(*tensor.Dense).Data[at])
	}
	return ln
}

// TestWhatPlanningKnows: the assignment that a search has found while the query was planned is the value of the first task, and the answer
// at the deadline, whatever time there was for planning and whatever follows; all searches after it begin with it.
func TestWhatPlanningKnows(t *testing.T) {
	for name, c := range map[string]struct {
		until    time.Duration // of planning, from now
		settings query.Settings
		best     int
		searches int // that follow, −1: as many as there are
	}{
		"the exact way fits":         {time.Hour, query.Settings{Budget: 1e5}, 0, -1},
		"the exact way does not fit": {time.Hour, query.Settings{Budget: 1e4}, 0, 1},
		"no time":                    {-time.Second, query.Settings{Budget: 1e5}, 0, 1},
		"of three":                   {time.Hour, query.Settings{Budget: 1e4}, 3, 1},
		"time for a proof":           {time.Hour, query.Settings{Budget: 1.6e6}, 0, 0},
	} {
		m, err := generate.Complete(14, generate.Ising{Delta: 2, Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		if name == "time for a proof" {
			for _, f := range m.Factors {
				if len(f.Scope) == 1 {
					f.Table.(*tensor.Dense).Data[0] = 1e20 // decides the variable
				}
			}
		}
		most := math.Inf(-1)
		oracle.Each(m.Domains, func(x []int) { most = max(most, lnWeight(m, x)) })
		slack := 1e-9 * (1 + math.Abs(most))
		ctx := proposal.WithAnswerDeadline(t.Context(), time.Now().Add(c.until))
		net, err := Reparameterise(ctx, m, c.settings)
		if err != nil {
			t.Fatal(err)
		}
		queries := []query.Query{{MPE: true, Best: c.best}}
		assignments, err := Learn(ctx, net, queries, c.settings, nil, nil)
		if err != nil || assignments[0].Error != nil {
			t.Fatalf("%s: %v, %+v", name, err, assignments[0].Error)
		}
		blob, err := message.EncodeAssignments(assignments)
		if err != nil {
			t.Fatal(err)
		}
		if assignments, err = message.DecodeAssignments(blob); err != nil {
			t.Fatal(err)
		}
		if err := message.CheckAssignments(net, assignments); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		parts := assignments[0].Plan.Estimates[0].Parts
		first := parts[0].(*search.Search)
		searches := 0
		for _, part := range parts[1:] {
			if s, ok := part.(*search.Search); ok {
				searches++
				if s.Known != first.Known || s.Known == nil {
					t.Errorf("%s: a search knows %+v", name, s.Known)
				}
			}
		}
		if c.searches >= 0 && searches != c.searches {
			t.Errorf("%s: %d searches follow", name, searches)
		}

		chunks, _ := Chunks(net, assignments)
		value := func(units []btn.Unit) []btn.UnitValue {
			values, err := Contract(t.Context(), net, assignments, Demands(net, queries), units, ContractOptions{})
			if err != nil {
				t.Fatal(err)
			}
			return values
		}
		values := value(chunks[0])
		part, _ := assignments[0].Plan.Part(values[0].Part)
		if first := (plannedUnit{Assignment: &assignments[0], part: part}); first.showsZero(values[0].Value) {
			t.Errorf("%s: the evidence of an assignment that was found is said to be impossible", name)
		}
		r := AggregateNow("t", assignments, values)[0]
		if r.Status != query.StatusOK || r.MPE == nil || r.MPE.LnBound == nil {
			t.Fatalf("%s: %+v, %+v at the deadline", name, r.MPE, r.Error)
		}
		proved := *r.MPE.Optimal
		if proved != (len(parts) == 1) || proved != (name == "time for a proof") {
			t.Errorf("%s: proved: %v, with %d parts", name, proved, len(parts))
		}
		early := r.MPE.LnWeight
		if math.Abs(early-lnWeight(m, r.MPE.Assignment)) > slack || early > most+slack || *r.MPE.LnBound < most-slack && c.best == 0 {
			t.Errorf("%s: ln weight %v, the factors' %v, bound %v of %v", name, early, lnWeight(m, r.MPE.Assignment), *r.MPE.LnBound, most)
		}
		for _, units := range chunks[1:] {
			values = append(values, value(units)...)
		}
		slices.Reverse(values)
		r = Aggregate("t", assignments, values)[0]
		if r.Status != query.StatusOK || r.MPE.LnWeight < early || r.MPE.LnWeight > most+slack ||
			r.MPE.Optimal != nil && *r.MPE.Optimal && r.MPE.LnWeight < most-slack {
			t.Errorf("%s: ln weight %v after %v, the largest is %v: %+v", name, r.MPE, early, most, r.Error)
		}
	}
}
