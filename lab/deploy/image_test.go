//go:build nightly

package deploy

import (
	"archive/tar"
	"bytes"
	"crypto/x509"
	"debug/elf"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/basetensor/basetensor/lab/image"
	"github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

var options = image.Options{
	Source: "../..", Version: "v1.2.3", Revision: "abc", Date: time.Unix(1700000000, 0), Arch: runtime.GOARCH,
}

// builtImage builds the image once.
var builtImage = sync.OnceValues(func() (v1.Image, error) {
	made, _, err := image.Build(options)
	return made, err
})

func theImage(t *testing.T) v1.Image {
	t.Helper()
	if testing.Short() {
		t.Skip("builds the commands anew: not with -short")
	}
	made, err := builtImage()
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// unpack writes the files of the image into a folder.
func unpack(t *testing.T, made v1.Image) (root string) {
	t.Helper()
	root = t.TempDir()
	flat := mutate.Extract(made)
	defer flat.Close()
	for files := tar.NewReader(flat); ; {
		h, err := files.Next()
		if err == io.EOF {
			return root
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(root, h.Name)
		if h.Typeflag == tar.TypeDir {
			err = os.MkdirAll(path, 0o755)
		} else {
			var text []byte
			if text, err = io.ReadAll(files); err == nil {
				err = os.WriteFile(path, text, os.FileMode(h.Mode))
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// The same sources in another folder give the same image, to the last bit, and the written one equals it.
func TestImageIsReproducible(t *testing.T) {
	made := theImage(t)
	elsewhere := t.TempDir()
	for _, name := range []string{"cmd", "internal", "pkg", "schemas", "go.mod", "go.sum"} {
		if out, err := exec.Command("cp", "-r", filepath.Join(options.Source, name), elsewhere).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	other := options
	other.Source = elsewhere
	again, _, err := image.Build(other)
	if err != nil {
		t.Fatal(err)
	}
	first, err := made.Digest()
	if err != nil {
		t.Fatal(err)
	}
	if second, err := again.Digest(); err != nil || second != first {
		t.Errorf("%v and %v, %v", first, second, err)
	}

	dir := filepath.Join(t.TempDir(), "image")
	if err := image.Write(again, other, dir); err != nil {
		t.Fatal(err)
	}
	path, err := layout.FromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	if stored, err := path.Image(first); err != nil {
		t.Errorf("what was written: %v", err)
	} else if _, err := stored.RawConfigFile(); err != nil {
		t.Errorf("what was written: %v", err)
	}
}

// The image has five static programs with their version, certificates, a bill of materials that is true, a user other than root, and
// labels.
func TestImageHolds(t *testing.T) {
	made := theImage(t)
	config, err := made.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	label := config.Config.Labels["org.opencontainers.image.version"]
	if c := config.Config; c.User != image.User || label != "v1.2.3" || !slices.Equal(c.Entrypoint, []string{"/usr/local/bin/btn"}) {
		t.Errorf("configuration: %+v", c)
	}
	root := unpack(t, made)

	programs, err := filepath.Glob(filepath.Join(root, image.Programs, "*"))
	if err != nil || len(programs) != 5 {
		t.Fatalf("programs: %v %v", programs, err)
	}
	for _, program := range programs {
		f, err := elf.Open(program)
		if err != nil {
			t.Fatal(err)
		}
		libraries, err := f.ImportedLibraries()
		if err != nil || len(libraries) > 0 || slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
			t.Errorf("%s is not static: %v %v", program, libraries, err)
		}
		f.Close()
		out, err := exec.Command(program, "--version").CombinedOutput()
		if err != nil || !bytes.Contains(out, []byte("v1.2.3 (revision abc")) {
			t.Errorf("%s: %v: %s", program, err, out)
		}
	}

	certificates, err := os.ReadFile(filepath.Join(root, image.Certificates))
	if err != nil || !x509.NewCertPool().AppendCertsFromPEM(certificates) || bytes.Count(certificates, []byte("BEGIN CERT")) < 80 {
		t.Errorf("certificates: %v, %d bytes", err, len(certificates))
	}

	var bill struct {
		Components []struct{ Name, Version string }
	}
	text, err := os.ReadFile(filepath.Join(root, image.Materials))
	if err == nil {
		err = json.Unmarshal(text, &bill)
	}
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range bill.Components {
		got = append(got, c.Name+" "+c.Version)
	}
	// the modules that the commands are made of, by go.mod
	line := "{{with .Module}}{{if .Version}}{{.Path}} {{.Version}}{{end}}{{end}}"
	list := exec.Command("go", "list", "-C", options.Source, "-deps", "-f", line, "./cmd/...")
	list.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"std " + runtime.Version()}
	for line := range strings.Lines(string(out)) {
		want = append(want, strings.TrimSpace(line))
	}
	slices.Sort(want)
	want = slices.DeleteFunc(slices.Compact(want), func(s string) bool { return s == "" })
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("materials are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// The services of the production overlay run out of the image, in real containers: read-only root, no capability, nobody's user, secrets
// as files.
func TestImageServes(t *testing.T) {
	runc, err := exec.LookPath("runc")
	if err != nil || os.Getuid() != 0 {
		t.Skip("needs a runc on the PATH (Debian: apt-get install runc), and root")
	}
	root := unpack(t, theImage(t))
	if err := os.Chmod(filepath.Dir(root), 0o755); err != nil { // the user of the containers comes through
		t.Fatal(err)
	}
	production(t, filepath.Join(root, image.Programs), func(p pod, env []string, files map[string]string) *exec.Cmd {
		return container(t, runc, root, p, env, files)
	})
}

// container is a pod as runc starts it, on the network of this machine.
func container(t *testing.T, runc, root string, p pod, env []string, files map[string]string) *exec.Cmd {
	t.Helper()
	type object = map[string]any
	who, c := p.spec.SecurityContext, p.spec.Containers[0]
	command := c.Command
	if len(command) == 0 {
		command = []string{"/usr/local/bin/btn"} // the image's entry point
	}
	mounts := []object{
		{"destination": "/proc", "type": "proc", "source": "proc"},
		{"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": []string{"nosuid", "mode=755"}}, // the root is shared
	}
	volumes := map[string]string{} // folder in the pod: folder here
	for path, here := range files {
		dir := filepath.Dir(path)
		if volumes[dir] == "" {
			volumes[dir] = t.TempDir()
			mounts = append(mounts, object{"destination": dir, "source": volumes[dir], "options": []string{"bind", "ro"}})
		}
		text, err := os.ReadFile(here)
		if err != nil {
			t.Fatal(err)
		}
		// as fsGroup and defaultMode have it
		to := filepath.Join(volumes[dir], filepath.Base(path))
		if err := os.WriteFile(to, text, 0o440); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(to, 0, int(*who.FSGroup)); err != nil {
			t.Fatal(err)
		}
	}
	config := object{
		"ociVersion": "1.0.2",
		"process": object{
			"user": object{"uid": *who.RunAsUser, "gid": *who.RunAsGroup, "additionalGids": []int64{*who.FSGroup}},
			"args": slices.Concat(command, c.Args), "env": env, "cwd": "/",
			"noNewPrivileges": !*c.SecurityContext.AllowPrivilegeEscalation, "capabilities": object{},
		},
		"root":   object{"path": root, "readonly": *c.SecurityContext.ReadOnlyRootFilesystem},
		"mounts": mounts,
		"linux":  object{"namespaces": []object{{"type": "pid"}, {"type": "mount"}, {"type": "ipc"}, {"type": "uts"}}},
	}
	bundle := t.TempDir()
	text, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(bundle, "config.json"), text, 0o644); err != nil {
		t.Fatal(err)
	}
	id := "basetensor-" + filepath.Base(filepath.Dir(bundle)) + "-" + p.name
	t.Cleanup(func() { exec.Command(runc, "delete", "--force", id).Run() })
	return exec.Command(runc, "run", "--bundle", bundle, id)
}
