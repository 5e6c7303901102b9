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
	Level string `json:"level"`        // Good, Warning, Bad or Unknown
	Part  string `json:"part"`         // the part of the deployment: a server, a stream, the workers
	Says  string `json:"says"`         // what was found
	Do    string `json:"do,omitempty"` // the remedy
}

// Advice returns a line with the finding and its remedy; "" if the finding is good.
func (f Finding) Advice() string {
	if f.Level == Good {
		return ""
	}
	return fmt.Sprintf("%s: %s: %s\n", f.Part, f.Says, f.Do)
}

// Write writes findings, as text or as one JSON object each. bad is true if one of them has the level Bad.
func Write(out io.Writer, findings []Finding, asJSON bool) (bad bool, err error) {
	for _, f := range findings {
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

// Deployment are the parts of a deployment.
type Deployment struct {
	Bus        *bus.Bus    // the streams and the connection to the server
	Monitoring string      // URL of a server's monitoring port; "" for none
	Redis      interface { // nil: none
		Do(ctx context.Context, command ...any) (any, error)
	} // nil: none
	Listen time.Duration // how long to listen to the workers, who say every message.HereEvery which keys they have; 0: not at all
}

// maxSkew is the difference between the server's clock and this machine's above which a finding is a warning: deadlines
// and ages are by the server's clock.
const maxSkew = time.Second

// fullShare is the share of a stream's room above which its finding is Bad: jobs are refused soon.
const fullShare = 0.75

// Examine returns the findings about all parts of a deployment. A part that could not be examined has a finding of the
// level Unknown.
func Examine(ctx context.Context, p Deployment) []Finding {
	heardWorkers := listenToWorkers(ctx, p.Bus.Conn.NC, p.Listen)
	findings := []Finding{Version(p.Bus.Conn.NC.ConnectedServerVersion()), checkSync(ctx, p.Monitoring)}
	findings = append(findings, checkClock(ctx, p.Bus.Conn))
	findings = append(findings, checkStreams(ctx, p.Bus.Conn)...)
	findings = append(findings, checkLanes(ctx, p.Bus.Conn))
	findings = append(findings, checkKeys(heardWorkers())...) // waits for the end of p.Listen
	findings = append(findings, checkRegistered(ctx, p.Bus.Models)...)
	return append(findings, checkRedis(ctx, p.Redis)...)
}

// Version judges a version of nats-server: Bad if it lacks what the project needs, a Warning if it may lose
// acknowledged messages.
func Version(version string) Finding {
	f := Finding{Good, "nats-server", "version " + version, ""}
	switch isUsable, isDurable, isKnown := bus.ServerVersion(version); {
	case !isKnown:
		f = Finding{Unknown, "nats-server", fmt.Sprintf("version %q", version), ""}
	case !isUsable:
		f.Level, f.Do = Bad, "upgrade: timers and the conditions of publishes need 2.14.3"
	case !isDurable:
		f.Level, f.Do = Warning, "upgrade: "+bus.NotDurable
	}
	return f
}

// checkSync finds out how often the server writes to its disk. It asks the monitoring port at url: no other place says
// it.
func checkSync(ctx context.Context, url string) Finding {
	const part = "writes"
	if url == "" {
		return Finding{Unknown, part, "how often the server syncs its disk, its monitoring port alone says", "give --monitoring http://HOST:8222"}
	}
	var response struct {
		Config struct {
			Interval time.Duration `json:"sync_interval"`
			Always   bool          `json:"sync_always"`
		} `json:"config"`
	}
	if err := fetchJSON(ctx, strings.TrimSuffix(url, "/")+"/jsz?config=true", &response); err != nil {
		return Finding{Unknown, part, err.Error(), "give --monitoring http://HOST:8222"}
	}
	if response.Config.Always {
		return Finding{Good, part, "every acknowledged message is on the disk", ""}
	}
	return Finding{
		Warning, part, fmt.Sprintf("up to %v of acknowledged jobs are lost when the power fails", max(response.Config.Interval, 0)),
		"set sync_interval: always in the jetstream block, as deploy/nats-server.conf does, or have clients submit again",
	}
}

// fetchJSON decodes the JSON object at url into target, at most 8 MiB of it, within 5 seconds.
func fetchJSON(ctx context.Context, url string, target any) error {
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
	const maxBytes = 8 << 20
	return json.NewDecoder(io.LimitReader(reply.Body, maxBytes)).Decode(target)
}

// checkClock compares the server's clock with this machine's.
func checkClock(ctx context.Context, c *bus.Conn) Finding {
	const part = "clock"
	if err := c.Synchronize(ctx); err != nil {
		return Finding{Unknown, part, err.Error(), ""}
	}
	lead := time.Until(c.Now())
	if lead.Abs() > maxSkew {
		return Finding{
			Warning, part, fmt.Sprintf("the server's is %v ahead of this machine's", lead.Round(time.Millisecond)),
			"synchronise both: deadlines are by the server's",
		}
	}
	return Finding{Good, part, fmt.Sprintf("%v beside this machine's", lead.Abs().Round(time.Millisecond)), ""}
}

// streamNames are the streams of a deployment.
var streamNames = []string{
	bus.StreamModel, bus.StreamNetwork, bus.StreamTask, bus.StreamPartial, bus.StreamAnswer, bus.StreamBlob, bus.StreamGraph, bus.StreamDead,
	bus.StreamControl, bus.StreamDeadline,
}

// isIrreplaceable has the streams whose loss loses jobs or answers; the content of the others is made again.
var isIrreplaceable = map[string]bool{bus.StreamModel: true, bus.StreamAnswer: true, bus.StreamGraph: true}

// checkStreams returns the faults of all streams, or one good finding if there is none. A stream that is missing or
// cannot be looked at is a finding too.
func checkStreams(ctx context.Context, c *bus.Conn) (findings []Finding) {
	clustered := c.NC.ConnectedClusterName() != ""
	for _, name := range streamNames {
		s, err := c.JS.Stream(ctx, name)
		switch {
		case errors.Is(err, jetstream.ErrStreamNotFound):
			findings = append(findings, Finding{Bad, name, "the stream is missing", "run btn setup"})
			continue
		case err != nil:
			findings = append(findings, Finding{Unknown, name, err.Error(), "an operator's credentials may look at streams"})
			continue
		}
		findings = append(findings, checkStream(name, s.CachedInfo(), clustered)...)
	}
	if len(findings) == 0 {
		findings = []Finding{{Good, "streams", fmt.Sprintf("all %d are there, with room", len(streamNames)), ""}}
	}
	return findings
}

// checkStream returns the faults of one stream: too full, in memory, with too few replicas, without a leader, or with a
// replica that is away.
func checkStream(name string, info *jetstream.StreamInfo, clustered bool) (findings []Finding) {
	add := func(level, says, do string) { findings = append(findings, Finding{level, name, says, do}) }
	config := info.Config
	if maxBytes := float64(config.MaxBytes); maxBytes > 0 && float64(info.State.Bytes) > fullShare*maxBytes {
		percent := 100 * float64(info.State.Bytes) / maxBytes
		add(Bad, fmt.Sprintf("%.0f %% of its room is taken: jobs are refused", percent), "give it more with btn setup --max-bytes")
	}
	if isIrreplaceable[name] && config.Storage == jetstream.MemoryStorage {
		add(Warning, "kept in memory: a restart of the server loses jobs", "set it up on a server with a disk")
	}
	if clustered && config.Replicas < 3 {
		add(Warning, fmt.Sprintf("%d replica(s): it stands still while its server is away", config.Replicas), "run btn setup --replicas 3")
	}
	if info.Cluster == nil {
		return findings
	}
	if clustered && info.Cluster.Leader == "" {
		add(Bad, "it has no leader: nothing is stored", "bring its servers back")
	}
	for _, peer := range info.Cluster.Replicas {
		if peer.Offline || !peer.Current {
			add(Warning, fmt.Sprintf("server %s is away or behind by %d", peer.Name, peer.Lag), "look at that server")
		}
	}
	return findings
}

// checkRegistered returns a warning for each message among the registered models that cannot be read, or one good
// finding with their number.
func checkRegistered(ctx context.Context, models *bus.Models) (findings []Finding) {
	const part = "registered"
	list, err := models.List(ctx)
	if err != nil {
		return []Finding{{Unknown, part, err.Error(), ""}}
	}
	for _, skipped := range list.Skipped {
		name, hasNoOwner := strings.CutPrefix(skipped.Subject, message.GraphSubject("", ""))
		if !hasNoOwner { // the name begins with the owner
			name = strings.TrimPrefix(skipped.Subject, wire.Prefix+string(message.KindGraph)+".")
		}
		findings = append(findings, Finding{Warning, part, "cannot be read and is skipped: " + skipped.String(), "btn model rm " + name})
	}
	if len(findings) == 0 {
		findings = []Finding{{Good, part, fmt.Sprintf("%d models, %d names", len(list.Models), len(list.Names)), ""}}
	}
	return findings
}

// checkLanes looks for workers of every lane. Nobody serves a lane if three looks, half a second apart, find no worker:
// a busy worker asks for one lane after the other.
func checkLanes(ctx context.Context, b interface {
	CheckLane(ctx context.Context, lane int) (nobody bool, err error)
}) Finding {
	for lane := range wire.Lanes {
		_, err := b.CheckLane(ctx, lane) // whether other lanes are served does not matter: all are looked at
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

// checkRedis judges the memory settings of Redis: its limit and what it does when that is reached. store may be nil:
// answers need no Redis, they only take longer.
func checkRedis(ctx context.Context, store interface {
	Do(ctx context.Context, command ...any) (any, error)
}) []Finding {
	const part = "redis"
	if store == nil {
		return nil
	}
	// Ask for the settings of its memory, and measure how long it takes to answer.
	began := time.Now()
	response, err := store.Do(ctx, "INFO", "memory")
	duration := time.Since(began)
	if err != nil {
		return []Finding{{Warning, part, err.Error(), "answers are the same without it, and nothing is remembered"}}
	}

	// The response has a line "name:value" for each setting.
	fields := map[string]string{}
	text, _ := response.(string)
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}

	// Without a limit of memory or a policy of eviction it fills up.
	switch policy := fields["maxmemory_policy"]; {
	case policy == "":
		return []Finding{{Unknown, part, "it does not say what it does when its memory is full", ""}}
	case fields["maxmemory"] == "0":
		return []Finding{{Warning, part, "no limit of memory", "set maxmemory, with maxmemory-policy allkeys-lru"}}
	case policy == "noeviction":
		return []Finding{{Warning, part, "when its memory is full it takes nothing new (noeviction)", "set maxmemory-policy allkeys-lru"}}
	default:
		return []Finding{{Good, part, fmt.Sprintf("answers in %v, policy %s", duration.Round(100*time.Microsecond), policy), ""}}
	}
}
