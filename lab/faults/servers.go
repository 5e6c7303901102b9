package faults

// Faults of nats-server: killed, paused, restarted, its disk full.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/testing/testserver"
	"github.com/basetensor/basetensor/pkg/client"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// returned notes that servers are back, from when on recovery counts for all jobs under way.
func (b *batch) returned(s *strike, err error) error {
	s.at = time.Now()
	b.l.during(s, s.at, s.at)
	return err
}

// led are the streams whose leaders are struck.
var led = []string{bus.StreamModel, bus.StreamNetwork, bus.StreamTask, bus.StreamPartial, bus.StreamAnswer}

// onServer strikes the only server.
func onServer(draw func(b *batch, p process) blow) func(context.Context, *batch) error {
	return func(ctx context.Context, b *batch) error {
		x := draw(b, b.s.servers[0])
		s := b.begin("%s", x.what)
		x.begin()
		pause(ctx, x.lasts)
		return b.returned(s, x.end())
	}
}

// onLeader strikes the leader of one of the led streams: jobs under way within a second are held up.
func onLeader(draw func(b *batch, p process) blow) func(context.Context, *batch) error {
	return func(ctx context.Context, b *batch) error {
		stream := led[b.draw(len(led))]
		var leader *testserver.NATSServer
		err := until(ctx, startWithin, func(ctx context.Context) (err error) { leader, err = b.s.leader(ctx, stream); return err })
		if err != nil {
			return err
		}
		x := draw(b, leader)
		s := b.begin("of %s: %s", stream, x.what)
		x.begin()
		pause(ctx, x.lasts)
		b.l.during(s, s.at, s.at.Add(time.Second))
		return errors.Join(x.end(), b.s.current(ctx))
	}
}

func restartServer(ctx context.Context, b *batch) error {
	b.mu.Lock()
	server := b.s.servers[len(b.strikes)%len(b.s.servers)]
	b.mu.Unlock()
	s := b.begin("%s", server.URL)
	err := server.Restart()
	b.l.during(s, s.at, s.at.Add(time.Second))
	return errors.Join(err, b.s.current(ctx))
}

// partition leaves a server alone.
func partition(ctx context.Context, b *batch) error {
	alone, length := b.draw(len(b.s.servers)), b.between(time.Second, 8*time.Second)
	var between []*gate
	for pair, g := range b.s.routes {
		if pair[0] == alone || pair[1] == alone {
			between = append(between, g)
		}
	}
	s := b.begin("of server-%d for %s", alone, rounded(length))
	for _, g := range between {
		g.swallow()
	}
	pause(ctx, length)
	b.l.during(s, s.at, time.Now())
	for _, g := range between {
		g.admit()
		g.bury()
	}
	return b.s.current(ctx)
}

// rot damages what a server stores while it is down: always the same one's, so that two replicas stay whole.
func rot(ctx context.Context, b *batch) error {
	server := b.s.servers[0]
	server.Kill()
	blocks, err := filepath.Glob(filepath.Join(server.StoreDir, "jetstream", "*", "streams", "*", "msgs", "*.blk"))
	if err != nil {
		return err
	}
	damaged := 0
	for _, path := range blocks {
		if b.draw(2) == 0 {
			continue
		}
		damage := b.flipBit
		if b.draw(2) == 0 {
			damage = b.cutShort
		}
		if err := damage(path); err != nil {
			return err
		}
		damaged++
	}
	s := b.begin("of %d of %d blocks", damaged, len(blocks))
	err = server.Restart()
	b.l.during(s, s.at, time.Now())
	return errors.Join(err, b.s.current(ctx))
}

func (b *batch) flipBit(path string) error {
	data, err := os.ReadFile(path)
	if err != nil || len(data) == 0 {
		return err
	}
	data[b.draw(len(data))] ^= 1 << b.draw(8)
	return os.WriteFile(path, data, 0o644)
}

func (b *batch) cutShort(path string) error {
	info, err := os.Stat(path)
	if err != nil || info.Size() == 0 {
		return err
	}
	return os.Truncate(path, int64(b.draw(int(info.Size()))))
}

