package hop

import (
	"context"
	"log/slog"
	"time"

	"github.com/basetensor/basetensor/internal/queue/tracing"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
	"go.opentelemetry.io/otel/trace"
)

// Ended describes a job whose answer this process stored.
type Ended struct {
	Tenant      string
	Method      string        // the method of its results, MethodMixed or MethodNone
	Outcome     string        // OutcomeOK, OutcomePartly, or the code of the error that all its queries have
	Duration    time.Duration // since its model was stored
	HasDuration bool          // Duration is known
	Results     []query.Result
	Bytes       int    // size of the answer
	Trace       string // id of the trace; "" if nobody records one
}

// Outcomes of jobs, beside the codes of errors.
const (
	OutcomeOK     = "ok"
	OutcomePartly = "partly" // some queries have an error of their own
)

// Methods of jobs, beside the methods of results.
const (
	MethodMixed = "mixed" // the queries were answered by several
	MethodNone  = "none"  // none was answered
)

// methodOf returns the method by which queries were answered: that of all results with an answer, MethodMixed if they
// have several, or MethodNone if none has an answer.
func methodOf(results []query.Result) string {
	method := MethodNone
	for i := range results {
		r := &results[i]
		switch {
		case r.Status != query.StatusOK || r.Method == "" || method == string(r.Method): // nothing new
		case method == MethodNone:
			method = string(r.Method)
		default:
			return MethodMixed
		}
	}
	return method
}

// outcomeOf returns how a job ended: an error code if the job or all its queries failed, OutcomePartly if some failed,
// OutcomeOK otherwise.
func outcomeOf(answer *wire.Answer) string {
	if answer.Status != wire.StatusOK {
		if answer.Error == nil {
			return answer.Status
		}
		return string(answer.Error.Code)
	}
	failed := 0
	for i := range answer.Results {
		if answer.Results[i].Status != query.StatusOK {
			failed++
		}
	}
	switch {
	case failed == 0:
		return OutcomeOK
	case failed == len(answer.Results) && answer.Results[0].Error != nil:
		return string(answer.Results[0].Error.Code)
	}
	return OutcomePartly
}

// recordEnd logs and counts that this process stored an answer with so many bytes. modelStored is when the job's model was
// stored, zero if that is unknown.
func (l *Jobs) recordEnd(ctx context.Context, answer *wire.Answer, modelStored time.Time, bytes int) {
	ended := Ended{
		Tenant:      answer.Tenant,
		Method:      methodOf(answer.Results),
		Outcome:     outcomeOf(answer),
		Duration:    max(0, time.Since(modelStored)),
		HasDuration: !modelStored.IsZero(),
		Results:     answer.Results,
		Bytes:       bytes,
		Trace:       tracing.ID(trace.SpanContextFromContext(ctx)),
	}
	l.Metrics.Answered(ended)
	ms := int64(-1) // not known
	if ended.HasDuration {
		ms = ended.Duration.Milliseconds()
	}
	about := aboutOf(ctx)
	l.Log.LogAttrs(ctx, slog.LevelInfo, "job",
		slog.String("job", answer.Job), slog.String("tenant", answer.Tenant), slog.String("model", about.Model),
		slog.String("question", about.Question), slog.String("outcome", ended.Outcome), slog.String("method", ended.Method), slog.Int64("ms", ms))
}
