package faults

// The jobs and their outcomes.

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/basetensor/basetensor/internal/base/sentence"
	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/lab/load"
	"github.com/basetensor/basetensor/pkg/client"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/wire"
)

// Times of clients.
const (
	attemptFor   = 5 * time.Second        // one attempt to submit, or to look
	againAfter   = 100 * time.Millisecond // and the pause before the next one
	lookEvery    = time.Second            // at the stored answer, since its copy may be lost
	answerWithin = 90 * time.Second       // after the last fault; then the job is lost
)

// job is one that is asked.
type job struct {
	id     string
	tenant string
	q      *question
	came   chan struct{} // closed with the first answer

	// Under ledger.mu:
	due      time.Time
	accepted time.Time
	answered time.Time
	answers  []*wire.Answer // as they were received
	gave     string         // the reason for waiting no more
	by       *strike        // the last fault that held it up
	since    time.Time      // when that did
	again    int            // times that it was submitted although it had been accepted
}

// strike is one fault.
type strike struct {
	what string
	at   time.Time
	held int // jobs
	void bool
}

// ledger keeps the jobs of a batch.
type ledger struct {
	s      *stack
	prefix string
	open   context.Context // ends when jobs without answer are lost
	may    losses

	mu   sync.Mutex
	jobs map[string]*job
	list []*job
	run  sync.WaitGroup
	stop func()
}

// newLedger listens to the answers of jobs with that prefix.
func newLedger(ctx context.Context, s *stack, prefix string) (*ledger, error) {
	l := &ledger{s: s, prefix: prefix, open: ctx, jobs: map[string]*job{}}
	var err error
	l.stop, err = s.client.Results(ctx, func(id string) bool { return strings.HasPrefix(id, prefix) }, l.heard)
	return l, err
}

// heard notes an answer that a client received.
func (l *ledger) heard(id string, a *wire.Answer, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	j := l.jobs[id]
	if j == nil {
		return
	}
	if err != nil {
		return // the stored one is looked up
	}
	j.answers = append(j.answers, a)
	l.first(j)
}

// first notes that a job is answered. The caller holds the lock.
func (l *ledger) first(j *job) {
	if j.answered.IsZero() {
		j.answered = time.Now()
		close(j.came)
	}
}

// ask submits a job of its own accord and waits for its answer.
func (l *ledger) ask(number int, q *question, r *rand.Rand) {
	j := &job{
		id: fmt.Sprintf("%s-%d", l.prefix, number), tenant: tenants[r.IntN(len(tenants))], q: q,
		came: make(chan struct{}), due: time.Now(),
	}
	cancelAfter := time.Duration(r.IntN(60)) * time.Millisecond
	l.mu.Lock()
	l.jobs[j.id] = j
	l.list = append(l.list, j)
	l.mu.Unlock()
	l.run.Go(func() {
		if err := l.submit(j); err != nil {
			l.give(j, "never accepted: "+err.Error())
			return
		}
		if q.kind == dropped {
			pause(l.open, cancelAfter)
			l.patiently(func(ctx context.Context) error { return l.s.client.Cancel(ctx, j.id, "not wanted") })
		}
		l.wait(j)
	})
}

func (l *ledger) give(j *job, why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	j.gave = why
}

// request returns the request that a job is submitted as.
func (j *job) request() *wire.Request {
	m := j.q.ask
	m.Job, m.Tenant = j.id, j.tenant
	return &m
}

// submit submits a job however often it takes: submitting it again is no new job.
func (l *ledger) submit(j *job) error {
	m := *j.request()
	err := l.patiently(func(ctx context.Context) error {
		if j.q.kind == registered {
			digest, err := l.s.client.PutModel(ctx, &wire.Graph{Model: m.Model})
			if err != nil {
				return err
			}
			named := m
			named.Model, named.ModelDigest = nil, digest
			_, err = l.s.client.Submit(ctx, named)
			return err
		}
		_, err := l.s.client.Submit(ctx, m)
		return err
	})
	if err == nil {
		l.mu.Lock()
		j.accepted = time.Now()
		l.mu.Unlock()
	}
	return err
}

// patiently does something until it succeeds, or cannot.
func (l *ledger) patiently(do func(context.Context) error) error {
	for {
		ctx, cancel := context.WithTimeout(l.open, attemptFor)
		err := do(ctx)
		cancel()
		if err == nil || l.open.Err() != nil || errors.Is(err, client.ErrJobTaken) {
			return err
		}
		pause(l.open, againAfter)
	}
}

// wait waits for the answer of a job. Its notification may be missed.
func (l *ledger) wait(j *job) {
	for l.open.Err() == nil {
		select {
		case <-j.came:
			return
		case <-l.open.Done():
			return
		case <-time.After(lookEvery):
		}
		ctx, cancel := context.WithTimeout(l.open, attemptFor)
		_, err := l.s.client.Answer(ctx, j.id)
		if errors.Is(err, client.ErrNotFound) && l.may.include(models) {
			// Wait says so where neither model nor answer is stored.
			look, over := context.WithTimeout(ctx, 3*time.Second)
			if _, unknown := l.s.client.Wait(look, j.id); errors.Is(unknown, client.ErrUnknownJob) {
				l.mu.Lock()
				j.again++
				l.mu.Unlock()
				l.submit(j)
			}
			over()
		}
		cancel()
		if err == nil {
			l.mu.Lock()
			l.first(j)
			l.mu.Unlock()
			return
		}
	}
}

