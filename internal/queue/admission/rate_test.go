package admission

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// However jobs come, the work begun until any time is at most the burst plus the rate times the
// time plus one job; and a tenant that spends less than the rate never waits.
func TestRates(t *testing.T) {
	l := Limits{FlopsPerSecond: 1e9, Burst: 3e9}
	r := rand.New(rand.NewPCG(1, 2))
	start := time.Unix(1e9, 0)
	for _, load := range []float64{0.5, 3} { // of the rate
		rates, now := &Rates{}, start
		type job struct {
			begin time.Time
			flops float64
		}
		var jobs []job
		for range 1000 {
			flops := r.Float64() * 1e9
			now = now.Add(seconds(flops / 1e9 / load))
			begin, err := rates.Spend(t.Context(), now, "a", "c", flops, &l)
			if err != nil || begin.Before(now) || load < 1 && begin != now {
				t.Fatalf("at %v begins at %v, %v", now, begin, err)
			}
			jobs = append(jobs, job{begin, flops})
		}
		total, last := 0.0, 0.0
		for _, j := range jobs {
			total, last = total+j.flops, j.flops
			if allowed := l.Burst + j.begin.Sub(start).Seconds()*1e9 + last; total > allowed*1.000001 {
				t.Fatalf("%g flops have begun after %v, %g are allowed", total, j.begin.Sub(start), allowed)
			}
		}
		end := jobs[len(jobs)-1].begin.Sub(start).Seconds()
		if load > 1 && (total-last-l.Burst)/1e9 > end*1.01 {
			t.Errorf("%g flops in %g s", total, end)
		}
	}
}

// A job that would wait too long is refused, at no charge; tenants do not wait for each other.
func TestRatesAreRefused(t *testing.T) {
	l := Limits{FlopsPerSecond: 1e9, WaitSeconds: 10}
	rates, now := &Rates{}, time.Unix(1e9, 0)
	spend := func(tenant string, flops float64) (time.Duration, error) {
		begin, err := rates.Spend(t.Context(), now, tenant, "gold", flops, &l)
		return begin.Sub(now), err
	}
	for k, want := range []time.Duration{0, 6 * time.Second} {
		if wait, err := spend("a", 6e9); wait != want || err != nil {
			t.Errorf("job %d waits %v, %v", k, wait, err)
		}
	}
	for range 3 {
		if _, err := spend("a", 1); fault.CodeOf(err) != fault.OverBudget ||
			!strings.Contains(err.Error(), `in 12 s: flops_per_second of class "gold" is 1e+09, wait_seconds 10`) {
			t.Errorf("%v", err)
		}
	}
	if wait, err := spend("b", 1e9); wait != 0 || err != nil {
		t.Errorf("another waits %v, %v", wait, err)
	}
	now = now.Add(3 * time.Second)
	if wait, err := spend("a", 1); wait != 9*time.Second || err != nil {
		t.Errorf("later it waits %v, %v", wait, err)
	}
}

// seldom is a ledger that answers every other time.
type seldom struct {
	calls int
	spent time.Time
}

func (s *seldom) Book(_ context.Context, _ string, b Booking) (begin time.Time, ok bool) {
	if s.calls++; s.calls%2 == 0 {
		return time.Time{}, false
	}
	begin, s.spent = b.Book(s.spent)
	return begin, true
}

// What was booked while the ledger answered counts while it does not, and the other way round.
func TestRatesHoldWhereTheLedgerIsOutOfReach(t *testing.T) {
	l := Limits{FlopsPerSecond: 1e9}
	rates, now := &Rates{Shared: &seldom{}}, time.Unix(1e9, 0)
	for k := range 6 {
		begin, err := rates.Spend(t.Context(), now, "a", "c", 1e9, &l)
		if want := time.Duration(k) * time.Second; begin.Sub(now) != want || err != nil {
			t.Errorf("job %d waits %v, %v, want %v", k, begin.Sub(now), err, want)
		}
	}
}

// Work that this process refuses by its own count is not booked in the ledger.
func TestRefusedWorkIsNotBookedInTheLedger(t *testing.T) {
	l := Limits{FlopsPerSecond: 1e9, WaitSeconds: 1}
	ledger := &seldom{calls: 1} // out of reach for the first job
	rates, now := &Rates{Shared: ledger}, time.Unix(1e9, 0)
	if _, err := rates.Spend(t.Context(), now, "a", "c", 5e9, &l); err != nil {
		t.Fatal(err)
	}
	if _, err := rates.Spend(t.Context(), now, "a", "c", 1e9, &l); fault.CodeOf(err) != fault.OverBudget {
		t.Errorf("the second job: %v", err)
	}
	if !ledger.spent.IsZero() {
		t.Errorf("the ledger has booked work until %v", ledger.spent)
	}
}

// Lower bounds of a request: numbers of its answer, its own size, and its declared cost.
func TestBounds(t *testing.T) {
	for name, is := range map[string]struct {
		asked RequestCost
		want  Cost
	}{
		"one":       {RequestCost{Demands: 1, Numbers: 1, Bytes: 500}, Cost{Flops: 1, Bytes: 500, Parts: 1}},
		"marginals": {RequestCost{Demands: 100, Numbers: 600}, Cost{Flops: 600, Bytes: 4800, Parts: 100}},
		"joint": {
			RequestCost{Demands: 1, Numbers: 601},
			Cost{Flops: 601, Bytes: 8 * 601, Parts: 1},
		},
		"memory": {RequestCost{Demands: 1, Numbers: 1, Settings: query.Settings{Memory: 1 << 40}}, Cost{Flops: 1, Bytes: 1 << 40, Parts: 1}},
		"drawn": {
			RequestCost{Demands: 2, Numbers: 2, Settings: query.Settings{
				Method: query.MethodSymmetryCP, Components: 7, Budget: 1e20,
			}},
			Cost{Flops: 1e20, Bytes: 16, Parts: 2},
		},
		"learned": {
			RequestCost{Demands: 2, Numbers: 2, Settings: query.Settings{
				Method: query.MethodSymmetryCP, Objective: query.ObjectiveFrobenius, Components: 7, Budget: 1e20,
			}},
			Cost{Flops: 1e20, Bytes: 16, Parts: 14},
		},
		"budget": {
			RequestCost{Demands: 2, Numbers: 2, Settings: query.Settings{Method: query.MethodRegions, Budget: 1e20}},
			Cost{Flops: 1e20, Bytes: 16, Parts: 2},
		},
		"not spent": {
			RequestCost{Demands: 1, Numbers: 1, Settings: query.Settings{Budget: 1e20, Components: 9}},
			Cost{Flops: 1, Bytes: 8, Parts: 1},
		},
	} {
		if got := is.asked.MinCost(); got != is.want {
			t.Errorf("%s: %+v, want %+v", name, got, is.want)
		}
	}
}
