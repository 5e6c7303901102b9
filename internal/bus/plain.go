package bus

import (
	"strings"

	"github.com/nats-io/nats.go"
)

// Plain returns the headers of a stored message as they are for one whose payload is not elsewhere: without those of the server and of this
// package.
func Plain(h nats.Header) nats.Header {
	own := nats.Header{}
	for name, values := range h {
		if name != headerBlob && name != headerObject && !strings.HasPrefix(name, "Nats-") {
			own[name] = values
		}
	}
	return own
}
