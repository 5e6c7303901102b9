package main

import (
	"context"

	"github.com/basetensor/basetensor/internal/doors/config"
	"github.com/basetensor/basetensor/internal/people/console"
	"github.com/basetensor/basetensor/internal/people/doctor"
	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/connect"
	"github.com/basetensor/basetensor/internal/queue/telemetry"
)

// doctorCmd examines a deployment.
type doctorCmd struct {
	serverFlags
	Monitoring string        `help:"URL of a nats-server's monitoring port: it alone says how often the disk is synced." placeholder:"URL"`
	Redis      string        `name:"redis" help:"URL of Redis, to be examined too." placeholder:"URL"`
	AsRedis    connect.Redis `embed:"" group:"connection"`
	Now        bool          `help:"Do not listen to the workers for six seconds: without a finding about their keys."`
	JSON       bool          `name:"json" help:"One JSON object per finding."`
}

// Run prints the findings. The exit code is that of the infrastructure if one is bad.
func (c *doctorCmd) Run(ctx context.Context, t *console.Terminal, common *config.Common) error {
	return c.withOperator(ctx, "btn", telemetry.Logger(t.Err, common.LogLevel, common.LogFormat), func(b *bus.Bus) error {
		places := doctor.Deployment{Bus: b, Monitoring: c.Monitoring, Listen: listenTime}
		if c.Now {
			places.Listen = 0
		}
		if c.Redis != "" && c.Redis != console.NoCache {
			connect.LogRedis(func(context.Context, string, ...any) {}) // the finding says it
			store, err := c.AsRedis.Client(c.Redis, lookTimeout)
			if err != nil {
				return err
			}
			defer store.Close()
			places.Redis = store
		}
		bad, err := doctor.Write(t.Out, doctor.Examine(ctx, places), c.JSON)
		if bad && err == nil {
			return console.Exit(config.ExitInfrastructure)
		}
		return err
	})
}
