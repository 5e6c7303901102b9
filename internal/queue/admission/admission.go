// Package admission bounds the cost of jobs: limits per job by the class of its tenant, and a rate
// of work per tenant. A request is refused by lower bounds of its cost as soon as it is read, and by
// the price of its plan before anything of it is contracted.
package admission

import (
	"fmt"
	"math"

	"github.com/basetensor/basetensor/pkg/fault"
)

// Limits bound the cost of one job of a class of tenants, and the rate at which a tenant may spend. They also say from
// whose jobs the class's jobs may take remembered results. 0 is no limit.
type Limits struct {
	FlopsPerJob     float64 `json:"flops_per_job"`     // of all contractions
	BytesPerJob     float64 `json:"bytes_per_job"`     // at a time, in one worker
	PartsPerJob     float64 `json:"parts_per_job"`     // components × queries
	FlopsPerSecond  float64 `json:"flops_per_second"`  // of all jobs of a tenant, on the average
	Burst           float64 `json:"burst"`             // flops that may be spent at once beyond that
	WaitSeconds     float64 `json:"wait_seconds"`      // longest wait for the rate, then refused
	StreamShare     float64 `json:"stream_share"`      // of each stream's room, for a tenant
	ModelBytes      float64 `json:"model_bytes"`       // of registered models
	RequestBytes    float64 `json:"request_bytes"`     // of stored requests
	BlobBytes       float64 `json:"blob_bytes"`        // of large messages
	AnswerBytes     float64 `json:"answer_bytes"`      // of stored answers
	DeadLetterBytes float64 `json:"dead_letter_bytes"` // of dead letters
	Cache           string  `json:"cache"`             // CacheShared or CacheOwn; "": CacheShared
}

// Whose plans, networks and values a tenant's jobs find remembered.
const (
	CacheShared = "shared" // everybody's but those of tenants with their own
	CacheOwn    = "own"    // its own alone
)

// Default returns the limits of tenants that no file names: nine hours of a core per job, a quarter of each stream, and
// no rate.
func Default() Limits {
	return Limits{
		FlopsPerJob: 1e14,
		BytesPerJob: 64 << 30,
		PartsPerJob: 1e6,
		WaitSeconds: 600,
		StreamShare: 0.25,
	}
}

// numbers returns the numerical limits with their names in the file.
func (l *Limits) numbers() []namedLimit {
	return []namedLimit{
		{"flops_per_job", l.FlopsPerJob},
		{"bytes_per_job", l.BytesPerJob},
		{"parts_per_job", l.PartsPerJob},
		{"flops_per_second", l.FlopsPerSecond},
		{"burst", l.Burst},
		{"wait_seconds", l.WaitSeconds},
		{"stream_share", l.StreamShare},
		{"model_bytes", l.ModelBytes},
		{"request_bytes", l.RequestBytes},
		{"blob_bytes", l.BlobBytes},
		{"answer_bytes", l.AnswerBytes},
		{"dead_letter_bytes", l.DeadLetterBytes},
	}
}

// namedLimit is a limit with its name in the file.
type namedLimit struct {
	name  string
	value float64
}

// check returns an error for limits that mean nothing: negative or infinite ones, an unknown cache, or a burst without
// a rate.
func (l *Limits) check() error {
	for _, f := range l.numbers() {
		if !(f.value >= 0) || math.IsInf(f.value, 1) {
			return fmt.Errorf("%s is %v: 0 (no limit) or more", f.name, f.value)
		}
	}
	isKnownCache := l.Cache == "" || l.Cache == CacheShared || l.Cache == CacheOwn
	if !isKnownCache {
		return fmt.Errorf("cache is %.80q: %s or %s", l.Cache, CacheShared, CacheOwn)
	}
	if l.StreamShare > 1 {
		return fmt.Errorf("stream_share is %v: a share of 1 at most", l.StreamShare)
	}
	if l.Burst > 0 && l.FlopsPerSecond == 0 {
		return fmt.Errorf("burst without flops_per_second")
	}
	return nil
}

// Cost is the cost of a job, or a lower bound of it.
type Cost struct {
	Flops float64 // of all contractions
	Bytes float64 // at a time, in one worker
	Parts float64 // components × queries
}

// Known says how a cost is known, in the words of a refusal.
type Known string

// How a cost is known.
const (
	ByRequest Known = "the request asks for at least"
	ByPlan    Known = "the plan takes"
)

// Admit returns nil if a cost is within the limits of a class. Otherwise the error, with the code over_budget, names the
// cost, the limit and the setting. known are the words before the cost, such as "the plan takes". A limit of 0 is none.
func (l *Limits) Admit(class string, c Cost, known Known) error {
	for _, check := range []struct {
		name        string
		cost, limit float64
		unit        string
	}{
		{"parts_per_job", c.Parts, l.PartsPerJob, "components (over all queries)"},
		{"bytes_per_job", c.Bytes, l.BytesPerJob, "bytes"},
		{"flops_per_job", c.Flops, l.FlopsPerJob, "flops"},
	} {
		if check.limit > 0 && check.cost > check.limit {
			return fault.New(
				fault.OverBudget, "admission: %s %.4g %s, %s of class %q is %.4g", known, check.cost,
				check.unit, check.name, class, check.limit,
			)
		}
	}
	return nil
}
