package load

// Answers against the computation in this process.

import (
	"bytes"
	"context"
	"sync"
	"time"

	"github.com/basetensor/basetensor/internal/answer/stage"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
)

// Verification compares answers with infer.Run's, bit by bit but for timings and fields about the cache.
type Verification struct {
	Jobs    int    `json:"jobs"`
	Queries int    `json:"queries"`
	Wrong   int    `json:"wrong"`           // jobs whose answers differ in a bit
	First   string `json:"first,omitempty"` // the first of them

	Compute  Quantiles `json:"compute_ms"`  // infer.Run with its earlier decompositions at hand, alone on the machine
	Overhead Quantiles `json:"overhead_ms"` // latency less compute, of the measured jobs among them
}

// Verify answers the kept jobs again in this process. Plans are made once per model.
func (o *Outcome) Verify(ctx context.Context) (*Verification, error) {
	v, memo := &Verification{}, &memory{}
	known := library{config: o.config, have: map[[2]int]*known{}}
	var compute, overhead []float64
	for _, rec := range o.records {
		if rec.answer == nil || rec.job == nil {
			continue
		}
		k, err := known.get(rec.job.model, rec.job.variant)
		if err != nil {
			return nil, err
		}

		request := stage.Request{Job: rec.job.message.Job, Model: k.graph, Settings: rec.job.message.Settings}
		for _, q := range rec.job.message.Queries {
			request.Queries = append(request.Queries, query.Query{Evidence: q.Evidence, Marginals: q.Marginals})
		}
		misses := memo.misses
		began := time.Now()
		results, err := stage.Run(ctx, request, memo)
		took := milliseconds(time.Since(began))
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}

		v.Jobs++
		v.Queries += len(request.Queries)
		if err != nil || !Same(results, rec.answer.Results) {
			if v.Wrong++; v.First == "" {
				v.First = rec.job.message.Job
			}
		}

		if misses == memo.misses && rec.at >= o.config.WarmUp {
			compute = append(compute, took)
			overhead = append(overhead, rec.latency()-took)
		}
	}

	v.Compute, v.Overhead = quantiles(compute), quantiles(overhead)
	return v, nil
}

// Same compares results by their bytes, timings and the cache's word left out.
func Same(a, b []query.Result) bool {
	if len(a) == 0 || len(a) != len(b) {
		return false
	}
	bare := func(list []query.Result) ([]byte, error) {
		c := append([]query.Result(nil), list...)
		for i := range c {
			c[i].TimingsMS, c[i].Cache = nil, ""
		}
		return wire.Encode(&wire.Answer{Job: c[0].Job, Digest: wire.Digest(nil), Status: wire.StatusOK, Results: c})
	}
	x, errX := bare(a)
	y, errY := bare(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// memory is a proposal.Memo in this process.
type memory struct {
	mu     sync.Mutex
	have   map[string]*btn.Plan
	misses int
}

func (m *memory) Do(
	ctx context.Context, key string, compute func(context.Context) (*btn.Plan, error),
) (*btn.Plan, bool, error) {
	m.mu.Lock()
	dec := m.have[key]
	m.mu.Unlock()
	if dec != nil {
		return dec, true, nil
	}

	dec, err := compute(ctx)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.misses++
	if err == nil {
		if m.have == nil {
			m.have = map[string]*btn.Plan{}
		}
		m.have[key] = dec
	}

	return dec, false, err
}
