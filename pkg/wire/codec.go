package wire

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"

	"github.com/basetensor/basetensor/pkg/fault"
)

// Version is the major version of the messages. It grows by optional fields only; another major version is another subject.
const Version = 1

// The keys that all messages have.
const (
	keyName    = "t"
	keyVersion = "v"
)

// Message is one of the messages of version 1: a pointer to one of the structs of this package.
type Message interface {
	// Name is the message's name on the wire and in the header Btn-Schema: "model", "network", "task" …
	Name() string
	// Validate checks what the message says; the error wraps ErrInvalid and names the field.
	Validate() error
}

// Encode returns the bytes of m. The same value always gives the same bytes. An m that is not valid is not encoded.
// The error has a fault code: internal, for whoever made m should have known.
func Encode(m Message) ([]byte, error) {
	if err := m.Validate(); err != nil {
		return nil, fault.Wrap(fault.Internal, under(m.Name(), err))
	}
	b, err := marshal(m.Name(), m, false)
	if err == nil && len(b) > MaxMessage {
		err = under(m.Name(), ErrTooLarge)
	}
	return b, fault.Wrap(fault.Internal, err)
}

// Decode reads b into m, which must point to a zero value, and validates it. The error wraps ErrMalformed, ErrTooLarge,
// ErrVersion or ErrInvalid, names the field, and has the fault code unsupported (version) or bad_input.
// It never panics, and takes memory in proportion to len(b).
func Decode(b []byte, m Message) error {
	err := unmarshal(m.Name(), b, MaxMessage, m)
	if err == nil {
		err = m.Validate()
	}
	return blame(m.Name(), err)
}

// blame gives a decoding error the name of what was decoded, and its code.
func blame(name string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrVersion):
		return fault.Wrap(fault.Unsupported, under(name, err))
	}
	return fault.Wrap(fault.BadInput, under(name, err))
}

// Digest returns the SHA-256 of b in 64 hexadecimal digits.
func Digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
