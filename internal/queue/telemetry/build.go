package telemetry

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// Facts set at a build that the toolchain cannot know, a container image above all:
// -ldflags "-X github.com/basetensor/basetensor/internal/queue/telemetry.release=v1.2.3 -X
// …/internal/queue/telemetry.revision=…". Where these are empty the build information of the Go toolchain
// is used.
var release, revision string

// Build says which program this is.
type Build struct {
	Version  string // the release, or the version of the module; "devel" where neither is known
	Revision string // of the version control, with "+dirty" where the tree had changes; "unknown" where the build has none
	Go       string // version of the toolchain
}

// ThisBuild returns the build information of the running program.
var ThisBuild = sync.OnceValue(func() Build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{GoVersion: runtime.Version()}
	}
	return buildOf(info, release, revision)
})

// buildOf returns a description of the program from the toolchain's build information. release and revision, which may
// be set at a build, take precedence if they are not "".
func buildOf(info *debug.BuildInfo, release, revision string) Build {
	b := Build{Version: strings.Trim(info.Main.Version, "()"), Revision: "unknown", Go: info.GoVersion}
	if release != "" {
		b.Version = release
	}
	if b.Version == "" {
		b.Version = "devel"
	}
	dirty := ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision" && s.Value != "":
			b.Revision = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "+dirty"
		}
	}
	switch {
	case revision != "":
		b.Revision = revision
	case b.Revision != "unknown":
		b.Revision += dirty
	}
	return b
}

// String returns the text that --version prints after the program's name.
func (b Build) String() string {
	return fmt.Sprintf("%s (revision %s, %s)", b.Version, b.Revision, b.Go)
}

// BuildInfo returns the metric basetensor_build_info. Its value is always 1, and its labels say which program this is.
func BuildInfo() prometheus.Collector {
	b := ThisBuild()
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: "basetensor", Name: "build_info", Help: "1; the labels say which program this is.",
		ConstLabels: prometheus.Labels{"version": b.Version, "revision": b.Revision, "goversion": b.Go},
	}, func() float64 { return 1 })
}
