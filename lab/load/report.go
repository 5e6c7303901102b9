package load

// The report of a run.

import (
	"math"
	"slices"
	"sort"
	"time"
)

// Quantiles of a list, in milliseconds unless said otherwise; all 0 for an empty one.
type Quantiles struct {
	Count int     `json:"count"`
	Mean  float64 `json:"mean"`
	P50   float64 `json:"p50"`
	P90   float64 `json:"p90"`
	P99   float64 `json:"p99"`
	Max   float64 `json:"max"`
}

// quantiles sorts values. The p-quantile is the least value that at least a share p of them does not
// exceed.
func quantiles(values []float64) Quantiles {
	if len(values) == 0 {
		return Quantiles{}
	}
	slices.Sort(values)
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return Quantiles{
		Count: len(values), Mean: sum / float64(len(values)), P50: quantile(values, 0.5), P90: quantile(values, 0.9),
		P99: quantile(values, 0.99), Max: values[len(values)-1],
	}
}

// quantile of sorted values.
func quantile(sorted []float64, p float64) float64 {
	return sorted[min(max(int(math.Ceil(p*float64(len(sorted))))-1, 0), len(sorted)-1)]
}

// Report is a run in figures. Counts and latencies are of the jobs whose intended arrival is in the
// measured time.
type Report struct {
	Models      []string `json:"models"`
	Variants    int      `json:"variants"`
	Zipf        float64  `json:"zipf"`
	Batch       int      `json:"batch"`
	Marginals   bool     `json:"marginals"`
	Registered  bool     `json:"registered"`
	Observed    int      `json:"observed"`
	Rate        float64  `json:"rate"`        // jobs/s, open loop
	Outstanding int      `json:"outstanding"` // closed loop
	Seconds     float64  `json:"seconds"`     // measured
	WarmUp      float64  `json:"warm_up"`     // seconds before
	Seed        uint64   `json:"seed"`

	Offered  int            `json:"offered"`
	Accepted int            `json:"accepted"` // stored, as far as the publisher knows
	Refused  int            `json:"refused"`  // at the publisher: there was no room
	Failed   int            `json:"failed"`   // could not be submitted for another reason
	Answered int            `json:"answered"`
	Missing  int            `json:"missing"` // neither answered nor refused
	Errors   map[string]int `json:"errors"`  // queries without a number, and jobs without results, by code

	OfferedRate  float64 `json:"offered_per_s"`
	AcceptedRate float64 `json:"accepted_per_s"`
	RefusedRate  float64 `json:"refused_per_s"`
	AnsweredRate float64 `json:"answered_per_s"` // answers that came within the measured time
	QueryRate    float64 `json:"queries_per_s"`  // their queries

	Latency  Quantiles `json:"latency_ms"`  // intended arrival to answer
	Stored   Quantiles `json:"stored_ms"`   // intended arrival to the server's acknowledgement
	Stages   []Stage   `json:"stages"`      // as the answers say
	Overhead Quantiles `json:"overhead_ms"` // latency less the time in the stages
	Hits     int       `json:"cache_hits"`  // queries
	Misses   int       `json:"cache_misses"`
	Off      int       `json:"cache_off"`
	Flops    float64   `json:"flops_per_query"` // of contractions
	CPU      float64   `json:"cpu_s"`           // of this process in the measured time, 0 where not known

	Tenants  []TenantReport `json:"tenants"`
	Timeline []Second       `json:"timeline"`
	Verified *Verification  `json:"verified,omitempty"`

	latencies []float64 // sorted
}

// Stage is the time of one stage.
type Stage struct {
	Name string    `json:"name"`
	MS   Quantiles `json:"ms"`
}

// TenantReport is the report of one tenant's jobs.
type TenantReport struct {
	Name     string    `json:"name"`
	Offered  int       `json:"offered"`
	Refused  int       `json:"refused"`
	Answered int       `json:"answered"`
	Latency  Quantiles `json:"latency_ms"`
}

// Second of the run, the warm-up included.
type Second struct {
	Offered  int     `json:"offered"`  // jobs that were to arrive
	Refused  int     `json:"refused"`  // of those
	Answered int     `json:"answered"` // answers that came
	P50      float64 `json:"p50_ms"`   // of the jobs that were to arrive
	P99      float64 `json:"p99_ms"`
}

