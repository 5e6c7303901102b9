package workers

// Contract-workers of several numeric kinds beside each other: which of them computes the tasks of a
// job, so that its values have the bits of one.

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"log/slog"
	"maps"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/basetensor/basetensor/internal/jobs/cached"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nuid"
)

// Arithmetic stands for another processor's arithmetic, in tests.
type Arithmetic struct {
	Kind  string
	Round func([]btn.UnitValue) // changes the values of a task as that processor would
}

const (
	// saysEvery is how often a contract-worker says that it is there, in heartbeats: every second.
	// After silentFor times that it is not there any more.
	announceEvery = 2
	silentAfter   = 4

	// passFirst and passMost bound the pause until a task is delivered again that a worker of
	// another kind passed on. The bound doubles with every delivery, and the pause is drawn below it: with equal pauses, two tasks of two
	// kinds came to the wrong one of two workers in turn, without end.
	firstPassPause   = time.Millisecond
	longestPassPause = 250 * time.Millisecond

	// replayedSays is the age from which a worker's announcement is not believed: somebody may have
	// sent it again.
	oldestAnnouncement = 10 * time.Second
)

// kinds knows which numeric kinds of contract-workers there are.
type kinds struct {
	bus      *bus.Bus
	log      *slog.Logger
	own      string        // kind of this process
	interval time.Duration // pause between announcements of workers

	isContractWorker bool // this process is a contract-worker

	mu            sync.Mutex
	announcements map[string]announcement // by process
	records       map[string]*kindRecord  // by kind
	anyReturned   bool                    // a task of some kind was seen to return
	started       time.Time               // when this process began
	heardOther    bool                    // another kind than this process's was ever heard of
}

// said is the last announcement of a process.
type announcement struct {
	kind  string
	cores int
	at    time.Time
}

func newKinds(b *bus.Bus, log *slog.Logger, heartbeat time.Duration, fake *Arithmetic) *kinds {
	k := &kinds{
		bus:           b,
		log:           log,
		own:           cached.NumericKind(),
		interval:      announceEvery * heartbeat,
		announcements: map[string]announcement{},
		records:       map[string]*kindRecord{},
		started:       time.Now(),
	}
	if fake != nil {
		k.own = fake.Kind
	}
	return k
}

// say says that this process takes tasks, until ctx ends.
func (k *kinds) announce(ctx context.Context) error {
	m := &message.Serves{Process: nuid.Next(), Numeric: k.own, Cores: runtime.GOMAXPROCS(0)}
	return runEvery(ctx, k.interval, func(isLast bool) {
		m.Gone = isLast
		m.Time = k.bus.Conn.Now().UnixMilli()
		k.note(m)
		if b, err := wire.Encode(m); err == nil {
			k.bus.Log.Publish(&nats.Msg{Subject: message.ServesSubject, Header: message.Headers(m, "", "", ""), Data: b})
		}
	})
}

// listen receives the announcements of contract-workers until ctx ends.
func (k *kinds) listen(ctx context.Context) error {
	s, err := k.bus.Conn.NC.Subscribe(message.ServesSubject, k.receive)
	if err != nil {
		k.log.Warn("cannot hear of contract-workers of other numeric kinds", "error", err)
		return nil
	}
	defer s.Unsubscribe()
	<-ctx.Done()
	return nil
}

// hear takes an announcement of a contract-worker.
func (k *kinds) receive(msg *nats.Msg) {
	var m message.Serves
	if !k.bus.Signer.Genuine(msg.Subject, msg.Header, msg.Data) || wire.Decode(msg.Data, &m) != nil {
		return
	}
	if age := k.bus.Conn.Since(time.UnixMilli(m.Time)).Abs(); age > oldestAnnouncement {
		k.log.Debug("a contract-worker's word is old", "process", m.Process, "age", age)
		return
	}
	k.note(&m)
}

