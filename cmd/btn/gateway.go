package main

// HTTP for who has no NATS.

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"syscall"
	"time"

	"github.com/basetensor/basetensor/internal/bus"
	"github.com/basetensor/basetensor/internal/config"
	"github.com/basetensor/basetensor/internal/console"
	"github.com/basetensor/basetensor/internal/gateway"
	"github.com/basetensor/basetensor/internal/telemetry"
	"github.com/nats-io/nats.go"
)

// gatewayFlags say who may ask over HTTP, and how much.
type gatewayFlags struct {
	Keys     string        `help:"${gateway_keys}" placeholder:"FILE"`
	HostName []string      `help:"${gateway_host_name}" placeholder:"NAME"`
	MaxBody  config.Size   `help:"Most bytes of a request over HTTP, after decompression too." default:"64MiB" placeholder:"SIZE"`
	Patience time.Duration `help:"How long a request over HTTP waits for its answer at most." default:"1m" placeholder:"D"`
}

// serve starts a gateway at an address over a connection.
func (f gatewayFlags) serve(listen string, c gateway.Connection, logger *slog.Logger) (*gateway.Server, error) {
	var keys *gateway.Keys
	if f.Keys != "" {
		var err error
		if keys, err = gateway.OpenKeys(f.Keys, logger); err != nil {
			return nil, err
		}
	}
	g, err := gateway.New(gateway.Config{
		Connect: c, Keys: keys, Hosts: f.HostName, Log: logger,
		Limits: gateway.Limits{Body: int64(f.MaxBody), Patience: f.Patience},
	})
	if err != nil {
		return nil, err
	}
	return gateway.Serve(listen, g)
}

// noGateway as the value of --gateway starts none.
const noGateway = "off"

// usualPort is where a gateway listens unless it is told otherwise.
const usualPort = "8080"

// beside starts the gateway of `btn up`: at an address, or without one at the usual port of this machine, and any other where
// that is taken.
func (f gatewayFlags) beside(listen string, nc *nats.Conn, logger *slog.Logger) (*gateway.Server, error) {
	c := gateway.Connection{NC: nc}
	if listen != "" {
		return f.serve(listen, c, logger)
	}
	s, err := f.serve(net.JoinHostPort("127.0.0.1", usualPort), c, logger)
	if errors.Is(err, syscall.EADDRINUSE) {
		return f.serve(net.JoinHostPort("127.0.0.1", "0"), c, logger)
	}
	return s, err
}

// gatewayCmd serves HTTP in front of running workers.
type gatewayCmd struct {
	natsFlag
	gatewayFlags
	Listen string `help:"Address to listen on: HOST:PORT, :PORT for all of this machine's." default:"127.0.0.1:8080" placeholder:"ADDR"`
}

// Run serves until it is interrupted.
func (c *gatewayCmd) Run(ctx context.Context, t *console.Terminal, common *config.Common) error {
	logger := telemetry.Logger(t.Err, common.LogLevel, common.LogFormat)
	options, err := c.AsNATS.Options()
	if err != nil {
		return err
	}
	signing, err := c.Signing.Open(logger)
	if err != nil {
		return err
	}
	nc, err := bus.Connect(c.NATS, "btn-gateway", logger, options...)
	if err != nil {
		return err
	}
	defer nc.Close()
	s, err := c.serve(c.Listen, gateway.Connection{
		NC: nc, Tenant: c.AsNATS.Tenant, Guard: bus.Guard{Keys: signing},
	}, logger)
	if err != nil {
		return err
	}
	defer s.Close()
	fmt.Fprintf(t.Out, "gateway %s\n", s.URL)
	<-ctx.Done()
	return nil
}
