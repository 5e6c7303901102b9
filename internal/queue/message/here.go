package message

import (
	"time"
	"unicode/utf8"
)

// HereEvery is how often workers say that they are there.
const HereEvery = 5 * time.Second

// Here is a worker's periodic message to operators: its stage, its version and the number of messages it has processed. Losing one loses
// nothing.
type Here struct {
	Process  string `msgpack:"process"`
	Stage    string `msgpack:"stage"`
	Version  string `msgpack:"version"`
	Messages int64  `msgpack:"messages"`       // of the stage's proper work, which came to their end since the process began
	Gone     bool   `msgpack:"gone,omitempty"` // it takes no messages any more
	Time     int64  `msgpack:"time"`           // Unix milliseconds
}

// mostVersion is the length of a version.
const mostVersion = 128

// Name returns "here".
func (*Here) Name() string { return "here" }

// Validate checks the names, the version, the number and the time.
func (m *Here) Validate() error {
	switch {
	case !isToken(m.Process):
		return invalid("process", "%q is no name", m.Process)
	case !isToken(m.Stage):
		return invalid("stage", "%q is no stage", m.Stage)
	case m.Version == "" || len(m.Version) > mostVersion || !utf8.ValidString(m.Version):
		return invalid("version", "%.80q is no version", m.Version)
	case m.Messages < 0:
		return invalid("messages", "%d", m.Messages)
	}
	return checkTimes(m.Time, 0, nil)
}
