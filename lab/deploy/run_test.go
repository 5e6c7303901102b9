//go:build nightly

package deploy

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/doors/access"
	"github.com/basetensor/basetensor/internal/testing/commands"
	"github.com/basetensor/basetensor/internal/testing/testserver"
	corev1 "k8s.io/api/core/v1"
)

// bin is the folder of the built commands.
var bin string

func TestMain(m *testing.M) {
	var err error
	if bin, err = os.MkdirTemp("", "basetensor-deploy-"); err != nil {
		panic(err)
	}
	if out, err := exec.Command("go", "tool", "-C", "../..", "-n", "nats-server").Output(); err == nil && os.Getenv("BTN_NATS_SERVER") == "" {
		os.Setenv("BTN_NATS_SERVER", strings.TrimSpace(string(out))) // a tool of the module above
	}
	code := m.Run()
	os.RemoveAll(bin)
	os.Exit(code)
}

// built puts the commands into bin, once.
var built = sync.OnceValue(func() error { return commands.Install(bin, "../..") })

// needCommands builds the commands, or skips with -short.
func needCommands(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("builds and runs the commands: not with -short")
	}
	if err := built(); err != nil {
		t.Fatal(err)
	}
}

// pod is a pod of an overlay, with its environment.
type pod struct {
	name string
	spec corev1.PodSpec
	env  map[string]string
}

// pods returns the pods of an overlay's deployments of our image and of its job.
func pods(t *testing.T, overlay string) (list []pod) {
	t.Helper()
	settings := map[string]*corev1.ConfigMap{}
	objects := build(t, overlay)
	for _, o := range objects {
		if m, ok := o.typed(t).(*corev1.ConfigMap); ok {
			settings[m.Name] = m
		}
	}
	for _, o := range objects {
		template := template(o.typed(t))
		if template == nil || template.Spec.Containers[0].Name != "basetensor" {
			continue
		}
		c := template.Spec.Containers[0]
		p := pod{o.name, template.Spec, map[string]string{}}
		for _, from := range c.EnvFrom {
			if settings[from.ConfigMapRef.Name] == nil {
				t.Fatalf("%s: no ConfigMap %s", o.name, from.ConfigMapRef.Name)
			}
			for k, v := range settings[from.ConfigMapRef.Name].Data {
				p.env[k] = v
			}
		}
		for _, e := range c.Env {
			switch from := e.ValueFrom; {
			case from == nil: // names of variables before it are replaced
				p.env[e.Name] = os.Expand(strings.NewReplacer("$(", "${", ")", "}").Replace(e.Value), func(k string) string { return p.env[k] })
			case from.ResourceFieldRef != nil:
				p.env[e.Name] = fmt.Sprint(c.Resources.Requests.Memory().Value())
			case from.FieldRef != nil && from.FieldRef.FieldPath == "spec.serviceAccountName":
				p.env[e.Name] = p.spec.ServiceAccountName
			default:
				t.Fatalf("%s: %s is from nowhere", o.name, e.Name)
			}
		}
		list = append(list, p)
	}
	if len(list) != 6 {
		t.Fatalf("%s has %d kinds of pods, want the four workers, the gateway and setup", overlay, len(list))
	}
	return list
}

// Every variable of a pod and every argument is a flag of the command that it starts.
func TestSettingsAreFlags(t *testing.T) {
	needCommands(t)
	flag := regexp.MustCompile(`--[a-z][a-z-]+`)
	help := func(args ...string) []string {
		out, err := exec.Command(filepath.Join(bin, args[0]), append(args[1:], "--help")...).Output()
		if err != nil {
			t.Fatal(err)
		}
		return flag.FindAllString(string(out), -1)
	}
	var ofWorkers []string
	ofStage := map[string][]string{} // the four take the same, and print the settings that matter to each
	for _, name := range []string{"reparam-worker", "learn-worker", "contract-worker", "aggregator"} {
		ofStage[name] = help(name)
		ofWorkers = append(ofWorkers, ofStage[name]...)
	}
	ofSetup, ofGateway := help("btn", "setup"), help("btn", "gateway")
	for _, overlay := range overlays {
		for _, p := range pods(t, overlay) {
			known := ofStage[strings.TrimSuffix(p.name, "-fma")]
			if p.name == "setup" {
				known = slices.Concat(ofWorkers, ofSetup) // flags that it shares with workers mean nothing to it
				for _, arg := range p.spec.Containers[0].Args {
					if strings.HasPrefix(arg, "--") && !slices.Contains(ofSetup, arg) {
						t.Errorf("%s: setup has no %s", overlay, arg)
					}
				}
			}
			if p.name == "gateway" {
				known = slices.Concat(ofWorkers, ofGateway)
			}
			for key := range p.env {
				name, ok := strings.CutPrefix(key, "BTN_")
				if name = "--" + strings.ReplaceAll(strings.ToLower(name), "_", "-"); ok && !slices.Contains(known, name) {
					t.Errorf("%s: %s: %s is no flag", overlay, p.name, key)
				}
			}
		}
	}
}

