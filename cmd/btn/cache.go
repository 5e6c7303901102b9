package main

// Looking into the cache, and removing from it.

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/basetensor/basetensor/internal/doors/config"
	"github.com/basetensor/basetensor/internal/form"
	"github.com/basetensor/basetensor/internal/jobs/cache"
	"github.com/basetensor/basetensor/internal/jobs/cached"
	"github.com/basetensor/basetensor/internal/people/console"
	"github.com/basetensor/basetensor/internal/queue/connect"
	"github.com/basetensor/basetensor/internal/queue/seal"
	"github.com/basetensor/basetensor/pkg/fault"
)

// cacheCmd are the commands on the cache of decompositions.
type cacheCmd struct {
	Ls   cacheLsCmd   `cmd:"" help:"List the entries in Redis, and sums by kind."`
	Show cacheShowCmd `cmd:"" help:"Show one entry: its age, whether it is sound, its contents."`
	Rm   cacheRmCmd   `cmd:"" help:"Remove entries. It costs time and never changes an answer."`
}

// redisFlag is the server of commands that look into the cache.
type redisFlag struct {
	Redis string `name:"redis" help:"URL of Redis." default:"redis://127.0.0.1:6379" placeholder:"URL"`

	AsRedis connect.Redis `embed:"" group:"connection"`
	Signing seal.Flags    `embed:"" group:"connection"`
}

// lookTimeout is patient where workers are not: nobody's answer waits.
const lookTimeout = 5 * time.Second

// open returns the cache in the Redis of the flags.
func (r *redisFlag) open() (*cache.Cache, error) {
	trust, err := r.Signing.Open("", nil) // no seed, because nothing is signed here
	if err != nil {
		return nil, err
	}
	client, err := r.AsRedis.Client(r.Redis, lookTimeout)
	if err != nil {
		return nil, err
	}
	return cache.NewOn(client, r.Redis, cache.Options{
		Timeout: lookTimeout,
		Secrets: trust.Keys.Secrets,
		Logger:  slog.New(slog.DiscardHandler),
	}), nil
}

// cacheLsCmd lists the entries of the cache.
type cacheLsCmd struct {
	Prefix string `arg:"" optional:"" help:"Only keys that begin with this." default:"btn:v1:"`
	redisFlag
	Circuits bool `help:"Open decompositions and circuits, and list the circuits there are with their size."`
	JSON     bool `name:"json" help:"One JSON object per entry, one line each."`
}

// entry is an entry of ls and show as JSON.
type entry struct {
	Key         string        `json:"key"`
	Kind        string        `json:"kind"`
	Bytes       int64         `json:"bytes"`
	TTLSeconds  *float64      `json:"ttl_seconds"`  // null: never expires
	IdleSeconds *float64      `json:"idle_seconds"` // null: not known
	Holds       *cached.Value `json:"holds,omitempty"`
	// the value is too large for Redis, and the blob of this digest
	Blob string `json:"blob,omitempty"`
}

// newEntry returns an entry as ls prints it. Durations below 0 are not known, and become nil.
func newEntry(e cache.Entry) entry {
	seconds := func(d time.Duration) *float64 {
		if d < 0 {
			return nil
		}
		s := d.Seconds()
		return &s
	}
	return entry{Key: e.Key, Kind: e.Kind, Bytes: e.Bytes, TTLSeconds: seconds(e.TTL), IdleSeconds: seconds(e.Idle)}
}

// Run prints a line for each entry of the cache, and on standard error the sums by kind. With --circuits it prints the
// circuits alone, and leaves out entries that are gone, broken, or stored elsewhere.
func (c *cacheLsCmd) Run(ctx context.Context, t *console.Terminal) error {
	store, err := c.open()
	if err != nil {
		return err
	}
	defer store.Close()
	entries, err := store.Entries(ctx, c.Prefix)
	if err != nil {
		return fault.Wrap(fault.Infrastructure, err)
	}

	// a line for each entry
	encoder, w := json.NewEncoder(t.Out), tabwriter.NewWriter(t.Out, 0, 8, 2, ' ', 0) // --json writes by encoder, a table by w
	if !c.JSON {
		if c.Circuits {
			fmt.Fprint(w, "EDGES\tIN MEMORY\t")
		}
		fmt.Fprintln(w, "SIZE\tEXPIRES IN\tIDLE\tKEY")
	}
	count, bytes := map[string]int{}, map[string]int64{} // by kind
	for _, e := range entries {
		count[e.Kind]++
		bytes[e.Kind] += e.Bytes
		line := newEntry(e)
		if c.Circuits {
			if !mayHoldCircuit(e) {
				continue
			}
			e, line, err = readEntry(ctx, store, e.Key)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil || line.Holds == nil || line.Holds.Circuit == nil {
				continue // it is gone, broken, stored elsewhere, or no circuit
			}
		}
		if c.JSON {
			if err := encoder.Encode(line); err != nil {
				return fault.Wrap(fault.Infrastructure, err)
			}
			continue
		}
		if c.Circuits {
			fmt.Fprintf(w, "%d\t%s\t", line.Holds.Circuit.Edges, config.FormatBytes(float64(line.Holds.Circuit.Bytes)))
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n",
			config.FormatBytes(float64(e.Bytes)), formatSpan(e.TTL, "never"), formatSpan(e.Idle, "?"), e.Key)
	}

	// the sums
	if err := w.Flush(); err != nil || c.JSON || c.Circuits {
		return fault.Wrap(fault.Infrastructure, err) // nil if err is nil
	}
	for _, kind := range slices.Sorted(maps.Keys(count)) {
		fmt.Fprintf(t.Err, "%s: %d, %s\n", kind, count[kind], config.FormatBytes(float64(bytes[kind])))
	}
	return nil
}

