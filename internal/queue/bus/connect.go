package bus

import (
	"errors"
	"io"
	"log/slog"
	"syscall"
	"time"

	"github.com/basetensor/basetensor/internal/queue/redact"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/nats-io/nats.go"
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

// Dial is nats.Connect, and tries again where the server ends the connection in the middle of its handshake: a server that
// reads other users from its configuration does that, and one that waited too long for a busy machine.
func Dial(url string, options ...nats.Option) (nc *nats.Conn, err error) {
	options = append([]nats.Option{nats.Timeout(handshakeTime)}, options...)
	for try := range handshakes {
		time.Sleep(time.Duration(try) * 100 * time.Millisecond)
		nc, err = nats.Connect(url, options...)
		if !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) {
			return nc, err
		}
	}
	return nil, err
}

// Connect connects to NATS as workers need it: it reconnects without end, and logs that. log may be
// nil. The options carry its credentials.
func Connect(url, name string, log *slog.Logger, options ...nats.Option) (*nats.Conn, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}

	options = append(options,
		nats.Name(name),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(250*time.Millisecond),
		nats.PingInterval(pingEvery),
		nats.MaxPingsOutstanding(mostPings),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			log.Warn("disconnected from NATS", "error", redact.Error(err, url))
		}),
		nats.ReconnectHandler(func(nc *nats.Conn) {
			log.Info("reconnected to NATS", "url", redact.URL(nc.ConnectedUrl()))
		}),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			log.Warn("NATS", "error", redact.Error(err, url))
		}),
	)
	nc, err := Dial(url, options...)
	if err != nil {
		return nil, fault.New(
			fault.Infrastructure, "pipeline: connect to NATS at %s: %w", redact.URL(url),
			redact.Error(err, url),
		)
	}
	return nc, nil
}