// node acts as a pod's node: it starts their commands with their environment and their files, and asks their probes.
type node struct {
	t     *testing.T
	start func(p pod, env []string, files map[string]string) *exec.Cmd
	files map[string]string // of secrets: secret/file
	local func(string) string
}

// running is a pod's process.
type running struct {
	pod
	cmd  *exec.Cmd
	log  *bytes.Buffer
	port string
	web  string // where the gateway listens
	done chan error
}

func (n node) run(p pod) *running {
	n.t.Helper()
	r := &running{pod: p, log: &bytes.Buffer{}, port: testserver.FreePort(n.t), done: make(chan error, 1)}
	files := map[string]string{} // path in the pod: path here
	for _, v := range p.spec.Volumes {
		for _, m := range p.spec.Containers[0].VolumeMounts {
			for name, path := range n.files {
				if secret, file, _ := strings.Cut(name, "/"); m.Name == v.Name && v.Secret != nil && secret == v.Secret.SecretName {
					files[m.MountPath+"/"+file] = path
				}
			}
		}
	}
	var env []string
	for k, v := range p.env {
		if strings.HasPrefix(v, "/etc/basetensor/") && files[v] == "" {
			n.t.Errorf("%s: %s is %s, which no volume has", p.name, k, v)
		}
		switch k {
		case "BTN_HTTP":
			v = "127.0.0.1:" + r.port
		case "BTN_LISTEN":
			r.web = "127.0.0.1:" + testserver.FreePort(n.t)
			v = r.web
		}
		env = append(env, k+"="+n.local(v))
	}
	r.cmd = n.start(p, env, files)
	r.cmd.Stdout, r.cmd.Stderr = r.log, r.log
	if err := r.cmd.Start(); err != nil {
		n.t.Fatal(err)
	}
	go func() { r.done <- r.cmd.Wait() }()
	n.t.Cleanup(func() {
		r.cmd.Process.Kill()
		if n.t.Failed() {
			n.t.Logf("%s:\n%s", p.name, r.log)
		}
	})
	return r
}

// ready asks a probe until it is content.
func (r *running) ready(t *testing.T, probe *corev1.Probe) {
	t.Helper()
	r.content(t, "http://127.0.0.1:"+r.port+probe.HTTPGet.Path)
}

// content asks an address until the answer is 200.
func (r *running) content(t *testing.T, url string) {
	t.Helper()
	for range 600 {
		answer, err := http.Get(url)
		if err == nil {
			answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return
			}
		}
		select {
		case err := <-r.done:
			t.Fatalf("%s has ended: %v", r.name, err)
		case <-time.After(100 * time.Millisecond):
		}
	}
	t.Fatalf("%s: %s is not content", r.name, url)
}

// serve starts the pods of an overlay, has a model answered, and ends them as a node does.
func (n node) serve(overlay string, infer *exec.Cmd) {
	t := n.t
	t.Helper()
	var workers []*running
	for _, p := range pods(t, overlay) {
		r := n.run(p)
		if p.name != "setup" {
			workers = append(workers, r)
			continue
		}
		if err := <-r.done; err != nil {
			t.Fatalf("setup: %v\n%s", err, r.log)
		}
	}
	for _, r := range workers {
		c := r.spec.Containers[0]
		r.ready(t, c.StartupProbe)
		r.ready(t, c.LivenessProbe)
		r.ready(t, c.ReadinessProbe)
	}
	out, err := infer.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("(ln ")) {
		t.Fatalf("%v: %v\n%s", infer.Args, err, out)
	}
	for _, r := range workers {
		if r.web != "" {
			n.page(r.web)
		}
		r.cmd.Process.Signal(syscall.SIGTERM)
	}
	for _, r := range workers {
		select {
		case err := <-r.done:
			if err != nil {
				t.Errorf("%s: %v", r.name, err)
			}
		case <-time.After(time.Duration(*r.spec.TerminationGracePeriodSeconds) * time.Second):
			t.Errorf("%s is still there when its grace ends", r.name)
		}
	}
}

