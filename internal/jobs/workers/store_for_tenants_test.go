package workers

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/basetensor/basetensor/internal/jobs/hop"
	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/memlog"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
)

// A worker that stops replies first to a tenant whose message it stores.
func TestAStopWaitsForStores(t *testing.T) {
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	server := memlog.New(memlog.Options{})
	defer server.Close()
	nc, err := nats.Connect("nats://127.0.0.1", nats.InProcessServer(server))
	must(err)
	defer nc.Close()
	b, err := bus.New(nc, bus.Options{})
	must(err)
	w := &Reparam{host: &Host{Settings: Settings{Requests: 1}}, storedJobs: storedJobs{&hop.Loop{Jobs: hop.Jobs{
		Stage: "reparam-worker", Bus: b, Log: slog.New(slog.DiscardHandler), WorkCtx: t.Context(), StartCtx: t.Context(),
	}}}}

	stream := make(chan *nats.Msg, 1) // in its place somebody who acknowledges late
	_, err = nc.ChanSubscribe(message.BlobSubject("acme", "*"), stream)
	must(err)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- w.serve(ctx) }()
	serves := func() bool {
		_, err := nc.RequestWithContext(t.Context(), message.RoomSubject(3), nil)
		if err != nil && !errors.Is(err, nats.ErrNoResponders) {
			t.Fatal(err)
		}
		return err == nil
	}
	for !serves() {
	}

	inbox := nc.NewInbox()
	replies, err := nc.SubscribeSync(inbox)
	must(err)
	must(nc.PublishMsg(&nats.Msg{
		Subject: message.KeepSubject("acme", message.BlobSubject("acme", wire.Digest([]byte("bytes")))), Reply: inbox, Data: []byte("bytes"),
	}))
	m := <-stream
	stop()
	for serves() {
	}
	for range 10 { // it would have had time to end
		must(nc.Flush())
	}
	select {
	case <-ended:
		t.Fatal("it ended while it stored a message")
	default:
	}
	must(m.Respond([]byte(`{"stream":"BTN_BLOB","seq":1}`)))
	must(<-ended)
	reply, err := replies.NextMsgWithContext(t.Context())
	must(err)
	if string(reply.Data) != `{"stream":"BTN_BLOB","seq":1}` {
		t.Errorf("%s", reply.Data)
	}
}
