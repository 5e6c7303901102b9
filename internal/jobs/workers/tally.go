package workers

import (
	"context"
	"errors"
	"runtime/debug"
	"sort"
	"sync"
	"time"

	"github.com/basetensor/basetensor/internal/jobs/hop"
	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"golang.org/x/sync/semaphore"
)

// Pauses after the last partial of a job before the stored ones are listed although this process
// has not seen all of them, because others may have come to another aggregator. The pause doubles
// with every listing that finds the job incomplete.
const (
	firstPause = 10 * time.Millisecond
	lastPause  = time.Second
	// after which an incomplete job is forgotten; its next partial begins a new count
	idlePause = 30 * time.Second
)

// steps is the number of progress messages about the contraction of a job.
const steps = 32

// tallies counts the partials of jobs. The counts are hints: whether a job is complete is read from
// the stream, and only when the count is full, when a partial is delivered again, or when no more
// have come for a while. (Listing on every arrival is quadratic: 1.3 s for 256 chunks against 27
// ms.)
//
// A partial is acknowledged after a listing that found others missing, or after the answer is
// stored. So the partial that completes a job is held by an aggregator, or delivered again, until
// the answer is stored, and nothing in memory is needed.
type tallies struct {
	w    *sums
	mu   sync.Mutex
	jobs map[chunks]*tally
	done bool           // no timer is set any more
	work sync.WaitGroup // timers that are set, and the work they have begun
}

// tally is the count of one job.
type tally struct {
	key    chunks
	digest string              // of the request of the partial that came first
	stored int64               // time of that partial's model in the stream, in Unix milliseconds
	check  *semaphore.Weighted // of 1, held while the job is looked up and summed

	// Under tallies.mu:
	seen  map[int]bool   // chunks
	ends  []int          // the job may be answered with so many first chunks, in increasing order
	tried int            // the number of first chunks that were tried last, and did not suffice
	held  []*hop.Message // deliveries that are not settled yet
	since time.Time      // when the first of held came
	timer *time.Timer
	pause time.Duration // until the timer goes off
}

func newTallies(w *sums) *tallies { return &tallies{w: w, jobs: map[chunks]*tally{}} }

// partial counts a partial, and sums the job if it may be the last one.
func (t *tallies) partial(ctx context.Context, d *hop.Message) (hop.Outcome, error) {
	var p message.Partial
	if err := d.Decode(&p); err != nil {
		return hop.Done, err
	}
	d.Digest = p.Digest
	d.Tenant = p.Tenant
	d.Asked = storedAt(p.Stored)
	switch {
	case p.Job != d.Subject.Job:
		return hop.Done, d.Mismatch("job", p.Job, d.Subject.Job)
	case p.N != d.Subject.N || p.K != d.Subject.K:
		return hop.Done, d.Mismatch("chunk", []int{p.K, p.N}, []int{d.Subject.K, d.Subject.N})
	}

	// The only partial of a job needs no count.
	if p.N == 1 {
		if !t.w.Fresh(d, p.Stored) {
			t.w.Progress(p.Job, query.StageContract, 1, 1)
			if err := t.w.Over(ctx, d.Subject.Lane, p.Job, p.Digest, p.Stored); err != nil {
				return hop.Done, err
			}
		}
		return hop.Done, t.w.sum(ctx, []*message.Partial{&p})
	}

	// All others are counted, and progress is reported at steps of the count.
	j, full, seen := t.count(chunks{d.Subject.Lane, p.Job, p.N}, d, &p)
	if full || seen*steps/p.N > (seen-1)*steps/p.N {
		t.w.Progress(p.Job, query.StageContract, seen, p.N)
	}
	if full {
		return hop.Done, t.settle(ctx, j, true)
	}

	// The chunks seen so far may suffice.
	if t.end(j) > 0 {
		if err := t.settle(ctx, j, false); err != nil && !errors.Is(err, hop.ErrAnswered) {
			t.w.Bus.Trouble.Warn(t.w.Log, "cannot aggregate yet", "job", p.Job, "error", err)
		}
	}
	return hop.Held, nil
}

