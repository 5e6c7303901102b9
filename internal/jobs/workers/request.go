package workers

// Requests for an immediate answer: reparam-worker offers a NATS micro service that submits a request as any client
// would, and replies with the answer.

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/basetensor/basetensor/internal/base/shares"
	"github.com/basetensor/basetensor/internal/jobs/hop"
	"github.com/basetensor/basetensor/internal/jobs/metrics"
	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/internal/queue/seal"
	"github.com/basetensor/basetensor/internal/queue/submit"
	"github.com/basetensor/basetensor/internal/queue/telemetry"
	"github.com/basetensor/basetensor/internal/queue/tracing"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
	"github.com/nats-io/nuid"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// The service, as `nats micro` shows it.
const (
	serviceName        = "btn"
	serviceVersion     = "1.0.0"
	serviceDescription = "Answers a model message with its answer message, " +
		"if that takes no longer than a second or the message's deadline."
	schemasURL = "https://github.com/basetensor/basetensor/schemas/messages/" // as the schemas name themselves
)

// service answers the requests for an immediate answer that come to one process. It also stores messages for tenants
// and clients (store_for_tenants.go). A shares.Room bounds each kind of work in total and by tenant.
type service struct {
	*hop.Loop
	metrics      *metrics.Metrics
	audit        *telemetry.Audit
	jobs         *submit.Submitter
	models       *bus.Room   // for messages in the stream of models
	waitRoom     shares.Room // number of requests that wait for an answer
	storeRoom    shares.Room // bytes of messages that are being stored, without requests
	requestRoom  shares.Room // bytes of requests that are being stored
	questionRoom shares.Room // number of questions about room that are being answered

	mu       sync.Mutex
	isClosed bool           // under mu: no work is started any more
	inWork   sync.WaitGroup // work that was started

	answered, pending, refused atomic.Int64 // requests, by their reply
}

// serve offers the service until ctx ends, and then waits for the work that it has started.
func (w *Reparam) serve(ctx context.Context) error {
	s := &service{
		Loop:         w.Loop,
		metrics:      w.host.Metrics,
		audit:        w.host.Audit,
		jobs:         submit.New(w.Bus),
		models:       bus.NewModelRoom(w.Bus.Conn),
		waitRoom:     shares.Room{Size: int64(w.host.Requests)},
		storeRoom:    shares.Room{Size: maxStoringBytes},
		requestRoom:  shares.Room{Size: max(maxRequestBytes, 2*(w.Bus.Conn.NC.MaxPayload()+messageOverhead))},
		questionRoom: shares.Room{Size: maxQuestions},
	}

	server, err := s.addEndpoints()
	var lanes []laneConn
	if err == nil {
		lanes, err = s.connectLanes()
	}
	if err != nil {
		if server != nil {
			server.Stop()
		}
		return fault.New(fault.Infrastructure, "pipeline: service: %w", err)
	}
	<-ctx.Done()
	s.shutDown(server, lanes)
	return nil
}

// shutDown takes no more requests and messages, and waits until the work that was started has sent its replies. lanes
// are the connections on which messages to be stored come.
func (s *service) shutDown(server micro.Service, lanes []laneConn) {
	nc := s.Bus.Conn.NC
	if err := server.Stop(); err != nil {
		s.Log.Warn("service", "error", err)
	}
	// After this flush the requests are here that the server sent before it knew of the stop.
	nc.FlushTimeout(hop.WriteTimeout)
	drainLanes(lanes)

	s.mu.Lock()
	s.isClosed = true // from here on no work is added to inWork
	s.mu.Unlock()

	s.inWork.Wait()
	nc.FlushTimeout(hop.WriteTimeout) // sends the last replies
	for _, lane := range lanes {
		lane.close()
	}
}

