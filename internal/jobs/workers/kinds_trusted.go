package workers

// What contract-workers say of themselves is believed as far as their tasks are seen to return: a kind whose tasks wait without a new
// partial is given no more of them, and the workers that do return take over what waits.

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/wire"
)

const (
	// returnsWithin is the time in which a task of a kind's waiting jobs is to return, beside slowness times what the most expensive of
	// them takes, at most mostTaskTime each.
	returnLimit    = 3 * time.Second
	slownessFactor = 4
	longestTask    = 10 * time.Minute

	// A contract-worker leaves a doubted kind its tasks again after doubtFor, and learn-worker gives it one job after trialAfter, to see
	// whether that returns. Only a job without a deadline within trialDeadline is a trial.
	doubtFor      = 30 * time.Second
	trialAfter    = time.Minute
	trialDeadline = 10 * time.Second

	// mostHeld bounds the jobs of a kind that are looked after, mostHeldByAll those of all kinds.
	mostWaiting      = 16
	mostWaitingOfAll = 64
)

// work is what was seen of the work of a kind.
type kindRecord struct {
	believed   bool
	lastReturn time.Time             // when a task of it returned last, or the first of its jobs began to wait
	sequence   uint64                // of its youngest partial
	doubtedAt  time.Time             // when it ceased to be believed; zero: it never did
	waiting    map[string]waitingJob // by job; at most mostHeld
}

// waiting is a job with tasks that wait for a kind.
type waitingJob struct {
	lane    int
	longest time.Duration // the longest task
	noted   time.Time     // when it was noted
}

// seen returns what was seen of a kind. A kind is believed at first unless another was seen to work by then. The caller holds k.mu.
func (k *kinds) record(kind string) *kindRecord {
	w := k.records[kind]
	if w == nil {
		w = &kindRecord{believed: !k.anyReturned, waiting: map[string]waitingJob{}}
		k.records[kind] = w
	}
	return w
}

// wait notes that tasks of a job wait for a kind, the largest of so many flops. A contract-worker does not doubt its own kind. The
// caller holds k.mu.
func (k *kinds) noteWaiting(kind string, lane int, job string, flops float64) {
	w, all := k.record(kind), 0
	for _, other := range k.records {
		all += len(other.waiting)
	}
	if _, known := w.waiting[job]; known || len(w.waiting) >= mostWaiting || all >= mostWaitingOfAll || k.isContractWorker && kind == k.own {
		return
	}
	now := time.Now()
	if len(w.waiting) == 0 {
		w.lastReturn = now
	}
	w.waiting[job] = waitingJob{lane, time.Duration(min(flops/policy.Rate*float64(time.Second), float64(longestTask))), now}
}

// review looks every now and then whether tasks return, until ctx ends.
func (k *kinds) review(ctx context.Context) error {
	return runEvery(ctx, k.interval, func(isLast bool) {
		if isLast {
			return
		}
		if err := k.lookForPartials(ctx); err == nil {
			k.judge(time.Now())
		} else if ctx.Err() == nil {
			k.log.Debug("cannot see whether tasks return", "error", err)
		}
	})
}

// look asks for the partials and answers of all jobs that wait.
func (k *kinds) lookForPartials(ctx context.Context) error {
	type question struct {
		kind, job string
		lane      int
	}
	var questions []question
	k.mu.Lock()
	for kind, w := range k.records {
		for job, j := range w.waiting {
			questions = append(questions, question{kind, job, j.lane})
		}
	}
	k.mu.Unlock()
	for _, q := range questions {
		by, sequence, err := k.lastPartial(ctx, q.lane, q.job)
		if err != nil {
			return err
		}
		answered, err := k.bus.Log.Has(ctx, bus.StreamAnswer, wire.AnswerSubject(q.job))
		if err != nil {
			return err
		}
		k.mu.Lock()
		if by != "" {
			k.noteReturn(by, sequence)
		}
		// A job that another kind answered in place of one that returns nothing stays as the evidence.
		w := k.record(q.kind)
		if answered && (by == q.kind || by == "" || w.lastReturn.After(w.waiting[q.job].noted)) {
			delete(w.waiting, q.job)
		}
		k.mu.Unlock()
	}
	return nil
}

// lastPartial returns the kind of a job's youngest partial, "" if none is stored.
func (k *kinds) lastPartial(ctx context.Context, lane int, job string) (kind string, sequence uint64, err error) {
	m, err := k.bus.Log.Get(ctx, bus.StreamPartial, message.ChunksFilter(message.KindPartial, lane, job))
	if errors.Is(err, bus.ErrNotFound) {
		return "", 0, nil
	}
	if err != nil {
		return "", 0, err
	}
	var p message.Partial
	if wire.Decode(m.Data, &p) != nil { // one that cannot be read is nobody's
		return "", 0, nil
	}
	return p.NumericKind, m.Sequence, nil
}

// returns notes a partial of a kind. The caller holds k.mu.
func (k *kinds) noteReturn(kind string, sequence uint64) {
	w := k.record(kind)
	if sequence <= w.sequence {
		return
	}
	w.sequence, w.lastReturn, k.anyReturned = sequence, time.Now(), true
	if !w.believed {
		w.believed = true
		k.log.Info("contract-workers return their tasks", "kind", kind)
	}
}

// judge doubts the kinds whose tasks wait for too long, and forgets those of which nothing is heard.
func (k *kinds) judge(now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for kind, w := range k.records {
		longest := time.Duration(0)
		for _, j := range w.waiting {
			longest = max(longest, j.longest)
		}
		if len(w.waiting) > 0 && now.Sub(w.lastReturn) > returnLimit+slownessFactor*longest {
			k.log.Warn("contract-workers say that they are there, and return no tasks", "kind", kind, "jobs", len(w.waiting))
			w.believed, w.doubtedAt = false, now
			clear(w.waiting)
		}
	}
	cores := k.coresByKind()
	maps.DeleteFunc(k.records, func(kind string, w *kindRecord) bool {
		return cores[kind] == 0 && len(w.waiting) == 0 && now.Sub(w.doubtedAt) > trialAfter
	})
}

// trusted returns the kinds that are believed, of a contract-worker always its own. Where none is, learn-worker believes all of them. The
// caller holds k.mu.
func (k *kinds) trustedKinds(cores map[string]int, believed func(*kindRecord) bool) map[string]int {
	trusted := map[string]int{}
	for kind, count := range cores {
		if k.isContractWorker && kind == k.own || believed(k.record(kind)) {
			trusted[kind] = count
		}
	}
	switch {
	case len(trusted) > 0:
		return trusted
	case k.isContractWorker:
		return map[string]int{k.own: 1}
	}
	return cores
}

// trial returns a kind that is to show by one job whether its tasks return, "" for none: one at a time. The caller holds k.mu.
func (k *kinds) trialKind(cores map[string]int, now time.Time) string {
	candidates := map[string]int{}
	for kind, count := range cores {
		switch w := k.record(kind); {
		case w.believed:
		case len(w.waiting) > 0:
			return ""
		case now.Sub(w.doubtedAt) > trialAfter:
			candidates[kind] = count
		}
	}
	return rendezvous("", candidates)
}
