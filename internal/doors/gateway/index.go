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

// firstSeen returns when the job was submitted or, if that is not known, answered.
func (l *JobLine) firstSeen() int64 {
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
	signer *bus.Signer // of answers

	mu       sync.Mutex
	lookedAt time.Time           // when the streams were read last
	models   streamPosition      // in the stream of models
	answers  streamPosition      // in the stream of answers
	jobs     map[string]*JobLine // by id
	sorted   []*JobLine          // what list returned last, newest first
}

// streamPosition is the position up to which a stream was read.
type streamPosition struct {
	created time.Time // when the stream was created: it may be another one of its name
	next    uint64    // the sequence of the message that is read next
	deleted int       // the number of deleted messages within the stream when it was read last
}

// newIndex returns an index of the jobs in the streams of b.
func newIndex(b *bus.Bus) *index { return &index{conn: b.Conn, signer: b.Signer} }

// JobsOf returns the jobs in the streams of b, newest first, for one call without HTTP.
func JobsOf(ctx context.Context, b *bus.Bus) ([]*JobLine, error) { return newIndex(b).list(ctx) }

// errNotTenants: streams are of all tenants together.
var errNotTenants = refuse(http.StatusUnprocessableEntity, fault.Unsupported,
	"a tenant's user of NATS may look at no stream and list no jobs: that takes the operator's user; "+
		"a gateway with one lists a tenant's own jobs over HTTP, GET /v1/jobs with the tenant's key")

// list returns the jobs, newest first. The lines are not changed any more. It reads the streams at most twice a second.
func (x *index) list(ctx context.Context) ([]*JobLine, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if time.Since(x.lookedAt) < freshFor {
		return x.sorted, nil
	}
	if x.conn.Tenant() != "" {
		return nil, errNotTenants
	}
	if x.jobs == nil {
		x.jobs = map[string]*JobLine{}
	}
	err := x.readStream(ctx, bus.StreamModel, &x.models, func(l *JobLine) *uint64 { return &l.model }, x.addModel)
	if err == nil {
		err = x.readStream(ctx, bus.StreamAnswer, &x.answers, func(l *JobLine) *uint64 { return &l.answer }, x.addAnswer)
	}
	if err != nil {
		return nil, err
	}

	// copies of the lines of jobs that are still there
	sorted := make([]*JobLine, 0, len(x.jobs))
	for id, job := range x.jobs {
		if job.model == 0 && job.answer == 0 {
			delete(x.jobs, id)
			continue
		}
		if job.answer == 0 { // not yet, or not any more: the job was replayed
			job.Answered, job.Status = 0, StatusPending
		}
		line := *job // lines of lists handed out earlier stay as they are
		sorted = append(sorted, &line)
	}
	slices.SortFunc(sorted, compareLines)
	x.sorted, x.lookedAt = sorted, time.Now()
	return sorted, nil
}

// compareLines compares lines of lists: newest first, then by id.
func compareLines(a, b *JobLine) int {
	if c := cmp.Compare(b.firstSeen(), a.firstSeen()); c != 0 {
		return c
	}
	return cmp.Compare(a.Job, b.Job)
}

// noteMessage notes a message of a stream: its subject, its sequence, and the Unix milliseconds at which it was stored.
type noteMessage func(m jetstream.Msg, subject message.Subject, sequence uint64, storedAt int64)

// deletedSequences returns the sequences of the messages that a stream had between its first and its last, and has no more.
func deletedSequences(ctx context.Context, stream jetstream.Stream) (map[uint64]bool, error) {
	info, err := stream.Info(ctx, jetstream.WithDeletedDetails(true))
	if err != nil {
		return nil, err
	}
	isDeleted := make(map[uint64]bool, len(info.State.Deleted))
	for _, n := range info.State.Deleted {
		isDeleted[n] = true
	}
	return isDeleted, nil
}

