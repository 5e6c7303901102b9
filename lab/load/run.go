package load

// Running the plan against a target.

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/basetensor/basetensor/internal/base/cputime"
	"github.com/basetensor/basetensor/pkg/client"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/wire"
)

const (
	submitters = 128                  // submissions that wait for the server's word at a time
	ahead      = 1024                 // jobs drawn before they are due
	late       = 2 * time.Millisecond // before a job is due the dispatcher stops relying on timers
	// the age of a job, or of the last look, after which its answer is looked up
	lookAfter   = 5 * time.Second
	looksAtOnce = 64
)

// Run puts the target under load and returns the outcome of the jobs. A context that ends cuts the run short: the outcome
// then covers the time until then, with the context's error.
func Run(ctx context.Context, c Config, target Target) (*Outcome, error) {
	c = c.withDefaults()
	if err := c.check(); err != nil {
		return nil, err
	}
	r := &runner{
		c:      c,
		target: target,
		every:  1,
		queue:  make(chan *job, ahead),
		tokens: make(chan struct{}, max(1, c.Outstanding)),
	}
	stop, err := target.Results(ctx, r.mine, r.answered)
	if err != nil {
		return nil, err
	}
	defer stop()
	return r.run(ctx)
}

type runner struct {
	c      Config
	target Target
	start  time.Time
	queue  chan *job     // due, to be submitted
	tokens chan struct{} // one per job under way, closed loop

	mu      sync.Mutex
	records []*record // by number
	under   int       // neither answered nor refused
	kept    []*record // for verification: jobs whose number is a multiple of every
	every   int
}

