package bus_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"maps"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/internal/queue/seal"
	"github.com/basetensor/basetensor/internal/testing/testserver"
	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// signed is signedAs for an aggregator, if it removes forged messages, or for a reader.
func signed(t *testing.T, b *bus.Bus, remove bool) (*bus.Bus, *[]message.Kind) {
	return signedAs(t, b, "", bus.Guard{Remove: remove, RemoveAnswers: remove})
}

// signedAs returns a Bus with a key, of a tenant or "", over another one's connection, and the kinds of the forged messages that it finds.
func signedAs(t *testing.T, b *bus.Bus, tenant string, g bus.Guard) (*bus.Bus, *[]message.Kind) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "keys")
	key := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{1}, 32))
	must(t, os.WriteFile(file, []byte(key), 0o600))
	keys, err := seal.Open(file, nil)
	must(t, err)
	found := &[]message.Kind{}
	g.Trust = seal.Trust{Keys: keys}
	g.Forged = func(k message.Kind, _ string) { *found = append(*found, k) }
	own, err := bus.New(b.Conn.NC, bus.Options{Tenant: tenant, Guard: g})
	must(t, err)
	return own, found
}

// A forged message counts as not stored; a user that may remove it stores the true message in its
// place, one by one or many at once.
func TestForgedIsNotThere(t *testing.T) {
	ctx, forger := open(t, embedded.Options{})
	reader, _ := signed(t, forger, false)
	b, found := signed(t, forger, true)
	for stream, subject := range map[string]string{
		bus.StreamAnswer:   wire.AnswerSubject("a"),
		bus.StreamNetwork:  message.NetworkSubject(0, "a"),
		bus.StreamTask:     message.TaskSubject(0, "a", 2, 1),
		bus.StreamPartial:  message.PartialSubject(0, "a", 2, 1),
		bus.StreamControl:  message.RedriveSubject(0, "a"),
		bus.StreamDeadline: message.DeadlineSubject(0, "a"),
		bus.StreamDead:     message.DLQSubject("stage", "a"),
	} {
		must(t, forger.Log.Put(ctx, msg(subject, "forged")))
		for range 2 {
			if _, err := reader.Log.Get(ctx, stream, subject); !errors.Is(err, bus.ErrNotFound) {
				t.Errorf("%s: %v", subject, err)
			}
		}
		if has, err := forger.Log.Has(ctx, stream, subject); err != nil || !has {
			t.Errorf("%s: a mere reader removed it: %v", subject, err)
		}
		earlier, err := b.Log.PutOnce(ctx, stream, msg(subject, "true"))
		if err != nil || earlier != nil {
			t.Errorf("%s: %v, %v", subject, earlier, err)
		}
		m, err := reader.Log.Get(ctx, stream, subject)
		if err != nil || string(m.Data) != "true" {
			t.Errorf("%s: %v, %v", subject, m, err)
		}
	}
	if len(*found) != 7 {
		t.Errorf("found %v", *found)
	}

	// the last of those that a filter has
	*found = nil
	filter := message.ChunksFilter(message.KindTask, 0, "filtered")
	must(t, b.Log.Put(ctx, msg(message.TaskSubject(0, "filtered", 2, 1), "true")))
	if m, err := b.Log.GetRaw(ctx, bus.StreamTask, filter); err != nil || string(m.Data) != "true" {
		t.Errorf("%s: %v, %v", filter, m, err)
	}
	must(t, forger.Log.Put(ctx, msg(message.TaskSubject(0, "filtered", 2, 0), "forged")))
	if _, err := b.Log.GetRaw(ctx, bus.StreamTask, filter); !errors.Is(err, bus.ErrNotFound) || len(*found) != 1 {
		t.Errorf("%s: %v, found %v", filter, err, *found)
	}
	if m, err := b.Log.GetRaw(ctx, bus.StreamTask, filter); err != nil || string(m.Data) != "true" {
		t.Errorf("%s: %v, %v", filter, m, err)
	}

	// many at once, every other one forged
	var all []*nats.Msg
	for k := range 10 {
		all = append(all, msg(message.TaskSubject(0, "many", 10, k), "true"))
		if k%2 == 0 {
			must(t, forger.Log.Put(ctx, msg(message.TaskSubject(0, "many", 10, k), "forged")))
		}
	}
	for range 2 { // again: all are there, and true
		_, err := b.Log.PutAllOnce(ctx, bus.StreamTask, all)
		must(t, err)
	}
	if len(*found) != 6 {
		t.Errorf("found %v", *found)
	}
}

// A message keeps its signature when it moves to the end of its stream, and the blob that is its payload is signed with it.
func TestSignaturesLast(t *testing.T) {
	ctx, forger := open(t, embedded.Options{MaxPayload: 64 << 10})
	b, found := signed(t, forger, true)
	subject := message.PartialSubject(0, "a", 1, 0)
	large := bytes.Repeat([]byte("large "), 32<<10)
	for _, data := range [][]byte{[]byte("small"), large} {
		_, err := b.Log.PutOnce(ctx, bus.StreamPartial, &nats.Msg{Subject: subject, Data: data})
		must(t, err)
		m, err := b.Log.GetRaw(ctx, bus.StreamPartial, subject)
		must(t, err)
		if bus.HasBlob(m.Header) != (len(data) > 64<<10) {
			t.Fatalf("%d bytes: headers %v", len(data), m.Header)
		}
		if moved, err := b.Log.MoveToEnd(ctx, m); err != nil || !moved {
			t.Fatalf("not moved: %v", err)
		}
		last, err := b.Log.Get(ctx, bus.StreamPartial, subject)
		must(t, err)
		if last.Sequence <= m.Sequence || !bytes.Equal(last.Data, data) {
			t.Errorf("%d bytes at %d, were %d at %d", len(last.Data), last.Sequence, len(data), m.Sequence)
		}

		// the same data, with a blob in its place or another one
		other, err := forger.Blobs.Put(ctx, []byte("another"))
		must(t, err)
		last, err = b.Log.GetRaw(ctx, bus.StreamPartial, subject)
		must(t, err)
		swapped := &nats.Msg{Subject: subject, Header: nats.Header{}, Data: last.Data}
		swapped.Header[seal.Header] = last.Header[seal.Header]
		swapped.Header["Btn-Blob"] = []string{other}
		must(t, forger.Log.Put(ctx, swapped))
		if _, err := b.Log.Get(ctx, bus.StreamPartial, subject); !errors.Is(err, bus.ErrNotFound) {
			t.Errorf("another blob in its place: %v", err)
		}
	}
	if len(*found) != 2 {
		t.Errorf("found %v", *found)
	}
}

