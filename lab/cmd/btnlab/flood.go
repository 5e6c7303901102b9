package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/basetensor/basetensor/internal/doors/config"
	"github.com/basetensor/basetensor/internal/people/console"
	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/connect"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/internal/queue/seal"
	"github.com/basetensor/basetensor/pkg/client"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nuid"
)

// floodCmd submits distinct small models of one size as a tenant.
type floodCmd struct {
	NATS        string        `name:"nats" help:"URL of the server." required:"" placeholder:"URL"`
	Bytes       config.Size   `help:"Size of a request." default:"100B"`
	Jobs        int64         `help:"Number of jobs; 0: as many as the duration lets." default:"0"`
	Duration    time.Duration `help:"Nothing is submitted after that." default:"10m"`
	Outstanding int           `help:"Jobs under way at one time." default:"1"`
	Pause       time.Duration `help:"Pause after each job." default:"0s"`
	Raw         bool          `help:"Publish without the client library, and do not wait for answers."`
	Retry       bool          `help:"Submit a refused job again, a moment later."`

	AsNATS  connect.NATS `embed:"" group:"connection"`
	Signing seal.Flags   `embed:"" group:"connection"`
}

// flooded counts what became of the jobs.
type flooded struct {
	mu        sync.Mutex
	submitted []time.Duration // until it was stored, of each
	ended     []time.Duration // until its answer
	refused   int
	first     error // the reason of the first refusal
}

// note counts a job.
func (f *flooded) note(submitted, ended time.Duration, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case err != nil:
		f.refused++
		if f.first == nil {
			f.first = err
		}
		return
	case ended > 0:
		f.ended = append(f.ended, ended)
	}
	f.submitted = append(f.submitted, submitted)
}

// Run submits, and prints a line.
func (c *floodCmd) Run(ctx context.Context, t *console.Terminal) error {
	remote, err := console.Dial(c.NATS, c.AsNATS, c.Signing)
	if err != nil {
		return err
	}
	defer remote.Close()
	options, err := c.AsNATS.Options()
	if err != nil {
		return err
	}
	nc, err := nats.Connect(c.NATS, options...)
	if err != nil {
		return err
	}
	defer nc.Close()

	var f flooded
	var next atomic.Int64
	began := time.Now()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var submitters sync.WaitGroup
	for range c.Outstanding {
		submitters.Go(func() {
			for ctx.Err() == nil && time.Since(began) < c.Duration && (next.Add(1) <= c.Jobs || c.Jobs == 0) {
				c.one(ctx, remote, nc, &f)
				bus.Pause(ctx, c.Pause)
			}
		})
	}
	submitters.Wait()
	took := time.Since(began)
	fmt.Fprintf(t.Out, "%d taken in %.1f s, %d refused, submitted p50 %s p99 %s, answered p50 %s p99 %s",
		len(f.submitted), took.Seconds(), f.refused,
		quantile(f.submitted, 0.5), quantile(f.submitted, 0.99), quantile(f.ended, 0.5), quantile(f.ended, 0.99))
	if f.first != nil {
		fmt.Fprintf(t.Out, "; %.200s", f.first)
	}
	fmt.Fprintln(t.Out)
	return nil
}

// quantile returns a quantile of times in words.
func quantile(times []time.Duration, q float64) string {
	if len(times) == 0 {
		return "-"
	}
	slices.Sort(times)
	return times[int(q*float64(len(times)-1))].Round(10 * time.Microsecond).String()
}

// one submits a job, again and again with Retry, and waits for its answer unless it is Raw.
func (c *floodCmd) one(ctx context.Context, remote *client.Client, nc *nats.Conn, f *flooded) {
	id := nuid.Next()
	model := fmt.Sprintf("MARKOV\n1\n2\n1\n1 0\n2\n1 %d.%d\n", 1+id[0]%7, nuidNumber(id))
	model += strings.Repeat("\n", max(0, int(c.Bytes)-len(model)))
	m := wire.Request{Job: c.AsNATS.Job(id), Text: model, Queries: []query.Query{{}}}
	began := time.Now()
	for {
		err := c.submit(ctx, remote, nc, m)
		submitted := time.Since(began)
		switch {
		case err != nil && c.Retry && ctx.Err() == nil && time.Since(began) < c.Duration:
			bus.Pause(ctx, 20*time.Millisecond)
			continue
		case err != nil || c.Raw:
			f.note(submitted, 0, err)
			return
		}
		a, err := remote.Wait(ctx, m.Job)
		if err == nil && a.Status != wire.StatusOK {
			err = fmt.Errorf("%s: %+v", a.Status, a.Error)
		}
		f.note(submitted, time.Since(began), err)
		return
	}
}

// submit stores a job.
func (c *floodCmd) submit(ctx context.Context, remote *client.Client, nc *nats.Conn, m wire.Request) error {
	if !c.Raw {
		_, err := remote.Submit(ctx, m)
		return err
	}
	b, err := wire.Encode(&m)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	reply, err := nc.RequestMsgWithContext(ctx, &nats.Msg{
		Subject: wire.ModelSubject(wire.Lane(message.Owner(m.Job)), m.Job), Header: nats.Header(message.Headers(&m, m.Job, "", "")), Data: b,
	})
	if err == nil && strings.Contains(string(reply.Data), `"error"`) {
		return errors.New(string(reply.Data))
	}
	return err
}

// nuidNumber makes a number of an id, so that models differ.
func nuidNumber(id string) (n uint32) {
	for _, c := range []byte(id) {
		n = n*31 + uint32(c)
	}
	return n
}
