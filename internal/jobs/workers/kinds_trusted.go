package workers

// Announcements of contract-workers are believed as long as their tasks are seen to return. If the tasks of a kind wait
// without a new partial, the kind is doubted: learn-worker gives it no more jobs, and workers of kinds that return
// tasks take over those that wait.

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
	// A kind is doubted if its jobs wait for tasks and none has returned for returnLimit plus slownessFactor times the expected time of
	// their most expensive task, which counts as longestTask at most.
	returnLimit    = 3 * time.Second
	slownessFactor = 4
	longestTask    = 10 * time.Minute

	// A contract-worker leaves a doubted kind its tasks again after doubtFor. learn-worker gives the kind one job after trialAfter, to see
	// whether its tasks return. Only a job without a deadline, or with one beyond trialDeadline, is a trial.
	doubtFor      = 30 * time.Second
	trialAfter    = time.Minute
	trialDeadline = 10 * time.Second

	// maxWaiting bounds the waiting jobs that are noted of a kind, maxWaitingOfAll those for all kinds.
	maxWaiting      = 16
	maxWaitingOfAll = 64
)

// kindRecord is what is known about whether the tasks of a kind return.
type kindRecord struct {
	isBelieved bool
	lastReturn time.Time             // when a task of the kind returned last, or the first of its waiting jobs was noted
	sequence   uint64                // position in the stream of the kind's youngest partial
	doubtedAt  time.Time             // when the kind ceased to be believed; zero: it never did
	waiting    map[string]waitingJob // by job; at most maxWaiting
}

// waitingJob is a job with tasks that wait for a kind.
type waitingJob struct {
	lane    int
	longest time.Duration // the time of the job's longest task on one core
	noted   time.Time     // when it was noted that the job waits
}

// recordOf returns the record of a kind. A new kind is believed, unless a task of another kind was seen to return
// before. The caller holds k.mu.
func (k *kinds) recordOf(kind string) *kindRecord {
	record := k.records[kind]
	if record == nil {
		record = &kindRecord{isBelieved: !k.anyReturned, waiting: map[string]waitingJob{}}
		k.records[kind] = record
	}
	return record
}

// noteWaiting notes that tasks of a job wait for workers of a numeric kind, unless too many jobs are noted. flops is the
// work of the largest task. A contract-worker does not doubt its own kind, and notes nothing of it. The caller holds
// k.mu.
func (k *kinds) noteWaiting(kind string, lane int, job string, flops float64) {
	record, total := k.recordOf(kind), 0
	for _, other := range k.records {
		total += len(other.waiting)
	}
	isFull := len(record.waiting) >= maxWaiting || total >= maxWaitingOfAll
	isOwn := k.isContractWorker && kind == k.ownKind
	if _, isNoted := record.waiting[job]; isNoted || isFull || isOwn {
		return
	}
	now := time.Now()
	if len(record.waiting) == 0 { // while nothing waited, nothing could return: the patience with the kind begins now
		record.lastReturn = now
	}
	nanoseconds := min(flops/policy.Rate*float64(time.Second), float64(longestTask)) // policy.Rate is in flops per second
	record.waiting[job] = waitingJob{lane, time.Duration(nanoseconds), now}
}

// watchReturns looks at every interval whether tasks return, and doubts the kinds whose tasks do not, until ctx ends.
func (k *kinds) watchReturns(ctx context.Context) error {
	return runEvery(ctx, k.interval, func(isLast bool) {
		if isLast {
			return
		}
		if err := k.lookForPartials(ctx); err == nil {
			k.doubtSilent(time.Now())
		} else if ctx.Err() == nil {
			k.log.Debug("cannot see whether tasks return", "error", err)
		}
	})
}

// lookForPartials asks the server for the partials and answers of all waiting jobs, and notes what it finds.
func (k *kinds) lookForPartials(ctx context.Context) error {
	type question struct {
		kind, job string
		lane      int
	}

	// Copy the waiting jobs, because the mutex is not held while the server is asked.
	var questions []question
	k.mu.Lock()
	for kind, record := range k.records {
		for job, j := range record.waiting {
			questions = append(questions, question{kind, job, j.lane})
		}
	}
	k.mu.Unlock()

	for _, q := range questions {
		partialKind, sequence, err := k.lastPartial(ctx, q.lane, q.job)
		if err != nil {
			return err
		}
		isAnswered, err := k.bus.Log.Has(ctx, bus.StreamAnswer, wire.AnswerSubject(q.job))
		if err != nil {
			return err
		}
		k.noteFindings(q.kind, q.job, partialKind, sequence, isAnswered)
	}
	return nil
}

