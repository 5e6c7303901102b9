// Package doctor examines a deployment from outside: it finds causes of lost, refused and waiting jobs, and remedies.
package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go/jetstream"
)

// Levels of findings.
const (
	Good    = "good"
	Warning = "warning" // something may be lost, or is slower than it has to be
	Bad     = "bad"     // jobs are refused, lost or not answered
	Unknown = "unknown" // it could not be found out
)

// Finding is a finding about one part of a deployment.
type Finding struct {
	Level string `json:"level"`
	Part  string `json:"part"`
	Says  string `json:"says"`
	Do    string `json:"do,omitempty"` // the remedy
}

// Advice is a line about a finding that is not good, else nothing.
func (f Finding) Advice() string {
	if f.Level == Good {
		return ""
	}
	return fmt.Sprintf("%s: %s: %s\n", f.Part, f.Says, f.Do)
}

// Write writes findings, as text or as one JSON object each, and reports whether one is bad.
func Write(out io.Writer, all []Finding, asJSON bool) (bad bool, err error) {
	for _, f := range all {
		bad = bad || f.Level == Bad
		if asJSON {
			err = json.NewEncoder(out).Encode(f)
		} else if _, err = fmt.Fprintf(out, "%-8s %-14s %s\n", f.Level, f.Part, f.Says); err == nil && f.Do != "" {
			_, err = fmt.Fprintf(out, "%24s→ %s\n", "", f.Do)
		}
		if err != nil {
			return bad, err
		}
	}
	return bad, nil
}

// Places are the parts of a deployment.
type Places struct {
	Bus        *bus.Bus
	Monitoring string      // URL of a server's monitoring port, "" for none
	Redis      interface { // nil: none
		Do(ctx context.Context, command ...any) (any, error)
	}
	Listen time.Duration // to the workers, who say every message.HereEvery which keys they have; 0: not at all
}

// skew is the difference between two clocks that is worth a word: deadlines and ages are by the server's.
const skew = time.Second

// crowded is the share of a stream's room above which jobs are refused soon.
const crowded = 0.75

// Examine examines all parts. What cannot be found out is a finding too.
func Examine(ctx context.Context, p Places) []Finding {
	heard := listen(ctx, p.Bus.Conn.NC, p.Listen)
	all := []Finding{Version(p.Bus.Conn.NC.ConnectedServerVersion()), synced(ctx, p.Monitoring)}
	all = append(all, clock(ctx, p.Bus.Conn))
	all = append(all, streams(ctx, p.Bus.Conn)...)
	all = append(all, lanes(ctx, p.Bus.Conn))
	all = append(all, keys(heard())...)
	all = append(all, registered(ctx, p.Bus.Models)...)
	return append(all, remembered(ctx, p.Redis)...)
}

// Version says whether a version of nats-server is one to run on.
func Version(said string) Finding {
	f := Finding{Good, "nats-server", "version " + said, ""}
	switch usable, durable, known := bus.ServerVersion(said); {
	case !known:
		f = Finding{Unknown, "nats-server", fmt.Sprintf("version %q", said), ""}
	case !usable:
		f.Level, f.Do = Bad, "upgrade: timers and the conditions of publishes need 2.14.3"
	case !durable:
		f.Level, f.Do = Warning, "upgrade: "+bus.NotDurable
	}
	return f
}

// synced asks the monitoring port how often a server writes to its disk.
func synced(ctx context.Context, url string) Finding {
	const part = "writes"
	if url == "" {
		return Finding{Unknown, part, "how often the server syncs its disk, its monitoring port alone says", "give --monitoring http://HOST:8222"}
	}
	var said struct {
		Config struct {
			Interval time.Duration `json:"sync_interval"`
			Always   bool          `json:"sync_always"`
		} `json:"config"`
	}
	if err := read(ctx, strings.TrimSuffix(url, "/")+"/jsz?config=true", &said); err != nil {
		return Finding{Unknown, part, err.Error(), "give --monitoring http://HOST:8222"}
	}
	if said.Config.Always {
		return Finding{Good, part, "every acknowledged message is on the disk", ""}
	}
	return Finding{
		Warning, part, fmt.Sprintf("up to %v of acknowledged jobs are lost when the power fails", max(said.Config.Interval, 0)),
		"set sync_interval: always in the jetstream block, as deploy/nats-server.conf does, or have clients submit again",
	}
}

// read fetches a JSON object.
func read(ctx context.Context, url string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	reply, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	if reply.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, reply.Status)
	}
	const most = 8 << 20
	return json.NewDecoder(io.LimitReader(reply.Body, most)).Decode(into)
}

func clock(ctx context.Context, c *bus.Conn) Finding {
	const part = "clock"
	if err := c.Synchronize(ctx); err != nil {
		return Finding{Unknown, part, err.Error(), ""}
	}
	off := time.Until(c.Now())
	if off.Abs() > skew {
		return Finding{
			Warning, part, fmt.Sprintf("the server's is %v ahead of this machine's", off.Round(time.Millisecond)),
			"synchronise both: deadlines are by the server's",
		}
	}
	return Finding{Good, part, fmt.Sprintf("%v beside this machine's", off.Abs().Round(time.Millisecond)), ""}
}

