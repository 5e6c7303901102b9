package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/basetensor/basetensor/internal/doors/config"
	"github.com/basetensor/basetensor/internal/people/console"
	"github.com/basetensor/basetensor/lab/bench"
	"github.com/basetensor/basetensor/lab/chart"
	"github.com/basetensor/basetensor/pkg/fault"
)

type benchCmd struct {
	Folder   string        `arg:"" optional:"" help:"${bench_folder}"`
	Timeout  time.Duration `help:"Kill runs that take longer; 0: never." default:"60s" placeholder:"D"`
	Memory   config.Size   `help:"Memory for tables." default:"2GiB" placeholder:"SIZE"`
	Filter   []string      `help:"${bench_filter}" placeholder:"GLOB"`
	Method   string        `help:"As of infer." enum:"auto,exact,symmetry-cp" default:"exact"`
	Threads  int           `help:"Threads of one contraction; 0: all processors." default:"0"`
	Mar      bool          `help:"Ask for marginals and compare them as well."`
	CPU      time.Duration `name:"cpu" help:"${bench_cpu}" placeholder:"D"`
	Formulas bool          `help:"${bench_formulas}"`
	Compare  []string      `help:"CSV file of an earlier run, to be drawn in the same plot; repeat it for more." placeholder:"FILE"`
	Redraw   string        `help:"${bench_redraw}" placeholder:"FILE"`
	BTN      string        `name:"btn" help:"${bench_btn}" placeholder:"FILE"`
	Out      string        `help:"Folder for the results." default:"bench" placeholder:"DIR"`
	Name     string        `help:"${bench_name}" placeholder:"NAME"`
}

// Validate refuses values that the flag types let through; kong calls it.
func (c *benchCmd) Validate() error {
	switch {
	case (c.Folder == "") == (c.Redraw == ""):
		return errors.New("either a folder of models or --redraw is needed")
	case c.CPU < 0:
		return fmt.Errorf("--cpu must not be negative, not %s", c.CPU)
	case c.Timeout < 0:
		return fmt.Errorf("--timeout must not be negative, not %s", c.Timeout)
	case c.Threads < 0:
		return fmt.Errorf("--threads must not be negative, not %d", c.Threads)
	case c.Name != filepath.Base(c.Name) && c.Name != "" || c.Name == "." || c.Name == "..":
		return fmt.Errorf("--name %q is no plain file name", c.Name)
	}
	return nil
}

// Run measures every model in a process of its own, prints a line for each as it ends, and writes
// the files. An interrupt keeps the results until then. The exit code is 0 if all models were
// solved.
func (c *benchCmd) Run(ctx context.Context, t *console.Terminal) error {
	if c.Redraw != "" {
		return c.redraw(t)
	}
	models, err := bench.Find(c.Folder, c.Filter, c.Formulas)
	if err != nil {
		return err
	}

	others, err := c.compared()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(c.Out, 0o755); err != nil { // before hours of measuring, not after
		return fault.Wrap(fault.BadInput, err)
	}

	program, err := answerer(ctx, c.BTN)
	if err != nil {
		return err
	}
	settings := bench.Config{
		Command:  c.command(program),
		Timeout:  c.Timeout,
		CPU:      c.CPU,
		Mar:      c.Mar,
		Formulas: c.Formulas,
		Set:      c.Method,
		Folder:   filepath.Clean(c.Folder),
	}
	table := bench.NewTable(models, c.Mar, c.Formulas)
	fmt.Fprintln(t.Out, table.Head())
	machine, start := bench.ThisMachine(), time.Now()
	rows, interrupted := bench.Run(ctx, settings, models, func(r bench.Row) { fmt.Fprintln(t.Out, table.Line(r)) })
	fmt.Fprintf(t.Out, "\n%s\n", bench.Summary(rows))
	series := append(bench.SeriesOf(rows, c.Method, c.clock()), others...)
	page := bench.Page{
		Title: c.title(), Machine: machine, Measured: start, Command: c.typed(),
		Models: len(models), Mar: c.Mar,
		Compared: others, Formulas: c.Formulas,
	}
	if c.CPU > 0 {
		page.Within = withinSeconds
	}
	if err := c.write(page, rows, series); err != nil {
		return errors.Join(interrupted, err)
	}

	fmt.Fprintf(t.Out, "written to %s\n", c.Out)
	if interrupted != nil {
		return interrupted
	}
	for _, r := range rows {
		if !r.Status.Solved() {
			return console.Exit(config.ExitFailedEstimate)
		}
	}
	return nil
}

// withinSeconds are the seconds of CPU time for which the page counts the solved models.
var withinSeconds = []int{1, 5, 20, 60}

// clock is which time is drawn, and limit where it ends.
func (c *benchCmd) clock() bench.Clock {
	if c.CPU > 0 {
		return bench.CPU
	}
	return bench.Wall
}

func (c *benchCmd) limit() float64 {
	if c.CPU > 0 {
		return c.CPU.Seconds()
	}
	return c.Timeout.Seconds()
}

// source is the package of btn, for which go.mod has a replacement by the folder above.
const source = "github.com/basetensor/basetensor/cmd/btn"

