// Package image makes the container image of the commands without a container engine: static programs, certificates of
// authorities, a list of their modules, and nothing else. The same sources, date and Go version give the same digest.
package image

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// User is the user of the commands in the image: one that no machine knows.
const User = "65532:65532"

// Paths in the image.
const (
	Programs     = "usr/local/bin/"
	Certificates = "etc/ssl/certs/ca-certificates.crt"
	Materials    = "usr/share/basetensor/sbom.cdx.json"
)

// Options hold the settings of an image.
type Options struct {
	Source            string    // folder of the main module
	Version, Revision string    // of --version and the labels
	Date              time.Time // of everything in the image
	Arch              string    // GOARCH
}

const telemetry = "github.com/basetensor/basetensor/internal/queue/telemetry"

// Compile builds the commands into a folder, static and without a word of where.
func Compile(o Options, dir string) error {
	flags := fmt.Sprintf("-s -w -buildid= -X %s.release=%s -X %s.revision=%s", telemetry, o.Version, telemetry, o.Revision)
	cmd := exec.Command("go", "build", "-C", o.Source, "-trimpath", "-buildvcs=false", "-ldflags", flags, "-o", dir+"/", "./cmd/...")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+o.Arch, "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("image: go build: %w\n%s", err, out)
	}
	return nil
}

// Build compiles the commands and returns the image and its bill of materials.
func Build(o Options) (v1.Image, []byte, error) {
	dir, err := os.MkdirTemp("", "basetensor-image-")
	if err != nil {
		return nil, nil, err
	}
	defer os.RemoveAll(dir)
	if err := Compile(o, dir); err != nil {
		return nil, nil, err
	}
	materials, err := BillOfMaterials(o, dir)
	if err != nil {
		return nil, nil, err
	}
	programs := map[string][]byte{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, err
	}
	for _, e := range entries {
		if programs[Programs+e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name())); err != nil {
			return nil, nil, err
		}
	}
	image, err := assemble(o, []files{
		{0o644, map[string][]byte{
			Certificates: authorities(),
			Materials:    materials,
			"etc/passwd": []byte("basetensor:x:65532:65532::/nonexistent:/nonexistent\n"),
		}},
		{0o755, programs},
	})
	return image, materials, err
}

// files are the files of a layer.
type files struct {
	mode  int64
	bytes map[string][]byte
}

// assemble makes the image out of its layers.
func assemble(o Options, layers []files) (image v1.Image, err error) {
	image = mutate.MediaType(empty.Image, types.OCIManifestSchema1)
	image = mutate.ConfigMediaType(image, types.OCIConfigJSON)
	labels := map[string]string{
		"org.opencontainers.image.title":       "basetensor",
		"org.opencontainers.image.description": "Inference on discrete graphical models, as stages on NATS.",
		"org.opencontainers.image.version":     o.Version,
		"org.opencontainers.image.revision":    o.Revision,
		"org.opencontainers.image.created":     o.Date.UTC().Format(time.RFC3339),
	}
	image, err = mutate.ConfigFile(image, &v1.ConfigFile{
		OS: "linux", Architecture: o.Arch, Created: v1.Time{Time: o.Date.UTC()},
		Config: v1.Config{
			User: User, Entrypoint: []string{"/" + Programs + "btn"}, Labels: labels,
			Env: []string{"PATH=/" + strings.TrimSuffix(Programs, "/")},
		},
		RootFS: v1.RootFS{Type: "layers"},
	})
	if err != nil {
		return nil, err
	}
	for _, l := range layers {
		text, err := l.tar(o.Date)
		if err != nil {
			return nil, err
		}
		open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil }
		layer, err := tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer))
		if err != nil {
			return nil, err
		}
		image, err = mutate.Append(image, mutate.Addendum{Layer: layer, History: v1.History{Created: v1.Time{Time: o.Date.UTC()}}})
		if err != nil {
			return nil, err
		}
	}
	return mutate.Annotations(image, labels).(v1.Image), nil
}

// tar writes the files in order, with the folders above them.
func (f files) tar(date time.Time) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	folders := map[string]bool{}
	var names []string
	for name := range f.bytes {
		names = append(names, name)
		for dir := filepath.Dir(name); dir != "."; dir = filepath.Dir(dir) {
			if !folders[dir] {
				folders[dir] = true
				names = append(names, dir)
			}
		}
	}
	slices.Sort(names)
	for _, name := range names {
		h := &tar.Header{Name: name, Mode: f.mode, ModTime: date, Size: int64(len(f.bytes[name])), Typeflag: tar.TypeReg}
		if folders[name] {
			h.Name, h.Mode, h.Typeflag = name+"/", 0o755, tar.TypeDir
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.bytes[name]); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return out.Bytes(), err
}

// authorities are the certificates that Mozilla trusts without a condition, which a file of certificates could not say.
func authorities() []byte {
	var text bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			pem.Encode(&text, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})
		}
	}
	return text.Bytes()
}

// Write writes the image into a folder of the layout that OCI defines, in place of the old contents.
func Write(image v1.Image, o Options, dir string) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	return path.AppendImage(image,
		layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": o.Version}),
		layout.WithPlatform(v1.Platform{OS: "linux", Architecture: o.Arch}))
}
