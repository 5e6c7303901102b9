package service_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/basetensor/basetensor/pkg/infer"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// lose removes the blob of a request, and all messages of some streams.
func (r *rig) lose(request *wire.Request, streams ...string) {
	r.t.Helper()
	payload, err := wire.Encode(request)
	r.must(err)
	blobs, err := r.js.Stream(r.ctx, "BTN_BLOB")
	r.must(err)
	r.must(blobs.Purge(r.ctx, jetstream.WithPurgeSubject(message.BlobSubject("", wire.Digest(payload)))))
	for _, name := range streams {
		s, err := r.js.Stream(r.ctx, name)
		r.must(err)
		r.must(s.Purge(r.ctx))
	}
}

// A large job ends with an error if its request and all later messages are lost after reparam-worker has read it, with
// or without a deadline.
func TestLostRequestEnds(t *testing.T) {
	stages := allStages()
	for _, deadline := range []time.Duration{0, 20 * time.Second} {
		for reached, stream := range []string{"BTN_NETWORK", "BTN_TASK", "BTN_PARTIAL"} {
			t.Run(stream+" "+deadline.String(), func(t *testing.T) {
				t.Parallel()
				r := newRig(t, embedded.Options{NoRedis: true, MaxPayload: 1 << 13}, quick)
				w, _ := request(t, "first", grid(t, 12, 12, 3), query.Settings{Method: query.MethodExact})
				w.DeadlineMS = deadline.Milliseconds()
				r.submit(w)
				stop, _ := r.run(quick, stages[:reached+1]...)
				r.eventually("what is lost", func() bool { return r.messages(stream) > 0 })
				stop()
				r.lose(&w, "BTN_NETWORK", "BTN_TASK", "BTN_PARTIAL")

				watching := quick
				watching.SweepAfter = 300 * time.Millisecond
				r.run(watching, stages...)
				a := r.wait("first")
				if a.Status == wire.StatusOK || a.Error == nil {
					t.Fatalf("status %s, %+v", a.Status, a.Error)
				}
				r.eventually("nothing is left to do", func() bool { return r.stands() == "" })
			})
		}
	}
}

// An answer that was damaged on its way to the stream, or has lost its bytes, is made again, even by the process that
// stored it.
func TestDamagedAnswerIsMadeAgain(t *testing.T) {
	for name, lost := range map[string]bool{"a bit": false, "its bytes": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := embedded.Options{NoRedis: true}
			if lost {
				o.MaxPayload = 1 << 13
			}
			r := newRig(t, o, quick)
			file := keyFile(t, "", 1)
			c := sealed(t, file)
			c.AckWait, c.SweepAfter = calm.AckWait, 2*time.Second
			w, p := request(t, "job", grid(t, 18, 12, 3), query.Settings{})
			w.Queries[0].Marginals, p.Queries[0].Marginals = true, true
			want, err := infer.Run(r.ctx, p)
			r.must(err)
			r.believe(file)
			r.submit(w)
			r.run(c, allStages()...)
			r.wait("job")

			answers, err := r.js.Stream(r.ctx, "BTN_ANSWER")
			r.must(err)
			m, err := answers.GetLastMsgForSubject(r.ctx, wire.AnswerSubject("job"))
			r.must(err)
			if digest := m.Header.Get("Btn-Blob"); lost {
				if digest == "" {
					t.Fatalf("an answer of %d bytes is in its message", len(m.Data))
				}
				blobs, err := r.js.Stream(r.ctx, "BTN_BLOB")
				r.must(err)
				r.must(blobs.Purge(r.ctx, jetstream.WithPurgeSubject(message.BlobSubject("", digest))))
			} else {
				r.must(answers.DeleteMsg(r.ctx, m.Sequence))
				m.Data[len(m.Data)/2] ^= 1
				maps.DeleteFunc(m.Header, func(name string, _ []string) bool { return strings.HasPrefix(name, "Nats-") })
				_, err := r.js.PublishMsg(r.ctx, &nats.Msg{Subject: m.Subject, Header: m.Header, Data: m.Data})
				r.must(err)
			}

			r.eventually("the answer", func() bool {
				a, err := r.client.Answer(r.ctx, "job")
				return err == nil && plain(t, a.Results) == plain(t, want)
			})
		})
	}
}
