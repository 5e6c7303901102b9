package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Conn is a connection to a server, with the patience that a cluster needs (leader.go). It describes streams and
// consumers, has the server's clock (clock.go), gets stored messages (direct.go), stores messages (publish.go), and
// knows which streams store nothing (stall.go).
type Conn struct {
	NC  *nats.Conn
	JS  jetstream.JetStream
	API string // prefix of the subjects of JetStream's API, with a dot at its end

	Trouble Trouble // logs repeated failures

	tenant    string       // the tenant whose user the connection has; "": an operator's, a client's or a worker's user
	clustered atomic.Bool  // see inCluster
	unsettled atomic.Int64 // when trouble with the servers was seen last, in Unix nanoseconds

	mu      sync.Mutex
	streams map[string]jetstream.Stream // handles by name, under mu

	clockOffset  atomic.Int64 // the server's time minus this machine's, in nanoseconds
	synchronized atomic.Bool  // clockOffset was measured

	stalls stalls

	pieceMu sync.Mutex
	pieces  *Conn // the result of pieceConn, nil before its first call; under pieceMu
}

// defaultAPI is the prefix of JetStream's API in the account's own domain.
const defaultAPI = "$JS.API."

// newConn returns a Conn over nc, with the user of a tenant, or with another user if tenant is "". api is the prefix of
// JetStream's subjects, as in Options.
func newConn(nc *nats.Conn, api, tenant string) (*Conn, error) {
	api = strings.TrimSuffix(cmp.Or(api, defaultAPI), ".") + "."
	js, err := jetstream.NewWithAPIPrefix(nc, api, jetstream.WithDefaultTimeout(AnswerWithin(nc, defaultTimeout)))
	if err != nil {
		return nil, fault.New(fault.Infrastructure, "bus: %w", err)
	}
	c := &Conn{NC: nc, JS: js, API: api, tenant: tenant, streams: map[string]jetstream.Stream{}}
	c.stalls.nc = nc
	c.inCluster() // remembers a cluster for the time when the connection is lost
	return c, nil
}

// pieceConn returns a second connection with the settings of c, for large bytes, which is opened at the first call and
// closed with c. Small messages on c then need not wait behind megabytes. A tenant's user gets c itself, because the
// server counts a tenant's connections.
func (c *Conn) pieceConn() (*Conn, error) {
	if c.tenant != "" {
		return c, nil
	}
	c.pieceMu.Lock()
	defer c.pieceMu.Unlock()
	if c.pieces != nil {
		return c.pieces, nil
	}

	closed := c.NC.StatusChanged(nats.CLOSED)
	if c.NC.IsClosed() { // it may have closed before StatusChanged, which then sends nothing
		return nil, fault.New(fault.Infrastructure, "bus: large bytes: %w", nats.ErrConnectionClosed)
	}

	options := c.NC.Opts
	options.Name += " (large)"
	nc, err := options.Connect()
	var pieces *Conn
	if err == nil {
		pieces, err = newConn(nc, c.API, "")
	}
	if err != nil {
		c.NC.RemoveStatusListener(closed)
		if nc != nil {
			nc.Close()
		}
		return nil, fault.New(fault.Infrastructure, "bus: large bytes: %w", err)
	}
	go func() {
		<-closed
		nc.Close()
	}()
	c.pieces = pieces
	return pieces, nil
}

// Tenant returns the tenant whose user the connection is, or "".
func (c *Conn) Tenant() string { return c.tenant }

// Stream returns a handle of a stream; the first call asks the server for it.
func (c *Conn) Stream(ctx context.Context, name string) (jetstream.Stream, error) {
	c.mu.Lock()
	s := c.streams[name]
	c.mu.Unlock()
	if s != nil {
		return s, nil
	}

	err := c.withRetries(ctx, func(ctx context.Context) (err error) {
		s, err = c.JS.Stream(ctx, name)
		return err
	})
	if err != nil {
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			err = fmt.Errorf("%w: %w", ErrNoStream, err)
		}
		return nil, fault.New(fault.Infrastructure, "bus: stream %s: %w", name, err)
	}

	c.mu.Lock()
	c.streams[name] = s
	c.mu.Unlock()
	return s, nil
}

// Info returns the description of a stream that the server gives now.
func (c *Conn) Info(ctx context.Context, stream string, options ...jetstream.StreamInfoOpt) (*jetstream.StreamInfo, error) {
	s, err := c.Stream(ctx, stream)
	if err != nil {
		return nil, err
	}
	info, err := s.Info(ctx, options...)
	if err != nil {
		return nil, fault.New(fault.Infrastructure, "bus: stream %s: %w", stream, err)
	}
	return info, nil
}

// Consumer returns the description of a consumer that the server gives now.
func (c *Conn) Consumer(ctx context.Context, stream, name string) (*jetstream.ConsumerInfo, error) {
	s, err := c.Stream(ctx, stream)
	if err != nil {
		return nil, err
	}
	consumer, err := s.Consumer(ctx, name)
	if err != nil {
		return nil, fault.New(fault.Infrastructure, "bus: consumer %s of stream %s: %w", name, stream, err)
	}
	return consumer.CachedInfo(), nil
}

// LaneConsumer returns the description of a lane's consumer, which is called name-LANE. If there is none, it returns
// the one of the consumer for all lanes, which is called name, and single is true.
func (c *Conn) LaneConsumer(ctx context.Context, stream, name string, lane int) (info *jetstream.ConsumerInfo, single bool, err error) {
	info, err = c.Consumer(ctx, stream, name+"-"+strconv.Itoa(lane))
	if single = errors.Is(err, jetstream.ErrConsumerNotFound); single {
		info, err = c.Consumer(ctx, stream, name)
	}
	return info, single, err
}
