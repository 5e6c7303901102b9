package service_test

import (
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/basetensor/basetensor/pkg/infer"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go/jetstream"
)

// lists are the lists of pieces, by the subjects of their blobs.
func (r *rig) lists() map[string][]string {
	r.t.Helper()
	s, err := r.js.Stream(r.ctx, "BTN_BLOB")
	r.must(err)
	info, err := s.Info(r.ctx, jetstream.WithSubjectFilter(message.Filter(message.KindBlob)))
	r.must(err)
	all := map[string][]string{}
	for subject := range info.State.Subjects {
		m, err := s.GetLastMsgForSubject(r.ctx, subject)
		r.must(err)
		if m.Header.Get("Btn-Pieces") == "" {
			continue
		}
		for digests := string(m.Data); digests != ""; digests = digests[64:] {
			all[subject] = append(all[subject], message.BlobSubject("", digests[:64]))
		}
	}
	return all
}

// damages are the faults of the last of the pieces of a list that stays.
var damages = map[string]func(r *rig, blobs jetstream.Stream, pieces []string){
	"deleted": func(r *rig, blobs jetstream.Stream, pieces []string) {
		for _, piece := range pieces {
			r.must(blobs.Purge(r.ctx, jetstream.WithPurgeSubject(piece)))
		}
	},
	"without a piece": func(r *rig, blobs jetstream.Stream, pieces []string) {
		r.must(blobs.Purge(r.ctx, jetstream.WithPurgeSubject(pieces[len(pieces)-1])))
	},
	"with another piece": func(r *rig, blobs jetstream.Stream, pieces []string) {
		last := pieces[len(pieces)-1]
		m, err := blobs.GetLastMsgForSubject(r.ctx, last)
		r.must(err)
		m.Data[0] ^= 1
		r.publish(last, m.Data)
	},
}

// damage does one of them to all large payloads except the request's, which only its sender can make again.
func (r *rig) damage(kind string, request *wire.Request) {
	r.t.Helper()
	payload, err := wire.Encode(request)
	r.must(err)
	blobs, err := r.js.Stream(r.ctx, "BTN_BLOB")
	r.must(err)
	lists := r.lists()
	delete(lists, message.BlobSubject("", wire.Digest(payload)))
	if len(lists) == 0 {
		r.t.Fatal("nothing is in pieces")
	}
	for _, pieces := range lists {
		damages[kind](r, blobs, pieces)
	}
}

// Large bytes of which a piece is lost or damaged cost the time to make it again: the job
// in whose way it is, at whichever stage, and every later one of the same model are answered, with
// the same bits.
func TestLostPieces(t *testing.T) {
	if testing.Short() {
		t.Skip("large models")
	}
	t.Parallel()
	stages := allStages()
	for kind := range damages {
		for reached, stream := range []string{"BTN_NETWORK", "BTN_TASK", "BTN_PARTIAL", "BTN_ANSWER"} {
			t.Run(kind+" at "+stream, func(t *testing.T) {
				t.Parallel()
				r := newRig(t, embedded.Options{NoRedis: true, MaxPayload: 1 << 13}, quick)
				watching := quick
				watching.SweepAfter = 300 * time.Millisecond
				settings := query.Settings{
					Method: query.MethodSymmetryCP, Objective: query.ObjectiveFrobenius,
					Components: 2,
				}
				w, p := request(t, "first", grid(t, 5, 5, 3), settings)
				want, err := infer.Run(r.ctx, p)
				r.must(err)
				r.submit(w)
				before := quick
				before.SweepAfter = -1
				stop, _ := r.run(before, stages[:reached+1]...)
				r.eventually(
					"what is before the damage", func() bool { return r.messages(stream) > 0 },
				)
				if stream == "BTN_PARTIAL" {
					r.eventually("all partials", func() bool { return r.messages("BTN_TASK") == 0 })
				}
				stop()
				r.damage(kind, &w)
				stop, _ = r.run(watching, stages...)
				if stream != "BTN_ANSWER" {
					if got, want := plain(t, r.wait("first").Results), plain(t, want); got != want {
						t.Errorf("the job itself: got\n%s\nwant\n%s", got, want)
					}
				}
				stop()
				if stream != "BTN_ANSWER" {
					r.damage(kind, &w)
				}
				w.Job = "second"
				r.submit(w) // the model itself is a large payload too
				r.run(watching, stages...)
				want[0].Job = "second"
				if got, want := plain(t, r.wait("second").Results), plain(t, want); got != want {
					t.Errorf("the next job of the model: got\n%s\nwant\n%s", got, want)
				}
			})
		}
	}
}
