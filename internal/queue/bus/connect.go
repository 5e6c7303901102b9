package bus

import (
	"errors"
	"io"
	"log/slog"
	"strings"
	"syscall"
	"time"

	"github.com/basetensor/basetensor/internal/queue/redact"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/nats-io/nats.go"
	"github.com/synadia-io/orbit.go/natscontext"
)

// A server that leaves so many pings unanswered is lost: the connection may have gone dead without
// notice to either side.
const (
	pingEvery = time.Second
	mostPings = 2
)

const (
	// handshakes bounds the tries of a connection that the server ends in the middle of its handshake.
	handshakes = 5
	// handshakeTime is the time for a handshake with a busy server.
	handshakeTime = 10 * time.Second
)

// inContext begins the address of a server that a context of the nats command describes.
const inContext = "context:"

// Server returns the address of a server for Dial: the context's, if there is one, or else url.
func Server(url, context string) string {
	if context != "" {
		return inContext + context
	}
	return url
}

// Dial is nats.Connect, also for addresses of Server. api is the prefix of JetStream's subjects that a context names, "" for the usual
// one. It tries again for a second if the server ends the connection in the middle of its handshake, or does not know the user: a server
// that reads other users from its configuration does that, and one that waited too long for a busy machine.
func Dial(url string, options ...nats.Option) (nc *nats.Conn, api string, err error) {
	options = append([]nats.Option{nats.Timeout(handshakeTime)}, options...)
	for try := range handshakes {
		time.Sleep(time.Duration(try) * 100 * time.Millisecond)
		if name, ok := strings.CutPrefix(url, inContext); ok {
			nc, api, err = dialContext(name, options)
		} else {
			nc, err = nats.Connect(url, options...)
		}
		if !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) &&
			!errors.Is(err, nats.ErrAuthorization) {
			return nc, api, err
		}
	}
	return nil, "", err
}

// dialContext connects to the server of a context of the nats command. A context that cannot be read is bad_input.
func dialContext(name string, options []nats.Option) (nc *nats.Conn, api string, err error) {
	read := false
	options = append(options, func(*nats.Options) error { read = true; return nil })
	nc, context, err := natscontext.Connect(name, options...)
	switch {
	case err != nil && !read:
		return nil, "", fault.New(fault.BadInput, "--context %s: %w", name, err)
	case err != nil:
		return nil, "", err
	case context.JSAPIPrefix != "":
		return nc, context.JSAPIPrefix, nil
	case context.JSDomain != "":
		return nc, "$JS." + context.JSDomain + ".API", nil
	}
	return nc, "", nil
}

// Connect is Dial as workers need it: it reconnects without end, and logs that and the server's errors. log may be nil. The
// options carry its credentials.
func Connect(url, name string, log *slog.Logger, options ...nats.Option) (nc *nats.Conn, api string, err error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}

	var trouble Trouble
	options = append(options,
		nats.Name(name),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(250*time.Millisecond),
		nats.PingInterval(pingEvery),
		nats.MaxPingsOutstanding(mostPings),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil { // else this process closed it
				log.Warn("disconnected from NATS", "error", redact.Error(err, url))
			}
		}),
		nats.ReconnectHandler(func(nc *nats.Conn) {
			log.Info("reconnected to NATS", "url", redact.URL(nc.ConnectedUrl()))
		}),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			trouble.Warn(log, "NATS", "error", redact.Error(err, url))
		}),
	)
	nc, api, err = Dial(url, options...)
	if fault.CodeOf(err) == fault.BadInput {
		return nil, "", err
	}
	if err != nil {
		return nil, "", fault.New(
			fault.Infrastructure, "pipeline: connect to NATS at %s: %w", redact.URL(url),
			redact.Error(err, url),
		)
	}
	return nc, api, nil
}
