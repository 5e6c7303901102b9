package workers

// Tenants and clients have no right to publish to streams: reparam-worker stores their messages for them, within quotas, after its checks,
// and so that no tenant has all of its time.

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

// Bounds of what one process stores for users at one time, and of questions about room.
const (
	mostStoring         = 128 << 20
	mostStoringRequests = 16 << 20 // or two of the largest messages; quotas do not count them before they are stored
	messageOverhead     = 16 << 10 // bytes of memory of a message beside its payload
	mostQuestions       = 64
)

// door is a connection on which this process hears the tenants of a lane.
type laneConn struct {
	*nats.Subscription
	nc *nats.Conn // nil: the worker's own
}

// open has this process store for tenants. Each lane has a connection of its own: the server closes a connection that takes messages too
// slowly, and those of other lanes and of the worker itself go on then. A server in this process has no tenants to fear.
func (s *service) connectLanes() (doors []laneConn, err error) {
	for lane := range wire.Lanes {
		d := laneConn{}
		nc := s.Bus.Conn.NC
		if nc.Opts.InProcessServer == nil {
			options := nc.Opts
			options.Name += " lane " + strconv.Itoa(lane)
			options.ClosedCB = nil
			options.RetryOnFailedConnect = true // a server that is away at this moment ends no worker
			if d.nc, err = options.Connect(); err != nil {
				break
			}
			nc = d.nc
		}
		if d.Subscription, err = nc.QueueSubscribe(message.KeepFilter(lane, ">"), serviceName, s.handleStore); err != nil {
			break
		}
		doors = append(doors, d)
	}
	if err != nil {
		for _, d := range doors {
			d.close()
		}
	}
	return doors, err
}

// stopHearing ends the hearing at all doors together: what came is handled when it returns.
func drainLanes(doors []laneConn) {
	for _, d := range doors {
		d.Drain()
	}
	isOpen := func(d laneConn) bool { return d.IsValid() }
	for until := time.Now().Add(hop.WriteTimeout); slices.ContainsFunc(doors, isOpen) && time.Now().Before(until); {
		time.Sleep(time.Millisecond)
	}
}

// close closes the connection, over which replies go.
func (d laneConn) close() {
	if d.nc != nil {
		d.nc.FlushTimeout(hop.WriteTimeout)
		d.nc.Close()
	}
}

// keep stores a message of a user and replies with the stream's reply. It must not block. It stores nothing whose sender would not hear
// of it.
func (s *service) handleStore(r *nats.Msg) {
	if r.Reply == "" {
		return
	}
	subject := message.Kept(r.Subject)
	owner, ok := bus.OwnerOn(subject)
	if !ok {
		s.replyRefused(r, bus.CodeRefused, "nothing is stored under this subject")
		return
	}
	room := &s.storeRoom
	if message.KindOf(subject) == message.KindModel {
		room = &s.requestRoom
	}
	if why := s.start(room, "bytes", owner, int64(len(r.Data))+messageOverhead, func() { s.store(r, subject) }); why != "" {
		s.replyRefused(r, bus.CodeBusy, why+": ask again later")
	}
}

// store is keep in a goroutine of its own, for a message that is to be stored on a subject.
func (s *service) store(r *nats.Msg, subject string) {
	if err := bus.Intact(subject, r.Header, r.Data); err != nil && message.KindOf(subject) != message.KindTimer { // that is made anew
		s.replyRefused(r, bus.CodeDamaged, err.Error())
		return
	}
	ctx, cancel := context.WithTimeout(s.Hard, hop.WriteTimeout)
	defer cancel()
	m, err := s.Bus.Vet(ctx, subject, r.Header, r.Data)
	if err == nil { // a refused tenant takes no place of its lane
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
	s.record(subject, reply.Data)
}

// enter takes the place of a request in the backlog of its lane, which must be that of its owner, if it has one.
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
	return s.models.Enter(ctx, model.Lane)
}

// note records a user's message that was stored, by the stream's reply: a registered model, a name, a cancellation.
func (s *service) record(subject string, reply []byte) {
	var answer struct{ Error *jetstream.APIError }
	if json.Unmarshal(reply, &answer) != nil || answer.Error != nil {
		return
	}
	owner, _ := bus.OwnerOn(subject)
	who := "a client"
	if owner != "" {
		who = "tenant " + owner
	}
	action, what := "", subject[strings.LastIndexByte(subject, '.')+1:]
	switch message.KindOf(subject) {
	case message.KindGraph:
		if action = telemetry.ActPut; bus.IsAlias(what) {
			action = telemetry.ActName
		}
	case message.KindCancel:
		action, what = telemetry.ActCancel, strings.TrimPrefix(subject, wire.CancelSubject(""))
	default:
		return
	}
	s.audit.Note(who, action, what, nil)
}

// unkept replies with a refusal in the form of a stream's.
func (s *service) replyRefused(r *nats.Msg, code jetstream.ErrorCode, why string) {
	b, err := json.Marshal(map[string]any{"error": jetstream.APIError{Code: 400, ErrorCode: code, Description: why}})
	if err != nil {
		s.Log.Error("cannot encode a reply", "error", err)
		return
	}
	r.Respond(b)
}