// mayHoldCircuit reports whether entries of the kind may hold a circuit.
func mayHoldCircuit(e cache.Entry) bool { return e.Kind == "decomposition" || e.Kind == "circuit" }

// readEntry reads an entry and describes its contents. Contents that differ from what was stored are bad input.
func readEntry(ctx context.Context, store *cache.Cache, key string) (stored cache.Entry, one entry, err error) {
	stored, value, blob, err := store.Show(ctx, key)
	if err != nil {
		code := fault.Infrastructure
		isDamaged := stored.Key != "" && value == nil // the entry was found, but its contents were not taken
		if errors.Is(err, cache.ErrNoEntry) || isDamaged {
			code = fault.BadInput
		}
		return stored, one, fault.Wrap(code, err)
	}
	one = newEntry(stored)
	one.Blob = blob
	if value != nil {
		one.Holds, err = cached.Describe(ctx, key, value)
	}
	return stored, one, fault.Wrap(fault.BadInput, err)
}

// formatSpan writes a duration in whole seconds, and none if it is negative.
func formatSpan(d time.Duration, none string) string {
	if d < 0 {
		return none
	}
	return d.Round(time.Second).String()
}

// cacheShowCmd shows one entry.
type cacheShowCmd struct {
	Key string `arg:"" help:"Key of the entry."`
	redisFlag
}

// Run prints an entry of the cache as indented JSON.
func (c *cacheShowCmd) Run(ctx context.Context, t *console.Terminal) error {
	store, err := c.open()
	if err != nil {
		return err
	}
	defer store.Close()
	_, e, err := readEntry(ctx, store, c.Key)
	if err != nil {
		return err
	}
	out := json.NewEncoder(t.Out)
	out.SetIndent("", "  ")
	return out.Encode(e)
}

// cacheRmCmd removes entries.
type cacheRmCmd struct {
	Prefix string `arg:"" optional:"" help:"Remove the keys that begin with this: btn:v1: for all."`
	Model  string `help:"Remove the entries of the registered model of this digest." placeholder:"DIGEST"`
	redisFlag
}

// Validate demands either a prefix of keys of this program or a model; kong calls it.
func (c *cacheRmCmd) Validate() error {
	switch {
	case (c.Prefix == "") == (c.Model == ""):
		return errors.New("either a prefix or --model is needed")
	case c.Model != "" && !form.IsDigest(strings.TrimPrefix(c.Model, byDigest)):
		return fmt.Errorf("--model: %q is not 64 lower-case hexadecimal digits", c.Model)
	case c.Model == "" && !strings.HasPrefix(c.Prefix, cache.Prefix):
		return fmt.Errorf("a prefix of our keys begins %s, not %q", cache.Prefix, c.Prefix)
	}
	return nil
}

// Run removes entries of the cache, by their prefix or their model, and prints how many.
func (c *cacheRmCmd) Run(ctx context.Context, t *console.Terminal) error {
	store, err := c.open()
	if err != nil {
		return err
	}
	defer store.Close()
	entries, err := store.Entries(ctx, cmp.Or(c.Prefix, cache.Prefix))
	if err != nil {
		return fault.Wrap(fault.Infrastructure, err)
	}

	digest := strings.TrimPrefix(c.Model, byDigest)
	var keys []string
	for _, e := range entries {
		if digest == "" || strings.Contains(e.Key, ":"+digest+":") {
			keys = append(keys, e.Key)
		}
	}

	n, err := store.Remove(ctx, keys...)
	if err != nil {
		return fault.Wrap(fault.Infrastructure, err)
	}
	things := "entries"
	if n == 1 {
		things = "entry"
	}
	fmt.Fprintf(t.Out, "%d %s removed\n", n, things)
	return nil
}
