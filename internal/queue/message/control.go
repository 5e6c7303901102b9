package message

import (
	"math"

	"github.com/basetensor/basetensor/pkg/query"
)

// DeadLetter records a message that a stage gave up, and the error.
type DeadLetter struct {
	Stage      string          `msgpack:"stage"`
	Job        string          `msgpack:"job"`
	Tenant     string          `msgpack:"tenant,omitempty"`
	Subject    string          `msgpack:"subject"` // of the message
	Error      query.ErrorInfo `msgpack:"error"`
	Deliveries int             `msgpack:"deliveries"` // of the message until then
	Payload    string          `msgpack:"payload"`    // digest of the message's bytes
	Time       int64           `msgpack:"time"`       // of the record, Unix milliseconds
}

// Redrive asks reparam-worker to start a stored job again, which has no answer and of which nothing
// is under way.
type Redrive struct {
	Job    string `msgpack:"job"`
	Tenant string `msgpack:"tenant,omitempty"`
	Reason string `msgpack:"reason,omitempty"`
	Time   int64  `msgpack:"time"` // Unix milliseconds
}

// End asks the aggregator, which alone writes answers, to end a job with the error that a stage found.
type End struct {
	Job    string `msgpack:"job"`
	Tenant string `msgpack:"tenant,omitempty"`
	Answer []byte `msgpack:"answer"`           // an answer message, encoded
	Under  string `msgpack:"under,omitempty"`  // the id that the client waits under, where that is none
	Stored int64  `msgpack:"stored,omitempty"` // when the job's model was, Unix milliseconds
	Time   int64  `msgpack:"time"`             // Unix milliseconds
}

// Name returns "end".
func (*End) Name() string { return "end" }

// Room is a worker's word to those who may not ask the server: how many jobs a lane takes, and who works.
type Room struct {
	Left     int    `msgpack:"left"`               // jobs that may be submitted to the lane now
	Full     string `msgpack:"full,omitempty"`     // a stream that is nearly full: nothing is taken
	Unserved string `msgpack:"unserved,omitempty"` // why the lane's jobs wait, if that was asked for
}

// Serves is a contract-worker's word to learn-workers and to the others of its stage, now and then:
// that it takes tasks, and with which arithmetic.
type Serves struct {
	Process string `msgpack:"process"`
	Numeric string `msgpack:"kind"`           // see NumericKind
	Cores   int    `msgpack:"cores"`          // what it can do, beside others
	Gone    bool   `msgpack:"gone,omitempty"` // it takes no tasks any more
	Time    int64  `msgpack:"time"`           // Unix milliseconds
}

// Name returns "serves".
func (*Serves) Name() string { return "serves" }

// Validate checks the names, the number of cores and the time.
func (m *Serves) Validate() error {
	switch {
	case !isToken(m.Process):
		return invalid("process", "%q is no name", m.Process)
	case !isToken(m.Numeric):
		return invalid("kind", "%q is no numeric kind", m.Numeric)
	case m.Cores < 1 || m.Cores > math.MaxInt32:
		return invalid("cores", "%d", m.Cores)
	}
	return checkTimes(m.Time, 0, nil) // it has no deadline and no timings
}

// AskServed is the payload of a request that asks whether the lane is served, too.
const AskServed = "served"

// Name returns "room".
func (*Room) Name() string { return "room" }

// Validate checks the number.
func (m *Room) Validate() error {
	if m.Left < 0 || m.Left > math.MaxInt32 {
		return invalid("left", "%d", m.Left)
	}
	return nil
}

// Name returns "dead-letter".
func (*DeadLetter) Name() string { return "dead-letter" }

// Name returns "redrive".
func (*Redrive) Name() string { return "redrive" }

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
	return checkTimes(m.Time, 0, nil) // it has no deadline and no timings
}

// Validate checks ids, that there is an answer, and the time.
func (m *End) Validate() error {
	if err := checkJob(m.Job, m.Tenant); err != nil {
		return err
	}
	if len(m.Answer) == 0 {
		return invalid("answer", "is empty")
	}
	if m.Stored < 0 {
		return invalid("stored", "%d ms", m.Stored)
	}
	return checkTimes(m.Time, 0, nil) // it has no deadline and no timings
}

// Validate checks ids and the time.
func (m *Redrive) Validate() error {
	if err := checkJob(m.Job, m.Tenant); err != nil {
		return err
	}
	return checkTimes(m.Time, 0, nil) // it has no deadline and no timings
}
