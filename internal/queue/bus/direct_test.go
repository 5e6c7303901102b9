package bus_test

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/seal"
	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/basetensor/basetensor/pkg/wire"
)

// forgedPlace are headers with the place of another message, far ahead and old.
const forgedPlace = "Nats-Stream: BTN_MODEL\r\nNats-Subject: btn.v1.model.1.other\r\nNats-Sequence: 4000000\r\n" +
	"Nats-Time-Stamp: 2001-01-01T00:00:00Z\r\n"

// forgedHeaders are headers as bytes. A server stores them unchanged.
var forgedHeaders = map[string]string{
	"the server's":              "NATS/1.0\r\n" + forgedPlace + "\r\n",
	"a number":                  "NATS/1.0\r\nNats-Sequence: 4000000\r\n\r\n",
	"the server's, ended early": "NATS/1.0\r\n" + forgedPlace + "\r\n\r\n",
	"ended early, and one byte less each": "NATS/1.0\r\n" + forgedPlace + strings.Repeat("a:b\r\n", 35) +
		"\r\n\r\n",
	"ended early, two bytes less each": "NATS/1.0\r\n" + forgedPlace + strings.Repeat("a:b\n", 80) +
		"\r\n\r\n",
	"not ended":              "NATS/1.0\r\n" + forgedPlace + "A: bc",
	"nothing there":          "NATS/1.0 404 Message Not Found\r\n\r\n",
	"nothing there, ended":   "NATS/1.0 404 Message Not Found\r\n\r\n\r\n",
	"nothing there, a field": "NATS/1.0\r\nStatus: 404\r\n\r\n",
	"no responders":          "NATS/1.0 503\r\n\r\n",
	"no responders, ended":   "NATS/1.0 503\r\n\r\n\r\n",
	"the end of a batch":     "NATS/1.0 204 EOB\r\n\r\n\r\n",
	"no colon":               "NATS/1.0\r\nabc\r\n\r\n",
	"no headers":             "abcdefgh",
	"two bytes":              "\r\n",
}

// rawPublish publishes a message with headers as bytes, without the client library.
func rawPublish(t *testing.T, address string, subject, header, data string) {
	t.Helper()
	at, err := url.Parse(address)
	must(t, err)
	c, err := net.Dial("tcp", at.Host)
	must(t, err)
	defer c.Close()
	fmt.Fprintf(c, "CONNECT {\"verbose\":false,\"headers\":true}\r\nHPUB %s %d %d\r\n%s%s\r\nPING\r\n",
		subject, len(header), len(header)+len(data), header, data)
	lines := bufio.NewScanner(c)
	for lines.Scan() {
		switch text := lines.Text(); {
		case strings.HasPrefix(text, "-ERR"):
			t.Fatal(text)
		case text == "PONG":
			return
		}
	}
	t.Fatal("no answer: ", lines.Err())
}

