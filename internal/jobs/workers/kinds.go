package workers

// Contract-workers of several numeric kinds (arithmetics whose last bits differ) may serve together. One kind computes
// all tasks of a job, so that its values have the bits of that kind. learn-worker assigns the kind, and
// contract-workers pass the tasks of other kinds on.

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

	// A task that a worker of another kind passed on is delivered again after a pause. Its bound is firstPassPause and doubles with every
	// delivery up to longestPassPause. The pause is drawn at random below the bound: with equal pauses, two tasks of two kinds came to the
	// wrong one of two workers in turn, without end.
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
	kind    string
	cores   int
	heardAt time.Time // when it came
}

// newKinds returns a register of numeric kinds (kinds of processors whose results differ in the last bits) that has
// heard of no contract-workers yet. heartbeat is the interval of heartbeats. arithmetic is nil, except in tests, where
// it replaces the kind of this process.
func newKinds(b *bus.Bus, log *slog.Logger, heartbeat time.Duration, arithmetic *Arithmetic) *kinds {
	k := &kinds{
		bus:           b,
		log:           log,
		ownKind:       cached.NumericKind(),
		interval:      announceEvery * heartbeat,
		announcements: map[string]announcement{},
		records:       map[string]*kindRecord{},
		started:       time.Now(),
	}
	if arithmetic != nil {
		k.ownKind = arithmetic.Kind
	}
	return k
}

// announceKind announces at intervals, until ctx ends, that this process takes tasks.
func (k *kinds) announceKind(ctx context.Context) error {
	m := &message.Serves{Process: nuid.Next(), Numeric: k.ownKind, Cores: runtime.GOMAXPROCS(0)}
	return runEvery(ctx, k.interval, func(isLast bool) {
		m.Gone = isLast
		m.Time = k.bus.Conn.Now().UnixMilli()
		k.noteAnnouncement(m) // of this process itself
		if b, err := wire.Encode(m); err == nil {
			k.bus.Log.Publish(&nats.Msg{Subject: message.ServesSubject, Header: message.Headers(m, "", "", ""), Data: b})
		}
	})
}

// listenForAnnouncements receives the announcements of contract-workers until ctx ends.
func (k *kinds) listenForAnnouncements(ctx context.Context) error {
	s, err := k.bus.Conn.NC.Subscribe(message.ServesSubject, k.receiveAnnouncement)
	if err != nil {
		k.log.Warn("cannot hear of contract-workers of other numeric kinds", "error", err)
		return nil // an error would end the worker
	}
	defer s.Unsubscribe()
	<-ctx.Done()
	return nil
}

// receiveAnnouncement notes an announcement of a contract-worker, if it is genuine and not old.
func (k *kinds) receiveAnnouncement(msg *nats.Msg) {
	var m message.Serves
	if !k.bus.Signer.IsGenuine(msg.Subject, msg.Header, msg.Data) || wire.Decode(msg.Data, &m) != nil {
		return
	}
	if age := k.bus.Conn.Since(time.UnixMilli(m.Time)).Abs(); age > oldestAnnouncement {
		k.log.Debug("a contract-worker's word is old", "process", m.Process, "age", age)
		return
	}
	k.noteAnnouncement(&m)
}

// noteAnnouncement notes that a contract-worker is there, or is gone.
func (k *kinds) noteAnnouncement(m *message.Serves) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if m.Gone {
		delete(k.announcements, m.Process)
		return
	}
	if _, ok := k.announcements[m.Process]; !ok { // a new process: forget those that have ended without a word
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
	maps.DeleteFunc(k.announcements, func(_ string, a announcement) bool { return time.Since(a.heardAt) > silentAfter*k.interval })
}

// mayBeMixed reports whether there may be another kind than that of this process: one was heard of at some time, or
// this process has not listened for long enough.
func (k *kinds) mayBeMixed() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.heardOther || time.Since(k.started) < silentAfter*k.interval
}

// coresByKind returns the number of cores of the workers of each kind that is there. The caller holds k.mu.
func (k *kinds) coresByKind() map[string]int {
	k.dropSilent()
	cores := map[string]int{}
	for _, a := range k.announcements {
		cores[a.kind] += a.cores
	}
	return cores
}

// assignKind returns the numeric kind whose workers are to compute the tasks of a new job, or "" if none is known. flops
// is the work of the largest task. If there is a kind that is doubted and due for a trial, it gets the job, unless the
// job's deadline is near; deadline 0 is none. Otherwise the job goes to a kind that returns its tasks, by rendezvous.
func (k *kinds) assignKind(lane int, job string, flops float64, deadline time.Duration) string {
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

// passPause returns the pause after which a task is to be delivered again, because workers of another numeric kind are
// to compute it. named is the kind that the task names, or "". It returns 0 if this process is to compute the task. If a
// job has only one task, any kind may compute it.
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

	// Pass it on, after a random pause.
	flops, _ := message.Cost(d.Header)
	k.mu.Lock()
	k.noteWaiting(kind, s.Lane, s.Job, flops)
	k.mu.Unlock()
	limit := min(firstPassPause<<min(d.Attempt-1, 20), longestPassPause) // at most 20, so that the shift does not overflow
	return limit/2 + rand.N(limit/2) + 1                                 // in the upper half of the limit
}

// currentKind returns the numeric kind whose workers are to compute a job's tasks. That is the named kind if its workers
// are there and trusted to return tasks, or if this process has listened too briefly to know whether they are there.
// Otherwise, or if named is "", it is a trusted kind. Processes that know the same return the same.
func (k *kinds) currentKind(job, named string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	cores, now := k.coresByKind(), time.Now()
	trusted := k.trustedKinds(cores, func(r *kindRecord) bool { return r.isBelieved || now.Sub(r.doubtedAt) > doubtFor })
	mayBeUnheard := cores[named] == 0 && now.Sub(k.started) < silentAfter*k.interval
	if named != "" && (trusted[named] > 0 || mayBeUnheard) {
		return named
	}
	return rendezvous(job, trusted)
}

// rendezvous returns a kind for a job by weighted rendezvous hashing, or "" if there are no kinds. Each kind has the
// score cores / −ln u, where u in (0, 1) is a hash of the job and the kind, and the highest score wins. So a kind's
// share of the jobs is its share of the cores, and if a kind comes or goes, only the jobs of that kind change.
func rendezvous(job string, cores map[string]int) string {
	best, bestScore := "", math.Inf(-1)
	for _, kind := range slices.Sorted(maps.Keys(cores)) {
		h := sha256.Sum256([]byte(job + " " + kind))
		u := (float64(binary.BigEndian.Uint32(h[:])) + 0.5) / (1 << 32) // the half keeps u from being 0
		if score := float64(cores[kind]) / -math.Log(u); score > bestScore {
			best, bestScore = kind, score
		}
	}
	return best
}
