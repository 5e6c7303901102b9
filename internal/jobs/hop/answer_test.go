package hop_test

import (
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/jobs/hop"
	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/client"
	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
)

// A job's digest is its model's, or the message's if it has none; a model that cannot be fetched
// now may be there, and gives no digest.
func TestDigestOfAJob(t *testing.T) {
	stack, err := embedded.Start(t.Context(), embedded.Options{NoRedis: true})
	if err != nil {
		t.Fatal(err)
	}
	defer stack.Close()
	nc, err := stack.Connect("test")
	if err != nil {
		t.Fatal(err)
	}
	b, err := bus.New(nc, bus.Options{})
	if err != nil {
		t.Fatal(err)
	}
	remote, err := client.New(nc, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w := wire.Request{
		Job: "stored", Text: "MARKOV\n1\n2\n1\n1 0\n2\n1 3\n", Queries: []query.Query{{}},
	}
	if _, err := remote.Submit(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	want, err := w.Digest()
	if err != nil {
		t.Fatal(err)
	}

	l := &hop.Loop{Jobs: hop.Jobs{Bus: b}}
	of := func(job string) (string, error) {
		subject := message.Subject{Kind: message.KindNetwork, Lane: wire.Lane(""), Job: job}
		return hop.DigestOf(l, t.Context(), &hop.Message{Subject: subject, Data: []byte("bytes")})
	}
	if got, err := of("stored"); got != want || err != nil {
		t.Errorf("a stored job: %s, want %s: %v", got, want, err)
	}
	if got, err := of("unknown"); got != wire.Digest([]byte("bytes")) || err != nil {
		t.Errorf("an unknown job: %s, %v", got, err)
	}
	nc.Close()
	if got, err := of("stored"); err == nil {
		t.Errorf("a job that cannot be fetched: %s", got)
	}
}

// A deadline passes by the server's clock: a worker whose own is hours ahead or behind ends no job early, and none late.
func TestADeadlineIsByTheServersClock(t *testing.T) {
	stack, err := embedded.Start(t.Context(), embedded.Options{NoRedis: true})
	if err != nil {
		t.Fatal(err)
	}
	defer stack.Close()
	nc, err := stack.Connect("test")
	if err != nil {
		t.Fatal(err)
	}
	b, err := bus.New(nc, bus.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l := &hop.Loop{Jobs: hop.Jobs{Bus: b}}
	defer func() { bus.Clock = time.Now }()
	for _, wrong := range []time.Duration{-3 * time.Hour, 3 * time.Hour} {
		bus.Clock = func() time.Time { return time.Now().Add(wrong) }
		if err := b.Conn.Synchronize(t.Context()); err != nil {
			t.Fatal(err)
		}
		stored := time.Now().Add(-time.Hour)
		if err := l.CheckDeadline(stored, (2 * time.Hour).Milliseconds()); err != nil {
			t.Errorf("%v off: an hour before the deadline: %v", wrong, err)
		}
		if err := l.CheckDeadline(stored, (30 * time.Minute).Milliseconds()); fault.CodeOf(err) != fault.Deadline {
			t.Errorf("%v off: half an hour after the deadline: %v", wrong, err)
		}
		now := time.Now().Add(time.Hour)
		if !l.IsFresh(&hop.Message{Attempt: 1, JobStored: now}) || l.IsFresh(&hop.Message{Attempt: 1, JobStored: stored}) ||
			l.IsFresh(&hop.Message{Attempt: 2, JobStored: now}) || l.IsFresh(&hop.Message{Attempt: 1}) {
			t.Errorf("%v off: what is fresh", wrong)
		}
	}
}
