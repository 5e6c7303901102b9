package workers

// Tenants and clients have no right to publish to streams. reparam-worker stores their messages for them, within quotas
// and after checks. It bounds what it stores at a time, in total and for each tenant, so that no tenant takes all of
// its time.

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/basetensor/basetensor/internal/jobs/hop"
	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/internal/queue/telemetry"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Bounds of the work of one process for users at a time.
const (
	maxStoringBytes = 128 << 20 // bytes of messages that are being stored, without requests
	maxRequestBytes = 16 << 20  // bytes of requests, or two of the largest messages; quotas count requests only when they are stored
	messageOverhead = 16 << 10  // bytes of memory that a message takes in addition to its payload
	maxQuestions    = 64        // questions about room
)

// laneConn is a subscription to the messages that tenants of a lane ask a worker to store.
type laneConn struct {
	*nats.Subscription
	nc *nats.Conn // the connection of the lane; nil: the subscription uses that of the worker
}

// connectLanes subscribes to the messages that tenants ask a worker to store, in every lane (the queue of some tenants).
// Each lane has a connection of its own: the server closes a connection that takes messages too slowly, and the
// connections of the other lanes and of the worker then stay. If the server is in this process, it has no tenants, and
// all lanes use the worker's connection.
func (s *service) connectLanes() (lanes []laneConn, err error) {
	for n := range wire.Lanes {
		lane := laneConn{}
		nc := s.Bus.Conn.NC
		if nc.Opts.InProcessServer == nil {
			options := nc.Opts
			options.Name += " lane " + strconv.Itoa(n)
			options.ClosedCB = nil              // it is for the end of the worker's own connection
			options.RetryOnFailedConnect = true // if the server is away now, that is no error
			if lane.nc, err = options.Connect(); err != nil {
				break
			}
			nc = lane.nc
		}
		if lane.Subscription, err = nc.QueueSubscribe(message.KeepFilter(n, ">"), serviceName, s.handleStore); err != nil {
			break
		}
		lanes = append(lanes, lane)
	}
	if err != nil {
		for _, lane := range lanes {
			lane.close()
		}
	}
	return lanes, err
}

// drainLanes ends all subscriptions, and waits until the messages that came before are handled, for at most
// hop.WriteTimeout.
func drainLanes(lanes []laneConn) {
	for _, lane := range lanes {
		lane.Drain()
	}
	isOpen := func(lane laneConn) bool { return lane.IsValid() }
	for end := time.Now().Add(hop.WriteTimeout); slices.ContainsFunc(lanes, isOpen) && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
}

// close closes the connection of the lane, after the replies on it are sent.
func (c laneConn) close() {
	if c.nc != nil {
		c.nc.FlushTimeout(hop.WriteTimeout)
		c.nc.Close()
	}
}

// handleStore starts store for a message of a user, or refuses the message. It ignores a message whose sender expects
// no reply. It must not block, because messages come one by one.
func (s *service) handleStore(r *nats.Msg) {
	if r.Reply == "" {
		return
	}
	subject := message.Kept(r.Subject) // the subject on which the message is to be stored
	owner, ok := bus.OwnerOn(subject)
	if !ok {
		s.replyRefused(r, bus.CodeRefused, "nothing is stored under this subject")
		return
	}

	// The bytes that are being stored are bounded: those of requests by one room, those of all other messages by another.
	room := &s.storeRoom
	if message.KindOf(subject) == message.KindModel {
		room = &s.requestRoom
	}
	if refusal := s.startWork(room, "bytes", owner, int64(len(r.Data))+messageOverhead, func() { s.store(r, subject) }); refusal != "" {
		s.replyRefused(r, bus.CodeBusy, refusal+": ask again later")
	}
}

// store stores a message of a user on a subject, after checks, and replies with the stream's reply or with a refusal. The
// checksum of a timer may be wrong, because CheckUserMessage makes a new message from the timer's content.
func (s *service) store(r *nats.Msg, subject string) {
	if err := bus.CheckSum(subject, r.Header, r.Data); err != nil && message.KindOf(subject) != message.KindTimer {
		s.replyRefused(r, bus.CodeDamaged, err.Error())
		return
	}
	ctx, cancel := context.WithTimeout(s.WorkCtx, hop.WriteTimeout)
	defer cancel()
	m, err := s.Bus.CheckUserMessage(ctx, subject, r.Header, r.Data)
	if err == nil { // last, because a refused message must take no place of its lane
		err = s.takePlace(ctx, subject)
	}
	if err != nil {
		s.replyRefused(r, bus.CodeOf(err), err.Error())
		return
	}
	reply, err := s.Bus.Conn.NC.RequestMsgWithContext(ctx, m)
	if err != nil {
		s.replyRefused(r, bus.CodeBusy, "the server does not answer: "+err.Error())
		return
	}
	r.Respond(reply.Data)
	s.recordAudit(subject, reply.Data)
}

// takePlace takes a place for a request in the backlog of its lane, the queue in which the jobs of some tenants wait. It
// returns an error if the lane has no place, or if the request has an owner and the lane is not that owner's. Messages
// other than requests need no place.
func (s *service) takePlace(ctx context.Context, subject string) error {
	if message.KindOf(subject) != message.KindModel {
		return nil
	}
	model, err := message.ParseSubject(subject)
	if err == nil && model.Owner != "" && model.Lane != wire.Lane(model.Owner) {
		err = errors.New("the lane is another tenant's")
	}
	if err != nil {
		return fault.Wrap(fault.BadInput, err)
	}
	return s.models.TakePlace(ctx, model.Lane)
}

// recordAudit records in the audit log that a user's message was stored, if the stream's reply is no error and the
// message is a registered model, a name of a model or a cancellation.
func (s *service) recordAudit(subject string, reply []byte) {
	var answer struct{ Error *jetstream.APIError }
	if json.Unmarshal(reply, &answer) != nil || answer.Error != nil {
		return
	}
	owner, _ := bus.OwnerOn(subject)
	actor := "a client"
	if owner != "" {
		actor = "tenant " + owner
	}
	action, object := "", subject[strings.LastIndexByte(subject, '.')+1:]
	switch message.KindOf(subject) {
	case message.KindGraph:
		if action = telemetry.ActPut; bus.IsAlias(object) {
			action = telemetry.ActName
		}
	case message.KindCancel:
		action, object = telemetry.ActCancel, strings.TrimPrefix(subject, wire.CancelSubject(""))
	default:
		return
	}
	s.audit.Note(actor, action, object, nil)
}

// replyRefused replies with a refusal in the form in which a stream refuses a message.
func (s *service) replyRefused(r *nats.Msg, code jetstream.ErrorCode, reason string) {
	b, err := json.Marshal(map[string]any{"error": jetstream.APIError{Code: 400, ErrorCode: code, Description: reason}})
	if err != nil {
		s.Log.Error("cannot encode a reply", "error", err)
		return
	}
	r.Respond(b)
}
