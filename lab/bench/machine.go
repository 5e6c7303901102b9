// The machine that was measured.

package bench

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/basetensor/basetensor/internal/doors/config"
)

// Machine describes the machine of the figures.
type Machine struct {
	CPU        string // model name, "" where the system does not say
	GOMAXPROCS int
	Memory     int64 // bytes, 0 where the system does not say
	Go         string
	Platform   string // system/architecture
	Load       string // processes that wanted to run in the last minute, "" where the system does not say
}

// ThisMachine describes the machine this runs on, as it is before anything is measured.
func ThisMachine() Machine {
	m := Machine{
		GOMAXPROCS: runtime.GOMAXPROCS(0),
		Go:         runtime.Version(),
		Platform:   runtime.GOOS + "/" + runtime.GOARCH,
	}
	if f, err := os.Open("/proc/cpuinfo"); err == nil {
		m.CPU = value(f, "model name")
		f.Close()
	}
	if f, err := os.Open("/proc/meminfo"); err == nil {
		if kib, err := strconv.ParseInt(strings.TrimSuffix(value(f, "MemTotal"), " kB"), 10, 53); err == nil {
			m.Memory = kib << 10
		}
		f.Close()
	}
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		m.Load, _, _ = strings.Cut(string(text), " ")
	}
	return m
}

// value returns the text behind the first "key : " of a file under /proc.
func value(r io.Reader, key string) string {
	for lines := bufio.NewScanner(r); lines.Scan(); {
		if name, text, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(name) == key {
			return strings.TrimSpace(text)
		}
	}
	return ""
}

// String is one line for a page.
func (m Machine) String() string {
	parts := []string{"processor not known"}
	if m.CPU != "" {
		parts[0] = m.CPU
	}
	parts = append(parts, fmt.Sprintf("GOMAXPROCS %d", m.GOMAXPROCS))
	if m.Memory > 0 {
		parts = append(parts, config.FormatBytes(float64(m.Memory))+" of memory")
	}
	parts = append(parts, m.Go, m.Platform)
	if m.Load != "" {
		parts = append(parts, "load "+m.Load+" before the run")
	}
	return strings.Join(parts, ", ")
}
