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

// A server that leaves mostPings pings unanswered counts as lost: the connection may have gone dead without notice to
// either side.
const (
	pingEvery = time.Second
	mostPings = 2
)

const (
	// handshakes bounds the attempts to connect if the server ends the connection in the middle of its handshake.
	maxHandshakes = 5
	// handshakeTimeout is the time for a handshake with a busy server.
	handshakeTimeout = 10 * time.Second
)

// contextPrefix begins an address that names a context of the nats command instead of a server.
const contextPrefix = "context:"

// Server returns the address to pass to Dial: that of the nats command's context if context is not "", or else url.
func Server(url, context string) string {
	if context != "" {
		return contextPrefix + context
	}
	return url
}

// Dial connects to a server at a URL, or at an address by Server. api is the prefix of JetStream's subjects that a
// context names, "" for the usual one. It tries again for a second if the server ends the connection in the middle of
// its handshake, or does not know the user. A server does so while it reads other users from its configuration, or when
// it waited too long for a busy machine.
func Dial(url string, options ...nats.Option) (nc *nats.Conn, api string, err error) {
	options = append([]nats.Option{nats.Timeout(handshakeTimeout)}, options...)
	for try := range maxHandshakes {
		time.Sleep(time.Duration(try) * 100 * time.Millisecond)
		if name, ok := strings.CutPrefix(url, contextPrefix); ok {
			nc, api, err = dialContext(name, options)
		} else {
			nc, err = nats.Connect(url, options...)
		}
		endedByServer := errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) ||
			errors.Is(err, nats.ErrAuthorization)
		if !endedByServer {
			return nc, api, err
		}
	}
	return nil, "", err
}

// dialContext connects to the server that a context of the nats command describes. The error has the code bad_input if
// the context cannot be read. An option that notes its call tells that apart from a failure to connect: it is called
// only after the context was read.
func dialContext(name string, options []nats.Option) (nc *nats.Conn, api string, err error) {
	isRead := false
	options = append(options, func(*nats.Options) error { isRead = true; return nil })
	nc, context, err := natscontext.Connect(name, options...)
	switch {
	case err != nil && !isRead:
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

// Connect is Dial for workers: the connection reconnects without end, and logs that and the server's errors. name is
// how the server lists the connection. log may be nil. The options carry the credentials.
func Connect(url, name string, log *slog.Logger, options ...nats.Option) (nc *nats.Conn, api string, err error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}

	var trouble Trouble
	options = append(options,
		nats.Name(name),
		nats.MaxReconnects(-1), // any number
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