// noteFindings notes what was found about a job whose tasks wait for workers of a numeric kind, that is of one kind of
// processor: the kind and the sequence of the job's youngest partial (partialKind is "" if there is none), and whether
// the job is answered. Usually an answered job is forgotten. But if workers of another kind computed it, and this kind
// has returned no task since the job was noted, the job stays noted: doubtSilent then doubts this kind.
func (k *kinds) noteFindings(kind, job, partialKind string, sequence uint64, isAnswered bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if partialKind != "" {
		k.noteReturn(partialKind, sequence)
	}
	record := k.recordOf(kind)
	isByOtherKind := partialKind != "" && partialKind != kind
	hasReturnedSince := record.lastReturn.After(record.waiting[job].noted)
	if isAnswered && (!isByOtherKind || hasReturnedSince) {
		delete(record.waiting, job)
	}
}

// lastPartial returns the kind and the sequence of a job's youngest partial. The kind is "" if no partial is stored, or
// it cannot be read.
func (k *kinds) lastPartial(ctx context.Context, lane int, job string) (kind string, sequence uint64, err error) {
	m, err := k.bus.Log.Get(ctx, bus.StreamPartial, message.ChunksFilter(message.KindPartial, lane, job))
	if errors.Is(err, bus.ErrNotFound) {
		return "", 0, nil
	}
	if err != nil {
		return "", 0, err
	}
	var p message.Partial
	if wire.Decode(m.Data, &p) != nil {
		return "", 0, nil
	}
	return p.NumericKind, m.Sequence, nil
}

// noteReturn notes a partial of a kind, if it is younger than all that were noted. The kind is believed from then on.
// The caller holds k.mu.
func (k *kinds) noteReturn(kind string, sequence uint64) {
	record := k.recordOf(kind)
	if sequence <= record.sequence {
		return
	}
	record.sequence, record.lastReturn, k.anyReturned = sequence, time.Now(), true
	if !record.isBelieved {
		record.isBelieved = true
		k.log.Info("contract-workers return their tasks", "kind", kind)
	}
}

// doubtSilent doubts the numeric kinds whose tasks have waited for too long, and forgets the jobs that waited for them.
// It forgets kinds that have no worker and no waiting job, if their last doubt is longer ago than trialAfter.
func (k *kinds) doubtSilent(now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for kind, record := range k.records {
		longest := time.Duration(0) // the expected time of the most expensive task that waits
		for _, j := range record.waiting {
			longest = max(longest, j.longest)
		}
		isOverdue := now.Sub(record.lastReturn) > returnLimit+slownessFactor*longest
		if len(record.waiting) > 0 && isOverdue {
			k.log.Warn("contract-workers say that they are there, and return no tasks", "kind", kind, "jobs", len(record.waiting))
			record.isBelieved, record.doubtedAt = false, now
			clear(record.waiting)
		}
	}
	cores := k.coresByKind()
	maps.DeleteFunc(k.records, func(kind string, record *kindRecord) bool {
		return cores[kind] == 0 && len(record.waiting) == 0 && now.Sub(record.doubtedAt) > trialAfter
	})
}

// trustedKinds returns the numeric kinds in cores to which tasks may be given, with their numbers of cores: those whose
// record isBelieved accepts, because their tasks are seen to return. A contract-worker always trusts its own kind. If no
// kind is believed, a process without contract-worker trusts all of them. The caller holds k.mu.
func (k *kinds) trustedKinds(cores map[string]int, isBelieved func(*kindRecord) bool) map[string]int {
	trusted := map[string]int{}
	for kind, count := range cores {
		if k.isContractWorker && kind == k.ownKind || isBelieved(k.recordOf(kind)) {
			trusted[kind] = count
		}
	}
	switch {
	case len(trusted) > 0:
		return trusted
	case k.isContractWorker:
		return map[string]int{k.ownKind: 1} // the number of cores makes no difference, because there is one kind
	}
	return cores
}

// trialKind returns a doubted numeric kind that is to get one job, its trial, to show whether its tasks return. It
// returns "" if no doubted kind has waited for trialAfter, or a trial is under way. The caller holds k.mu.
func (k *kinds) trialKind(cores map[string]int, now time.Time) string {
	candidates := map[string]int{}
	for kind, count := range cores {
		switch record := k.recordOf(kind); {
		case record.isBelieved: // it needs no trial
		case len(record.waiting) > 0: // its trial is under way
			return ""
		case now.Sub(record.doubtedAt) > trialAfter:
			candidates[kind] = count
		}
	}
	return rendezvous("", candidates) // without the job's name, so that every job gets the same kind
}
