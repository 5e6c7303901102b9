package service_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/basetensor/basetensor/pkg/infer"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go/jetstream"
)

// objects are the names of the objects behind live pointers.
func (r *rig) objects() (names []string) {
	r.t.Helper()
	s, err := r.js.Stream(r.ctx, "BTN_BLOB")
	r.must(err)
	info, err := s.Info(r.ctx, jetstream.WithSubjectFilter(message.Filter(message.KindBlob)))
	r.must(err)
	for subject := range info.State.Subjects {
		m, err := s.GetLastMsgForSubject(r.ctx, subject)
		r.must(err)
		if name := m.Header.Get("Btn-Object"); name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// damages are the faults of an object under a pointer that stays.
var damages = map[string]func(
	r *rig, o jetstream.ObjectStore, chunks jetstream.Stream, name string,
){
	"deleted": func(
		r *rig, o jetstream.ObjectStore, _ jetstream.Stream, name string,
	) {
		r.must(o.Delete(r.ctx, name))
	},
	"without a chunk": func(r *rig, o jetstream.ObjectStore, chunks jetstream.Stream, name string) {
		info, err := o.GetInfo(r.ctx, name)
		r.must(err)
		last, err := chunks.GetLastMsgForSubject(r.ctx, "$O.BTN_BLOB.C."+info.NUID)
		r.must(err)
		r.must(chunks.DeleteMsg(r.ctx, last.Sequence))
	},
	"with another chunk": func(
		r *rig, o jetstream.ObjectStore, chunks jetstream.Stream, name string,
	) {
		info, err := o.GetInfo(r.ctx, name)
		r.must(err)
		subject := "$O.BTN_BLOB.C." + info.NUID
		last, err := chunks.GetLastMsgForSubject(r.ctx, subject)
		r.must(err)
		r.must(chunks.DeleteMsg(r.ctx, last.Sequence))
		last.Data[0] ^= 1
		r.publish(subject, last.Data)
	},
}

// damage does one of them to every object except the request's, which only its sender can make again.
func (r *rig) damage(kind string, request *wire.Request) {
	r.t.Helper()
	payload, err := wire.Encode(request)
	r.must(err)
	o, err := r.js.ObjectStore(r.ctx, "BTN_BLOB")
	r.must(err)
	chunks, err := r.js.Stream(r.ctx, "OBJ_BTN_BLOB")
	r.must(err)
	names := slices.DeleteFunc(
		r.objects(),
		func(name string) bool { return strings.HasPrefix(name, wire.Digest(payload)) },
	)
	if len(names) == 0 {
		r.t.Fatal("nothing is in the object store")
	}
	for _, name := range names {
		damages[kind](r, o, chunks, name)
	}
}

// An object that is lost or damaged under a live pointer costs the time to make it again: the job
// in whose way it is, at whichever stage, and every later one of the same model are answered, with
// the same bits.
func TestLostObjects(t *testing.T) {
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
					Method:     query.MethodSymmetryCP,
					Components: 2,
					Sweeps:     1,
					Starts:     1,
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
