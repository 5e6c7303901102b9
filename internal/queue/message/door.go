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

// serverPrefix begins the headers that a server reads as commands: some tell about messages of others, some remove
// them.
const serverPrefix = "Nats-"

// infoHeader is the header in which a server says to another account where a request comes from.
const infoHeader = "Nats-Request-Info"

// UserHeaders returns those headers of a user's message that may be stored, with one value each. Headers that only
// workers write are left out. So are infoHeader, which a server adds itself, and conditions on last messages, which the
// caller has to check. Any other header with the prefix of those that the server reads as commands is an error.
func UserHeaders(h nats.Header) (nats.Header, error) {
	for name := range h {
		isServerHeader := len(name) >= len(serverPrefix) && strings.EqualFold(name[:len(serverPrefix)], serverPrefix)
		isCondition := name == jetstream.ExpectedLastSubjSeqHeader || name == jetstream.ExpectedLastSubjSeqSubjHeader
		if isServerHeader && !isCondition && name != infoHeader {
			return nil, fault.New(fault.BadInput, "header %.80q: a stored message of a user may have no such header", name)
		}
	}
	stored := nats.Header{}
	for _, name := range userHeaders {
		if values := h[name]; len(values) > 0 {
			stored[name] = values[:1:1]
		}
	}
	return stored, nil
}
