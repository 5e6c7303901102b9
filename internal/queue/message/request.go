package message

import (
	"time"

	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
)

// Requests on wire.InferSubject, which may come without a job's id, and for how long they wait.

// looseModel is a wire.Request that may lack the job's id.
type looseModel struct {
	Job         string         `msgpack:"job,omitempty"`
	Tenant      string         `msgpack:"tenant,omitempty"`
	Model       *wire.Model    `msgpack:"model,omitempty"`
	Text        string         `msgpack:"text,omitempty"`
	ModelDigest string         `msgpack:"model_digest,omitempty"`
	Queries     []query.Query  `msgpack:"queries"`
	Settings    query.Settings `msgpack:"settings,omitempty"`
	DeadlineMS  int64          `msgpack:"deadline_ms,omitempty"`
}

// Patience returns for how long a request on wire.InferSubject waits for the answer. deadlineMS is the deadline of its job
// in milliseconds. The request waits a second longer than that, because there is an answer also if the deadline passes, but
// at most a minute. Without a deadline it waits for a second.
func Patience(deadlineMS int64) time.Duration {
	const longest = time.Minute
	if deadlineMS <= 0 {
		return time.Second
	}
	if deadlineMS > longest.Milliseconds() {
		return longest
	}
	return min(longest, time.Duration(deadlineMS)*time.Millisecond+time.Second)
}

// DecodeRequest decodes a request as wire.Decode does, except that the job's id may be missing or empty. Then the job
// gets the id that newJob returns.
func DecodeRequest(b []byte, m *wire.Request, newJob func() string) error {
	var loose looseModel // a wire.Request without the check that it has a job
	err := unmarshal(m.Name(), b, wire.MaxModel, &loose)

	if *m = wire.Request(loose); err == nil {
		if m.Job == "" {
			m.Job = newJob()
		}
		err = m.Validate()
	}
	return blame(m.Name(), err)
}