// holds notes that a fault holds jobs up, those that are not answered yet, each since its own time.
func (l *ledger) holds(s *strike, jobs map[string]time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, since := range jobs {
		l.hold(s, l.jobs[id], since)
	}
}

// hold notes that a fault holds one job up. The caller holds the lock.
func (l *ledger) hold(s *strike, j *job, since time.Time) {
	if since.Before(s.at) {
		since = s.at // it had the message before
	}
	if j == nil || !j.answered.IsZero() && j.answered.Before(since) || j.by == s {
		return
	}
	if j.by != nil && j.since.After(since) {
		return // another fault hit it later
	}
	j.by, j.since = s, since
	s.held++
}

// during notes that a fault held up all jobs that were under way between two times.
func (l *ledger) during(s *strike, from, to time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, j := range l.list {
		if j.due.Before(to) {
			since := from
			if j.due.After(from) {
				since = j.due
			}
			l.hold(s, j, since)
		}
	}
}

// verdict counts the outcomes of a batch's jobs.
type verdict struct {
	jobs, lost, doubled, wrong int
	kinds                      map[string]int
	problems                   []string
	recoveries                 map[*strike]time.Duration
	last                       map[*strike]string // the job that took so long
	usual                      []time.Duration    // latencies of jobs that no fault held up
}

// judge compares every job's answers with each other, with the stored one and with the computation here.
func (l *ledger) judge(ctx context.Context) *verdict {
	l.run.Wait()
	l.stop()
	v := &verdict{kinds: map[string]int{}, recoveries: map[*strike]time.Duration{}, last: map[*strike]string{}}
	for _, j := range l.list {
		v.jobs++
		v.kinds[j.q.kind]++
		if j.answered.IsZero() {
			v.lost++
			v.problem("%s (%s): no answer; accepted %v; %s", j.id, j.q.kind, !j.accepted.IsZero(), j.gave)
			continue
		}
		switch {
		case j.by == nil:
			v.usual = append(v.usual, j.answered.Sub(j.due))
		case !j.by.void:
			if took := j.answered.Sub(j.since); took > v.recoveries[j.by] {
				v.recoveries[j.by], v.last[j.by] = took, fmt.Sprintf("%s (%s)", j.id, j.q.kind)
			}
		}

		stored, err := l.s.client.Answer(ctx, j.id)
		if errors.Is(err, client.ErrNotFound) && l.may.include(answers) && len(j.answers) > 0 {
			stored, err = j.answers[0], nil // it was deleted after its notification
		}
		if err != nil {
			v.lost++
			v.problem("%s (%s): its answer is not stored: %v", j.id, j.q.kind, err)
			continue
		}
		if len(j.answers) > 1 && !l.may.include(answers|retold) {
			v.doubled++
			v.problem("%s (%s): %d answers", j.id, j.q.kind, len(j.answers))
		}
		for _, told := range j.answers {
			if l.may.include(answers) { // the cancel or the deadline of a job that is done again is over
				if why := j.q.judge(ctx, told); why != "" && !(l.may.include(registry) && modelLost(j, told)) {
					v.wrong++
					v.problem("%s (%s): told of: %s", j.id, j.q.kind, why)
				}
			} else if why := differ(told, stored); why != "" {
				v.doubled++
				v.problem("%s (%s): the answer that was told of is not the stored one: %s", j.id, j.q.kind, why)
			}
		}
		lost := l.may.include(requests) && requestLost(j, stored) || l.may.include(registry) && modelLost(j, stored)
		if why := j.q.judge(ctx, stored); why != "" && !lost {
			v.wrong++
			v.problem("%s (%s): %s", j.id, j.q.kind, why)
		}
	}
	return v
}

// modelLost reports whether an answer says that a job's registered model is not stored any more.
func modelLost(j *job, a *wire.Answer) bool {
	return j.q.kind == registered && a.Status == wire.StatusError && strings.Contains(a.Error.Message, "no model is registered")
}

// requestLost reports whether an answer says that a job's own large request is not stored any more.
func requestLost(j *job, a *wire.Answer) bool {
	if j.q.kind != large || a.Status != wire.StatusError || a.Error.Code != fault.Infrastructure {
		return false
	}
	request, err := wire.Encode(j.request())
	return err == nil && strings.Contains(a.Error.Message, sentence.Text(bus.ErrLost.Error())) &&
		strings.Contains(a.Error.Message, wire.Digest(request)[:16])
}

// differ says how two answers of one job differ, or nothing.
func differ(a, b *wire.Answer) string {
	if a.Status != b.Status || a.Digest != b.Digest {
		return fmt.Sprintf("%s and %s, %.8s and %.8s", a.Status, b.Status, a.Digest, b.Digest)
	}
	if a.Status == wire.StatusOK && !load.Same(a.Results, b.Results) {
		return "other results"
	}
	return ""
}

func (v *verdict) problem(format string, args ...any) {
	v.problems = append(v.problems, fmt.Sprintf(format, args...))
}
