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
	// Via returns the address by which server from of a cluster reaches server to, which listens at address: that of a proxy, for
	// example. nil: address itself.
	Via func(from, to int, address string) (string, error)
}

// NATSServer is a running nats-server.
type NATSServer struct {
	*process
	URL        string // nats://127.0.0.1:<port>
	Monitoring string // http://127.0.0.1:<port>
	StoreDir   string // JetStream's folder
	Name       string // in a cluster; empty: none
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

// StartNATS starts a nats-server and waits until it and JetStream are ready. The caller must end it by
// Stop or Kill. The error wraps ErrUnavailable if the program cannot be built.
func StartNATS(o NATSOptions) (*NATSServer, error) {
	s, err := newNATS(o)
	if err != nil {
		return nil, err
	}
	return s, s.start()
}

// newNATS returns a nats-server with free ports, which is not started yet.
func newNATS(o NATSOptions) (*NATSServer, error) {
	path, err := FindNATS()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(o.StoreDir, 0o755); err != nil {
		return nil, err
	}
	args, err := storeArguments(o)
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
		name:  "nats-server",
		path:  path,
		args:  append(args, o.Args...),
		log:   filepath.Join(o.StoreDir, "nats.log"),
		check: s.checkHealth,
	}
	return s, nil
}

// storeLine is the line of a configuration file that says where JetStream stores.
var storeLine = regexp.MustCompile(`(?m)^(\s*)store_dir\s*[:=].*$`)

// storeArguments returns the arguments that name JetStream's folder and the configuration file. nats-server refuses a folder that is given
// both in the file and as an argument. So a file that names one is copied with that line changed, and the copy is used without the
// argument.
func storeArguments(o NATSOptions) ([]string, error) {
	folder := []string{"--jetstream", "--store_dir", o.StoreDir}
	if o.Config == "" {
		return folder, nil
	}
	path, err := absoluteConfig(o.Config)
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

// Reload makes the server read its configuration again. It does not wait until that is done.
func (s *NATSServer) Reload() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cmd.Process.Signal(syscall.SIGHUP)
}

// checkHealth asks the server for its health. It returns nil once JetStream has recovered its streams, and an error before.
func (s *NATSServer) checkHealth() error {
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

// natsVariable is the environment variable with the path of a nats-server.
const natsVariable = "BTN_NATS_SERVER"

// FindNATS returns the path of a nats-server: $BTN_NATS_SERVER if that is set, and otherwise the tool of this module, which go builds into
// the build cache. It sets the variable, so that go is asked once.
func FindNATS() (string, error) { return FindNATSOf("") }

// FindNATSOf is FindNATS for the tool of the module in this folder. It sets the environment variable to what it found: later calls of
// FindNATS, from other folders and in processes that this one starts, take that path and do not ask go again.
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
