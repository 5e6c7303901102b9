package wire

import (
	"github.com/basetensor/basetensor/internal/base/codec"
	"github.com/basetensor/basetensor/internal/form"
)

// Progress reports the progress of a job to people. It goes over core NATS; losing it loses nothing.
type Progress struct {
	Job   string `msgpack:"job"`
	Stage string `msgpack:"stage"` // reparam, learn, contract, aggregate
	Done  int64  `msgpack:"done"`
	Total int64  `msgpack:"total"` // 0: not known
	Text  string `msgpack:"text,omitempty"`
	Time  int64  `msgpack:"time"` // Unix milliseconds
}

// Cancel asks that a job end without a result. A job that has its answer keeps it.
type Cancel struct {
	Job    string `msgpack:"job"`
	Digest string `msgpack:"digest,omitempty"` // when given, only the request of this digest
	Reason string `msgpack:"reason,omitempty"`
	Time   int64  `msgpack:"time"`
}

// Deadline is the message that a job's timer delivers when its deadline has passed.
type Deadline struct {
	Job    string `msgpack:"job"`
	Tenant string `msgpack:"tenant,omitempty"`
	Digest string `msgpack:"digest"`
	Time   int64  `msgpack:"time"` // the deadline, Unix milliseconds
}

// Name returns "progress".
func (*Progress) Name() string { return "progress" }

// Name returns "cancel".
func (*Cancel) Name() string { return "cancel" }

// Name returns "deadline".
func (*Deadline) Name() string { return "deadline" }

// Validate checks ids, the stage and that 0 ≤ Done, and Done ≤ Total where Total is known.
func (m *Progress) Validate() error {
	if err := form.CheckJob(m.Job, ""); err != nil { // the message names no tenant
		return err
	}
	switch {
	case !form.IsToken(m.Stage):
		return codec.Invalid("stage", "%q is no stage", m.Stage)
	case m.Total < 0:
		return codec.Invalid("total", "%d is negative", m.Total)
	case m.Done < 0 || m.Total > 0 && m.Done > m.Total:
		return codec.Invalid("done", "%d of %d", m.Done, m.Total)
	}
	return form.CheckTimes(m.Time, 0, nil) // without a deadline and without timings
}

// Validate checks the job's id, the digest if there is one, and the time.
func (m *Cancel) Validate() error {
	if err := form.CheckJob(m.Job, ""); err != nil { // the message names no tenant
		return err
	}
	if m.Digest != "" {
		if err := form.CheckDigest("digest", m.Digest); err != nil {
			return err
		}
	}
	return form.CheckTimes(m.Time, 0, nil) // without a deadline and without timings
}

// Validate checks ids, digest and time.
func (m *Deadline) Validate() error {
	if err := form.CheckRequest(m.Job, m.Tenant, m.Digest); err != nil {
		return err
	}
	return form.CheckTimes(m.Time, 0, nil)
}
