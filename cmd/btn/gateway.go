package main

// HTTP for clients without NATS.

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"syscall"
	"time"

	"github.com/basetensor/basetensor/internal/doors/config"
	"github.com/basetensor/basetensor/internal/doors/gateway"
	"github.com/basetensor/basetensor/internal/people/console"
	"github.com/basetensor/basetensor/internal/queue/admission"
	"github.com/basetensor/basetensor/internal/queue/connect"
	"github.com/basetensor/basetensor/internal/queue/streams"
	"github.com/basetensor/basetensor/internal/queue/telemetry"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// gatewayFlags hold the address, keys and rates of HTTP.
type gatewayFlags struct {
	Keys     string        `help:"${gateway_keys}" placeholder:"FILE"`
	HostName []string      `help:"${gateway_host_name}" placeholder:"NAME"`
	TLSCert  string        `name:"tls-cert" help:"${gateway_tls_cert}" placeholder:"FILE"`
	TLSKey   string        `name:"tls-key" help:"Private key of --tls-cert." placeholder:"FILE"`
	MaxBody  config.Size   `help:"Most bytes of a request over HTTP, after decompression too." default:"64MiB" placeholder:"SIZE"`
	Patience time.Duration `help:"How long a request over HTTP waits for its answer at most." default:"1m" placeholder:"D"`
	Rate     float64       `help:"${gateway_rate}" default:"200" placeholder:"N"`
	Audit    string        `help:"File to which a line is appended for every change over HTTP; else the log has it." placeholder:"FILE"`
	Insecure bool          `help:"Listen where other machines reach it although nobody has to identify themselves."`
}

// checkOpen refuses an address that other machines reach, unless --keys or --insecure is given. An empty address is
// this machine's own.
func (f gatewayFlags) checkOpen(listen string) error {
	host, _, err := net.SplitHostPort(listen)
	isOwnHost := listen == "" || err == nil && connect.OwnHost(host)
	if f.Insecure || f.Keys != "" || isOwnHost {
		return nil
	}
	return fault.New(fault.BadInput,
		"gateway: HTTP at %s is open to other machines, with every right for all of them: "+
			"it needs --keys, or --insecure where only trusted clients reach it", listen)
}

// newGateway returns the gateway of the flags over a connection.
func (f gatewayFlags) newGateway(
	c gateway.Connection, tenants *admission.File, logger *slog.Logger, registry prometheus.Registerer,
) (*gateway.Gateway, error) {
	var keys *gateway.Keys
	if f.Keys != "" {
		var err error
		if keys, err = gateway.OpenKeys(f.Keys, logger); err != nil {
			return nil, err
		}
	}
	tlsConfig, err := connect.ServerTLS("--tls", f.TLSCert, f.TLSKey)
	if err != nil {
		return nil, err
	}
	audit, err := telemetry.OpenAudit(f.Audit, logger)
	if err != nil {
		return nil, err
	}
	return gateway.New(gateway.Config{
		Audit:   audit,
		Connect: c, Keys: keys, Tenants: tenants, Hosts: f.HostName, Log: logger, Metrics: registry, TLS: tlsConfig,
		Limits: gateway.Limits{Body: int64(f.MaxBody), Patience: f.Patience, Rate: f.Rate},
	})
}

// noGateway as the value of --gateway starts none.
const noGateway = "off"

// usualPort is the default port of a gateway.
const usualPort = "8080"

// startBeside starts the gateway of `btn up` at an address. Without one it takes the usual port of this machine, and
// any other port if that is taken.
func (f gatewayFlags) startBeside(
	listen string, nc *nats.Conn, tenants *admission.File, logger *slog.Logger, registry prometheus.Registerer,
) (*gateway.Server, error) {
	g, err := f.newGateway(gateway.Connection{NC: nc}, tenants, logger, registry)
	if err != nil {
		return nil, err
	}
	if listen != "" {
		return gateway.Serve(listen, g)
	}
	s, err := gateway.Serve(net.JoinHostPort("127.0.0.1", usualPort), g)
	if errors.Is(err, syscall.EADDRINUSE) {
		return gateway.Serve(net.JoinHostPort("127.0.0.1", "0"), g)
	}
	return s, err
}

// gatewayCmd serves HTTP in front of running workers.
type gatewayCmd struct {
	natsFlag
	gatewayFlags `embed:"" group:"gateway"`
	Tenants      string `help:"JSON file of classes of tenants and what they may hold of the streams." placeholder:"FILE"`
	HTTP         string `name:"http" help:"Address that serves /metrics, /healthz and /readyz; off without it." placeholder:"ADDR"`
	Listen       string `help:"Address to listen on: HOST:PORT, :PORT for all of this machine's." default:"127.0.0.1:8080" placeholder:"ADDR"`
}

// Run serves HTTP until it is interrupted.
func (c *gatewayCmd) Run(ctx context.Context, t *console.Terminal, common *config.Common) error {
	logger := telemetry.Logger(t.Err, common.LogLevel, common.LogFormat)
	if err := c.checkOpen(c.Listen); err != nil {
		return err
	}
	tenants, err := admission.Open(c.Tenants, logger)
	if err != nil {
		return err
	}
	b, err := c.openBus("btn-gateway", logger)
	if err != nil {
		return err
	}
	defer b.Conn.NC.Close()

	// the gateway
	registry := prometheus.NewRegistry()
	registry.MustRegister(telemetry.BuildInfo(), collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	g, err := c.newGateway(gateway.Connection{
		NC: b.Conn.NC, API: b.Conn.API, Tenant: c.AsNATS.Tenant, Keys: c.Signing,
	}, tenants, logger, registry)
	if err != nil {
		return err
	}
	s, err := gateway.Serve(c.Listen, g)
	if err != nil {
		return err
	}
	defer s.Close()

	// its own metrics and health
	if c.HTTP != "" {
		server, err := telemetry.Serve(c.HTTP, registry, func() error { return streams.Healthy(ctx, b.Conn) })
		if err != nil {
			return fault.Wrap(fault.Infrastructure, err)
		}
		defer server.Close()
	}
	fmt.Fprintf(t.Out, "gateway %s\n", s.URL)
	<-ctx.Done()
	return nil
}
