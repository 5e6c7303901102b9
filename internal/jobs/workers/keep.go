package workers

// Tenants have no right to publish to the streams of blobs and registered models: reparam-worker stores these for them, within quotas.

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/basetensor/basetensor/internal/jobs/hop"
	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nats.go/micro"
)

// keepAtOne is the maximum number of messages that one process stores for tenants at one time, and of questions about room.
const keepAtOne = 64

// keep stores a message of a tenant and replies with the stream's reply. It must not block.
func (s *service) keep(r micro.Request) {
	if why := s.begin(s.keeps, func() { s.kept(r) }); why != "" {
		s.unkept(r, bus.CodeBusy, why+": ask again later")
	}
}

// kept is keep in a goroutine of its own.
func (s *service) kept(r micro.Request) {
	subject := wire.Prefix + strings.TrimPrefix(r.Subject(), message.KeepPrefix)
	stream, ok := bus.Shelf(subject)
	if !ok || r.Reply() == "" {
		s.unkept(r, bus.CodeRefused, "nothing is stored under this subject")
		return
	}
	if err := bus.Intact(subject, nats.Header(r.Headers()), r.Data()); err != nil {
		s.unkept(r, bus.CodeDamaged, err.Error())
		return
	}
	if err := bus.CheckKept(subject, nats.Header(r.Headers()), r.Data()); err != nil {
		s.unkept(r, bus.CodeRefused, err.Error())
		return
	}
	ctx, cancel := context.WithTimeout(s.Hard, hop.WriteTimeout)
	defer cancel()
	if err := s.Bus.Quotas().Take(ctx, stream, subject, len(r.Data())); err != nil {
		s.unkept(r, bus.CodeOf(err), err.Error())
		return
	}
	m := &nats.Msg{Subject: subject, Header: nats.Header{}, Data: r.Data()}
	for name, values := range r.Headers() {
		if strings.HasPrefix(name, "Btn-") || name == jetstream.ExpectedLastSubjSeqHeader { // no other header of the server
			m.Header[name] = values
		}
	}
	reply, err := s.Bus.NC.RequestMsgWithContext(ctx, m)
	if err != nil {
		s.unkept(r, bus.CodeBusy, "the server does not answer: "+err.Error())
		return
	}
	s.Bus.NC.Publish(r.Reply(), reply.Data)
}

// unkept replies with a refusal in the form of a stream's.
func (s *service) unkept(r micro.Request, code jetstream.ErrorCode, why string) {
	if r.Reply() == "" {
		return
	}
	b, err := json.Marshal(map[string]any{"error": jetstream.APIError{Code: 400, ErrorCode: code, Description: why}})
	if err != nil {
		s.Log.Error("cannot encode a reply", "error", err)
		return
	}
	s.Bus.NC.Publish(r.Reply(), b)
}
