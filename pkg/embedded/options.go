// Package embedded runs the whole system in one process: a NATS server, a Redis and the four workers.
//
// The server is one in memory (internal/queue/memlog) where nothing is kept on disk and no other process connects, and a nats-server
// elsewhere. It is the only package that links nats-server and miniredis. The workers are the same code that runs as four
// binaries. miniredis is a test double by its author's own account: it keeps its entries in memory, never evicts and
// has no CONFIG, INFO memory or ACL. It serves one person on one machine; a deployment runs a real redis-server.
package embedded

import (
	"cmp"
	"log/slog"

	"github.com/basetensor/basetensor/internal/queue/connect"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/pipeline"
)

// DefaultMaxPayload is the largest message of an embedded server by default: 8 MiB, the largest that
// nats-server takes without a warning. Larger payloads travel in pieces.
const DefaultMaxPayload = 8 << 20

// Options configure a Stack. The zero value keeps everything in memory and opens no port.
type Options struct {
	// Dir is where streams are kept. Empty: memory storage, in a folder that Close removes again.
	Dir string
	// Sync, with Dir, has models and answers on disk (fsync) before they are acknowledged, as deploy/nats-server.conf does.
	Sync bool
	// Listen opens the NATS port. Without it only Stack.Connect reaches the server.
	Listen bool
	// Host to listen on, default 127.0.0.1. Start refuses one that other machines reach, unless there is a Token or
	// Insecure is set.
	Host string
	// Token of clients that connect by the NATS port; "" for none.
	Token string
	// Insecure allows a NATS port that is open to other machines without a Token: every client there may do everything.
	Insecure bool
	// Port of NATS when Listen is set; 0 means any free one.
	Port int
	// RedisPort when Listen is set, 0 means any free one: without authentication, on 127.0.0.1 alone.
	RedisPort int
	// MaxPayload in bytes, default DefaultMaxPayload.
	MaxPayload int32
	// NoRedis starts no Redis: every job learns its decompositions.
	NoRedis bool
	// Setup are the settings of the streams. InMemory follows Dir.
	Setup pipeline.Streams
	// Logger receives the server's warnings; nil drops them.
	Logger *slog.Logger
}

// check refuses a NATS port without authentication that other machines reach, unless Insecure is set.
func (o Options) check() error {
	if o.Listen && !o.Insecure && o.Token == "" && !connect.OwnHost(o.Host) {
		return fault.New(fault.BadInput,
			"embedded: NATS at %s is open to other machines, with every right for all of them: "+
				"it needs a token (--nats-token-file), or --insecure where only trusted clients reach it", o.Host)
	}
	return nil
}

// withDefaults returns the options with defaults in place of zeros.
func (o Options) withDefaults() Options {
	o.Host = cmp.Or(o.Host, "127.0.0.1")
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.MaxPayload = cmp.Or(o.MaxPayload, DefaultMaxPayload)
	return o
}
