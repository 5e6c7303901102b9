package hop

import (
	"context"

	"github.com/basetensor/basetensor/internal/queue/message"
)

// aboutKey is the key under which a context has the message that is worked on.
type aboutKey struct{}

// withAbout returns ctx with the message that is worked on. Its description goes into outputs and answers.
func withAbout(ctx context.Context, d *Message) context.Context {
	return context.WithValue(ctx, aboutKey{}, d)
}

// WithHeaders returns ctx with the request's description in a message's headers, for an answer that follows from that
// message.
func WithHeaders(ctx context.Context, h map[string][]string) context.Context {
	return withAbout(ctx, &Message{About: message.AboutIn(h)})
}

// aboutOf returns the description of the request that ctx belongs to, as far as it is known.
func aboutOf(ctx context.Context) message.About {
	if d, ok := ctx.Value(aboutKey{}).(*Message); ok {
		return d.description()
	}
	return message.About{}
}

// description returns the description of a message's request: the one that this stage has made, or the one in the
// headers.
func (d *Message) description() message.About {
	if d.About == (message.About{}) && d.Raw != nil {
		return message.AboutIn(d.Raw.Header)
	}
	return d.About
}