// learn notes an announcement of a contract-worker.
func (k *kinds) note(m *message.Serves) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if m.Gone {
		delete(k.announcements, m.Process)
		return
	}
	if _, known := k.announcements[m.Process]; !known {
		k.dropSilent()
	}
	k.announcements[m.Process] = announcement{m.Numeric, m.Cores, time.Now()}
	if m.Numeric != k.own && !k.heardOther {
		k.heardOther = true
		k.log.Info("contract-workers of another numeric kind are there", "kind", m.Numeric, "own", k.own)
	}
}

// forget drops the processes that have been silent for too long. The caller holds k.mu.
func (k *kinds) dropSilent() {
	maps.DeleteFunc(k.announcements, func(_ string, s announcement) bool { return time.Since(s.at) > silentAfter*k.interval })
}

// mixed reports whether another kind than this process's was ever heard of, or may be there.
func (k *kinds) mayBeMixed() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.heardOther || time.Since(k.started) < silentAfter*k.interval
}

// cores returns the cores of each kind that is there. The caller holds k.mu.
func (k *kinds) coresByKind() map[string]int {
	k.dropSilent()
	cores := map[string]int{}
	for _, s := range k.announcements {
		cores[s.kind] += s.cores
	}
	return cores
}

// give returns the kind that is to compute the tasks of a new job, the largest of so many flops; "" if none is known.
func (k *kinds) assign(lane int, job string, flops float64, deadline time.Duration) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	cores, kind := k.coresByKind(), ""
	if deadline == 0 || deadline > trialDeadline {
		kind = k.trialKind(cores, time.Now())
	}
	if kind == "" {
		kind = rendezvous(job, k.trustedKinds(cores, func(w *kindRecord) bool { return w.believed }))
	}
	if len(cores) > 1 { // else no other kind could do it
		k.noteWaiting(kind, lane, job, flops)
	}
	return kind
}

// pass returns for how long a task is passed on that workers of another kind are to compute; 0:
// this process computes it. A job of one task has the bits of one kind, whichever worker computes
// it.
func (k *kinds) passPause(d *bus.Delivered, named string) time.Duration {
	if named == k.own || named == "" && !k.mayBeMixed() {
		return 0
	}
	s, err := message.ParseSubject(d.Subject)
	if err != nil || s.N <= 1 {
		return 0
	}
	kind := k.currentKind(s.Job, named)
	if kind == "" || kind == k.own {
		return 0
	}
	flops, _ := message.Cost(d.Header)
	k.mu.Lock()
	k.noteWaiting(kind, s.Lane, s.Job, flops)
	k.mu.Unlock()
	most := min(firstPassPause<<min(d.Attempt-1, 20), longestPassPause)
	return most/2 + rand.N(most/2) + 1
}

// choose returns the kind that is to compute a job's tasks, where they name one. It stays the same while the named
// one is there and returns tasks, or may be: not heard yet. Every process that hears and sees the same says the same.
func (k *kinds) currentKind(job, named string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	cores, now := k.coresByKind(), time.Now()
	trusted := k.trustedKinds(cores, func(w *kindRecord) bool { return w.believed || now.Sub(w.doubtedAt) > doubtFor })
	if named != "" && (trusted[named] > 0 || cores[named] == 0 && now.Sub(k.started) < silentAfter*k.interval) {
		return named
	}
	return rendezvous(job, trusted)
}

// rendezvous returns a kind for a job: each has a share of the jobs as of the cores, and where one
// comes or goes only its own jobs change.
func rendezvous(job string, cores map[string]int) string {
	best, most := "", math.Inf(-1)
	for _, kind := range slices.Sorted(maps.Keys(cores)) {
		h := sha256.Sum256([]byte(job + " " + kind))
		u := (float64(binary.BigEndian.Uint32(h[:])) + 0.5) / (1 << 32)
		if score := float64(cores[kind]) / -math.Log(u); score > most {
			best, most = kind, score
		}
	}
	return best
}