// replacePeer removes a server for good, as an administrator does, and has another one join: the cluster refuses the old name.
func replacePeer(ctx context.Context, b *batch) error {
	server := b.s.servers[b.draw(len(b.s.servers))]
	admin, err := nats.Connect(b.s.url, nats.UserInfo("admin", "admin"))
	if err != nil {
		return err
	}
	defer admin.Close()
	s := b.begin("%s", server.Name)
	server.Kill()
	removed := func(context.Context) error { // refused while the cluster elects whom it asks
		m, err := admin.Request("$JS.API.SERVER.REMOVE", fmt.Appendf(nil, `{"peer": %q}`, server.Name), time.Second)
		if err == nil && !bytes.Contains(m.Data, []byte(`"success":true`)) {
			err = fmt.Errorf("faults: removing a server: %s", m.Data)
		}
		return err
	}
	if err := until(ctx, startWithin, removed); err != nil {
		return err
	}
	if err := os.RemoveAll(filepath.Join(server.StoreDir, "jetstream")); err != nil {
		return err
	}
	server.Rename(server.Name + "-new")
	err = server.Restart()
	b.l.during(s, s.at, time.Now())
	return errors.Join(err, b.s.current(ctx))
}

// current waits until every stream of a cluster has a leader and all its replicas are up to date: a fault that hits two of
// three servers stops all of them.
func (s *stack) current(ctx context.Context) error {
	err := until(ctx, 2*startWithin, func(ctx context.Context) error {
		behind, err := s.behind(ctx)
		if behind != "" {
			err = errors.New(behind)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("faults: the cluster does not come to rest: %w", err)
	}
	return nil
}

// behind says which stream has no leader, or a replica that is not up to date.
func (s *stack) behind(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	all := s.js.ListStreams(ctx)
	for info := range all.Info() {
		if info.Cluster == nil || info.Cluster.Leader == "" || len(info.Cluster.Replicas) < 2 {
			return info.Config.Name, nil
		}
		for _, peer := range info.Cluster.Replicas {
			if !peer.Current || peer.Offline {
				return info.Config.Name + " on " + peer.Name, nil
			}
		}
	}
	if err := all.Err(); err != nil && !errors.Is(err, jetstream.ErrEndOfData) {
		return "", err
	}
	return "", nil
}

// diskBytes is the size of the disk that is filled up.
const diskBytes = "160m"

func mount(folder string) error {
	store := filepath.Join(folder, "nats")
	if err := os.MkdirAll(store, 0o755); err != nil {
		return err
	}
	return run("mounting a small disk is not permitted here",
		exec.Command("mount", "-t", "tmpfs", "-o", "size="+diskBytes, "tmpfs", store))
}

func unmount(folder string) { exec.Command("umount", "-l", filepath.Join(folder, "nats")).Run() }

// fillDisk fills the disk until a publisher's message is refused, makes room and restarts the server.
func fillDisk(ctx context.Context, b *batch) error {
	filler := filepath.Join(b.s.folder, "nats", "filler")
	file, err := os.Create(filler)
	if err != nil {
		return err
	}
	s := b.begin("full")
	for err == nil {
		_, err = file.Write(make([]byte, 64<<10))
	}
	file.Close()

	told, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	for number := 0; ; number++ {
		q, err := (&questions{}).make(exactly, 0)
		if err != nil {
			return err
		}
		m := q.ask
		m.Job, m.Tenant = fmt.Sprintf("%s-full-%d-%d", b.l.prefix, s.at.UnixNano(), number), tenants[0]
		if _, err = b.s.client.Submit(told, m); errors.Is(err, client.ErrStorage) {
			break
		}
		if told.Err() != nil {
			return fmt.Errorf("faults: a full disk was not told of: %w", errors.Join(err, told.Err()))
		}
	}
	if err := os.Remove(filler); err != nil {
		return err
	}
	err = b.returned(s, b.s.servers[0].Restart())
	for b.s.nc.Status() != nats.CONNECTED && ctx.Err() == nil {
		pause(ctx, 10*time.Millisecond)
	}
	return err
}
