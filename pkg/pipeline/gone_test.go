package pipeline_test

import (
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/basetensor/basetensor/pkg/pipeline"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go/jetstream"
)

// lose removes everything that is stored of jobs after their models, and the blob of a request.
func (r *rig) lose(request *wire.Request, streams ...string) {
	r.t.Helper()
	payload, err := wire.Encode(request)
	r.must(err)
	blobs, err := r.js.Stream(r.ctx, "BTN_BLOB")
	r.must(err)
	r.must(blobs.Purge(r.ctx, jetstream.WithPurgeSubject(wire.BlobSubject(wire.Digest(payload)))))
	for _, name := range streams {
		s, err := r.js.Stream(r.ctx, name)
		r.must(err)
		r.must(s.Purge(r.ctx))
	}
}

// A large job whose request is lost after reparam-worker has read it, and what came after it too, ends with an error that says so,
// whether it has a deadline or not.
func TestLostRequestEnds(t *testing.T) {
	stages := pipeline.Stages()
	for _, deadline := range []time.Duration{0, 20 * time.Second} {
		for reached, stream := range []string{"BTN_NETWORK", "BTN_TASK", "BTN_PARTIAL"} {
			t.Run(stream+" "+deadline.String(), func(t *testing.T) {
				t.Parallel()
				r := newRig(t, embedded.Options{NoRedis: true, MaxPayload: 1 << 13}, quick)
				w, _ := request(t, "first", grid(t, 12, 12, 3), btn.Settings{})
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
