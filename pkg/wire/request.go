package wire

// Asking for an answer at once, on one subject: requests without a job's id, and replies without an answer.

import (
	"github.com/basetensor/basetensor/internal/base/codec"
	"github.com/basetensor/basetensor/internal/form"
	"github.com/basetensor/basetensor/pkg/query"
)

// The states of a request that has no answer.
const (
	StatusPending = "pending" // the job is stored and will be answered, on the job's path
	// the job was not stored; or, where the error is infrastructure, perhaps not
	StatusRefused = "refused"
)

// Values of the header Nats-Service-Error-Code of a reply without an answer.
const (
	ReplyBadRequest = "400" // the request cannot be read
	ReplyTaken      = "409" // the job's id belongs to another request
	ReplyFailed     = "500" // infrastructure
	// the stream of models is full, too many requests wait, or the worker is stopping: ask again
	// later
	ReplyNoRoom  = "503"
	ReplyPending = "504" // not in time; the job goes on
)

// Unanswered is the reply to a request on InferSubject where there is no answer in time: the reason, and the job under
// which it continues.
type Unanswered struct {
	Job string `msgpack:"job,omitempty"` // absent if the request could not be read
	// of the request; absent unless the status is pending
	Digest string          `msgpack:"digest,omitempty"`
	Status string          `msgpack:"status"`
	Error  query.ErrorInfo `msgpack:"error"`
}

// Name returns "unanswered".
func (*Unanswered) Name() string { return "unanswered" }

// Validate checks the status, the error's code, and that a pending job has its id and digest.
func (m *Unanswered) Validate() error {
	switch {
	case m.Status != StatusPending && m.Status != StatusRefused:
		return codec.Invalid("status", "%.40q is neither pending nor refused", m.Status)
	case m.Status == StatusPending || m.Job != "":
		if err := form.CheckJob(m.Job, ""); err != nil { // the message names no tenant
			return err
		}
	}
	if m.Status == StatusPending || m.Digest != "" {
		if err := form.CheckDigest("digest", m.Digest); err != nil {
			return err
		}
	}
	return codec.WithField("error", form.CheckErrorInfo(&m.Error))
}
