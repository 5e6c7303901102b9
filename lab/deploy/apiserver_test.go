//go:build nightly

package deploy

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/testing/testserver"
)

// apiServer starts an etcd and a kube-apiserver and returns how to send it a request. The test is skipped without them.
func apiServer(t *testing.T) func(method, path, kind string, body []byte) (status int, warnings []string, answer string) {
	t.Helper()
	program := os.Getenv("BTN_KUBE_APISERVER")
	etcd, err := exec.LookPath("etcd")
	if program == "" || err != nil {
		t.Skip("needs BTN_KUBE_APISERVER, which lab/deploy/apiserver.sh builds, and an etcd on the PATH")
	}
	dir := t.TempDir()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	accounts, tokens := filepath.Join(dir, "accounts.pem"), filepath.Join(dir, "tokens")
	for path, text := range map[string][]byte{
		accounts: pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}),
		tokens:   []byte("token,admin,1,system:masters\n"),
	} {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	start := func(name string, args ...string) {
		var log bytes.Buffer
		cmd := exec.Command(name, args...)
		cmd.Stdout, cmd.Stderr = &log, &log
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			cmd.Process.Kill()
			cmd.Wait()
			if t.Failed() {
				t.Logf("%s: %s", name, log.Bytes()[max(0, log.Len()-2000):])
			}
		})
	}
	store, secure := "http://127.0.0.1:"+testserver.FreePort(t), testserver.FreePort(t)
	start(etcd, "--data-dir", filepath.Join(dir, "etcd"), "--listen-client-urls", store, "--advertise-client-urls", store,
		"--listen-peer-urls", "http://127.0.0.1:"+testserver.FreePort(t))
	start(program, "--etcd-servers", store, "--secure-port", secure, "--bind-address", "127.0.0.1", "--cert-dir", dir,
		"--service-account-issuer", "https://localhost", "--service-account-key-file", accounts, "--service-account-signing-key-file", accounts,
		"--service-cluster-ip-range", "10.0.0.0/24", "--token-auth-file", tokens, "--authorization-mode", "RBAC",
		"--disable-admission-plugins", "ServiceAccount")

	// the certificate is the server's own, made at its start
	c := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	request := func(method, path, kind string, body []byte) (int, []string, string) {
		r, err := http.NewRequest(method, "https://127.0.0.1:"+secure+path, bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer token")
		r.Header.Set("Content-Type", kind)
		answer, err := c.Do(r)
		if err != nil {
			return 0, nil, err.Error()
		}
		defer answer.Body.Close()
		text, _ := io.ReadAll(answer.Body)
		return answer.StatusCode, answer.Header.Values("Warning"), string(text)
	}
	for range 600 {
		if status, _, _ := request("GET", "/readyz", "", nil); status == http.StatusOK {
			return request
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal("kube-apiserver does not get ready")
	return nil
}

// paths has the resource of every kind.
var paths = map[string]string{
	"Namespace": "/api/v1/namespaces", "ConfigMap": "/api/v1/namespaces/NS/configmaps", "Service": "/api/v1/namespaces/NS/services",
	"ServiceAccount": "/api/v1/namespaces/NS/serviceaccounts", "Deployment": "/apis/apps/v1/namespaces/NS/deployments",
	"StatefulSet": "/apis/apps/v1/namespaces/NS/statefulsets", "Job": "/apis/batch/v1/namespaces/NS/jobs",
	"PodDisruptionBudget":      "/apis/policy/v1/namespaces/NS/poddisruptionbudgets",
	"NetworkPolicy":            "/apis/networking.k8s.io/v1/namespaces/NS/networkpolicies",
	"Ingress":                  "/apis/networking.k8s.io/v1/namespaces/NS/ingresses",
	"ScaledObject":             "/apis/keda.sh/v1alpha1/namespaces/NS/scaledobjects",
	"PodMonitor":               "/apis/monitoring.coreos.com/v1/namespaces/NS/podmonitors",
	"CustomResourceDefinition": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
}

// A real kube-apiserver takes every object, strictly and without a warning, and its admission takes the pods as restricted ones.
func TestAPIServerAccepts(t *testing.T) {
	request := apiServer(t)
	apply := func(kind, name string, text []byte) (int, []string, string) {
		path := strings.ReplaceAll(paths[kind], "NS", "basetensor") + "/" + name + "?fieldManager=test&fieldValidation=Strict&force=true"
		return request("PATCH", path, "application/apply-patch+yaml", text)
	}
	for kind, name := range map[string]string{"ScaledObject": "scaledobjects.keda.sh", "PodMonitor": "podmonitors.monitoring.coreos.com"} {
		if status, _, answer := apply("CustomResourceDefinition", name, definitionOf(t, kind)); status != http.StatusCreated {
			t.Fatalf("the definition of %ss: %d %s", kind, status, answer)
		}
		for range 3000 {
			if status, _, _ := request("GET", strings.ReplaceAll(paths[kind], "NS", "default"), "", nil); status == http.StatusOK {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
	for _, overlay := range overlays {
		objects := build(t, overlay)
		for _, o := range objects {
			status, warnings, answer := apply(o.kind, o.name, o.yaml)
			if status != http.StatusCreated && status != http.StatusOK || len(warnings) > 0 {
				t.Errorf("%s: %s %s: %d %v %s", overlay, o.kind, o.name, status, warnings, answer)
			}
			pod := template(o.typed(t))
			if pod == nil {
				continue
			}
			for _, bad := range []bool{false, true} { // no controller runs here: the pod as it would make it, and one that runs as root
				spec := pod.Spec.DeepCopy()
				if spec.SecurityContext.RunAsNonRoot = new(!bad); bad {
					spec.SecurityContext.RunAsUser = new(int64(0))
				}
				status, _, answer := request("POST", "/api/v1/namespaces/basetensor/pods?dryRun=All", "application/json", podJSON(t, o.name, spec))
				if want := map[bool]int{false: http.StatusCreated, true: http.StatusForbidden}[bad]; status != want {
					t.Errorf("%s: a pod of %s, as root %v: %d %s", overlay, o.name, bad, status, answer)
				}
			}
		}
		for _, o := range objects { // the next overlay has objects of the same names
			if o.kind == "Job" {
				request("DELETE", strings.ReplaceAll(paths["Job"], "NS", "basetensor")+"/"+o.name+"?propagationPolicy=Background", "", nil)
			}
		}
	}
}