// addEndpoints begins to take requests and questions about room. The requests of a tenant come on a subject that names
// the tenant as their owner. If addEndpoints fails, it may return the service besides the error, for the caller to stop.
func (s *service) addEndpoints() (micro.Service, error) {
	server, err := micro.AddService(s.Bus.Conn.NC, micro.Config{
		Name:         serviceName,
		Version:      serviceVersion,
		Description:  serviceDescription,
		QueueGroup:   serviceName,
		StatsHandler: s.replyCounts,
		ErrorHandler: func(_ micro.Service, err *micro.NATSError) {
			s.Log.Warn("service", "error", err)
		},
	})
	schemas := micro.WithEndpointMetadata(map[string]string{
		"request_schema": schemasURL + "model.schema.json", "response_schema": schemasURL + "answer.schema.json",
	})
	for _, endpoint := range [][2]string{
		{"infer", wire.InferSubject}, {"infer-owned", message.InferSubject("*")},
	} {
		if err == nil {
			err = server.AddEndpoint(endpoint[0], micro.HandlerFunc(s.handleRequest), micro.WithEndpointSubject(endpoint[1]), schemas)
		}
	}
	if err == nil {
		err = server.AddEndpoint("room", micro.HandlerFunc(s.handleRoom), micro.WithEndpointSubject(wire.Prefix+"room.*"))
	}
	return server, err
}

// replyCounts returns figures for `nats micro stats`. Those of the library only count the taking of requests.
func (s *service) replyCounts(*micro.Endpoint) any {
	return map[string]int64{
		metrics.Answered: s.answered.Load(),
		metrics.Pending:  s.pending.Load(),
		metrics.Refused:  s.refused.Load(),
		"waiting":        s.waitRoom.Used(),
	}
}

// handleRequest starts submitAndWait for a request, or refuses the request if too many wait. It must not block, because
// the library hands over requests one by one.
func (s *service) handleRequest(r micro.Request) {
	began := time.Now()
	if refusal := s.startWork(&s.waitRoom, "requests", message.OwnerOf(r.Subject()), 1, func() { s.submitAndWait(r, began) }); refusal != "" {
		s.refuse(r, began, "", wire.ReplyNoRoom, fault.New(fault.Infrastructure, "pipeline: %s: ask again later", refusal))
	}
}

// startWork calls work in a goroutine, for which an owner takes n of a room until work returns. A room is a quantity,
// such as bytes, of which all owners together may take Size, and one owner only a share. If n is not free for the
// owner, startWork returns the reason at once; unit is the word in it for what the room counts. shutDown waits for the
// end of the goroutine.
func (s *service) startWork(room *shares.Room, unit, owner string, n int64, work func()) (refusal string) {
	s.mu.Lock() // so that no work is added to inWork when shutDown waits for it
	defer s.mu.Unlock()
	if s.isClosed {
		return "this worker is stopping"
	}
	switch isFull, isShareTaken := room.Take(owner, n); {
	case isFull: // less than n is free
		return fmt.Sprintf("%d %s wait already", room.Size, unit)
	case isShareTaken: // n is free, but the owner would have more than its share
		return fmt.Sprintf("too many %s of %s wait already", unit, owner)
	}
	s.inWork.Go(func() {
		defer room.Release(owner, n)
		work()
	})
	return ""
}

// submitAndWait submits a request and replies with its answer. If there is none in time, it replies that the job goes
// on. If the request cannot be submitted, it replies with the reason.
func (s *service) submitAndWait(r micro.Request, began time.Time) {
	ctx, span := s.WorkCtx, trace.Span(noop.Span{})
	if s.Tracer != nil {
		ctx, span = s.Tracer.Start(
			tracing.WithHeaderSpan(ctx, r.Headers()), "request", trace.WithSpanKind(trace.SpanKindServer),
			trace.WithAttributes(tracing.Stage.String(s.Stage)),
		)
	}
	defer span.End()

	m, digest, isSubmitted := s.readAndSubmit(ctx, r, began)
	if !isSubmitted {
		return
	}

	// The request is stored now. So whatever happens, it is not refused any more: its job goes on.
	patience := message.Patience(m.DeadlineMS)
	waitCtx, cancel := context.WithTimeout(s.WorkCtx, patience)
	defer cancel()
	answer, err := s.Bus.Log.WaitAnswer(waitCtx, m.Job, nil) // nil: nothing is called during the wait
	if err == nil {
		s.replyAnswer(r, began, &m, digest, answer)
		return
	}
	reason := fmt.Sprintf("no answer within %v; the job goes on", patience)
	hasPatience := waitCtx.Err() == nil || s.WorkCtx.Err() != nil // something else ended the wait
	if hasPatience {
		reason = fmt.Sprintf("the wait was broken off; the job goes on: %v", err)
	}
	s.replyPending(r, began, &m, digest, reason)
}