// The server's subject, sequence and time of a stored message are believed, and no header of the publisher.
func TestForgedServerHeaders(t *testing.T) {
	for name, header := range forgedHeaders {
		for _, data := range []string{"data", ""} {
			t.Run(fmt.Sprintf("%s, %d bytes", name, len(data)), func(t *testing.T) {
				t.Parallel()
				ctx := t.Context()
				s, err := embedded.Start(ctx, embedded.Options{Listen: true, NoRedis: true})
				must(t, err)
				defer s.Close()
				nc, err := s.Connect("test")
				must(t, err)
				b, err := bus.New(nc, bus.Options{})
				must(t, err)

				before := time.Now().Add(-time.Second)
				subject := func(k int) string { return wire.ModelSubject(3, fmt.Sprint("job-", k)) }
				store := func(k int) {
					_, err := b.Log.PutOnce(ctx, bus.StreamModel, msg(subject(k), "data"))
					must(t, err)
				}
				store(1)
				rawPublish(t, s.NATSURL(), subject(2), header, data)
				store(3)

				check := func(what string, got, want bus.Place) {
					t.Helper()
					inTime := !got.Time.Before(before) && time.Until(got.Time) <= 0
					if got.Sequence != want.Sequence || got.Subject != want.Subject || !inTime {
						t.Errorf("%s: %+v, want %+v", what, got, want)
					}
				}
				for k := 1; k <= 3; k++ {
					want := bus.Place{Sequence: uint64(k), Subject: subject(k)}
					place, err := b.Log.FirstFrom(ctx, bus.StreamModel, uint64(k), time.Time{})
					must(t, err)
					check("from", place, want)
					for _, filter := range []string{subject(k), strings.Replace(subject(k), ".3.", ".*.", 1)} {
						m, err := b.Log.GetRaw(ctx, bus.StreamModel, filter)
						must(t, err)
						check("last of "+filter, bus.Place{Sequence: m.Sequence, Subject: m.Subject, Time: m.Time}, want)
					}
				}
				batch, err := b.Log.Batch(ctx, bus.StreamModel, 1, 10, 1<<20)
				must(t, err)
				if len(batch) != 3 {
					t.Fatalf("%d of 3 messages in a batch", len(batch))
				}
				for i, e := range batch {
					check("batch", bus.Place{Sequence: e.Sequence, Subject: e.Subject, Time: time.Now()},
						bus.Place{Sequence: uint64(i + 1), Subject: subject(i + 1)})
				}
				if _, err := b.Log.GetRaw(ctx, bus.StreamModel, subject(4)); err == nil {
					t.Error("what is not stored was found")
				}
			})
		}
	}
}

// An answer with headers that repeat or hide the server's counts as not stored, for a tenant's user without the right
// to ask the leader, and for everybody else, even if a worker signed it. Only the aggregator removes it, and stores the
// true one.
func TestAnswersWithServerHeaders(t *testing.T) {
	ctx := t.Context()
	server, err := embedded.Start(ctx, embedded.Options{Listen: true, NoRedis: true})
	must(t, err)
	defer server.Close()
	nc, err := server.Connect("test")
	must(t, err)
	forger, err := bus.New(nc, bus.Options{})
	must(t, err)
	learner, _ := signedAs(t, forger, "", bus.Guard{Remove: true})
	aggregator, found := signed(t, forger, true)
	own, _ := signedAs(t, forger, "acme", bus.Guard{})
	subject := wire.AnswerSubject("acme.job")
	for _, header := range []string{"Nats-Stream: BTN_ANSWER\r\nNats-Stream: x\r\n\r\n", "Nats-Sequence: 4000000\r\n\r\n", "\r\n\r\n"} {
		m, err := aggregator.Log.Prepare(ctx, "acme", msg(subject, "signed"))
		must(t, err)
		rawPublish(t, server.NATSURL(), subject, "NATS/1.0\r\n"+seal.Header+": "+m.Header[seal.Header][0]+"\r\n"+header, "signed")
		for who, b := range map[string]*bus.Bus{"tenant": own, "learn-worker": learner} {
			if m, err := b.Log.Get(ctx, bus.StreamAnswer, subject); !errors.Is(err, bus.ErrNotFound) {
				t.Errorf("%q: a %s reads %+v, %v", header, who, m, err)
			}
		}
		s, err := forger.Conn.Stream(ctx, bus.StreamAnswer)
		must(t, err)
		if info, err := s.Info(ctx); err != nil || info.State.Msgs != 1 {
			t.Fatalf("%q: removed by who may not: %+v, %v", header, info.State, err)
		}
		earlier, err := aggregator.Log.PutOnce(ctx, bus.StreamAnswer, msg(subject, "true"))
		if err != nil || earlier != nil {
			t.Fatalf("%q: %v, %v", header, earlier, err)
		}
		if m, err := own.Log.Get(ctx, bus.StreamAnswer, subject); err != nil || string(m.Data) != "true" {
			t.Errorf("%q: the tenant reads %+v, %v", header, m, err)
		}
		must(t, s.Purge(ctx))
	}
	if len(*found) != 3 {
		t.Errorf("found %v", *found)
	}
}
