package workers

import (
	"context"
	"errors"
	"runtime/debug"
	"sort"
	"sync"
	"time"

	"github.com/basetensor/basetensor/internal/jobs/hop"
	"github.com/basetensor/basetensor/internal/jobs/job"
	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"golang.org/x/sync/semaphore"
)

// progressSteps is the number of progress messages about the contraction of a job.
const progressSteps = 32

// collector counts the partials of jobs until they can be summed. The decisions about each job are those of a
// job.Count: collector passes on partials and times without any, answers its questions from the streams, and carries
// out its effects.
type collector struct {
	sums      *sums
	mu        sync.Mutex
	jobs      map[jobChunks]*countedJob
	isStopped bool           // no timer is set any more
	timers    sync.WaitGroup // timers that are set, and the work that they have begun
}

// countedJob is a job that is counted.
type countedJob struct {
	key       jobChunks
	digest    string              // of the request of the partial that came first
	jobStored time.Time           // when its model was stored
	lookSlot  *semaphore.Weighted // of 1, held during a look

	// Under collector.mu:
	count *job.Count[*hop.Message]
	timer *time.Timer // begins a look; nil: none was set
}

// newCollector returns a collector that has counted nothing. sums will sum its jobs.
func newCollector(sums *sums) *collector {
	return &collector{sums: sums, jobs: map[jobChunks]*countedJob{}}
}

// handlePartial counts a partial, the values of one of a job's tasks, and sums the job if it may be the last one. A
// partial that is counted is not acknowledged before the next look at what is stored of the job.
func (c *collector) handlePartial(ctx context.Context, d *hop.Message) (hop.Outcome, error) {
	var p message.Partial
	if err := decodePartial(d, &p); err != nil {
		return hop.Done, err
	}

	// The only partial of a job needs no count.
	if p.N == 1 {
		if !c.sums.IsFresh(d) { // the job of a fresh partial has hardly been answered already
			c.sums.Progress(p.Job, query.StageContract, 1, 1)
			if err := c.sums.CheckNotOver(ctx, d.Subject.Lane, p.Job, p.Digest, d.JobStored); err != nil {
				return hop.Done, err
			}
		}
		return hop.Done, c.sums.sumJob(ctx, []*message.Partial{&p})
	}

	// Progress is reported when the number of seen chunks passes a multiple of N/progressSteps.
	j, look, seen := c.countPartial(d, &p)
	passesStep := seen*progressSteps/p.N > (seen-1)*progressSteps/p.N
	if look == job.LookFull || passesStep {
		c.sums.Progress(p.Job, query.StageContract, seen, p.N)
	}

	// Look at what is stored if the count asks for it.
	switch look {
	case job.LookFull:
		const isFull = true
		return hop.Done, c.lookAtJob(ctx, j, isFull)
	case job.LookEarly:
		c.lookAtJobAndLog(ctx, j)
	}
	return hop.Held, nil
}

// decodePartial decodes a partial into p and checks that it belongs to its subject. It writes the digest, the tenant and
// the time of the request into d.
func decodePartial(d *hop.Message, p *message.Partial) error {
	if err := d.Decode(p); err != nil {
		return err
	}
	d.Digest = p.Digest
	d.Tenant = p.Tenant
	d.JobStored = storedAt(p.Stored)
	switch {
	case p.Job != d.Subject.Job:
		return d.Mismatch("job", p.Job, d.Subject.Job)
	case p.N != d.Subject.N || p.K != d.Subject.K:
		return d.Mismatch("chunk", []int{p.K, p.N}, []int{d.Subject.K, d.Subject.N})
	}
	return nil
}

// countPartial counts a delivery. It returns its job, whether the caller has to look at what is stored, and the number
// of chunks seen.
func (c *collector) countPartial(d *hop.Message, p *message.Partial) (j *countedJob, look job.Look, seen int) {
	key := jobChunks{d.Subject.Lane, p.Job, p.N}
	c.mu.Lock()
	defer c.mu.Unlock()
	if j = c.jobs[key]; j == nil {
		j = &countedJob{
			key: key, digest: d.Digest, jobStored: d.JobStored, lookSlot: semaphore.NewWeighted(1), count: job.New[*hop.Message](p.N),
		}
		c.jobs[key] = j
	}
	look, effects := j.count.Partial(p.K, p.Ends, d, d.Attempt > 1, time.Now())
	c.carryOut(j, effects)
	return j, look, j.count.Seen()
}

// carryOut ends the count of a job's chunks or sets its timer, as the effects ask for. It does nothing for a count that
// is no longer in c.jobs: stop finds timers there, and would not stop a new one of it. The caller holds c.mu.
func (c *collector) carryOut(j *countedJob, e job.Effects[*hop.Message]) {
	if c.jobs[j.key] != j {
		return
	}
	if e.Forget {
		delete(c.jobs, j.key)
		c.stopTimer(j)
	}
	if e.Timer > 0 && !c.isStopped {
		c.stopTimer(j)
		c.timers.Add(1)
		j.timer = time.AfterFunc(e.Timer, func() {
			defer c.timers.Done()
			c.lookAtJobAndLog(c.sums.WorkCtx, j)
		})
	}
}

// stopTimer stops the job's timer, unless it has gone off. The caller holds c.mu.
func (c *collector) stopTimer(j *countedJob) {
	if j.timer != nil && j.timer.Stop() {
		c.timers.Done()
	}
}