// replyAnswer replies with the answer to a request.
func (s *service) replyAnswer(r micro.Request, began time.Time, m *wire.Request, digest string, answer *nats.Msg) {
	s.answered.Add(1)
	s.metrics.Request(metrics.Answered, time.Since(began))
	h := nats.Header(message.Headers(&wire.Answer{}, m.Job, digest, m.Tenant))
	// The client gets the aggregator's MAC and signature, and the status that is signed with it.
	for _, signed := range []string{seal.Header, seal.Signature, message.HeaderStatus} {
		if v := answer.Header[signed]; len(v) > 0 {
			h[signed] = v
		}
	}
	s.reply(r, h, answer.Data)
}

// replyPending replies that there is no answer yet, for a reason, and that the job goes on.
func (s *service) replyPending(r micro.Request, began time.Time, m *wire.Request, digest, reason string) {
	s.pending.Add(1)
	s.metrics.Request(metrics.Pending, time.Since(began))
	s.replyUnanswered(r, wire.ReplyPending, &wire.Unanswered{
		Job:    m.Job,
		Digest: digest,
		Status: wire.StatusPending,
		Error:  query.ErrorInfo{Code: fault.Deadline, Message: reason, Stage: s.Stage},
	})
}

// readAndSubmit reads a request and submits it. It returns the request and its digest, or refuses the request and
// returns isSubmitted false.
func (s *service) readAndSubmit(ctx context.Context, r micro.Request, began time.Time) (m wire.Request, digest string, isSubmitted bool) {
	ctx, cancel := context.WithTimeout(ctx, hop.WriteTimeout)
	defer cancel()
	data, err := r.Data(), bus.CheckSum(r.Subject(), nats.Header(r.Headers()), r.Data())
	if err == nil {
		data, err = s.Bus.Blobs.Payload(ctx, message.OwnerOf(r.Subject()), nats.Header(r.Headers()), r.Data())
	}
	if err != nil {
		s.refuse(r, began, "", replyCode(err), err)
		return m, "", false
	}

	m, err = decodeRequest(r.Subject(), data)
	if err != nil {
		s.refuse(r, began, "", wire.ReplyBadRequest, err)
		return m, "", false
	}

	digest, err = s.jobs.Submit(ctx, m, func(h nats.Header) { tracing.Copy(h, r.Headers()) })
	if err != nil {
		s.refuse(r, began, m.Job, replyCode(err), err)
		return m, "", false
	}
	return m, digest, true
}

// decodeRequest decodes a request that came on a subject. If the subject has an owner, the job has to be that owner's.
// A job without an id gets a new one, of the owner if there is one.
func decodeRequest(subject string, data []byte) (m wire.Request, err error) {
	s, err := message.ParseSubject(subject)
	if err != nil {
		return m, fault.Wrap(fault.BadInput, err)
	}
	newID := nuid.Next // a random id
	if s.Owner != "" {
		newID = func() string { return s.Owner + "." + nuid.Next() }
	}
	if err := message.DecodeRequest(data, &m, newID); err != nil {
		return m, err
	}
	if owner := message.Owner(m.Job); owner != s.Owner {
		return m, fault.New(fault.BadInput, "pipeline: job %s is asked for on %s, which is not its owner's", m.Job, subject)
	}
	return m, nil
}

// replyCode returns the service error code of a request that was not submitted.
func replyCode(err error) string {
	switch {
	case errors.Is(err, submit.ErrJobTaken):
		return wire.ReplyTaken
	case errors.Is(err, bus.ErrFull):
		return wire.ReplyNoRoom
	case hop.CodeOf(err) == fault.BadInput, hop.CodeOf(err) == fault.Unsupported:
		return wire.ReplyBadRequest
	}
	return wire.ReplyFailed
}

