package load

// The record of a job.

import (
	"time"

	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
)

type state uint8

const (
	underWay state = iota // no answer yet; missing in the end
	answered
	refused // at the publisher: there was no room
	failed  // could not be submitted for another reason
)

// stages in the order a job passes them, as the answer's timings name them.
var stages = [...]string{query.StageReparam, query.StageLearn, query.StageContract, query.StageAggregate}

// record is one job. Times are after the start of the run.
type record struct {
	kept   bool         // for verification
	job    *job         // nil unless it is kept
	answer *wire.Answer // likewise

	at           time.Duration // intended arrival
	acknowledged time.Duration // the server stored it; 0: not known
	done         time.Duration // the answer came
	looked       time.Duration

	model, tenant, queries int
	state                  state
	code                   string // of a job without results
	timings                [len(stages)]float64
	hits, misses, off      int
	flops                  float64            // of its contractions
	errors                 map[fault.Code]int // of queries
}

// Outcome holds the records of a run's jobs.
type Outcome struct {
	config  Config
	records []*record // in the sequence of their intended arrivals
	cpu     time.Duration
}

// note takes the counted fields from an answer.
func (r *record) note(a *wire.Answer, err error) {
	switch {
	case err != nil:
		r.code = string(fault.CodeOf(err))
		return
	case a.Status != wire.StatusOK && a.Error != nil:
		r.code = string(a.Error.Code)
	}

	for i := range a.Results {
		result := &a.Results[i]
		if i == 0 {
			for s, name := range stages {
				r.timings[s] = result.TimingsMS[name]
			}
		}

		if result.Run != nil {
			r.flops += result.Run.Flops
		}

		switch result.Cache {
		case "hit":
			r.hits++
		case "miss":
			r.misses++
		default:
			r.off++
		}

		if result.Error != nil {
			if r.errors == nil {
				r.errors = map[fault.Code]int{}
			}
			r.errors[result.Error.Code]++
		}
	}
}

// latency from the intended arrival to the answer, in milliseconds.
func (r *record) latency() float64 { return milliseconds(r.done - r.at) }

// computed is the sum of the stages' own times, in milliseconds.
func (r *record) computed() float64 {
	sum := 0.0
	for _, t := range r.timings {
		sum += t
	}
	return sum
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
