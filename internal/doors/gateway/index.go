package gateway

// The list of jobs, from the headers of the streams of models and answers.

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// JobLine is a job in a list.
type JobLine struct {
	Job       string `json:"job"`
	Tenant    string `json:"tenant,omitempty"`
	Status    string `json:"status"`              // pending, ok, error, cancelled, deadline; answered: not said
	Submitted int64  `json:"submitted,omitempty"` // Unix milliseconds; absent where the model is gone
	Answered  int64  `json:"answered,omitempty"`  // Unix milliseconds

	Model    string `json:"model,omitempty"`    // the digest of a registered one, or a size; absent: no header says it
	Question string `json:"question,omitempty"` // that was asked; absent: no header says it

	Glance *Glance `json:"glance,omitempty"` // where it was asked for

	model, answer uint64 // sequences in their streams, 0: gone
}

// StatusAnswered stands for an answer without a status in its headers, where lists look.
const StatusAnswered = "answered"

// at is when the job was seen first.
func (l *JobLine) at() int64 {
	if l.Submitted > 0 {
		return l.Submitted
	}
	return l.Answered
}

// mostListed is the number of messages of either stream that a list reaches back.
const mostListed = 20_000

// freshFor is how long a list is as it was.
const freshFor = 500 * time.Millisecond

// index has the jobs of the two streams. It reads new messages when it is asked.
type index struct {
	conn   *bus.Conn
	signer *bus.Signer

	mu      sync.Mutex
	looked  time.Time
	models  place
	answers place
	jobs    map[string]*JobLine
	sorted  []*JobLine // newest first
}

// place is the reading position in one stream.
type place struct {
	created time.Time
	next    uint64 // sequence
	deleted int
}

// newIndex returns an index of the jobs in the streams of b.
func newIndex(b *bus.Bus) *index { return &index{conn: b.Conn, signer: b.Signer} }

// JobsOf returns the jobs in the streams of b, newest first, for one call without HTTP.
func JobsOf(ctx context.Context, b *bus.Bus) ([]*JobLine, error) { return newIndex(b).list(ctx) }

// errNotTenants: streams are of all tenants together.
var errNotTenants = refuse(http.StatusUnprocessableEntity, fault.Unsupported,
	"a tenant's user of NATS may look at no stream and list no jobs: that takes the operator's user; "+
		"a gateway with one lists a tenant's own jobs over HTTP, GET /v1/jobs with the tenant's key")

// list returns the jobs, newest first. They are not changed any more.
func (x *index) list(ctx context.Context) ([]*JobLine, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if time.Since(x.looked) < freshFor {
		return x.sorted, nil
	}
	if x.conn.Tenant() != "" {
		return nil, errNotTenants
	}
	if x.jobs == nil {
		x.jobs = map[string]*JobLine{}
	}
	err := x.read(ctx, bus.StreamModel, &x.models, func(l *JobLine) *uint64 { return &l.model }, x.modelStored)
	if err == nil {
		err = x.read(ctx, bus.StreamAnswer, &x.answers, func(l *JobLine) *uint64 { return &l.answer }, x.answerStored)
	}
	if err != nil {
		return nil, err
	}

	sorted := make([]*JobLine, 0, len(x.jobs))
	for id, job := range x.jobs {
		if job.model == 0 && job.answer == 0 {
			delete(x.jobs, id)
			continue
		}
		if job.answer == 0 { // not yet, or not any more: the job was replayed
			job.Answered, job.Status = 0, StatusPending
		}
		one := *job // lines of lists handed out earlier stay as they are
		sorted = append(sorted, &one)
	}
	slices.SortFunc(sorted, order)
	x.sorted, x.looked = sorted, time.Now()
	return sorted, nil
}

// order compares lines of lists: newest first, then by id.
func order(a, b *JobLine) int {
	if c := cmp.Compare(b.at(), a.at()); c != 0 {
		return c
	}
	return cmp.Compare(a.Job, b.Job)
}

