package wire

import (
	"fmt"

	"github.com/basetensor/basetensor/internal/base/codec"
	"github.com/basetensor/basetensor/internal/base/digest"
	"github.com/basetensor/basetensor/pkg/fault"
)

// Version is the major version of the messages. It grows by optional fields only; another major
// version is another subject.
const Version = codec.Version

// The bounds of messages.
const (
	MaxMessage = 64 << 20       // bytes of a message other than a model
	MaxModel   = codec.MaxBytes // bytes of a model
)

var (
	// ErrMalformed: the bytes are not a message: not msgpack, of a wrong type, or without a
	// required field.
	ErrMalformed = codec.ErrMalformed
	// ErrTooLarge: the message is larger than its bound, or decodes to more memory than its size
	// allows.
	ErrTooLarge = codec.ErrTooLarge
	// ErrVersion: the message has a major version that this program does not read.
	ErrVersion = codec.ErrVersion
	// ErrInvalid: the message is well formed, but its contents are invalid.
	ErrInvalid = codec.ErrInvalid
)

// Message is one of the messages of version 1: a pointer to one of the structs of this package, or
// of those that only workers send each other.
type Message interface {
	// Name is the message's name on the wire and in the header Btn-Schema: "model", "network",
	// "task" …
	Name() string
	// Validate checks the message's contents; the error wraps ErrInvalid and names the field.
	Validate() error
}

// Encode returns the bytes of m. The same value always gives the same bytes. An m that is not valid
// is not encoded. Invalid UTF-8 in a string goes out as U+FFFD, so that a message quoting someone's bytes can still be sent. The error
// has a fault code: bad_input for a Request, which people make; internal for all others, whose maker is a stage.
func Encode(m Message) ([]byte, error) {
	err := m.Validate()
	var b []byte
	if err == nil {
		b, err = codec.Marshal(m.Name(), m, false) // not canonical: lists stay as they are
	}
	if limit := maxBytes(m); err == nil && len(b) > limit {
		err = fmt.Errorf("%w: %d bytes, at most %d", ErrTooLarge, len(b), limit)
	}
	if err == nil {
		return b, nil
	}
	code := fault.Internal
	if _, ok := m.(*Request); ok {
		code = fault.BadInput
	}
	return nil, fault.Wrap(code, codec.WithField(m.Name(), err))
}

// maxBytes returns the largest number of bytes of a message. Models may be as large as people make them.
func maxBytes(m Message) int {
	switch m.(type) {
	case *Request, *Graph:
		return MaxModel
	}
	return MaxMessage
}

// Decode reads b into m, which must point to a zero value, and validates it. The error wraps
// ErrMalformed, ErrTooLarge, ErrVersion or ErrInvalid, names the field, and has the fault code
// unsupported (version) or bad_input. It never panics, and takes memory in proportion to len(b).
func Decode(b []byte, m Message) error {
	err := codec.Unmarshal(m.Name(), b, maxBytes(m), m)
	if err == nil {
		err = m.Validate()
	}
	return codec.WithTypeAndCode(m.Name(), err)
}

// Digest returns the SHA-256 of b in 64 hexadecimal digits.
func Digest(b []byte) string {
	return digest.HexOf(b)
}