// lookAtJobAndLog looks at a job of which some chunks may be missing, as lookAtJob does. It logs the error, unless the
// job has its answer.
func (c *collector) lookAtJobAndLog(ctx context.Context, j *countedJob) {
	if err := c.lookAtJob(ctx, j, false); err != nil && !errors.Is(err, hop.ErrAnswered) {
		c.sums.Bus.Conn.Trouble.Warn(c.sums.Log, "cannot aggregate yet", "job", j.key.job, "error", err)
	}
}

// lookAtJob sums a job if all its partials are stored, or the first of them suffice. It acknowledges the deliveries
// that were held when it began, or returns them after a failure. isFull says that every chunk is counted.
func (c *collector) lookAtJob(ctx context.Context, j *countedJob, isFull bool) error {
	if err := j.lookSlot.Acquire(ctx, 1); err != nil {
		return err
	}
	defer j.lookSlot.Release(1)

	// Answer the questions of the job's count until the look is over.
	c.mu.Lock()
	question := j.count.Begin(isFull)
	c.mu.Unlock()
	for {
		reply, stored, err := c.answerQuestion(ctx, j, question)
		c.mu.Lock()
		next, effects := j.count.Reply(reply, stored)
		c.carryOut(j, effects)
		c.mu.Unlock()
		for _, d := range effects.Acknowledge { // a delivery whose acknowledgement is lost comes again, and finds the answer
			d.Raw.Acknowledge()
		}
		c.returnHeld(effects.Return, err)
		if question = next; question.Ask == job.AskNothing {
			return err
		}
	}
}

// answerQuestion answers a question of a count from the streams, or does what the question asks for. If it lists the
// stored chunks, stored is their set. If the job has or had its answer, the reply is Yes with hop.ErrAnswered. A panic
// becomes an error of the job.
func (c *collector) answerQuestion(ctx context.Context, j *countedJob, q job.Question) (r job.Reply, stored map[int]bool, err error) {
	sums, key := c.sums, j.key
	defer func() {
		if p := recover(); p != nil {
			sums.Log.Error("panic", "job", key.job, "panic", p, "stack", string(debug.Stack()))
			err = fault.New(fault.Internal, "pipeline: %s: panic: %v", sums.Stage, p)
		}
		switch {
		case errors.Is(err, hop.ErrAnswered):
			r = job.Yes
		case err != nil && r != job.Gone:
			r = job.Failed
		}
	}()

	switch q.Ask {
	case job.AskOver:
		return job.No, nil, sums.CheckNotOver(ctx, key.lane, key.job, j.digest, j.jobStored)
	case job.AskList:
		stored, err = sums.listChunks(ctx, key)
		return job.Listed, stored, err
	case job.AskFirst:
		r, err = c.sumFirst(ctx, key, q.First)
	default:
		r, err = c.sumAll(ctx, key)
	}
	return r, nil, err
}

// sumFirst answers a job by its first count chunks if they suffice, and replies Yes. It replies No if they do not
// suffice, or are of several runs, and Gone if one is missing. With an error the reply means nothing: answerQuestion
// sets another.
func (c *collector) sumFirst(ctx context.Context, key jobChunks, count int) (job.Reply, error) {
	partials, err := c.sums.readChunks(ctx, key, count)
	if errors.Is(err, bus.ErrNotFound) {
		return job.Gone, nil
	}
	if err != nil {
		return job.Failed, err
	}
	isSettled, err := c.sums.isSettledBy(ctx, partials)
	areOfSeveralRuns := errors.Is(err, ErrNumericKinds) || errors.Is(err, ErrPlans)
	if areOfSeveralRuns || err == nil && !isSettled {
		return job.No, nil
	}
	if err == nil {
		err = c.sums.sumJob(ctx, partials)
	}
	return job.Yes, err
}

// sumAll answers a job by all its chunks, and replies Yes. It replies Gone if one is missing. If they are of several
// runs, it starts the job again and replies Mixed.
func (c *collector) sumAll(ctx context.Context, key jobChunks) (job.Reply, error) {
	partials, err := c.sums.readChunks(ctx, key, key.n)
	if errors.Is(err, bus.ErrNotFound) {
		return job.Gone, fault.New(fault.Infrastructure, "pipeline: partials of job %s: %w", key.job, err)
	}
	if err == nil {
		err = c.sums.sumJob(ctx, partials)
	}
	if c.sums.mayRestartMixed(err, key.job) { // err says that they are of several runs
		return job.Mixed, c.sums.restartMixed(ctx, key, partials)
	}
	return job.Yes, err
}

// returnHeld returns deliveries to the server after a failure. The delivery with the most attempts reports the failure,
// so that the job ends after the last attempt.
func (c *collector) returnHeld(held []*hop.Message, err error) {
	sort.SliceStable(held, func(a, b int) bool { return held[a].Attempt > held[b].Attempt })

	for i, d := range held {
		if i == 0 {
			c.sums.Refuse(d, err)
			continue
		}
		d.Raw.Redeliver(hop.Backoff(fault.Infrastructure, d.Attempt))
	}
}

// stop stops all timers, returns the deliveries that are held, and waits for the work of timers that went off.
func (c *collector) stop() {
	c.mu.Lock()
	c.isStopped = true
	var held []*hop.Message
	for _, j := range c.jobs {
		c.stopTimer(j)
		held = append(held, j.count.Held()...)
	}
	c.mu.Unlock()

	for _, d := range held {
		d.Raw.Redeliver(0)
	}
	c.timers.Wait()
}