func (r *runner) run(ctx context.Context) (*Outcome, error) {
	planned, planErr := make(chan *job, ahead), error(nil)
	planning, stopPlanning := context.WithCancel(ctx)
	defer stopPlanning()
	var plan, submit, look sync.WaitGroup
	plan.Go(func() { planErr = r.plan(planning, planned) })
	for first := time.Now(); len(planned) < min(ahead/2, r.c.Outstanding+1) && time.Since(first) < time.Second; {
		time.Sleep(time.Millisecond) // something is drawn before the clock starts
	}

	r.start = time.Now()
	for range submitters {
		submit.Go(func() {
			for j := range r.queue {
				r.submit(ctx, j)
			}
		})
	}

	looking, stopLooking := context.WithCancel(ctx)
	look.Go(func() { r.look(looking) })

	cpu := make(chan time.Duration, 1)
	warm := time.AfterFunc(r.c.WarmUp, func() { cpu <- cputime.OfProcess() })
	r.dispatch(ctx, planned)
	spent := time.Duration(0)
	if !warm.Stop() {
		spent = cputime.OfProcess() - <-cpu
	}
	stopPlanning()
	plan.Wait()
	close(r.queue)
	submit.Wait()
	r.drain(ctx)
	stopLooking()
	look.Wait()
	r.lookUp(ctx, 0, len(r.records))
	err := ctx.Err()
	if planErr != nil && !errors.Is(planErr, context.Canceled) {
		err = planErr
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return &Outcome{config: r.c, records: r.records, cpu: spent}, err
}

// plan draws jobs until the last that is due, or ctx ends.
func (r *runner) plan(ctx context.Context, planned chan<- *job) error {
	defer close(planned)
	p := newPlanner(r.c)
	if r.c.Registered {
		p.register = func(g *wire.Graph) (string, error) { return r.target.PutModel(ctx, g) }
	}
	for {
		j, err := p.job()
		if err != nil || j.at >= r.c.WarmUp+r.c.Duration {
			return err
		}
		select {
		case planned <- j:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// dispatch hands every job to the submitters when it is due: at its time, or when another job has
// ended.
func (r *runner) dispatch(ctx context.Context, planned <-chan *job) {
	over := time.NewTimer(time.Until(r.start.Add(r.c.WarmUp + r.c.Duration)))
	defer over.Stop()
	due := time.NewTimer(0)
	defer due.Stop()
	for j := range planned {
		if r.c.Outstanding > 0 {
			select {
			case r.tokens <- struct{}{}:
			case <-over.C:
				return
			case <-ctx.Done():
				return
			}
			j.at = time.Since(r.start)
			if j.at >= r.c.WarmUp+r.c.Duration {
				return
			}
		} else {
			if wait := time.Until(r.start.Add(j.at)) - late; wait > 0 {
				due.Reset(wait)
				select {
				case <-due.C:
				case <-ctx.Done():
					return
				}
			}
			if wait := time.Until(r.start.Add(j.at)); wait > 0 {
				pause(wait)
			}
		}

		rec := &record{at: j.at, model: j.model, tenant: j.tenant, queries: len(j.message.Queries)}
		r.mu.Lock()
		r.records = append(r.records, rec)
		r.keep(j, rec)
		r.under++
		r.mu.Unlock()
		r.queue <- j
	}

	if r.c.Outstanding == 0 {
		select { // the measured time is over when it is, not with the last arrival
		case <-over.C:
		case <-ctx.Done():
		}
	}
}

func (r *runner) submit(ctx context.Context, j *job) {
	_, err := r.target.Submit(ctx, j.message)
	at := time.Since(r.start)
	r.mu.Lock()
	defer r.mu.Unlock()
	rec := r.records[j.number]
	if err == nil {
		rec.acknowledged = at
		return
	}
	if rec.state == underWay {
		rec.code = string(fault.CodeOf(err))
		if rec.state = failed; errors.Is(err, client.ErrFull) {
			rec.state = refused
		}
		r.end()
	}
}

// end counts a job that is over. The caller holds the lock.
func (r *runner) end() {
	r.under--
	if r.c.Outstanding > 0 {
		<-r.tokens
	}
}

// mine tells this run's jobs from others'.
func (r *runner) mine(job string) bool { _, ok := r.number(job); return ok }

func (r *runner) number(job string) (int, bool) {
	tail, ok := strings.CutPrefix(job, r.c.Prefix+"-")
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(tail)
	return n, err == nil && n >= 0
}

// answered notes an answer. The first one counts; there is no other.
func (r *runner) answered(id string, a *wire.Answer, err error) {
	at := time.Since(r.start)
	n, ok := r.number(id)
	r.mu.Lock()
	defer r.mu.Unlock()
	if !ok || n >= len(r.records) {
		return
	}

	rec := r.records[n]
	if rec.state == answered {
		return
	}
	open := rec.state == underWay
	rec.state, rec.done = answered, at
	rec.note(a, err)
	if rec.kept {
		rec.answer = a
	}
	if open {
		r.end()
	}
}

// keep decides whether the request and the answer of a job are kept for verification: of every so
// many jobs one, of twice as many when there are too many of them. The caller holds the lock.
func (r *runner) keep(j *job, rec *record) {
	if r.c.Verify == 0 || r.c.Verify > 0 && j.number%r.every != 0 {
		return
	}
	rec.kept, rec.job = true, j
	if r.kept = append(r.kept, rec); r.c.Verify < 0 || len(r.kept) < 2*r.c.Verify {
		return
	}
	r.every *= 2
	r.kept = slices.DeleteFunc(r.kept, func(rec *record) bool {
		if rec.kept = rec.job.number%r.every == 0; !rec.kept {
			rec.job, rec.answer = nil, nil
		}
		return !rec.kept
	})
}

// look looks answers up that are long in coming: their republished copies may be lost.
func (r *runner) look(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			r.lookUp(ctx, lookAfter, looksAtOnce)
		}
	}
}

// lookUp looks up the answers of at most so many jobs that were acknowledged, and looked up, at
// least so long ago.
func (r *runner) lookUp(ctx context.Context, age time.Duration, most int) {
	now := time.Since(r.start)
	var late []int
	r.mu.Lock()
	for n, rec := range r.records {
		if len(late) == most {
			break
		}
		if rec.state == underWay && rec.acknowledged > 0 && now-max(rec.acknowledged, rec.looked) >= age {
			rec.looked = now
			late = append(late, n)
		}
	}

	r.mu.Unlock()
	for _, n := range late {
		id := r.c.Prefix + "-" + strconv.Itoa(n)
		switch a, err := r.target.Answer(ctx, id); {
		case err == nil:
			r.answered(id, a, nil)
		case ctx.Err() != nil:
			return
		}
	}
}

// drain waits until no job is under way, or for as long as configured.
func (r *runner) drain(ctx context.Context) {
	end := time.Now().Add(r.c.Drain)
	for time.Now().Before(end) && ctx.Err() == nil {
		r.mu.Lock()
		under := r.under
		r.mu.Unlock()
		if under == 0 {
			return
		}
		time.Sleep(2 * time.Millisecond)
	}
}