// read takes the new messages of a stream, and drops the lost ones.
func (x *index) read(
	ctx context.Context, stream string, at *place, sequence func(*JobLine) *uint64, stored func(jetstream.Msg, message.Subject, uint64, int64),
) error {
	s, err := x.conn.Stream(ctx, stream)
	if err != nil {
		return err
	}
	info, err := s.Info(ctx)
	if err != nil {
		return fault.New(fault.Infrastructure, "jobs: stream %s: %w", stream, err)
	}
	state := info.State
	if !info.Created.Equal(at.created) || state.LastSeq+1 < at.next { // recreated
		*at = place{created: info.Created}
		for _, job := range x.jobs {
			*sequence(job) = 0
		}
	}
	first := max(1, state.FirstSeq, state.LastSeq-min(state.LastSeq, mostListed-1))
	var gone map[uint64]bool
	if state.NumDeleted != at.deleted && state.NumDeleted <= mostListed {
		if info, err = s.Info(ctx, jetstream.WithDeletedDetails(true)); err != nil {
			return fault.New(fault.Infrastructure, "jobs: stream %s: %w", stream, err)
		}
		gone = make(map[uint64]bool, len(info.State.Deleted))
		for _, n := range info.State.Deleted {
			gone[n] = true
		}
	}
	at.deleted = state.NumDeleted
	for _, job := range x.jobs {
		if n := sequence(job); *n < first || gone[*n] {
			*n = 0
		}
	}
	if at.next = max(at.next, first); at.next > state.LastSeq {
		return nil
	}
	if err := x.follow(ctx, stream, at.next, int(state.LastSeq-at.next)+1, stored); err != nil {
		return err
	}
	at.next = state.LastSeq + 1
	return nil
}

// follow reads at most count messages of a stream from a sequence on: headers alone, but whole answers if signatures
// are verified.
func (x *index) follow(
	ctx context.Context, stream string, from uint64, count int, stored func(jetstream.Msg, message.Subject, uint64, int64),
) error {
	consumer, err := x.conn.JS.OrderedConsumer(ctx, stream, jetstream.OrderedConsumerConfig{
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: from,
		HeadersOnly:       stream != bus.StreamAnswer || !x.signer.Verifies(),
		InactiveThreshold: time.Minute, MaxResetAttempts: 3,
	})
	if err != nil {
		return fault.New(fault.Infrastructure, "jobs: stream %s: %w", stream, err)
	}
	batch, err := consumer.FetchNoWait(count)
	if err != nil {
		return fault.New(fault.Infrastructure, "jobs: stream %s: %w", stream, err)
	}
	for m := range batch.Messages() {
		of, err := message.ParseSubject(m.Subject())
		if err != nil {
			continue // an id that no request can name
		}
		meta, err := m.Metadata()
		if err != nil {
			continue
		}
		stored(m, of, meta.Sequence.Stream, bus.StoredAt(m.Headers(), meta.Timestamp).UnixMilli())
	}
	if err := batch.Error(); err != nil && ctx.Err() != nil {
		return fault.New(fault.Infrastructure, "jobs: stream %s: %w", stream, err)
	}
	return nil
}

// job returns the line of a job.
func (x *index) job(m jetstream.Msg, id string) *JobLine {
	l := x.jobs[id]
	if l == nil {
		l = &JobLine{Job: id, Status: StatusPending, Tenant: message.TenantOf(id, m.Headers().Get(wire.HeaderTenant))}
		x.jobs[id] = l
	}
	return l
}

// modelStored notes a model.
func (x *index) modelStored(m jetstream.Msg, of message.Subject, sequence uint64, at int64) {
	l := x.job(m, of.Job)
	l.model, l.Submitted = sequence, at
	l.describe(m.Headers())
}

// answerStored notes an answer, unless it is forged.
func (x *index) answerStored(m jetstream.Msg, of message.Subject, sequence uint64, at int64) {
	if bus.Sound(m.Headers()) != nil || !x.signer.Genuine(m.Subject(), m.Headers(), m.Data()) {
		return
	}
	l := x.job(m, of.Job)
	l.answer, l.Answered = sequence, at
	l.describe(m.Headers())
	if l.Status = m.Headers().Get(message.HeaderStatus); l.Status == "" {
		l.Status = StatusAnswered
	}
}