// readStream reads the messages of a stream that are new since the last call, and calls note for each. sequenceOf
// returns the field of a job's line that has the sequence of its message in this stream. readStream sets the field to 0
// if the message is gone.
func (x *index) readStream(
	ctx context.Context, stream string, position *streamPosition, sequenceOf func(*JobLine) *uint64, note noteMessage,
) error {
	stored, err := x.conn.Stream(ctx, stream)
	if err != nil {
		return err
	}
	info, err := stored.Info(ctx)
	if err != nil {
		return fault.New(fault.Infrastructure, "jobs: stream %s: %w", stream, err)
	}
	state := info.State

	// another stream of the name, made at another time or with fewer messages than were read: begin again
	if !info.Created.Equal(position.created) || state.LastSeq+1 < position.next {
		*position = streamPosition{created: info.Created}
		for _, job := range x.jobs {
			*sequenceOf(job) = 0
		}
	}

	// Drop the sequences of messages that are deleted, or older than the last mostListed. The stream says which are deleted only if it is
	// asked, and it is asked only if their number has changed, and is not too large.
	first := max(1, state.FirstSeq, state.LastSeq-min(state.LastSeq, mostListed-1))
	var isDeleted map[uint64]bool
	if state.NumDeleted != position.deleted && state.NumDeleted <= mostListed {
		if isDeleted, err = deletedSequences(ctx, stored); err != nil {
			return fault.New(fault.Infrastructure, "jobs: stream %s: %w", stream, err)
		}
	}
	position.deleted = state.NumDeleted
	for _, job := range x.jobs {
		if n := sequenceOf(job); *n < first || isDeleted[*n] {
			*n = 0
		}
	}

	// read the new ones
	if position.next = max(position.next, first); position.next > state.LastSeq {
		return nil
	}
	if err := x.readMessages(ctx, stream, position.next, int(state.LastSeq-position.next)+1, note); err != nil {
		return err
	}
	position.next = state.LastSeq + 1
	return nil
}

// readMessages reads at most count messages of a stream from a sequence on, and calls note for each with its subject,
// its sequence and the Unix milliseconds at which it was stored. It reads headers alone, but whole answers if
// signatures are verified.
func (x *index) readMessages(
	ctx context.Context, stream string, from uint64, count int, note noteMessage,
) error {
	consumer, err := x.conn.JS.OrderedConsumer(ctx, stream, jetstream.OrderedConsumerConfig{
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: from,
		HeadersOnly:       stream != bus.StreamAnswer || !x.signer.HasKeys(),
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
		subject, err := message.ParseSubject(m.Subject())
		if err != nil {
			continue // its job's id is one that no request can name
		}
		meta, err := m.Metadata()
		if err != nil {
			continue // no message of a stream
		}
		note(m, subject, meta.Sequence.Stream, bus.StoredAt(m.Headers(), meta.Timestamp).UnixMilli())
	}
	if err := batch.Error(); err != nil && ctx.Err() != nil {
		return fault.New(fault.Infrastructure, "jobs: stream %s: %w", stream, err)
	}
	return nil
}

// lineOf returns the line of a job, a new one if there is none.
func (x *index) lineOf(m jetstream.Msg, id string) *JobLine {
	l := x.jobs[id]
	if l == nil {
		l = &JobLine{Job: id, Status: StatusPending, Tenant: message.TenantOf(id, m.Headers().Get(wire.HeaderTenant))}
		x.jobs[id] = l
	}
	return l
}

// addModel notes the model of a job.
func (x *index) addModel(m jetstream.Msg, subject message.Subject, sequence uint64, storedAt int64) {
	l := x.lineOf(m, subject.Job)
	l.model, l.Submitted = sequence, storedAt
	l.describe(m.Headers())
}

// addAnswer notes in the line of a job the sequence, the time and the status of its answer, unless that is damaged or
// forged.
func (x *index) addAnswer(m jetstream.Msg, subject message.Subject, sequence uint64, storedAt int64) {
	if bus.RejectServerHeaders(m.Headers()) != nil || !x.signer.IsGenuine(m.Subject(), m.Headers(), m.Data()) {
		return
	}
	l := x.lineOf(m, subject.Job)
	l.answer, l.Answered = sequence, storedAt
	l.describe(m.Headers())
	if l.Status = m.Headers().Get(message.HeaderStatus); l.Status == "" {
		l.Status = StatusAnswered
	}
}

// describe takes the model and the question from the headers of a message.
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
	usualPage  = 100
	mostPage   = 10_000
	maxGlances = 100 // with glances
)

// jobsFilter says which jobs a page of the list has.
type jobsFilter struct {
	limit      int      // most jobs on the page
	hasGlances bool     // whether the jobs come with a glance at their answers
	hasLooks   bool     // whether jobs that a page asked in passing (Infer.Look) are listed
	tenant     string   // of the jobs; "": any
	idPart     string   // text that the jobs' ids contain
	state      string   // of the jobs; "": any
	lastShown  *JobLine // the last job of the page before; nil: this is the first page
}

