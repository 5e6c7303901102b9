package bus_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// TestPublishErrors: a publish that nobody has acknowledged is an error, whatever came in its place, and says whether the subject was
// taken, the stream full or missing.
func TestPublishErrors(t *testing.T) {
	const subject = "btn.v1.network.3.job"
	api := func(code jetstream.ErrorCode, text string) error {
		return &jetstream.APIError{ErrorCode: code, Description: text}
	}
	for name, c := range map[string]struct {
		err, want error // want: what the error wraps
		code      fault.Code
	}{
		"no answer in time":       {nats.ErrTimeout, nats.ErrTimeout, fault.Infrastructure},
		"the context ended":       {context.DeadlineExceeded, context.DeadlineExceeded, fault.Infrastructure},
		"the connection closed":   {nats.ErrConnectionClosed, nats.ErrConnectionClosed, fault.Infrastructure},
		"no stream":               {jetstream.ErrNoStreamResponse, bus.ErrNoStream, fault.Infrastructure},
		"nothing is stored":       {fmt.Errorf("%w: tasks", bus.ErrStorage), bus.ErrStorage, ""},
		"another last message":    {api(10071, "wrong last sequence: 7"), bus.ErrTaken, ""},
		"one message a subject":   {api(10077, "maximum messages per subject exceeded"), bus.ErrTaken, ""},
		"no room":                 {api(10077, "maximum bytes exceeded"), bus.ErrFull, fault.Infrastructure},
		"a failure of the server": {api(10047, "insufficient resources"), nil, fault.Infrastructure},
	} {
		got := bus.PublishError(subject, c.err)
		if got == nil || c.want != nil && !errors.Is(got, c.want) || c.code != "" && fault.CodeOf(got) != c.code {
			t.Errorf("%s: %v, want %v of code %q", name, got, c.want, c.code)
		}
	}
	if err := bus.PublishError(subject, nil); err != nil {
		t.Errorf("acknowledged: %v", err)
	}
}
