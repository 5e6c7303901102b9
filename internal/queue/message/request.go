package message

import (
	"time"

	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
)

// What a request on wire.InferSubject may leave out, and how long it waits.

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

// Patience returns for how long a request on wire.InferSubject waits for the answer: a second; with
// a deadline until that and a second more, because a passed deadline is an answer, too; a minute at
// most.
func Patience(deadlineMS int64) time.Duration {
	const most = time.Minute
	if deadlineMS <= 0 {
		return time.Second
	}
	if deadlineMS > most.Milliseconds() {
		return most
	}
	return min(most, time.Duration(deadlineMS)*time.Millisecond+time.Second)
}

// DecodeRequest is wire.Decode for a model message that may come without a job's id, or with an
// empty one. It then gets the id that newJob returns.
func DecodeRequest(b []byte, m *wire.Request, newJob func() string) error {
	var loose looseModel
	err := unmarshal(m.Name(), b, wire.MaxModel, &loose)

	if *m = wire.Request(loose); err == nil {
		if m.Job == "" {
			m.Job = newJob()
		}
		err = m.Validate()
	}
	return blame(m.Name(), err)
}