// page asks the gateway how the service is, with the key that it has been given, or under the name of its Service.
func (n node) page(address string) {
	n.t.Helper()
	request, err := http.NewRequest("GET", "http://"+address+"/v1/status", nil)
	if err != nil {
		n.t.Fatal(err)
	}
	if n.files != nil {
		request.Header.Set("Authorization", "Bearer "+webKey)
	} else {
		request.Host = "gateway.basetensor.svc"
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		n.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK || !bytes.Contains(text, []byte("contract-worker")) {
		n.t.Errorf("the gateway says %s %s, %v", answer.Status, text, err)
	}
}

// webKey is a key for HTTP.
const webKey = "k-0123456789abcdef0123456789abcdef"

// program starts a pod's command out of a folder instead of an image; the files of its volumes are found in its environment.
func program(p pod, env []string, files map[string]string) *exec.Cmd {
	c := p.spec.Containers[0]
	name := "btn" // the image's entry point
	if len(c.Command) > 0 {
		name = filepath.Base(c.Command[0])
	}
	cmd := exec.Command(filepath.Join(bin, name), c.Args...)
	for i, e := range env {
		for path, here := range files {
			if strings.HasSuffix(e, "="+path) {
				env[i] = strings.TrimSuffix(e, path) + here
			}
		}
	}
	cmd.Env = env
	return cmd
}

// The services of the trial overlay answer a model, on servers with the files that it gives them.
func TestSingleServes(t *testing.T) {
	needCommands(t)
	redis := testserver.Redis(t, testserver.RedisOptions{Config: "../../deploy/redis.conf"})
	nats := testserver.NATS(t, testserver.NATSOptions{Config: "../../deploy/nats-server.conf"})
	n := node{t: t, start: program, local: strings.NewReplacer("nats://nats:4222", nats.URL, "redis://redis:6379", redis.URL).Replace}
	n.serve("single", exec.Command(filepath.Join(bin, "btn"), "infer", "--nats", nats.URL, "../../examples/asia.uai"))
}

// The page's overlay of two values has its image in every pod, and its pods answer a model by its NATS server alone.
func TestTwoValuesServe(t *testing.T) {
	needCommands(t)
	for _, p := range pods(t, "page") {
		if image := p.spec.Containers[0].Image; image != "registry.example.com/basetensor:v1.2.3" {
			t.Errorf("%s: image %s", p.name, image)
		}
	}
	nats := testserver.NATS(t, testserver.NATSOptions{Config: "../../deploy/nats-server.conf"})
	n := node{t: t, start: program, local: strings.NewReplacer("nats://nats.messaging.svc:4222", nats.URL).Replace}
	n.serve("page", exec.Command(filepath.Join(bin, "btn"), "infer", "--nats", nats.URL, "../../examples/asia.uai"))
}

// The services of the production overlay answer a model, with its secrets as files: an nkey per role with the permissions of that role,
// signed messages, TLS, a user of Redis.
func TestProductionServes(t *testing.T) {
	needCommands(t)
	production(t, bin, program)
}

// production starts the pods of the production overlay that way, on servers with TLS and credentials, and asks with the btn of a folder.
func production(t *testing.T, bin string, how func(pod, []string, map[string]string) *exec.Cmd) {
	t.Helper()
	certificates := testserver.NewCertificates(t)
	dir := t.TempDir()
	write := func(name string, text []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	keys := t.TempDir()
	if _, err := access.Write(keys, "", nil, access.Limits{}); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{
		"servers/nats-ca.pem": certificates.CA, "redis/ca.pem": certificates.CA,
		"redis/password":    write("redis-password", []byte("s3cret\n")),
		"messages/keys":     filepath.Join(keys, access.MessageKeys),
		"answers/key":       filepath.Join(keys, access.AnswersKey),
		"answers-seed/seed": filepath.Join(keys, access.AnswersSeed),
		"gateway-keys/keys": write("gateway-keys", []byte("* "+webKey+"\n")),
	}
	for _, role := range []string{"reparam-worker", "learn-worker", "contract-worker", "aggregator", "operator"} {
		files["nats-"+role+"/nkey"] = filepath.Join(keys, role+".nk")
	}
	include, err := filepath.Rel(dir, filepath.Join(keys, access.ConfigFile)) // from the file that includes it
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../../deploy/nats-server.conf")
	if err != nil {
		t.Fatal(err)
	}
	text = fmt.Appendf(text, "\ntls { cert_file: %q, key_file: %q }\ninclude %q\n",
		certificates.ServerCert, certificates.ServerKey, include)
	nats := testserver.NATS(t, testserver.NATSOptions{Config: write("nats-server.conf", text)})
	port := testserver.FreePort(t)
	testserver.Redis(t, testserver.RedisOptions{Config: "../../deploy/redis.conf", Args: []string{
		"--tls-port", port, "--tls-ca-cert-file", certificates.CA, "--tls-cert-file", certificates.ServerCert,
		"--tls-key-file", certificates.ServerKey, "--tls-auth-clients", "no",
		"--user", "basetensor", "on", ">s3cret", "~btn:*", "+@all",
	}})
	local := func(s string) string {
		if strings.HasPrefix(s, "nats://") {
			return nats.URL
		}
		return strings.ReplaceAll(s, "redis.caching.svc:6379", "127.0.0.1:"+port)
	}
	// one server here: the job's three replicas are not to be had
	start := func(p pod, env []string, mounted map[string]string) *exec.Cmd {
		args := slices.Clone(p.spec.Containers[0].Args)
		if i := slices.Index(args, "--replicas"); i >= 0 {
			args = slices.Delete(args, i, i+2)
		}
		if i := slices.Index(args, "--max-bytes"); i >= 0 {
			args[i+1] = "1GiB"
		}
		p.spec.Containers[0].Args = args
		return how(p, env, mounted)
	}
	n := node{t: t, start: start, files: files, local: local}
	n.serve("production", exec.Command(filepath.Join(bin, "btn"), "infer", "--nats", nats.URL, "--nats-ca", certificates.CA,
		"--config", filepath.Join(keys, access.Client+".json"), "--message-keys", files["messages/keys"], "../../examples/asia.uai"))
}
