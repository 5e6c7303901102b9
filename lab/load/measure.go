package load

// Service times from a run, for package simulate.

import (
	"context"
	"slices"
	"time"

	"github.com/basetensor/basetensor/internal/answer/stage"
	"github.com/basetensor/basetensor/lab/simulate"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
)

const (
	mostSamples = 500
	// serverShare of the processor time of a message: profiles of single jobs on the embedded stack
	// show the server's own routines with 0.4 to 0.5 of the time outside the stages.
	serverShare = 0.5
	// unknownMessage is taken where processor times are not known, in milliseconds; below
	// leastMessage a figure is none.
	unknownMessage = 0.02
	leastMessage   = 0.002
)

// Measured takes service times from the kept jobs that were answered in the measured time, and from their number of
// chunks, which is found by learning them again. Hops and messages are the rest of latency and of this process's
// processor time, beside the stages' clocks: true where the whole stack
// runs in this process, at a rate at which nothing waits, on a machine that does nothing else.
func (o *Outcome) Measured(ctx context.Context) (*simulate.Measured, error) {
	report := o.Report()
	m, memo := &simulate.Measured{
		ServerShare: serverShare,
		Latency:     report.Latency.P50,
		Rate:        report.AnsweredRate,
	}, &memory{}
	known := library{config: o.config, have: map[[2]int]*known{}}
	var publisher, between, computed []float64
	messages := 0.0
	for _, rec := range o.records {
		if rec.answer == nil || rec.job == nil || rec.at < o.config.WarmUp || rec.code != "" {
			continue
		}
		k, err := known.get(rec.job.model, rec.job.variant)
		if err != nil {
			return nil, err
		}

		n, err := chunks(ctx, k, &rec.job.message, memo, o.config.ChunkFlops)
		if err != nil {
			return nil, err
		}
		t := rec.timings
		m.Reparam, m.Learn, m.Aggregate = append(m.Reparam, t[0]), append(m.Learn, t[1]), append(m.Aggregate, t[3])
		m.Contract, m.Chunks = append(m.Contract, t[2]/float64(n)), append(m.Chunks, n)
		publisher = append(publisher, publish(rec))
		if n == 1 {
			between = append(between, rec.latency()-rec.computed())
		}
		computed, messages = append(computed, rec.computed()), messages+simulate.MessagesPerJob(n)
	}

	jobs := float64(len(m.Chunks))
	if jobs == 0 {
		return nil, fault.New(fault.BadInput, "load: no answered job was kept: nothing to take service times from")
	}
	m.Publisher, m.Message = quantiles(publisher).P50, unknownMessage
	if report.CPU > 0 && report.AnsweredRate > 0 {
		m.CPU = 1000 * report.CPU / (report.AnsweredRate * report.Seconds)
		m.Message = (m.CPU - m.Publisher - trimmed(computed)) / (messages / jobs)
		if m.Message < leastMessage {
			return nil, fault.New(fault.BadInput,
				"load: %.3g ms of processor time per job, %.3g ms in the stages by their clocks, which "+
					"leaves nothing for %.3g messages: measure while the machine does nothing else",
				m.CPU, trimmed(computed), messages/jobs)
		}
	}

	hops, ends := simulate.Path()
	m.Hop = max(0, (quantiles(between).P50-m.Publisher-m.Message*float64(ends))/float64(hops))
	for _, list := range []*[]float64{&m.Reparam, &m.Learn, &m.Contract, &m.Aggregate} {
		*list = thin(*list)
	}
	slices.Sort(m.Chunks)
	if n := len(m.Chunks); m.Chunks[0] == m.Chunks[n-1] {
		m.Chunks = m.Chunks[:1]
	}
	return m, nil
}

// trimmed is the mean without the largest tenth. The stages' clocks run on while another process has
// the processor: where that happens to few jobs it does not count.
func trimmed(list []float64) float64 {
	slices.Sort(list)
	return quantiles(list[:len(list)-len(list)/10]).Mean
}

// chunks returns the number of tasks that a job is cut into.
func chunks(ctx context.Context, k *known, message *wire.Request, memo *memory, chunkFlops float64) (int, error) {
	net, err := stage.Reparameterise(ctx, k.graph, message.Settings)
	if err != nil {
		return 0, err
	}
	queries := make([]query.Query, len(message.Queries))
	for q, asked := range message.Queries {
		queries[q] = query.Query{Evidence: asked.Evidence, Marginals: asked.Marginals}
	}
	job, err := stage.Learn(ctx, net, queries, message.Settings, memo, nil)
	if err != nil {
		return 0, err
	}
	list, _, _ := stage.ChunksAndCosts(net, job, chunkFlops)
	return len(list), nil
}

// publish measures the load generator's own work for a job: the request written twice, for its bytes and its digest, and
// the answer read, in milliseconds.
func publish(rec *record) float64 {
	answer, err := wire.Encode(rec.answer)
	if err != nil {
		return 0
	}
	began := time.Now()
	_, errEncode := wire.Encode(&rec.job.message)
	_, errDigest := rec.job.message.Digest()
	var a wire.Answer
	if errEncode != nil || errDigest != nil || wire.Decode(answer, &a) != nil {
		return 0
	}
	return milliseconds(time.Since(began))
}

// thin keeps at most mostSamples of a list, evenly spread over its order statistics.
func thin(list []float64) []float64 {
	slices.Sort(list)
	if len(list) <= mostSamples {
		return list
	}
	kept := make([]float64, mostSamples)
	for i := range kept {
		kept[i] = list[(2*i+1)*len(list)/(2*mostSamples)]
	}
	return kept
}
