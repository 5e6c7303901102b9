package workers

// Tenants and clients have no right to publish to streams: reparam-worker stores their messages for them, within quotas.

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/basetensor/basetensor/internal/jobs/hop"
	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nats.go/micro"
)

// The maximum numbers of messages that one process stores for users at one time: for all of them, and for one of them, so that
// nobody has all places.
const (
	keepAtOne   = 256
	keepForOne  = 64
	roomsAtOnce = 64 // questions about room
)

// keep stores a message of a user and replies with the stream's reply. It must not block.
func (s *service) keep(r micro.Request) {
	owner, ok := bus.OwnerOn(storedUnder(r))
	if !ok {
		s.unkept(r, bus.CodeRefused, "nothing is stored under this subject")
		return
	}
	if !s.takePlace(owner, 1) {
		s.unkept(r, bus.CodeBusy, fmt.Sprintf("%d messages of one user wait already: ask again later", keepForOne))
		return
	}
	if why := s.begin(s.keeps, func() { defer s.takePlace(owner, -1); s.store(r) }); why != "" {
		s.takePlace(owner, -1)
		s.unkept(r, bus.CodeBusy, why+": ask again later")
	}
}

// takePlace takes a place of an owner's, or gives it back with -1, and reports whether there was one.
func (s *service) takePlace(owner string, n int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.places[owner]+n > keepForOne {
		return false
	}
	if s.places[owner] += n; s.places[owner] == 0 {
		delete(s.places, owner)
	}
	return true
}

// storedUnder returns the subject that a user's message is to be stored on.
func storedUnder(r micro.Request) string {
	return wire.Prefix + strings.TrimPrefix(r.Subject(), message.KeepPrefix)
}

// store is keep in a goroutine of its own. It stores nothing whose sender would not hear of it.
func (s *service) store(r micro.Request) {
	if r.Reply() == "" {
		return
	}
	if err := bus.Intact(storedUnder(r), nats.Header(r.Headers()), r.Data()); err != nil {
		s.unkept(r, bus.CodeDamaged, err.Error())
		return
	}
	ctx, cancel := context.WithTimeout(s.Hard, hop.WriteTimeout)
	defer cancel()
	m, err := s.Bus.Admitted(ctx, storedUnder(r), nats.Header(r.Headers()), r.Data())
	if err != nil {
		s.unkept(r, bus.CodeOf(err), err.Error())
		return
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