// describe takes the description of the request from the headers of a model or an answer.
func (l *JobLine) describe(h nats.Header) {
	about := message.AboutIn(h)
	l.Model, l.Question = cmp.Or(about.Model, l.Model), cmp.Or(about.Question, l.Question)
}

// Jobs is a page of a list of jobs, newest first.
type Jobs struct {
	Jobs   []JobLine      `json:"jobs"`
	Next   string         `json:"next,omitempty"` // for after; absent at the end
	Total  int            `json:"total"`          // jobs that were looked for, on all pages
	States map[string]int `json:"states"`         // number of jobs in each state
}

// Bounds of a page.
const (
	usualPage = 100
	mostPage  = 10_000
	mostSeen  = 100 // with glances
)

// jobs lists jobs, filtered by tenant, state and a text in the id, with or without questions in passing (Infer.Look).
func (g *Gateway) jobs(c *call) error {
	ask := c.r.URL.Query()
	limit := usualPage
	if text := ask.Get("limit"); text != "" {
		var err error
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 || limit > mostPage {
			return bad("limit %.40q is no number from 1 to %d", text, mostPage)
		}
	}
	glance, err := flag(ask, "glance", false)
	if err != nil {
		return err
	}
	if glance && limit > mostSeen {
		return bad("limit %d: with glance a page has %d jobs at most", limit, mostSeen)
	}
	looks, err := flag(ask, "looks", true)
	if err != nil {
		return err
	}
	states := []string{StatusPending, StatusAnswered, wire.StatusOK, wire.StatusError, wire.StatusCancelled, wire.StatusDeadline}
	state := ask.Get("state")
	if state != "" && !slices.Contains(states, state) {
		return bad("state %.40q is none of %s", state, strings.Join(states, ", "))
	}
	after, err := cursor(ask.Get("after"))
	if err != nil {
		return err
	}
	all, err := g.index.list(c.r.Context())
	if err != nil {
		return err
	}

	out := Jobs{Jobs: []JobLine{}, States: map[string]int{}}
	tenant, text := ask.Get("tenant"), ask.Get("job")
	for _, l := range all {
		if !c.sees(l.Job) || tenant != "" && l.Tenant != tenant || !strings.Contains(l.Job, text) ||
			!looks && isLook(l.Job) {
			continue
		}
		out.States[l.Status]++
		if state != "" && l.Status != state {
			continue
		}
		out.Total++
		if after != nil && order(l, after) <= 0 {
			continue
		}
		if len(out.Jobs) < limit {
			out.Jobs = append(out.Jobs, *l)
		} else if out.Next == "" {
			last := out.Jobs[limit-1]
			out.Next = fmt.Sprintf("%d-%s", last.at(), last.Job)
		}
	}
	if glance {
		if err := c.glance(out.Jobs); err != nil {
			return err
		}
	}
	return c.json(http.StatusOK, out)
}

// flag reads true or false from an address.
func flag(ask url.Values, name string, unless bool) (bool, error) {
	text := ask.Get(name)
	if text == "" {
		return unless, nil
	}
	is, err := strconv.ParseBool(text)
	if err != nil {
		return false, bad("%s is %.40q: true or false is needed", name, text)
	}
	return is, nil
}

// lookPrefix begins the ids of jobs that were asked with look, behind their owner.
const lookPrefix = "look-"

// isLook reports whether a job was asked with look.
func isLook(job string) bool {
	return strings.HasPrefix(job[strings.IndexByte(job, '.')+1:], lookPrefix)
}

// cursor parses Jobs.Next; nil for "".
func cursor(text string) (*JobLine, error) {
	if text == "" {
		return nil, nil
	}
	ms, id, _ := strings.Cut(text, "-")
	at, err := strconv.ParseInt(ms, 10, 64)
	if err != nil || !wire.ValidJob(id) {
		return nil, bad("after %.200q is no value of next", text)
	}
	return &JobLine{Job: id, Submitted: at}, nil
}

// sees reports whether the caller may see a job.
func (c *call) sees(job string) bool { return c.who.Tenant == "" || message.Owner(job) == c.who.Tenant }
