package client_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/basetensor/basetensor/pkg/client"
	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/pipeline"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const coin = "MARKOV\n1\n2\n1\n1 0\n2\n0.5 0.5\n"

// open returns a client on a server without workers.
func open(t *testing.T) (context.Context, *embedded.Stack, *nats.Conn, *client.Client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	s, err := embedded.Start(ctx, embedded.Options{NoRedis: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(); cancel() })
	nc, err := s.Connect("test")
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(nc, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return ctx, s, nc, c
}

func answer(t *testing.T, nc *nats.Conn, job, status, message string) {
	t.Helper()
	a := &wire.Answer{
		Job:    job,
		Digest: wire.Digest(nil),
		Status: status,
		Error:  &query.ErrorInfo{Code: fault.Internal, Message: message},
	}
	b, err := wire.Encode(a)
	if err != nil {
		t.Fatal(err)
	}
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(t.Context(), wire.AnswerSubject(job), b); err != nil {
		t.Log(err) // a second answer is refused
	}
}

func TestWaitBeforeAndAfterTheAnswer(t *testing.T) {
	ctx, _, nc, c := open(t)
	var wait sync.WaitGroup
	for range 20 {
		wait.Go(func() {
			if a, err := c.Wait(ctx, "j"); err != nil || a.Error.Message != "first" {
				t.Errorf("%v %v", a, err)
			}
		})
	}
	time.Sleep(20 * time.Millisecond)
	answer(t, nc, "j", wire.StatusError, "first")
	answer(t, nc, "j", wire.StatusError, "second") // refused, and never seen by waiting clients
	wait.Wait()
	if a, err := c.Wait(ctx, "j"); err != nil || a.Error.Message != "first" {
		t.Errorf("after the answer: %v %v", a, err)
	}
}

// Nobody is answered by a refused answer, or by another job's.
func TestWaitTimesOut(t *testing.T) {
	ctx, _, nc, c := open(t)
	answer(t, nc, "other", wire.StatusError, "")
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	if a, err := c.Wait(short, "j"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v %v", a, err)
	}
	if _, err := c.Answer(ctx, "j"); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("answer of a job without: %v", err)
	}
}

func TestJobIds(t *testing.T) {
	ctx, _, _, c := open(t)
	for _, job := range []string{"", "a.b.c", "a.", ".b", "*", ">", "a b", strings.Repeat("x", 65), "ü"} {
		for what, err := range map[string]error{
			"submit": func() error {
				_, err := c.Submit(
					ctx, wire.Request{Job: job, Text: coin, Queries: []query.Query{{}}},
				)
				return err
			}(),
			"wait":   func() error { _, err := c.Wait(ctx, job); return err }(),
			"watch":  func() error { _, err := c.Watch(job, func(wire.Progress) {}); return err }(),
			"cancel": c.Cancel(ctx, job, ""),
			"replay": c.Replay(ctx, job),
			"dead":   func() error { _, err := c.DeadLettersOf(ctx, job); return err }(),
		} {
			if fault.CodeOf(err) != fault.BadInput {
				t.Errorf("%s %q: %v", what, job, err)
			}
		}
	}
}

func TestReplayOfNothing(t *testing.T) {
	ctx, _, _, c := open(t)
	if err := c.Replay(ctx, "never-seen"); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("replay: %v", err)
	}
	if _, err := c.DeadLettersOf(ctx, "never-seen"); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("dead letters: %v", err)
	}
	if letters, err := c.DeadLetters(ctx); err != nil || len(letters) != 0 {
		t.Errorf("dead letters: %v %v", letters, err)
	}
}

func TestNoServer(t *testing.T) {
	if _, err := client.Connect("nats://127.0.0.1:1", client.Options{}); fault.CodeOf(err) != fault.Infrastructure ||
		!strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Errorf("%v", err)
	}
}

func Example() {
	ctx := context.Background()
	stack, err := embedded.Start(ctx, embedded.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer stack.Close()
	go stack.Run(ctx, pipeline.Config{})
	c, err := stack.Client() // in a deployment: client.Connect(url)
	if err != nil {
		fmt.Println(err)
		return
	}
	model := "MARKOV\n2\n2 2\n1\n2 0 1\n4\n1 2 3 4\n"
	if _, err := c.Submit(
		ctx, wire.Request{Job: "example", Text: model, Queries: []query.Query{{}, {Evid: "1 0 1"}}},
	); err != nil {
		fmt.Println(err)
		return
	}
	answer, err := c.Wait(ctx, "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range answer.Results {
		fmt.Printf("query %d: ln Z = %.6f, exact %v\n", r.Query, *r.LogZ, r.Exact)
	}
	// Output:
	// query 0: ln Z = 2.302585, exact true
	// query 1: ln Z = 1.945910, exact true
}

// The error of a wait says that answers came that do not verify. Here the wait ends because the job is unknown.
func TestWaitSaysThatAnswersDoNotVerify(t *testing.T) {
	ctx, _, nc, _ := open(t)
	answer(t, nc, "j", wire.StatusError, "unsigned")
	seed, err := nkeys.CreateAccount()
	if err != nil {
		t.Fatal(err)
	}
	public, err := seed.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(nc, client.Options{AnswersKey: public})
	if err != nil {
		t.Fatal(err)
	}
	for job, unverified := range map[string]bool{"j": true, "other": false} {
		a, err := c.Wait(ctx, job)
		if errors.Is(err, client.ErrUnverified) != unverified || !errors.Is(err, client.ErrUnknownJob) || fault.CodeOf(err) != fault.BadInput {
			t.Errorf("%s: %v %v", job, a, err)
		}
	}
}

// TestAdmit: Admit hears of requests and registered models before they are stored, and nothing that it refuses is.
func TestAdmit(t *testing.T) {
	ctx, _, nc, _ := open(t)
	refusal := errors.New("no more")
	var asked []string
	c, err := client.New(nc, client.Options{Admit: func(_ context.Context, stream, subject string, _ nats.Header, bytes int) error {
		if asked = append(asked, stream+" "+subject); bytes < len(coin) {
			t.Errorf("%s: %d bytes, the model has %d", subject, bytes, len(coin))
		}
		return refusal
	}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Submit(ctx, wire.Request{Job: "ann.j", Text: coin, Queries: []query.Query{{}}}); !errors.Is(err, refusal) {
		t.Errorf("submitted: %v", err)
	}
	if _, err := c.PutModel(ctx, &wire.Graph{Text: coin}); !errors.Is(err, refusal) {
		t.Errorf("registered: %v", err)
	}
	if len(asked) != 2 || !strings.HasPrefix(asked[0], "BTN_MODEL ") || !strings.HasSuffix(asked[0], ".ann.j") ||
		!strings.HasPrefix(asked[1], "BTN_GRAPH ") {
		t.Errorf("asked about %q", asked)
	}
	if all, err := c.Registered(ctx); err != nil || len(all.Models) > 0 {
		t.Errorf("registered are %v, %v", all, err)
	}
	if _, err := c.Answer(ctx, "ann.j"); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("an answer: %v", err)
	}
}