// Report counts.
func (o *Outcome) Report() *Report {
	c := o.config
	from, to := c.WarmUp, c.WarmUp+c.Duration
	r := &Report{
		Variants: c.Variants, Zipf: c.Zipf, Batch: c.Batch, Marginals: c.Marginals, Registered: c.Registered,
		Observed: max(0, c.Observed), Rate: c.Rate,
		Outstanding: c.Outstanding, Seconds: c.Duration.Seconds(), WarmUp: c.WarmUp.Seconds(), Seed: c.Seed,
		Errors: map[string]int{}, CPU: o.cpu.Seconds(),
	}
	for _, m := range c.Models {
		r.Models = append(r.Models, m.Name)
	}

	var stored, overhead []float64
	var byStage [len(stages)][]float64
	byTenant := make([][]float64, len(c.Tenants))
	r.Tenants = make([]TenantReport, len(c.Tenants))
	inTime, answeredQueries := 0, 0.0
	for _, rec := range o.records {
		if rec.state == answered && rec.done >= from && rec.done < to {
			inTime++
			r.QueryRate += float64(rec.queries)
		}
		if rec.at < from || rec.at >= to {
			continue
		}
		t := &r.Tenants[rec.tenant]
		r.Offered++
		t.Offered++
		if rec.acknowledged > 0 {
			r.Accepted++
			stored = append(stored, milliseconds(rec.acknowledged-rec.at))
		}
		if rec.code != "" {
			r.Errors[rec.code]++
		}
		switch rec.state {
		case underWay:
			r.Missing++
		case refused:
			r.Refused++
			t.Refused++
		case failed:
			r.Failed++
		case answered:
			r.Answered++
			t.Answered++
			r.latencies = append(r.latencies, rec.latency())
			byTenant[rec.tenant] = append(byTenant[rec.tenant], rec.latency())
			overhead = append(overhead, rec.latency()-rec.computed())
			for s, ms := range rec.timings {
				byStage[s] = append(byStage[s], ms)
			}
			r.Flops += rec.flops
			answeredQueries += float64(rec.queries)
			r.Hits, r.Misses, r.Off = r.Hits+rec.hits, r.Misses+rec.misses, r.Off+rec.off
			for code, n := range rec.errors {
				if rec.code == "" {
					r.Errors[string(code)] += n
				}
			}
		}
	}

	r.OfferedRate, r.AcceptedRate, r.RefusedRate = float64(r.Offered)/r.Seconds, float64(r.Accepted)/r.Seconds, float64(r.Refused)/r.Seconds
	r.Flops /= max(1, answeredQueries)
	r.AnsweredRate, r.QueryRate = float64(inTime)/r.Seconds, r.QueryRate/r.Seconds
	r.Latency, r.Stored, r.Overhead = quantiles(r.latencies), quantiles(stored), quantiles(overhead)
	for s, name := range stages {
		r.Stages = append(r.Stages, Stage{name, quantiles(byStage[s])})
	}

	for i := range r.Tenants {
		r.Tenants[i].Name, r.Tenants[i].Latency = c.Tenants[i].Name, quantiles(byTenant[i])
	}
	r.Timeline = o.timeline()
	return r
}

// timeline counts second by second.
func (o *Outcome) timeline() []Second {
	n := int(math.Ceil((o.config.WarmUp + o.config.Duration).Seconds()))
	list, latencies := make([]Second, n), make([][]float64, n)
	for _, rec := range o.records {
		if s := int(rec.at / time.Second); s < n {
			list[s].Offered++
			switch rec.state {
			case refused:
				list[s].Refused++
			case answered:
				latencies[s] = append(latencies[s], rec.latency())
			}
		}
		if s := int(rec.done / time.Second); rec.state == answered && s < n {
			list[s].Answered++
		}
	}

	for s, l := range latencies {
		if len(l) > 0 {
			sort.Float64s(l)
			list[s].P50, list[s].P99 = quantile(l, 0.5), quantile(l, 0.99)
		}
	}

	return list
}
