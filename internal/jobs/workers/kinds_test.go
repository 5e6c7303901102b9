package workers

import (
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/nats-io/nats.go"
)

// Workers that died without a word are forgotten, also where no job asks for a kind.
func TestSilentWorkersAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKinds(nil, slog.New(slog.DiscardHandler), 500*time.Millisecond, &Arithmetic{Kind: "own"})
		for n := range 1000 {
			k.noteAnnouncement(&message.Serves{Process: fmt.Sprint(n), Numeric: "own", Cores: 1})
		}
		time.Sleep(5 * time.Second)
		k.noteAnnouncement(&message.Serves{Process: "new", Numeric: "own", Cores: 1})
		if n := len(k.announcements); n != 1 {
			t.Errorf("%d are known, and one is there", n)
		}
	})
}

// learn-worker believes kinds as far as their tasks return: one that holds tasks for too long is given none, and after a while one job at
// a time that can wait. A contract-worker takes over what a doubted kind leaves, and believes its own.
func TestKindsAreDoubted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		learns := newKinds(nil, slog.New(slog.DiscardHandler), 500*time.Millisecond, &Arithmetic{Kind: "own"})
		contracts := newKinds(nil, slog.New(slog.DiscardHandler), 500*time.Millisecond, &Arithmetic{Kind: "own"})
		contracts.isContractWorker = true
		pass := func(job, named string) bool {
			d := &bus.Delivered{Msg: &nats.Msg{Subject: message.TaskSubject(3, job, 6, 3)}, Attempt: 1}
			return contracts.passPause(d, named) > 0
		}
		sequence := uint64(0)
		sleep := func(seconds int) { // both kinds say that they are there, and own tasks return
			for range seconds {
				for _, k := range []*kinds{learns, contracts} {
					k.noteAnnouncement(&message.Serves{Process: "p", Numeric: "own", Cores: 1})
					k.noteAnnouncement(&message.Serves{Process: "q", Numeric: "other", Cores: 1 << 30})
					k.mu.Lock()
					sequence++
					k.noteReturn("own", sequence)
					k.mu.Unlock()
					k.doubtSilent(time.Now())
				}
				time.Sleep(time.Second)
			}
		}
		for _, k := range []*kinds{learns, contracts} {
			k.noteAnnouncement(&message.Serves{Process: "q", Numeric: "other", Cores: 1 << 30})
			k.noteAnnouncement(&message.Serves{Process: "p", Numeric: "own", Cores: 1})
		}
		give := func(job string, deadline time.Duration) string { return learns.assignKind(3, job, 1, deadline) }
		if kind := give("a", 0); kind != "other" {
			t.Errorf("at first a job goes to %q", kind)
		}
		if !pass("a", "other") {
			t.Error("at first a task of another kind is not left to it")
		}
		sleep(5)
		if kind := give("b", 0); kind != "own" {
			t.Errorf("after 5 s without a task a job goes to %q", kind)
		}
		if pass("a", "other") {
			t.Error("after 5 s a task that nobody returned is not taken over")
		}
		sleep(70)
		if kind := give("c", time.Second); kind != "own" {
			t.Errorf("a job that cannot wait goes to %q", kind)
		}
		if kind := give("d", 0); kind != "other" {
			t.Errorf("a trial goes to %q", kind)
		}
		if kind := give("e", 0); kind != "own" {
			t.Errorf("a job beside a trial goes to %q", kind)
		}
		learns.noteReturn("other", 1000)
		if kind := give("f", time.Second); kind != "other" {
			t.Errorf("when its task has returned a job goes to %q", kind)
		}
	})
}

// A kind with a task of minutes is not doubted after seconds.
func TestLongTasksAreWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKinds(nil, slog.New(slog.DiscardHandler), 500*time.Millisecond, &Arithmetic{Kind: "own"})
		k.noteWaiting("other", 3, "job", 60*policy.Rate)
		time.Sleep(2 * time.Minute)
		k.doubtSilent(time.Now())
		if !k.recordOf("other").isBelieved {
			t.Error("a task of a minute is late after two")
		}
		time.Sleep(5 * time.Minute)
		k.doubtSilent(time.Now())
		if k.recordOf("other").isBelieved {
			t.Error("a task of a minute is not late after seven")
		}
	})
}

// A worker passes tasks of another kind on for pauses that differ, as two workers with equal pauses may pass on each other's for ever.
func TestPausesDiffer(t *testing.T) {
	k := newKinds(nil, slog.New(slog.DiscardHandler), time.Hour, &Arithmetic{Kind: "one"})
	k.noteAnnouncement(&message.Serves{Process: "p", Numeric: "two", Cores: 1})
	d := &bus.Delivered{Msg: &nats.Msg{Subject: message.TaskSubject(3, "job", 6, 3)}, Attempt: 40}
	seen := map[time.Duration]bool{}
	for range 50 {
		pause := k.passPause(d, "two")
		if pause < longestPassPause/2 || pause > longestPassPause {
			t.Fatalf("a pause of %v", pause)
		}
		seen[pause] = true
	}
	if len(seen) < 25 {
		t.Errorf("%d pauses of 50", len(seen))
	}
	d.Attempt = 1
	if pause := k.passPause(d, "two"); pause <= 0 || pause > firstPassPause {
		t.Errorf("the first pause is %v", pause)
	}
	if pause := k.passPause(d, "one"); pause != 0 {
		t.Errorf("a task of its own kind waits %v", pause)
	}
}
