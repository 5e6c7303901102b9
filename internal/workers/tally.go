package workers

import (
	"context"
	"errors"
	"runtime/debug"
	"sort"
	"sync"
	"time"

	"github.com/basetensor/basetensor/internal/bus"
	"github.com/basetensor/basetensor/internal/hop"
	"github.com/basetensor/basetensor/internal/message"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// How long after the last partial the stored ones are listed although this process has not seen them all: others may have
// come to another aggregator. The pause doubles with every listing that finds the job incomplete.
const (
	firstPause = 10 * time.Millisecond
	lastPause  = time.Second
	idlePause  = 30 * time.Second // then an incomplete job is forgotten; its next partial brings it back
)

// steps is how often people are told how far a job's contraction is.
const steps = 32

// tallies counts the partials of jobs. The counts are hints: whether a job is complete is read from the stream, and only
// when the count is full, when a partial is delivered again, or when no more have come for a while. (Listing on every arrival
// is quadratic: 1.3 s for 256 chunks against 27 ms.)
//
// A partial is acknowledged after a listing that found others missing, or after the answer. So the partial that completes
// the job is in the hands of an aggregator, or delivered again, until the answer is stored: nothing in memory is needed.
type tallies struct {
	w    *sums
	mu   sync.Mutex
	jobs map[chunks]*tally
	done bool
	work sync.WaitGroup
}

type tally struct {
	key    chunks
	digest string     // of the request, by the first partial
	stored int64      // when that was, in Unix milliseconds
	check  sync.Mutex // one check at a time

	// Under tallies.mu:
	seen  map[int]bool
	ends  []int // numbers of first chunks with which the job may be answered already
	tried int   // those with which it could not
	held  []*hop.Message
	since time.Time // when the first of them came
	timer *time.Timer
	pause time.Duration
}

func newTallies(w *sums) *tallies { return &tallies{w: w, jobs: map[chunks]*tally{}} }

// partial counts a partial, and sums the job if it may be the last one.
func (t *tallies) partial(ctx context.Context, d *hop.Message) (hop.Outcome, error) {
	var p message.Partial
	if err := d.Decode(&p); err != nil {
		return hop.Done, err
	}
	d.Digest, d.Tenant = p.Digest, p.Tenant
	switch {
	case p.Job != d.Subject.Job:
		return hop.Done, d.Mismatch("job", p.Job, d.Subject.Job)
	case p.N != d.Subject.N || p.K != d.Subject.K:
		return hop.Done, d.Mismatch("chunk", []int{p.K, p.N}, []int{d.Subject.K, d.Subject.N})
	}
	if p.N == 1 {
		if !d.Fresh(p.Stored) {
			t.w.Progress(p.Job, query.StageContract, 1, 1)
			if err := t.w.Over(ctx, d.Subject.Lane, p.Job, p.Digest, p.Stored); err != nil {
				return hop.Done, err
			}
		}
		return hop.Done, t.w.sum(ctx, []*message.Partial{&p})
	}
	j, full, seen := t.count(chunks{d.Subject.Lane, p.Job, p.N}, d, &p)
	if full || seen*steps/p.N > (seen-1)*steps/p.N {
		t.w.Progress(p.Job, query.StageContract, seen, p.N)
	}
	if !full {
		if t.end(j) > 0 {
			if err := t.settle(ctx, j, false); err != nil && !errors.Is(err, hop.ErrAnswered) {
				t.w.Log.Warn("cannot aggregate yet", "job", p.Job, "error", err)
			}
		}
		return hop.Held, nil
	}
	return hop.Done, t.settle(ctx, j, true)
}

// count adds a delivery to its job. If not every chunk has been seen with it, it is held.
func (t *tallies) count(key chunks, d *hop.Message, p *message.Partial) (j *tally, full bool, seen int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	j = t.jobs[key]
	if j == nil {
		j = &tally{key: key, digest: d.Digest, stored: p.Stored, seen: map[int]bool{}, pause: firstPause}
		t.jobs[key] = j
	}
	j.ends = p.Ends
	j.seen[d.Subject.K] = true
	if len(j.seen) == key.n {
		return j, true, key.n
	}
	if len(j.held) == 0 {
		j.since = time.Now()
	}
	if d.Attempt > 1 { // somebody else had it: the others may all be there
		j.pause = firstPause
	}
	j.held = append(j.held, d)
	if j.timer == nil || len(j.held) == 1 || time.Since(j.since) < lastPause {
		t.arm(j, j.pause)
	}
	return j, false, len(j.seen)
}

// arm sets the timer of a job that is counted: stop looks for timers nowhere else. The caller holds t.mu.
func (t *tallies) arm(j *tally, pause time.Duration) {
	if t.done || t.jobs[j.key] != j {
		return
	}
	t.disarm(j)
	t.work.Add(1)
	j.timer = time.AfterFunc(pause, func() {
		defer t.work.Done()
		t.quiet(j)
	})
}

// disarm stops the job's timer, unless it has gone off. The caller holds t.mu.
func (t *tallies) disarm(j *tally) {
	if j.timer != nil && j.timer.Stop() {
		t.work.Done()
	}
}

// drop ends a job's count. The caller holds t.mu.
func (t *tallies) drop(j *tally) {
	if t.jobs[j.key] == j {
		delete(t.jobs, j.key)
		t.disarm(j)
	}
}

// quiet is called when no partial has come for a while.
func (t *tallies) quiet(j *tally) {
	if err := t.settle(t.w.Hard, j, false); err != nil && !errors.Is(err, hop.ErrAnswered) {
		t.w.Log.Warn("cannot aggregate yet", "job", j.key.job, "error", err)
	}
}

// settle looks whether the job is complete, sums it if it is, and disposes of the deliveries held until then.
func (t *tallies) settle(ctx context.Context, j *tally, full bool) error {
	j.check.Lock()
	defer j.check.Unlock()
	t.mu.Lock()
	held := j.held
	j.held = nil
	t.mu.Unlock()

	complete, err := t.try(ctx, j, full)
	switch {
	case err != nil && !errors.Is(err, hop.ErrAnswered):
		t.refuse(held, err)
		t.forget(j)
	case complete || err != nil:
		acknowledgeAll(held)
		t.forget(j)
	default:
		acknowledgeAll(held)
		t.wait(j, len(held) == 0)
	}
	return err
}

// refuse hands deliveries back after a failure. The one that was tried most speaks for all: it ends the job in the end.
func (t *tallies) refuse(held []*hop.Message, err error) {
	sort.SliceStable(held, func(a, b int) bool { return held[a].Attempt > held[b].Attempt })
	for i, d := range held {
		if i == 0 {
			t.w.Refuse(d, err)
			continue
		}
		d.Raw.Again(hop.Backoff(fault.Infrastructure, d.Attempt))
	}
}

// try sums the job if all its partials are stored.
func (t *tallies) try(ctx context.Context, j *tally, full bool) (complete bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			t.w.Log.Error("panic", "job", j.key.job, "panic", p, "stack", string(debug.Stack()))
			err = fault.New(fault.Internal, "pipeline: %s: panic: %v", t.w.Stage, p)
		}
	}()
	if err := t.w.Over(ctx, j.key.lane, j.key.job, j.digest, j.stored); err != nil {
		return false, err
	}
	if !full {
		if settled, err := t.early(ctx, j); err != nil || settled {
			return settled, err
		}
	}
	counted := full
	if !full {
		if full, err = t.stored(ctx, j); err != nil || !full {
			return false, err
		}
	}
	partials, err := t.w.fetch(ctx, j.key, j.key.n)
	if errors.Is(err, bus.ErrNotFound) && counted { // counted here once, but gone since: a replay starts from nothing
		t.recount(j)
		if full, err = t.stored(ctx, j); err != nil || !full {
			return false, err
		}
		partials, err = t.w.fetch(ctx, j.key, j.key.n)
	}
	if errors.Is(err, bus.ErrNotFound) { // listed, and not there to be read: a replica is behind
		err = fault.New(fault.Infrastructure, "pipeline: partials of job %s: %w", j.key.job, err)
	}
	if err == nil {
		err = t.w.sum(ctx, partials)
	}
	return err == nil, err
}

