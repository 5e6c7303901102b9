package bus

import (
	"strings"

	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
)

// Plain returns the headers of a stored message as they are for one whose payload is not elsewhere:
// without the headers of the server and of this package.
func Plain(h nats.Header) nats.Header {
	own := nats.Header{}
	for name, values := range h {
		if name != headerBlob && name != wire.HeaderSum && !strings.HasPrefix(name, "Nats-") {
			own[name] = values
		}
	}
	return own
}
