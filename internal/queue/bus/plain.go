package bus

import (
	"context"
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

// PutGraphOf is PutGraph of a model that an owner's jobs may name, for users that may write for all
// owners.
func (b *registry) PutGraphOf(ctx context.Context, owner string, data []byte) (digest string, err error) {
	return b.put(ctx, graphs.of(owner), data)
}
