package telemetry

import (
	"runtime/debug"
	"testing"
)

func TestBuildOf(t *testing.T) {
	stamped := &debug.BuildInfo{GoVersion: "go1.26.8", Main: debug.Module{Version: "v1.2.0"},
		Settings: []debug.BuildSetting{
			{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.modified", Value: "true"},
		}}
	for _, c := range []struct {
		info              *debug.BuildInfo
		release, revision string
		want              Build
	}{
		{stamped, "", "", Build{"v1.2.0", "abc+dirty", "go1.26.8"}},
		{stamped, "v9", "def", Build{"v9", "def", "go1.26.8"}},
		{&debug.BuildInfo{
			GoVersion: "go1.26.8",
			Main:      debug.Module{Version: "(devel)"},
		}, "", "", Build{"devel", "unknown", "go1.26.8"}},
		{&debug.BuildInfo{GoVersion: "go1.26.8"}, "", "", Build{"devel", "unknown", "go1.26.8"}},
	} {
		if got := buildOf(c.info, c.release, c.revision); got != c.want {
			t.Errorf("got %+v, want %+v", got, c.want)
		}
	}
}
