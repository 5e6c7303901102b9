package workers

// Contract-workers of several numeric kinds may serve together. One kind computes all tasks of a job, so that its values have the bits of
// that kind. learn-worker assigns the kind, and contract-workers pass the tasks of other kinds on.

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
	// announceEvery is the interval of a contract-worker's announcements, in heartbeats: with the default heartbeat, a second.
	announceEvery = 2
	// silentAfter is the number of intervals without an announcement after which a contract-worker is taken for gone.
	silentAfter = 4

	// firstPassPause and longestPassPause bound the pause until a task is delivered again that a worker of another kind passed on. The bound
	// doubles with every delivery, and the pause is drawn below it: with equal pauses, two tasks of two kinds came to the wrong one of two
	// workers in turn, without end.
	firstPassPause   = time.Millisecond
	longestPassPause = 250 * time.Millisecond

	// oldestAnnouncement is the age from which an announcement is not believed, because somebody may have sent it again.
	oldestAnnouncement = 10 * time.Second
)

// kinds knows which numeric kinds of contract-workers there are, and whether they return their tasks.
type kinds struct {
	bus      *bus.Bus
	log      *slog.Logger
	ownKind  string        // the kind of this process
	interval time.Duration // between two announcements of a worker

	isContractWorker bool // a worker of this process is a contract-worker

	mu            sync.Mutex
	announcements map[string]announcement // the last one of each process
	records       map[string]*kindRecord  // by kind
	anyReturned   bool                    // a task of some kind was seen to return
	started       time.Time               // when this process began
	heardOther    bool                    // a kind other than that of this process was heard of at some time
}

// announcement is what a contract-worker announced: its kind and its number of cores.
type announcement struct {
	kind  string
	cores int
	at    time.Time // when it came
}

func newKinds(b *bus.Bus, log *slog.Logger, heartbeat time.Duration, fake *Arithmetic) *kinds {
	k := &kinds{
		bus:           b,
		log:           log,
		ownKind:       cached.NumericKind(),
		interval:      announceEvery * heartbeat,
		announcements: map[string]announcement{},
		records:       map[string]*kindRecord{},
		started:       time.Now(),
	}
	if fake != nil {
		k.ownKind = fake.Kind
	}
	return k
}

// announce announces that this process takes tasks, until ctx ends.
func (k *kinds) announce(ctx context.Context) error {
	m := &message.Serves{Process: nuid.Next(), Numeric: k.ownKind, Cores: runtime.GOMAXPROCS(0)}
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

// receive notes an announcement of a contract-worker, if it is genuine and not old.
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

// note notes an announcement of a contract-worker.
func (k *kinds) note(m *message.Serves) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if m.Gone {
		delete(k.announcements, m.Process)
		return
	}
	if _, ok := k.announcements[m.Process]; !ok {
		k.dropSilent()
	}
	k.announcements[m.Process] = announcement{m.Numeric, m.Cores, time.Now()}
	if m.Numeric != k.ownKind && !k.heardOther {
		k.heardOther = true
		k.log.Info("contract-workers of another numeric kind are there", "kind", m.Numeric, "own", k.ownKind)
	}
}

// dropSilent forgets the processes that have been silent for too long. The caller holds k.mu.
func (k *kinds) dropSilent() {
	maps.DeleteFunc(k.announcements, func(_ string, a announcement) bool { return time.Since(a.at) > silentAfter*k.interval })
}

// mayBeMixed reports whether a kind other than that of this process was heard of at some time, or may not have been heard yet.
func (k *kinds) mayBeMixed() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.heardOther || time.Since(k.started) < silentAfter*k.interval
}

// coresByKind returns the number of cores of each kind that is there. The caller holds k.mu.
func (k *kinds) coresByKind() map[string]int {
	k.dropSilent()
	cores := map[string]int{}
	for _, a := range k.announcements {
		cores[a.kind] += a.cores
	}
	return cores
}

// assign returns the kind that is to compute the tasks of a new job, "" if none is known. flops is the work of the largest task. A doubted
// kind gets a job as a trial, unless the job's deadline is near; 0 means that the job has none.
func (k *kinds) assign(lane int, job string, flops float64, deadline time.Duration) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	cores, kind := k.coresByKind(), ""
	if deadline == 0 || deadline > trialDeadline {
		kind = k.trialKind(cores, time.Now())
	}
	if kind == "" {
		kind = rendezvous(job, k.trustedKinds(cores, func(r *kindRecord) bool { return r.isBelieved }))
	}
	if len(cores) > 1 { // a single kind is not doubted, because no other kind could do its work
		k.noteWaiting(kind, lane, job, flops)
	}
	return kind
}

// passPause returns the pause after which a task is to be delivered again, because workers of another kind are to compute it. It returns 0
// if this process is to compute it. Any worker computes the task of a job of one task, which has the bits of one kind in every case.
func (k *kinds) passPause(d *bus.Delivered, named string) time.Duration {
	if named == k.ownKind || named == "" && !k.mayBeMixed() {
		return 0
	}
	s, err := message.ParseSubject(d.Subject)
	if err != nil || s.N <= 1 {
		return 0
	}
	kind := k.currentKind(s.Job, named)
	if kind == "" || kind == k.ownKind {
		return 0
	}
	flops, _ := message.Cost(d.Header)
	k.mu.Lock()
	k.noteWaiting(kind, s.Lane, s.Job, flops)
	k.mu.Unlock()
	limit := min(firstPassPause<<min(d.Attempt-1, 20), longestPassPause)
	return limit/2 + rand.N(limit/2) + 1
}

// currentKind returns the kind that is to compute a job's tasks, which name a kind or "". That is the named kind while it is there and
// returns tasks, or may be there but has not been heard yet. Otherwise it is another kind. Every process that hears and sees the same
// returns the same.
func (k *kinds) currentKind(job, named string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	cores, now := k.coresByKind(), time.Now()
	trusted := k.trustedKinds(cores, func(r *kindRecord) bool { return r.isBelieved || now.Sub(r.doubtedAt) > doubtFor })
	if named != "" && (trusted[named] > 0 || cores[named] == 0 && now.Sub(k.started) < silentAfter*k.interval) {
		return named
	}
	return rendezvous(job, trusted)
}

// rendezvous returns a kind for a job by weighted rendezvous hashing, "" if there are no kinds: each kind draws a score from a hash of the
// job and its name, and the highest one wins. A kind's share of the jobs is its share of the cores. If a kind comes or goes, only the jobs
// of that kind change.
func rendezvous(job string, cores map[string]int) string {
	best, bestScore := "", math.Inf(-1)
	for _, kind := range slices.Sorted(maps.Keys(cores)) {
		h := sha256.Sum256([]byte(job + " " + kind))
		u := (float64(binary.BigEndian.Uint32(h[:])) + 0.5) / (1 << 32)
		if score := float64(cores[kind]) / -math.Log(u); score > bestScore {
			best, bestScore = kind, score
		}
	}
	return best
}
