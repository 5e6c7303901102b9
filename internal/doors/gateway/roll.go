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
	ratedOver   = time.Minute           // that rates are of
	mostWorkers = 10_000
)

// roll knows which workers are there. Its methods may be called from any goroutine.
type roll struct {
	mu    sync.Mutex
	sub   *nats.Subscription
	heard map[string][]heard // by stage and process, of the last minute, oldest first
}

// heard is a worker's message with the time of its arrival.
type heard struct {
	at time.Time
	message.Here
}

// crew is the workers of one stage.
type crew struct {
	workers  int
	versions map[string]bool
	rate     float64 // messages a second
}

// listen subscribes to the messages of workers.
func (r *roll) listen(nc *nats.Conn) (err error) {
	r.sub, err = nc.Subscribe(message.HereSubject, func(m *nats.Msg) {
		var said message.Here
		if wire.Decode(m.Data, &said) == nil {
			r.note(said, time.Now())
		}
	})
	return fault.Wrap(fault.Infrastructure, err)
}

// rest ends listening.
func (r *roll) rest() {
	if r.sub != nil {
		r.sub.Unsubscribe()
	}
}

// note adds a worker's message.
func (r *roll) note(said message.Here, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := said.Stage + " " + said.Process
	all, known := r.heard[key]
	switch {
	case said.Gone:
		delete(r.heard, key)
		return
	case r.heard == nil:
		r.heard = map[string][]heard{}
	case !known && len(r.heard) >= mostWorkers:
		r.forget(now)
		if len(r.heard) >= mostWorkers {
			return
		}
	}
	for len(all) > 1 && now.Sub(all[0].at) > ratedOver {
		all = all[1:]
	}
	if n := len(all); n > 1 && now.Sub(all[n-2].at) < message.HereEvery/2 {
		all = all[:n-1] // a worker with many messages has no more room than others
	}
	r.heard[key] = append(all, heard{now, said})
}

// forget drops silent workers. The caller holds r.mu.
func (r *roll) forget(now time.Time) {
	for key, all := range r.heard {
		if now.Sub(all[len(all)-1].at) > silentFor {
			delete(r.heard, key)
		}
	}
}

// crews returns the workers that are there, by stage.
func (r *roll) crews(now time.Time) map[string]crew {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forget(now)
	crews := map[string]crew{}
	for _, all := range r.heard {
		first, last := all[0], all[len(all)-1]
		c := crews[last.Stage]
		c.workers++
		if c.versions == nil {
			c.versions = map[string]bool{}
		}
		c.versions[last.Version] = true
		if passed := last.at.Sub(first.at).Seconds(); passed > 0 {
			c.rate += float64(max(0, last.Messages-first.Messages)) / passed
		}
		crews[last.Stage] = c
	}
	return crews
}

// add adds the workers of each stage to a status.
func (r *roll) add(stages []StageStatus, now time.Time) []StageStatus {
	crews := r.crews(now)
	all := slices.Clone(stages)
	for i := range all {
		c := crews[all[i].Stage]
		all[i].Workers, all[i].Rate, all[i].Versions = c.workers, c.rate, slices.Sorted(maps.Keys(c.versions))
	}
	return all
}
