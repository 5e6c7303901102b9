package testserver

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// NATSOptions say how a nats-server runs. The zero value: JetStream, without a file.
type NATSOptions struct {
	Config   string   // configuration file; ports, address and store are overridden
	StoreDir string   // JetStream's folder; NATS gives it a folder of the test's
	Args     []string // further arguments
	// Via is the address by which one server of a cluster reaches another's; nil: that itself.
	Via func(from, to int, address string) (string, error)
}

// NATSServer is a running nats-server.
type NATSServer struct {
	*process
	URL        string // nats://127.0.0.1:<port>
	Monitoring string // http://127.0.0.1:<port>
	StoreDir   string
	Name       string // in a cluster
}

// NATS starts a nats-server with JetStream for a test. The program is built from the module that
// go.mod names, which takes a minute the first time on a slow machine.
func NATS(t testing.TB, o NATSOptions) *NATSServer {
	t.Helper()
	if o.StoreDir == "" {
		o.StoreDir = t.TempDir()
	}
	s, err := StartNATS(o)
	if s == nil {
		s = &NATSServer{process: &process{}}
	}
	attach(t, s.process, err)
	return s
}

// StartNATS starts a nats-server and waits until it and JetStream are ready. The caller ends it with
// Stop or Kill. The error wraps ErrUnavailable where the program cannot be built.
func StartNATS(o NATSOptions) (*NATSServer, error) {
	s, err := newNATS(o)
	if err != nil {
		return nil, err
	}
	return s, s.start()
}

// newNATS is a nats-server on free ports that is not started.
func newNATS(o NATSOptions) (*NATSServer, error) {
	path, err := FindNATS()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(o.StoreDir, 0o755); err != nil {
		return nil, err
	}
	args, err := configure(o)
	if err != nil {
		return nil, err
	}
	port, err := Unused()
	if err != nil {
		return nil, err
	}
	monitor, err := Unused()
	if err != nil {
		return nil, err
	}
	args = append(args, "--addr", "127.0.0.1", "--port", port, "--http_port", monitor)
	s := &NATSServer{
		URL:        "nats://" + net.JoinHostPort("127.0.0.1", port),
		Monitoring: "http://" + net.JoinHostPort("127.0.0.1", monitor),
		StoreDir:   o.StoreDir,
	}
	s.process = &process{
		name:   "nats-server",
		path:   path,
		args:   append(args, o.Args...),
		log:    filepath.Join(o.StoreDir, "nats.log"),
		answer: s.healthy,
	}
	return s, nil
}

// storeLine is the line of a configuration file that says where JetStream stores.
var storeLine = regexp.MustCompile(`(?m)^(\s*)store_dir\s*[:=].*$`)

// configure returns the arguments for the file and the folder. nats-server refuses a folder given
// both in the file and as an argument, so a file that names one is copied with that line changed and
// nothing else.
func configure(o NATSOptions) ([]string, error) {
	folder := []string{"--jetstream", "--store_dir", o.StoreDir}
	if o.Config == "" {
		return folder, nil
	}
	path, err := absolute(o.Config)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("testserver: configuration: %w", err)
	}
	if !storeLine.Match(text) {
		return append(folder, "--config", path), nil
	}
	path = filepath.Join(o.StoreDir, "nats-server.conf")
	text = storeLine.ReplaceAllLiteral(text, []byte("store_dir: "+strconv.Quote(o.StoreDir)))
	return []string{"--config", path}, os.WriteFile(path, text, 0o644)
}

// Rename gives the server another name from its next start on.
func (s *NATSServer) Rename(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Name == "" {
		s.args = append(s.args, "--server_name", name)
	} else {
		s.args[slices.Index(s.args, s.Name)] = name
	}
	s.Name = name
}

// Reload makes the server read its configuration again, which it has done some time later.
func (s *NATSServer) Reload() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cmd.Process.Signal(syscall.SIGHUP)
}

// healthy asks the server itself; it says ok once JetStream has recovered its streams.
func (s *NATSServer) healthy() error {
	client := http.Client{Timeout: answerTimeout, Transport: &http.Transport{DisableKeepAlives: true}}
	r, err := client.Get(s.Monitoring + "/healthz")
	if err != nil {
		return err
	}
	defer r.Body.Close()
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<10))
	if err == nil && (r.StatusCode != http.StatusOK || !bytes.Contains(body, []byte(`"ok"`))) {
		err = fmt.Errorf("health: %s: %s", r.Status, body)
	}
	return err
}

// natsVariable names the program of a nats-server.
const natsVariable = "BTN_NATS_SERVER"

// FindNATS returns the path of a nats-server: $BTN_NATS_SERVER, or the module's tool, built into the
// build cache. The variable is set to it: go is asked once.
func FindNATS() (string, error) { return FindNATSOf("") }

// FindNATSOf is FindNATS of the module in a folder.
func FindNATSOf(folder string) (string, error) {
	if path := os.Getenv(natsVariable); path != "" {
		return path, nil
	}
	cmd := exec.Command("go", "tool", "-n", "nats-server")
	cmd.Dir = folder
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	path := strings.TrimSpace(string(out))
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		return "", fmt.Errorf("%w: go tool -n nats-server: %v: %s; set BTN_NATS_SERVER to use one of your own",
			ErrUnavailable, err, stderr.Bytes())
	}
	return path, os.Setenv(natsVariable, path)
}