// names are the streams of a deployment.
var names = []string{
	bus.StreamModel, bus.StreamNetwork, bus.StreamTask, bus.StreamPartial, bus.StreamAnswer, bus.StreamBlob, bus.StreamGraph, bus.StreamDead,
	bus.StreamControl, bus.StreamDeadline,
}

// kept are the streams whose loss loses jobs or answers; the others are made again.
var kept = map[string]bool{bus.StreamModel: true, bus.StreamAnswer: true, bus.StreamGraph: true}

func streams(ctx context.Context, c *bus.Conn) (all []Finding) {
	clustered := c.NC.ConnectedClusterName() != ""
	for _, name := range names {
		s, err := c.JS.Stream(ctx, name)
		switch {
		case errors.Is(err, jetstream.ErrStreamNotFound):
			all = append(all, Finding{Bad, name, "the stream is missing", "run btn setup"})
			continue
		case err != nil:
			all = append(all, Finding{Unknown, name, err.Error(), "an operator's credentials may look at streams"})
			continue
		}
		all = append(all, stream(name, s.CachedInfo(), clustered)...)
	}
	if len(all) == 0 {
		all = []Finding{{Good, "streams", fmt.Sprintf("all %d are there, with room", len(names)), ""}}
	}
	return all
}

// stream returns the faults of one stream.
func stream(name string, info *jetstream.StreamInfo, clustered bool) (all []Finding) {
	add := func(level, says, do string) { all = append(all, Finding{level, name, says, do}) }
	c := info.Config
	if most := float64(c.MaxBytes); most > 0 && float64(info.State.Bytes) > crowded*most {
		share := 100 * float64(info.State.Bytes) / most
		add(Bad, fmt.Sprintf("%.0f %% of its room is taken: jobs are refused", share), "give it more with btn setup --max-bytes")
	}
	if kept[name] && c.Storage == jetstream.MemoryStorage {
		add(Warning, "kept in memory: a restart of the server loses jobs", "set it up on a server with a disk")
	}
	if clustered && c.Replicas < 3 {
		add(Warning, fmt.Sprintf("%d replica(s): it stands still while its server is away", c.Replicas), "run btn setup --replicas 3")
	}
	if info.Cluster == nil {
		return all
	}
	if clustered && info.Cluster.Leader == "" {
		add(Bad, "it has no leader: nothing is stored", "bring its servers back")
	}
	for _, peer := range info.Cluster.Replicas {
		if peer.Offline || !peer.Current {
			add(Warning, fmt.Sprintf("server %s is away or behind by %d", peer.Name, peer.Lag), "look at that server")
		}
	}
	return all
}

// registered lists the messages among the registered models that cannot be read.
func registered(ctx context.Context, models *bus.Models) (all []Finding) {
	const part = "registered"
	r, err := models.List(ctx)
	if err != nil {
		return []Finding{{Unknown, part, err.Error(), ""}}
	}
	for _, s := range r.Skipped {
		name, isEverybodys := strings.CutPrefix(s.Subject, message.GraphSubject("", ""))
		if !isEverybodys {
			name = strings.TrimPrefix(s.Subject, wire.Prefix+string(message.KindGraph)+".")
		}
		all = append(all, Finding{Warning, part, "cannot be read and is skipped: " + s.String(), "btn model rm " + name})
	}
	if len(all) == 0 {
		all = []Finding{{Good, part, fmt.Sprintf("%d models, %d names", len(r.Models), len(r.Names)), ""}}
	}
	return all
}

// lanes looks for workers. A busy one asks lane after lane, so a lane is looked at three times before nobody serves it.
func lanes(ctx context.Context, b interface {
	CheckLane(ctx context.Context, lane int) (nobody bool, err error)
}) Finding {
	for lane := range wire.Lanes {
		_, err := b.CheckLane(ctx, lane)
		for looks := 1; err != nil && looks < 3 && ctx.Err() == nil; looks++ {
			select {
			case <-ctx.Done():
			case <-time.After(time.Second / 2):
			}
			_, err = b.CheckLane(ctx, lane)
		}
		if err != nil {
			return Finding{Bad, "workers", err.Error(), "start workers of all four stages, for all lanes"}
		}
	}
	return Finding{Good, "workers", "all four stages take jobs of every lane", ""}
}

// remembered looks at Redis, which nothing needs and everything is faster with.
func remembered(ctx context.Context, store interface {
	Do(ctx context.Context, command ...any) (any, error)
}) []Finding {
	const part = "redis"
	if store == nil {
		return nil
	}
	began := time.Now()
	said, err := store.Do(ctx, "INFO", "memory")
	took := time.Since(began)
	if err != nil {
		return []Finding{{Warning, part, err.Error(), "answers are the same without it, and nothing is remembered"}}
	}
	fields := map[string]string{}
	text, _ := said.(string)
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	switch policy := fields["maxmemory_policy"]; {
	case policy == "":
		return []Finding{{Unknown, part, "it does not say what it does when its memory is full", ""}}
	case fields["maxmemory"] == "0":
		return []Finding{{Warning, part, "no limit of memory", "set maxmemory, with maxmemory-policy allkeys-lru"}}
	case policy == "noeviction":
		return []Finding{{Warning, part, "when its memory is full it takes nothing new (noeviction)", "set maxmemory-policy allkeys-lru"}}
	default:
		return []Finding{{Good, part, fmt.Sprintf("answers in %v, policy %s", took.Round(100*time.Microsecond), policy), ""}}
	}
}
