package gateway

// The roll of workers, by their own messages.

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
)

// Bounds of the roll.
const (
	silentFor   = 4 * message.HereEvery // after which a worker is not there any more
	rateTime    = time.Minute           // that rates are of
	mostWorkers = 10_000
)

// workerRoll knows which workers are there. Its methods may be called from any goroutine.
type workerRoll struct {
	mu      sync.Mutex
	sub     *nats.Subscription  // nil: it does not listen
	reports map[string][]report // by stage and process, the messages of the last minute, oldest first
}

// report is a worker's message with the time of its arrival.
type report struct {
	arrival time.Time
	message.Here
}

// crew is the workers of one stage.
type crew struct {
	workers  int
	versions map[string]bool
	rate     float64 // messages a second
}

// listen subscribes to the messages of workers.
func (r *workerRoll) listen(nc *nats.Conn) (err error) {
	r.sub, err = nc.Subscribe(message.HereSubject, func(m *nats.Msg) {
		var report message.Here
		if wire.Decode(m.Data, &report) == nil {
			r.add(report, time.Now())
		}
	})
	return fault.Wrap(fault.Infrastructure, err)
}

// stop ends listening.
func (r *workerRoll) stop() {
	if r.sub != nil {
		r.sub.Unsubscribe()
	}
}

// add notes a worker's message, or forgets the worker if the message says that it goes. If mostWorkers workers are known, it notes no new
// one. Of each worker it keeps the messages of the last minute, from which its rate follows.
func (r *workerRoll) add(latest message.Here, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := latest.Stage + " " + latest.Process
	messages, isKnown := r.reports[key]
	switch {
	case latest.Gone:
		delete(r.reports, key)
		return
	case r.reports == nil:
		r.reports = map[string][]report{}
	case !isKnown && len(r.reports) >= mostWorkers:
		r.dropSilent(now)
		if len(r.reports) >= mostWorkers {
			return
		}
	}

	// Drop messages that are older than the last minute. If messages come faster than workers report, the latest replaces the last one.
	for len(messages) > 1 && now.Sub(messages[0].arrival) > rateTime {
		messages = messages[1:]
	}
	if n := len(messages); n > 1 && now.Sub(messages[n-2].arrival) < message.HereEvery/2 {
		messages = messages[:n-1]
	}
	r.reports[key] = append(messages, report{now, latest})
}

// dropSilent drops workers that were silent for too long. The caller holds r.mu.
func (r *workerRoll) dropSilent(now time.Time) {
	for key, messages := range r.reports {
		if now.Sub(messages[len(messages)-1].arrival) > silentFor {
			delete(r.reports, key)
		}
	}
}

// crews returns, by stage, the number of workers that are there, their versions, and how many messages a second they finish.
func (r *workerRoll) crews(now time.Time) map[string]crew {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dropSilent(now)
	crews := map[string]crew{}
	for _, messages := range r.reports {
		first, last := messages[0], messages[len(messages)-1]
		c := crews[last.Stage]
		c.workers++
		if c.versions == nil {
			c.versions = map[string]bool{}
		}
		c.versions[last.Version] = true
		if seconds := last.arrival.Sub(first.arrival).Seconds(); seconds > 0 {
			c.rate += float64(max(0, last.Messages-first.Messages)) / seconds
		}
		crews[last.Stage] = c
	}
	return crews
}

// withWorkers returns a copy of the stages with the workers of each.
func (r *workerRoll) withWorkers(stages []StageStatus, now time.Time) []StageStatus {
	crews := r.crews(now)
	copied := slices.Clone(stages)
	for i := range copied {
		c := crews[copied[i].Stage]
		copied[i].Workers, copied[i].Rate, copied[i].Versions = c.workers, c.rate, slices.Sorted(maps.Keys(c.versions))
	}
	return copied
}
