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
	returnsWithin = 3 * time.Second
	slowness      = 4
	mostTaskTime  = 10 * time.Minute

	// A contract-worker leaves a doubted kind its tasks again after doubtFor, and learn-worker gives it one job after trialAfter, to see
	// whether that returns. Only a job without a deadline within trialDeadline is a trial.
	doubtFor      = 30 * time.Second
	trialAfter    = time.Minute
	trialDeadline = 10 * time.Second

	// mostHeld bounds the jobs of a kind that are looked after, mostHeldByAll those of all kinds.
	mostHeld      = 16
	mostHeldByAll = 64
)

// work is what was seen of the work of a kind.
type work struct {
	believed bool
	since    time.Time          // when a task of it returned last, or the first of its jobs began to wait
	sequence uint64             // of its youngest partial
	doubted  time.Time          // when it ceased to be believed; zero: it never did
	holds    map[string]waiting // by job; at most mostHeld
}

// waiting is a job with tasks that wait for a kind.
type waiting struct {
	lane  int
	takes time.Duration // the longest task
	at    time.Time     // when it was noted
}

// seen returns what was seen of a kind. A kind is believed at first unless another was seen to work by then. The caller holds k.mu.
func (k *kinds) seen(kind string) *work {
	w := k.works[kind]
	if w == nil {
		w = &work{believed: !k.returned, holds: map[string]waiting{}}
		k.works[kind] = w
	}
	return w
}

// wait notes that tasks of a job wait for a kind, the largest of so many flops. A contract-worker does not doubt its own kind. The
// caller holds k.mu.
func (k *kinds) wait(kind string, lane int, job string, flops float64) {
	w, all := k.seen(kind), 0
	for _, other := range k.works {
		all += len(other.holds)
	}
	if _, known := w.holds[job]; known || len(w.holds) >= mostHeld || all >= mostHeldByAll || k.contracts && kind == k.own {
		return
	}
	now := time.Now()
	if len(w.holds) == 0 {
		w.since = now
	}
	w.holds[job] = waiting{lane, time.Duration(min(flops/policy.Rate*float64(time.Second), float64(mostTaskTime))), now}
}

// review looks every now and then whether tasks return, until ctx ends.
func (k *kinds) review(ctx context.Context) error {
	return every(ctx, k.every, func(over bool) {
		if over {
			return
		}
		if err := k.look(ctx); err == nil {
			k.judge(time.Now())
		} else if ctx.Err() == nil {
			k.log.Debug("cannot see whether tasks return", "error", err)
		}
	})
}

// look asks for the partials and answers of all jobs that wait.
func (k *kinds) look(ctx context.Context) error {
	type question struct {
		kind, job string
		lane      int
	}
	var questions []question
	k.mu.Lock()
	for kind, w := range k.works {
		for job, j := range w.holds {
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
			k.returns(by, sequence)
		}
		// A job that another kind answered in place of one that returns nothing stays as the evidence.
		w := k.seen(q.kind)
		if answered && (by == q.kind || by == "" || w.since.After(w.holds[q.job].at)) {
			delete(w.holds, q.job)
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
func (k *kinds) returns(kind string, sequence uint64) {
	w := k.seen(kind)
	if sequence <= w.sequence {
		return
	}
	w.sequence, w.since, k.returned = sequence, time.Now(), true
	if !w.believed {
		w.believed = true
		k.log.Info("contract-workers return their tasks", "kind", kind)
	}
}

// judge doubts the kinds whose tasks wait for too long, and forgets those of which nothing is heard.
func (k *kinds) judge(now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for kind, w := range k.works {
		longest := time.Duration(0)
		for _, j := range w.holds {
			longest = max(longest, j.takes)
		}
		if len(w.holds) > 0 && now.Sub(w.since) > returnsWithin+slowness*longest {
			k.log.Warn("contract-workers say that they are there, and return no tasks", "kind", kind, "jobs", len(w.holds))
			w.believed, w.doubted = false, now
			clear(w.holds)
		}
	}
	cores := k.cores()
	maps.DeleteFunc(k.works, func(kind string, w *work) bool {
		return cores[kind] == 0 && len(w.holds) == 0 && now.Sub(w.doubted) > trialAfter
	})
}

// trusted returns the kinds that are believed, of a contract-worker always its own. Where none is, learn-worker believes all of them. The
// caller holds k.mu.
func (k *kinds) trusted(cores map[string]int, believed func(*work) bool) map[string]int {
	trusted := map[string]int{}
	for kind, count := range cores {
		if k.contracts && kind == k.own || believed(k.seen(kind)) {
			trusted[kind] = count
		}
	}
	switch {
	case len(trusted) > 0:
		return trusted
	case k.contracts:
		return map[string]int{k.own: 1}
	}
	return cores
}

// trial returns a kind that is to show by one job whether its tasks return, "" for none: one at a time. The caller holds k.mu.
func (k *kinds) trial(cores map[string]int, now time.Time) string {
	candidates := map[string]int{}
	for kind, count := range cores {
		switch w := k.seen(kind); {
		case w.believed:
		case len(w.holds) > 0:
			return ""
		case now.Sub(w.doubted) > trialAfter:
			candidates[kind] = count
		}
	}
	return rendezvous("", candidates)
}
