package message

import (
	"strings"

	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Headers of large payloads.
const (
	HeaderBlob = "Btn-Blob" // on a message: its payload is the blob of this digest
	// HeaderPieces is on a blob that is a list of the digests of its pieces, 64 hexadecimal digits each; its value is their number.
	HeaderPieces = "Btn-Pieces"
)

// userHeaders are the headers that a user other than a worker or the operator may give to a stored message.
var userHeaders = []string{
	wire.HeaderContentType, wire.HeaderSchema, wire.HeaderSchemaVersion, wire.HeaderJob, wire.HeaderTenant, wire.HeaderDigest,
	wire.HeaderTraceParent, wire.HeaderTraceState, wire.HeaderSum, HeaderBlob, HeaderPieces,
}

// serverPrefix begins the headers that a server reads as commands: some tell about messages of others, some remove them.
const serverPrefix = "Nats-"

// infoHeader is the header in which a server says to another account where a request comes from.
const infoHeader = "Nats-Request-Info"

// UserHeaders returns those of a user's headers that may be stored, one value of each, without those that only workers write. A
// header that the server reads is an error, except for conditions on last messages, which are the caller's to check.
func UserHeaders(h nats.Header) (nats.Header, error) {
	for name := range h {
		command := len(name) >= len(serverPrefix) && strings.EqualFold(name[:len(serverPrefix)], serverPrefix)
		if command && name != infoHeader && name != jetstream.ExpectedLastSubjSeqHeader && name != jetstream.ExpectedLastSubjSeqSubjHeader {
			return nil, fault.New(fault.BadInput, "header %.80q: a stored message of a user may have no such header", name)
		}
	}
	kept := nats.Header{}
	for _, name := range userHeaders {
		if values := h[name]; len(values) > 0 {
			kept[name] = values[:1:1]
		}
	}
	return kept, nil
}