// count adds a delivery to the count of its job, which it returns with the number of chunks seen.
// If they are all the job has, full is true; else the delivery is held.
func (t *tallies) count(
	key chunks, d *hop.Message, p *message.Partial,
) (j *tally, full bool, seen int) {
	t.mu.Lock()
	defer t.mu.Unlock()

	j = t.jobs[key]
	if j == nil {
		j = &tally{
			key:    key,
			digest: d.Digest,
			stored: p.Stored,
			seen:   map[int]bool{},
			pause:  firstPause,
			check:  semaphore.NewWeighted(1),
		}
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

	// A partial that is delivered again was in another process: the others may all be stored.
	if d.Attempt > 1 {
		j.pause = firstPause
	}
	j.held = append(j.held, d)

	if j.timer == nil || len(j.held) == 1 || time.Since(j.since) < lastPause {
		t.arm(j, j.pause)
	}
	return j, false, len(j.seen)
}

// arm sets the timer of a job that is counted, and of no other, because stop looks for timers
// nowhere else. The caller holds t.mu.
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

// quiet settles a job whose partials have stopped coming for a while.
func (t *tallies) quiet(j *tally) {
	if err := t.settle(t.w.Hard, j, false); err != nil && !errors.Is(err, hop.ErrAnswered) {
		t.w.Bus.Trouble.Warn(t.w.Log, "cannot aggregate yet", "job", j.key.job, "error", err)
	}
}

// settle looks whether the job is complete, sums it if it is, and acknowledges or returns the
// deliveries held until then. With full every chunk has been seen.
func (t *tallies) settle(ctx context.Context, j *tally, full bool) error {
	if err := j.check.Acquire(ctx, 1); err != nil {
		return err
	}
	defer j.check.Release(1)
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

// refuse returns deliveries after a failure. The one with the most attempts reports it, so that the
// job ends after the last attempt.
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

// try sums the job if all its partials are stored, or the first of them suffice. A panic is an
// error of the job.
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

	if !full {
		if full, err = t.stored(ctx, j); err != nil || !full {
			return false, err
		}
	}

	partials, err := t.w.fetch(ctx, j.key, j.key.n)
	if errors.Is(err, bus.ErrNotFound) {
		// Counted or listed once, and gone since: a job that is started again begins with no
		// partials, and forged ones go when they are read.
		t.recount(j)
		if full, err = t.stored(ctx, j); err != nil || !full {
			return false, err
		}
		partials, err = t.w.fetch(ctx, j.key, j.key.n)
	}
	if errors.Is(err, bus.ErrNotFound) {
		// Listed, and not there to be read: a replica is behind.
		err = fault.New(fault.Infrastructure, "pipeline: partials of job %s: %w", j.key.job, err)
	}

	if err == nil {
		err = t.w.sum(ctx, partials)
	}
	if t.w.mixed(err, j.key.job) {
		t.recount(j)
		return false, t.w.unmix(ctx, j.key, partials)
	}
	return err == nil, err
}

// end returns the largest number of first chunks, all of them seen, that may suffice for an answer
// and has not been tried; 0 for none.
func (t *tallies) end(j *tally) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	most := 0
	k := 0 // chunks 0 to k-1 are seen
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
		if settled, err = t.w.settled(ctx, partials); errors.Is(err, ErrNumericKinds) || errors.Is(err, ErrPlans) {
			err = nil // all of them decide
		}
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

// stored lists the job's partials and adds them to the count.
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

// wait sets the timer after a listing that found the job incomplete. A job without any new partial
// is forgotten.
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

// forget drops the job's count, unless partials have come since: those are settled by its next
// timer.
func (t *tallies) forget(j *tally) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(j.held) == 0 {
		t.drop(j)
	}
}

// stop stops all timers and returns the deliveries that are held.
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

// acknowledgeAll acknowledges deliveries. One whose acknowledgement is lost comes again, and finds
// the answer.
func acknowledgeAll(held []*hop.Message) {
	for _, d := range held {
		d.Raw.Done()
	}
}
