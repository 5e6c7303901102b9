package faults

// The servers and the workers of a run.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/basetensor/basetensor/internal/queue/seal"
	"github.com/basetensor/basetensor/internal/testing/testserver"
	"github.com/basetensor/basetensor/pkg/client"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/redis/go-redis/v9"
)

// maxPayload is the servers' limit: small, so that models of some size travel as blobs.
const maxPayload = 64 << 10

// copies is the number of workers of each role: one may always be at fault.
const copies = 2

// stack is the system under the faults.
type stack struct {
	o       Options
	own     ownStack
	folder  string
	servers []*testserver.NATSServer
	cluster *testserver.Cluster // nil: a single server
	routes  map[[2]int]*gate    // the way from a server of the cluster to another
	url     string              // of the servers, for clients without faults
	redis   *testserver.RedisServer
	workers []*worker
	keys    string // file of the keys that messages are signed by; empty: they are not

	nc     *nats.Conn
	js     jetstream.JetStream
	client *client.Client
	cache  *redis.Client
}

// payloadLine is the line of the configuration that bounds payloads.
var payloadLine = regexp.MustCompile(`(?m)^max_payload:.*$`)

// accounts give the system account a user, and leave everybody else as without accounts.
const accounts = `
accounts {
  APP: { jetstream: enabled, users: [ { user: app, password: app } ] }
  $SYS: { users: [ { user: admin, password: admin } ] }
}
no_auth_user: app
`

// newStack starts servers and workers in a folder, and waits until the workers ask for messages.
func newStack(ctx context.Context, o Options, folder string, own ownStack) (s *stack, err error) {
	s = &stack{o: o, own: own, folder: folder}
	defer func() {
		if err != nil {
			s.close()
		}
	}()

	text, err := os.ReadFile(filepath.Join(o.Root, "deploy", "nats-server.conf"))
	if err != nil {
		return s, err
	}
	config := filepath.Join(folder, "nats.conf")
	text = payloadLine.ReplaceAll(text, fmt.Append(nil, "max_payload: ", maxPayload))
	if own.sync != "" {
		text = syncLine.ReplaceAll(text, fmt.Append(nil, "${1} ", own.sync))
	}
	if own.admin {
		text = append(text, accounts...)
	}
	if err := os.WriteFile(config, text, 0o644); err != nil {
		return s, err
	}
	if err := s.startServers(config); err != nil {
		return s, err
	}

	dir := filepath.Join(folder, "redis")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return s, err
	}
	s.redis, err = testserver.StartRedis(testserver.RedisOptions{
		Config: filepath.Join(o.Root, "deploy", "redis.conf"), Dir: dir,
	})
	if err != nil {
		return s, err
	}
	s.cache = redis.NewClient(&redis.Options{Addr: s.redis.Addr})

	if o.Old == "" { // earlier versions know no keys
		key, err := seal.NewKey()
		if err != nil {
			return s, err
		}
		s.keys = filepath.Join(folder, "message.keys")
		if err := os.WriteFile(s.keys, []byte(key+"\n"), 0o600); err != nil {
			return s, err
		}
	}

	if err := s.connect(); err != nil {
		return s, err
	}
	if err := s.setup(o.Bin, own.room); err != nil {
		return s, err
	}
	for i := range copies {
		for _, role := range roles {
			if err := s.add(role, i); err != nil {
				return s, err
			}
		}
	}
	return s, s.served(ctx)
}

func (s *stack) startServers(config string) (err error) {
	store := filepath.Join(s.folder, "nats")
	if !s.o.Cluster {
		server, err := testserver.StartNATS(testserver.NATSOptions{Config: config, StoreDir: store})
		if server != nil {
			s.servers, s.url = []*testserver.NATSServer{server}, server.URL
		}
		return err
	}
	// Without the addresses that servers advertise, by which workers would find a way around their proxies.
	s.routes = map[[2]int]*gate{}
	s.cluster, err = testserver.StartCluster(3, testserver.NATSOptions{
		Config: config, StoreDir: store, Args: []string{"--no_advertise=true"},
		Via: func(from, to int, address string) (string, error) {
			g, err := newGate(false, 0, []string{address})
			if err != nil {
				return "", err
			}
			s.routes[[2]int{from, to}] = g
			return g.addresses()[0], nil
		},
	})
	s.servers, s.url = s.cluster.Servers, s.cluster.URL
	return err
}

// connect connects the client, which suffers no faults of its own.
func (s *stack) connect() (err error) {
	s.nc, err = nats.Connect(s.url, nats.Name("faults"), nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}),
		nats.PingInterval(time.Second), nats.MaxPingsOutstanding(2))
	if err != nil {
		return err
	}
	if s.js, err = jetstream.New(s.nc); err != nil {
		return err
	}
	s.client, err = client.New(s.nc, client.Options{MessageKeys: s.keys})
	return err
}

// setup runs btn setup; small is the room for all streams, 0 for the usual room.
func (s *stack) setup(bin string, small int64) error {
	args := []string{"setup", "--nats", s.url, "--wait", "20s"}
	if s.o.Cluster {
		args = append(args, "--replicas", "3")
	}
	if small > 0 {
		args = append(args, "--max-bytes", fmt.Sprint(small))
	}
	return run("btn setup", exec.Command(filepath.Join(bin, "btn"), args...))
}