// parseJobsFilter reads the filter from the parameters of a request's address.
func parseJobsFilter(address url.Values) (f jobsFilter, err error) {
	f = jobsFilter{limit: usualPage, tenant: address.Get("tenant"), idPart: address.Get("job"), state: address.Get("state")}
	if text := address.Get("limit"); text != "" {
		if f.limit, err = strconv.Atoi(text); err != nil || f.limit < 1 || f.limit > mostPage {
			return f, badRequest("limit %.40q is no number from 1 to %d", text, mostPage)
		}
	}
	if f.hasGlances, err = boolParameter(address, "glance", false); err != nil {
		return f, err
	}
	if f.hasGlances && f.limit > maxGlances {
		return f, badRequest("limit %d: with glance a page has %d jobs at most", f.limit, maxGlances)
	}
	if f.hasLooks, err = boolParameter(address, "looks", true); err != nil {
		return f, err
	}
	states := []string{StatusPending, StatusAnswered, wire.StatusOK, wire.StatusError, wire.StatusCancelled, wire.StatusDeadline}
	if f.state != "" && !slices.Contains(states, f.state) {
		return f, badRequest("state %.40q is none of %s", f.state, strings.Join(states, ", "))
	}
	f.lastShown, err = parseCursor(address.Get("after"))
	return f, err
}

// matches reports whether a job is of the tenant, has the text in its id, and is no job in passing if these are left
// out.
func (f jobsFilter) matches(l *JobLine) bool {
	isOfTenant := f.tenant == "" || l.Tenant == f.tenant
	return isOfTenant && strings.Contains(l.Job, f.idPart) && (f.hasLooks || !isLook(l.Job))
}

// listJobs answers with a page of the jobs that the caller may see and the parameters of the request select.
func (g *Gateway) listJobs(c *call) error {
	filter, err := parseJobsFilter(c.request.URL.Query())
	if err != nil {
		return err
	}
	lines, err := g.index.list(c.request.Context())
	if err != nil {
		return err
	}

	// Fill the page. States and Total count the jobs on all pages.
	page := Jobs{Jobs: []JobLine{}, States: map[string]int{}}
	for _, l := range lines {
		if !c.maySee(l.Job) || !filter.matches(l) {
			continue
		}
		page.States[l.Status]++
		if filter.state != "" && l.Status != filter.state {
			continue
		}
		page.Total++
		if filter.lastShown != nil && compareLines(l, filter.lastShown) <= 0 {
			continue // on an earlier page
		}
		if len(page.Jobs) < filter.limit {
			page.Jobs = append(page.Jobs, *l)
		} else if page.Next == "" { // there is another page
			last := page.Jobs[filter.limit-1]
			page.Next = fmt.Sprintf("%d-%s", last.firstSeen(), last.Job)
		}
	}
	if filter.hasGlances {
		if err := c.addGlances(page.Jobs); err != nil {
			return err
		}
	}
	return c.writeJSON(http.StatusOK, page)
}

// boolParameter returns a parameter of an address that is true or false; defaultValue without it.
func boolParameter(address url.Values, name string, defaultValue bool) (bool, error) {
	text := address.Get(name)
	if text == "" {
		return defaultValue, nil
	}
	b, err := strconv.ParseBool(text)
	if err != nil {
		return false, badRequest("%s is %.40q: true or false is needed", name, text)
	}
	return b, nil
}

// lookPrefix begins the ids of jobs that were asked with look, behind their owner.
const lookPrefix = "look-"

// isLook reports whether a job was asked in passing (Infer.Look): its id, without the owner, begins with lookPrefix.
func isLook(job string) bool {
	return strings.HasPrefix(job[strings.IndexByte(job, '.')+1:], lookPrefix)
}

// parseCursor reads a text of Jobs.Next: the time at which the last job of the page before was first seen, and its id. It
// returns a line with these two, for comparisons, or nil for "".
func parseCursor(text string) (*JobLine, error) {
	if text == "" {
		return nil, nil
	}
	ms, id, _ := strings.Cut(text, "-")
	firstSeen, err := strconv.ParseInt(ms, 10, 64)
	if err != nil || !wire.ValidJob(id) {
		return nil, badRequest("after %.200q is no value of next", text)
	}
	return &JobLine{Job: id, Submitted: firstSeen}, nil
}

// maySee reports whether the caller may see a job.
func (c *call) maySee(job string) bool {
	return c.caller.Tenant == "" || message.Owner(job) == c.caller.Tenant
}
