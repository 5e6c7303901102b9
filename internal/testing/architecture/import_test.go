package architecture

import (
	"archive/zip"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// released is the version of the main module in lab/go.mod, and so the version of both modules in the next release.
const released = "v0.1.0"

// TestBothModulesAreImported: a module without replace directives can import packages of the main module and of lab, from a proxy in files
// that has both as they would be released.
func TestBothModulesAreImported(t *testing.T) {
	if testing.Short() {
		t.Skip("lists what two modules need: not with -short")
	}
	root, err := filepath.Abs(modules[0])
	if err != nil {
		t.Fatal(err)
	}
	tracked, err := exec.Command("git", "-C", root, "ls-files").Output()
	if err != nil {
		t.Skipf("no git tree: %v", err)
	}
	cache, err := exec.Command("go", "env", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}

	// Publish both modules to the proxy.
	proxy := t.TempDir()
	var mainFiles, labFiles []string
	for _, file := range strings.Fields(string(tracked)) {
		if labFile, isLab := strings.CutPrefix(file, "lab/"); isLab {
			labFiles = append(labFiles, labFile)
		} else {
			mainFiles = append(mainFiles, file)
		}
	}
	main := strings.TrimSuffix(module, "/")
	publish(t, proxy, main, root, mainFiles)
	publish(t, proxy, main+"/lab", filepath.Join(root, "lab"), labFiles)
	downloaded := t.TempDir()

	// A user of each: it lists what it depends on.

	for required, imports := range map[string][]string{
		main:          {"pkg/client", "pkg/infer"},
		main + "/lab": {"pkg/infer", "lab/families"},
	} {
		user, text := t.TempDir(), "package main\n"
		for _, path := range imports {
			text += "\nimport _ \"" + main + "/" + path + "\"\n"
		}
		text += "\nfunc main() {}\n"
		for name, text := range map[string]string{
			"go.mod":  "module example.com/user\n\ngo 1.26.0\n\nrequire " + required + " " + released + "\n",
			"main.go": text,
		} {
			if err := os.WriteFile(filepath.Join(user, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		list := exec.Command("go", "list", "-mod=mod", "-modcacherw", "-deps", ".")
		list.Dir = user
		list.Env = append(os.Environ(), "GOPROXY=file://"+proxy+",file://"+strings.TrimSpace(string(cache))+"/cache/download",
			"GOMODCACHE="+downloaded, "GOFLAGS=", "GOSUMDB=off", "GOWORK=off")
		out, err := list.CombinedOutput()
		if err != nil || !strings.Contains(string(out), main+"/internal/answer/plan\n") {
			t.Errorf("with %s alone: %v: %s", required, err, out)
		}
	}
}

// TestTheExampleIsAModule: examples/client-go builds as a module of its own, which may import nothing of internal/.
func TestTheExampleIsAModule(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the example: not with -short")
	}
	root, err := filepath.Abs(modules[0])
	if err != nil {
		t.Fatal(err)
	}
	user, main := t.TempDir(), strings.TrimSuffix(module, "/")
	if err := os.CopyFS(user, os.DirFS(filepath.Join(root, "examples/client-go"))); err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"go.mod": "module example.com/user\n\ngo 1.26.0\n\nrequire " + main + " v0.0.0\n\nreplace " + main + " => " + root + "\n",
		"go.sum": string(sums),
	} {
		if err := os.WriteFile(filepath.Join(user, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"build", "-o", os.DevNull, "."}, {"vet", "."}} {
		command := exec.Command("go", args...)
		command.Dir = user
		command.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off", "GOSUMDB=off", "GOWORK=off")
		if out, err := command.CombinedOutput(); err != nil {
			t.Errorf("go %v: %v: %s", args, err, out)
		}
	}
}

// publish writes the released version of a module to a folder as a module proxy has it: PATH/@v/list, VERSION.info, VERSION.mod and
// VERSION.zip. files are the paths of its files from root.
func publish(t *testing.T, proxy, path, root string, files []string) {
	t.Helper()
	dir := filepath.Join(proxy, path, "@v")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	info, err := json.Marshal(map[string]string{"Version": released, "Time": "2026-01-01T00:00:00Z"})
	if err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}

	// The files.
	archive, err := os.Create(filepath.Join(dir, released+".zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	z := zip.NewWriter(archive)
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join(root, file))
		if os.IsNotExist(err) {
			continue // deleted, and not committed yet
		}
		if err != nil {
			t.Fatal(err)
		}
		w, err := z.CreateHeader(&zip.FileHeader{Name: path + "@" + released + "/" + file, Method: zip.Store})
		if err == nil {
			_, err = w.Write(text)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}

	// What the proxy says about the version.
	for name, text := range map[string]string{"list": released + "\n", released + ".info": string(info), released + ".mod": string(mod)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
