package message

import (
	"fmt"
	"slices"
	"time"
	"unicode/utf8"
)

// HereEvery is the interval at which workers send Here.
const HereEvery = 5 * time.Second

// Here is a worker's periodic message to operators: its stage, its machine, its version, the names of its keys and the
// number of messages it has processed. Losing one loses nothing.
type Here struct {
	Process  string `msgpack:"process"`
	Stage    string `msgpack:"stage"`
	Host     string `msgpack:"host"`
	PID      int    `msgpack:"pid"`
	Version  string `msgpack:"version"`
	Messages int64  `msgpack:"messages"`       // of the stage's proper work, which came to their end since the process began
	Gone     bool   `msgpack:"gone,omitempty"` // it takes no messages any more
	Time     int64  `msgpack:"time"`           // Unix milliseconds

	MessageKeys   []string `msgpack:"message_keys,omitempty"`   // names of the keys that it believes, the first signs; none: it believes all
	AnswersKeys   []string `msgpack:"answers_keys,omitempty"`   // public keys whose answers it believes; none: workers' answers
	AnswersSigner string   `msgpack:"answers_signer,omitempty"` // public key of the signatures of its answers
}

// Bounds of the texts.
const (
	maxVersion = 128 // bytes
	maxHost    = 255 // bytes
	maxKeys    = 64
)

// Name returns "here".
func (*Here) Name() string { return "here" }

// Worker returns a text that names the worker for people.
func (m *Here) Worker() string { return fmt.Sprintf("%s on %s (process %d)", m.Stage, m.Host, m.PID) }

// Validate checks the names, the version, the keys, the numbers and the time.
func (m *Here) Validate() error {
	switch {
	case !isToken(m.Process):
		return invalid("process", "%q is no name", m.Process)
	case !isToken(m.Stage):
		return invalid("stage", "%q is no stage", m.Stage)
	case m.Version == "" || len(m.Version) > maxVersion || !utf8.ValidString(m.Version):
		return invalid("version", "%.80q is no version", m.Version)
	case m.Host == "" || len(m.Host) > maxHost || !utf8.ValidString(m.Host):
		return invalid("host", "%.80q is no host", m.Host)
	case m.PID < 0:
		return invalid("pid", "%d", m.PID)
	case len(m.MessageKeys) > maxKeys || !areTokens(m.MessageKeys):
		return invalid("message_keys", "%d names, at most %d, or one that is no token", len(m.MessageKeys), maxKeys)
	case len(m.AnswersKeys) > maxKeys || !areTokens(m.AnswersKeys):
		return invalid("answers_keys", "%d names, at most %d, or one that is no token", len(m.AnswersKeys), maxKeys)
	case m.AnswersSigner != "" && !isToken(m.AnswersSigner):
		return invalid("answers_signer", "%.80q is no key", m.AnswersSigner)
	case m.Messages < 0:
		return invalid("messages", "%d", m.Messages)
	}
	return checkTimes(m.Time, 0, nil) // it has no deadline and no timings
}

// areTokens reports whether all names are tokens of subjects.
func areTokens(names []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return !isToken(name) })
}