// add starts a worker behind proxies of its own.
func (s *stack) add(role string, index int) error {
	seed := s.o.Seed ^ uint64(len(s.workers))
	toNATS, err := newGate(true, seed, strings.Split(strings.ReplaceAll(s.url, "nats://", ""), ","))
	if err != nil {
		return err
	}
	toRedis, err := newGate(false, seed, []string{s.redis.Addr})
	if err != nil {
		return err
	}
	port, err := testserver.Unused() // not of those that proxies and connections get, while the worker is down
	if err != nil {
		return err
	}
	w := &worker{
		role: role, index: index, nats: toNATS, redis: toRedis, http: net.JoinHostPort("127.0.0.1", port),
		log:     filepath.Join(s.folder, fmt.Sprintf("%s-%d.log", role, index)),
		command: []string{filepath.Join(s.o.Bin, role)},
	}
	var urls []string
	for _, address := range toNATS.addresses() {
		urls = append(urls, "nats://"+address)
	}
	w.env = []string{
		"BTN_NATS=" + strings.Join(urls, ","), "BTN_REDIS=redis://" + toRedis.addresses()[0],
		"BTN_HTTP=" + w.http, "BTN_LOG_LEVEL=" + s.o.LogLevel, "BTN_CHUNK_FLOPS=20000",
		"GOMEMLIMIT=512MiB", "GOMAXPROCS=2",
	}
	if s.keys != "" {
		w.env = append(w.env, "BTN_MESSAGE_KEYS="+s.keys)
	}
	s.workers = append(s.workers, w)
	return w.start()
}

// startWithin is how long servers and workers may take to be there.
const startWithin = time.Minute

// served waits until all stages are served.
func (s *stack) served(ctx context.Context) error {
	return until(ctx, startWithin, func(ctx context.Context) error { return s.client.Served(ctx, "") })
}

// until looks again and again, until there is no error, or for so long. One look ends after attemptFor: a server that is killed meanwhile
// does not answer it.
func until(ctx context.Context, within time.Duration, look func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for {
		attempt, end := context.WithTimeout(ctx, attemptFor)
		err := look(attempt)
		end()
		if err == nil || ctx.Err() != nil {
			return err
		}
		pause(ctx, 20*time.Millisecond)
	}
}

// workersOf returns the workers of a role.
func (s *stack) workersOf(role string) []*worker {
	var list []*worker
	for _, w := range s.workers {
		if w.role == role {
			list = append(list, w)
		}
	}
	return list
}

// leader is the server that leads a stream.
func (s *stack) leader(ctx context.Context, stream string) (*testserver.NATSServer, error) {
	if s.cluster == nil {
		return s.servers[0], nil
	}
	info, err := s.js.Stream(ctx, stream)
	if err != nil {
		return nil, err
	}
	if info.CachedInfo().Cluster == nil {
		return nil, errors.New("faults: the stream has no replicas")
	}
	server := s.cluster.Named(info.CachedInfo().Cluster.Leader)
	if server == nil {
		return nil, fmt.Errorf("faults: no server is called %q", info.CachedInfo().Cluster.Leader)
	}
	return server, nil
}

// close ends everything.
func (s *stack) close() {
	for _, w := range s.workers {
		w.end()
	}
	if s.nc != nil {
		s.nc.Close()
	}
	if s.cache != nil {
		s.cache.Close()
	}
	if s.redis != nil {
		s.redis.Resume()
		s.redis.Kill()
	}
	for _, server := range s.servers {
		server.Resume()
		server.Kill()
	}
	for _, g := range s.routes {
		g.close()
	}
}

// versions returns the servers' versions, as they state them.
func (s *stack) versions() string {
	text := "nats-server " + s.nc.ConnectedServerVersion()
	if info, err := s.cache.Info(context.Background(), "server").Result(); err == nil {
		for line := range strings.Lines(info) {
			if version, ok := strings.CutPrefix(line, "redis_version:"); ok {
				text += ", redis-server " + strings.TrimSpace(version)
			}
		}
	}
	return text
}

// pause waits for a time, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// Build builds the programs of a source tree into a folder.
func Build(root, into string) error {
	cmd := exec.Command("go", "build", "-ldflags=-s -w", "-o", into+string(filepath.Separator), "./cmd/...")
	cmd.Dir = root
	return run("go build in "+root, cmd)
}

// run runs a command. Its error says the purpose, and what the command printed.
func run(purpose string, cmd *exec.Cmd) error {
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("faults: %s: %w: %s", purpose, err, out)
	}
	return nil
}

// BuildOld builds the programs of an earlier commit of the source into a folder.
func BuildOld(root, commit, into string) error {
	tree, err := os.MkdirTemp(filepath.Dir(into), "source-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tree)
	archive := exec.Command("git", "-C", root, "archive", commit)
	var said bytes.Buffer
	archive.Stderr = &said
	unpack := exec.Command("tar", "-x", "-C", tree)
	if unpack.Stdin, err = archive.StdoutPipe(); err != nil {
		return err
	}
	if err := archive.Start(); err != nil {
		return err
	}
	err = errors.Join(unpack.Run(), archive.Wait())
	if err != nil {
		return fmt.Errorf("faults: git archive %s: %w: %s", commit, err, said.Bytes())
	}
	return Build(tree, into)
}
