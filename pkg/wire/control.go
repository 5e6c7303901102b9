package wire

import (
	"math"

	"github.com/basetensor/basetensor/internal/btn"
)

// Progress tells people how far a job is. It goes over core NATS; losing it loses nothing.
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

// Deadline is what a job's timer delivers when its deadline has passed.
type Deadline struct {
	Job    string `msgpack:"job"`
	Tenant string `msgpack:"tenant,omitempty"`
	Digest string `msgpack:"digest"`
	Time   int64  `msgpack:"time"` // the deadline, Unix milliseconds
}

// DeadLetter is a message that a stage gave up on, and why.
type DeadLetter struct {
	Stage      string        `msgpack:"stage"`
	Job        string        `msgpack:"job"`
	Tenant     string        `msgpack:"tenant,omitempty"`
	Subject    string        `msgpack:"subject"` // where the message was
	Error      btn.ErrorInfo `msgpack:"error"`
	Deliveries int           `msgpack:"deliveries"`
	Payload    string        `msgpack:"payload"` // digest of the message's bytes
	Time       int64         `msgpack:"time"`
}

// Redrive asks reparam-worker to start a stored job again: it has no answer, and nothing of it is under way.
type Redrive struct {
	Job    string `msgpack:"job"`
	Tenant string `msgpack:"tenant,omitempty"`
	Reason string `msgpack:"reason,omitempty"`
	Time   int64  `msgpack:"time"`
}

// Name returns "progress".
func (*Progress) Name() string { return "progress" }

// Name returns "cancel".
func (*Cancel) Name() string { return "cancel" }

// Name returns "deadline".
func (*Deadline) Name() string { return "deadline" }

// Name returns "dead-letter".
func (*DeadLetter) Name() string { return "dead-letter" }

// Name returns "redrive".
func (*Redrive) Name() string { return "redrive" }

// Validate checks ids, the stage and that 0 ≤ Done, and Done ≤ Total where Total is known.
func (m *Progress) Validate() error {
	if err := checkJob(m.Job, ""); err != nil {
		return err
	}
	switch {
	case !isToken(m.Stage):
		return invalid("stage", "%q is no stage", m.Stage)
	case m.Total < 0:
		return invalid("total", "%d is negative", m.Total)
	case m.Done < 0 || m.Total > 0 && m.Done > m.Total:
		return invalid("done", "%d of %d", m.Done, m.Total)
	}
	return checkTimes(m.Time, 0, nil)
}

// Validate checks the job's id, the digest if there is one, and the time.
func (m *Cancel) Validate() error {
	if err := checkJob(m.Job, ""); err != nil {
		return err
	}
	if m.Digest != "" {
		if err := checkDigest("digest", m.Digest); err != nil {
			return err
		}
	}
	return checkTimes(m.Time, 0, nil)
}

// Validate checks ids, digest and time.
func (m *Deadline) Validate() error {
	if err := checkRequest(m.Job, m.Tenant, m.Digest); err != nil {
		return err
	}
	return checkTimes(m.Time, 0, nil)
}

// Validate checks ids, the stage, the subject, the error's code and the payload's digest.
func (m *DeadLetter) Validate() error {
	if err := checkJob(m.Job, m.Tenant); err != nil {
		return err
	}
	if err := checkErrorInfo(&m.Error); err != nil {
		return under("error", err)
	}
	switch {
	case !isToken(m.Stage):
		return invalid("stage", "%q is no stage", m.Stage)
	case m.Subject == "":
		return invalid("subject", "is empty")
	case m.Deliveries < 0 || m.Deliveries > math.MaxInt32:
		return invalid("deliveries", "%d", m.Deliveries)
	}
	if err := checkDigest("payload", m.Payload); err != nil {
		return err
	}
	return checkTimes(m.Time, 0, nil)
}

// Validate checks ids and the time.
func (m *Redrive) Validate() error {
	if err := checkJob(m.Job, m.Tenant); err != nil {
		return err
	}
	return checkTimes(m.Time, 0, nil)
}