// refuse replies that a request was not submitted, and why. After an error the request may be stored nevertheless.
func (s *service) refuse(r micro.Request, began time.Time, job, code string, err error) {
	s.refused.Add(1)
	s.metrics.Request(metrics.Refused, time.Since(began))
	s.Log.Debug("request refused", "job", job, "error", err)
	s.replyUnanswered(
		r, code, &wire.Unanswered{Job: job, Status: wire.StatusRefused, Error: s.ErrorInfo(err)},
	)
}

// replyUnanswered replies with a message that states why there is no answer, and with the headers of a service error.
func (s *service) replyUnanswered(r micro.Request, code string, u *wire.Unanswered) {
	b, err := wire.Encode(u)
	if err != nil {
		s.Log.Error("cannot encode a reply", "error", err)
	}

	h := nats.Header(message.Headers(u, u.Job, u.Digest, ""))
	h[micro.ErrorHeader] = []string{oneLine(u.Error.Message)}
	h[micro.ErrorCodeHeader] = []string{code}
	s.reply(r, h, b)
}

// oneLine returns text as the value of a header: at most 200 characters, with spaces in place of control characters.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, fmt.Sprintf("%.200s", text))
}

// reply sends data as the reply to a request, or if data exceeds the server's limit, the digest of a blob with data. It
// does not use r.Respond, which writes a field that the library reads after the handler has returned; reply may run
// later than that.
func (s *service) reply(r micro.Request, h nats.Header, data []byte) {
	if r.Reply() == "" || len(r.Reply()) > bus.LongestSubject {
		return // no subject for a reply, or one too long for the server
	}

	ctx, cancel := context.WithTimeout(context.Background(), hop.WriteTimeout)
	defer cancel()

	m, err := s.Bus.Log.Prepare(ctx, message.OwnerOf(r.Subject()), &nats.Msg{Subject: r.Reply(), Header: h, Data: data})
	if err == nil {
		err = s.Bus.Conn.NC.PublishMsg(m)
	}
	if err != nil {
		s.Log.Warn("a reply is lost: the answer is stored", "error", err)
	}
}

// handleRoom starts replyRoom for a question about how many jobs may still be submitted to a lane, or refuses the
// question. A lane is one of the queues over which the jobs of all tenants are spread. handleRoom must not block.
func (s *service) handleRoom(r micro.Request) {
	name := r.Subject()[strings.LastIndexByte(r.Subject(), '.')+1:]
	lane, err := strconv.Atoi(name)
	if err != nil || lane < 0 || lane >= wire.Lanes {
		r.Error(wire.ReplyBadRequest, "no such lane", nil)
		return
	}
	if refusal := s.startWork(&s.questionRoom, "questions", "lane "+name, 1, func() { s.replyRoom(r, lane) }); refusal != "" {
		r.Error(wire.ReplyNoRoom, refusal, nil)
	}
}

// replyRoom replies with the number of jobs that may still be submitted to a lane and, if asked, whether workers serve
// the lane. The question comes from a client that may not ask the server.
func (s *service) replyRoom(r micro.Request, lane int) {
	ctx, cancel := context.WithTimeout(s.WorkCtx, hop.WriteTimeout)
	defer cancel()
	var m message.Room
	m.Left, m.Full = s.models.Remaining(ctx, lane) // Full: a later stream that has no room, or ""
	if string(r.Data()) == message.AskServed {
		if _, err := s.Bus.Conn.CheckLane(ctx, lane); err != nil {
			m.Unserved = s.ErrorInfo(err).Message
		}
	}

	b, err := wire.Encode(&m)
	if err != nil {
		s.Log.Error("cannot encode a reply", "error", err)
		return
	}
	s.Bus.Conn.NC.PublishMsg(&nats.Msg{Subject: r.Reply(), Header: message.Headers(&m, "", "", ""), Data: b})
}