// A reply that has another job's answer, truly signed, in the place of the one that was asked for is not believed.
func TestSignedForAnotherSubject(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a real nats-server")
	}
	server := testserver.NATS(t, testserver.NATSOptions{}) // which has no streams
	forger, _, err := bus.Connect(server.URL, "test", nil)
	must(t, err)
	defer forger.Close()
	plain, err := bus.New(forger, bus.Options{})
	must(t, err)
	b, found := signedAs(t, plain, "own", bus.Guard{})

	for subject, want := range map[string]error{
		wire.AnswerSubject("own.mine"): nil, wire.AnswerSubject("own.other"): bus.ErrNotFound,
	} {
		genuine, err := b.Log.Prepare(t.Context(), "own", msg(wire.AnswerSubject("own.mine"), "an answer"))
		must(t, err)
		sub, err := forger.Subscribe("$JS.API.DIRECT.GET."+bus.StreamAnswer+"."+subject, func(ask *nats.Msg) {
			reply := &nats.Msg{Subject: ask.Reply, Header: maps.Clone(genuine.Header), Data: genuine.Data}
			reply.Header[jetstream.StreamHeader] = []string{bus.StreamAnswer}
			reply.Header[jetstream.SubjectHeader] = []string{genuine.Subject}
			reply.Header[jetstream.SequenceHeader] = []string{"1"}
			reply.Header[jetstream.TimeStampHeaer] = []string{"2026-01-01T00:00:00Z"}
			forger.PublishMsg(reply)
		})
		must(t, err)
		m, err := b.Log.Get(t.Context(), bus.StreamAnswer, subject)
		if !errors.Is(err, want) || err == nil && string(m.Data) != "an answer" {
			t.Errorf("%s: %v, %v", subject, m, err)
		}
		must(t, sub.Unsubscribe())
	}
	if len(*found) != 1 {
		t.Errorf("found %v", *found)
	}
}

// flipper is a connection that damages, once, the next bytes that it reads with a given text.
type flipper struct {
	net.Conn
	text *atomic.Pointer[string]
}

func (f flipper) Read(b []byte) (int, error) {
	n, err := f.Conn.Read(b)
	if text := f.text.Load(); text != nil {
		if at := bytes.Index(b[:n], []byte(*text)); at >= 0 {
			b[at] ^= 1
			f.text.Store(nil)
		}
	}
	return n, err
}

type flippingDialer struct{ text atomic.Pointer[string] }

func (d *flippingDialer) Dial(network, address string) (net.Conn, error) {
	c, err := net.Dial(network, address)
	return flipper{c, &d.text}, err
}

// A message that is damaged on its way from the server is fetched again, and the stored one stays.
func TestDamagedOnItsWay(t *testing.T) {
	s, err := embedded.Start(t.Context(), embedded.Options{NoRedis: true, Listen: true})
	must(t, err)
	t.Cleanup(func() { s.Close() })
	dialer := &flippingDialer{}
	nc, err := nats.Connect(s.NATSURL(), nats.SetCustomDialer(dialer))
	must(t, err)
	t.Cleanup(nc.Close)
	plain, err := bus.New(nc, bus.Options{})
	must(t, err)
	b, found := signed(t, plain, true)
	text := "what a worker says"

	answer := wire.AnswerSubject("job")
	_, err = b.Log.PutOnce(t.Context(), bus.StreamAnswer, msg(answer, text))
	must(t, err)
	dialer.text.Store(&text)
	m, err := b.Log.Get(t.Context(), bus.StreamAnswer, answer)
	must(t, err)
	if string(m.Data) != text || dialer.text.Load() != nil {
		t.Errorf("got %q, damaged %v", m.Data, dialer.text.Load() == nil)
	}

	_, err = b.Log.PutOnce(t.Context(), bus.StreamTask, msg(message.TaskSubject(3, "job", 1, 0), text))
	must(t, err)
	into := make(chan *nats.Msg, 8)
	sub, err := nc.ChanSubscribe("damaged", into)
	must(t, err)
	defer sub.Unsubscribe()
	dialer.text.Store(&text)
	must(t, nc.PublishRequest("$JS.API.CONSUMER.MSG.NEXT."+bus.StreamTask+".contract-3", "damaged", []byte(`{"batch":1}`)))
	d, err := bus.NewDelivered(<-into)
	must(t, err)
	if string(d.Data) == text {
		t.Error("nothing was damaged")
	}
	if !b.Log.Verify(t.Context(), d) || string(d.Data) != text {
		t.Errorf("%q is not believed", d.Data)
	}
	if len(*found) != 0 {
		t.Errorf("found forged: %v", *found)
	}
}