// answerer returns the path of the btn that answers, the given one if there is one. In the laboratory's folder, where `go run` runs
// this program, go builds it.
func answerer(ctx context.Context, given string) (string, error) {
	if given != "" {
		path, err := exec.LookPath(given)
		return path, fault.Wrap(fault.BadInput, err)
	}
	self, err := os.Executable()
	if err != nil {
		return "", fault.Wrap(fault.Infrastructure, err)
	}
	if beside, err := exec.LookPath(filepath.Join(filepath.Dir(self), "btn")); err == nil {
		return beside, nil
	}

	built, err := exec.CommandContext(ctx, "go", "tool", "-n", source).Output()
	if err != nil {
		return "", fault.New(fault.BadInput,
			"there is no btn beside %s, and go builds none here (%w): --btn says where it is", self, err)
	}
	return strings.TrimSpace(string(built)), nil
}

// command is how one model is answered; its path is appended.
func (c *benchCmd) command(program string) []string {
	args := []string{program, "infer", "--json", "--method=" + c.Method,
		"--memory=" + strconv.FormatInt(int64(c.Memory), 10) + "B",
		"--threads=" + strconv.Itoa(c.Threads)}
	if c.Mar {
		args = append(args, "--mar")
	}
	return append(args, "--")
}

// typed is the command line that measures the same again. Folders with a place on this machine only
// are left out.
func (c *benchCmd) typed() string {
	args := []string{
		"btnlab", "bench", "FOLDER", "--method", c.Method, "--timeout", c.Timeout.String(), "--memory",
		strings.ReplaceAll(c.Memory.String(), " ", ""),
	}
	add := func(flag string, values ...string) {
		for _, v := range values {
			args = append(args, flag, v)
		}
	}
	for _, f := range c.Filter {
		add("--filter", "'"+f+"'")
	}

	if c.Threads > 0 {
		add("--threads", strconv.Itoa(c.Threads))
	}
	if c.Mar {
		args = append(args, "--mar")
	}
	if c.CPU > 0 {
		add("--cpu", c.CPU.String())
	}
	if c.Formulas {
		args = append(args, "--formulas")
	}
	for _, f := range c.Compare {
		if filepath.IsLocal(f) {
			add("--compare", f)
		}
	}

	if filepath.IsLocal(c.BTN) {
		add("--btn", c.BTN)
	}
	if filepath.IsLocal(c.Out) {
		add("--out", c.Out)
	}
	if c.Name != "" {
		add("--name", c.Name)
	}
	return strings.Join(args, " ")
}

// compared reads the earlier results. A set that has the name of this run's, or of an earlier file's, is distinguished by its file.
func (c *benchCmd) compared() ([]bench.Series, error) {
	var list []bench.Series
	taken := map[string]bool{c.Method: true}
	for _, file := range c.Compare {
		rows, err := results(file)
		if err != nil {
			return nil, err
		}
		for _, s := range bench.SeriesOf(rows, filepath.Base(file), c.clock()) {
			if taken[s.Name] {
				s.Name += " (" + filepath.ToSlash(filepath.Join(filepath.Base(filepath.Dir(file)),
					filepath.Base(file))) + ")"
			}
			taken[s.Name] = true
			list = append(list, s)
		}
	}

	return list, nil
}

// write makes the three files.
func (c *benchCmd) write(page bench.Page, rows []bench.Row, series []bench.Series) error {
	data, text, picture := "results.csv", "results.md", "cactus.svg"
	if c.Name != "" {
		data, text, picture = c.Name+".csv", c.Name+".md", c.Name+".svg"
	}
	page.Data, page.Picture = data, picture
	return errors.Join(
		chart.WriteFile(filepath.Join(c.Out, data), func(w io.Writer) error { return bench.WriteCSV(w, rows) }),
		chart.WriteFile(filepath.Join(c.Out, text), func(w io.Writer) error { return bench.WriteMarkdown(w, page, rows) }),
		c.draw(filepath.Join(c.Out, picture), series))
}

// title is of the page and its picture.
func (c *benchCmd) title() string { return "Benchmark: " + cmp.Or(c.Name, c.Method) }

func (c *benchCmd) draw(file string, series []bench.Series) error {
	return chart.WriteFile(file, func(w io.Writer) error {
		return bench.WriteSVG(w, c.title(), series, c.clock(), c.limit())
	})
}

// redraw draws the plot of an earlier run, with those that it is compared with.
func (c *benchCmd) redraw(t *console.Terminal) error {
	others, err := c.compared()
	if err != nil {
		return err
	}
	rows, err := results(c.Redraw)
	if err != nil {
		return err
	}
	file := strings.TrimSuffix(c.Redraw, filepath.Ext(c.Redraw)) + ".svg"
	if err := c.draw(file, append(bench.SeriesOf(rows, c.Method, c.clock()), others...)); err != nil {
		return err
	}
	fmt.Fprintf(t.Out, "%s drawn\n", file)
	return nil
}

// results reads the CSV file of an earlier run.
func results(file string) ([]bench.Row, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fault.Wrap(fault.BadInput, err)
	}
	defer f.Close()
	rows, err := bench.ReadCSV(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return rows, nil
}