// end returns how many first chunks, all of them seen, may suffice for an answer and have not been tried; 0 for none.
func (t *tallies) end(j *tally) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	most, k := 0, 0
	for _, end := range j.ends {
		for k < end && j.seen[k] {
			k++
		}
		if k < end {
			break
		}
		if end > j.tried {
			most = end
		}
	}
	return most
}

// early answers a job whose first chunks suffice.
func (t *tallies) early(ctx context.Context, j *tally) (settled bool, err error) {
	end := t.end(j)
	if end == 0 {
		return false, nil
	}
	partials, err := t.w.fetch(ctx, j.key, end)
	if errors.Is(err, bus.ErrNotFound) {
		return false, nil
	}
	if err == nil {
		settled, err = t.w.settled(ctx, partials)
	}
	if err == nil && settled {
		err = t.w.sum(ctx, partials)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	j.tried = end
	return settled && err == nil, err
}

// recount forgets which chunks were seen.
func (t *tallies) recount(j *tally) {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(j.seen)
}

// stored lists the job's partials and adds what it finds to the count.
func (t *tallies) stored(ctx context.Context, j *tally) (full bool, err error) {
	ks, err := t.w.stored(ctx, j.key)
	if err != nil {
		return false, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for k := range ks {
		j.seen[k] = true
	}
	return len(ks) == j.key.n, nil
}

// wait sets the timer after a listing that found the job incomplete, or forgets a job of which nothing new came.
func (t *tallies) wait(j *tally, idle bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if j.pause = min(2*j.pause, lastPause); len(j.held) > 0 {
		t.arm(j, j.pause)
		return
	}
	if idle {
		t.drop(j)
		return
	}
	t.arm(j, idlePause)
}

// forget drops the job's count. Partials held since are settled by a new one.
func (t *tallies) forget(j *tally) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(j.held) == 0 {
		t.drop(j)
	}
}

// stop ends all timers and hands back what is held.
func (t *tallies) stop() {
	t.mu.Lock()
	t.done = true
	var held []*hop.Message
	for _, j := range t.jobs {
		t.disarm(j)
		held = append(held, j.held...)
		j.held = nil
	}
	t.mu.Unlock()
	for _, d := range held {
		d.Raw.Again(0)
	}
	t.work.Wait()
}

func acknowledgeAll(held []*hop.Message) {
	for _, d := range held {
		d.Raw.Done() // a lost one is delivered again, and finds the answer
	}
}
