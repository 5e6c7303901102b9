// Run compares answers with the truth: so many wild and so many tame models at random, by every
// method, against enumeration in exact arithmetic. It prints counts and every violation with a
// minimised reproducer, and fails on any.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/basetensor/basetensor/internal/testing/modeltest"
	"github.com/basetensor/basetensor/internal/testing/truth"
)

// main runs cases until there are enough and prints their results.
func main() {
	seed := flag.Uint64("seed", 1, "of the models")
	wild := flag.Uint64("wild", 20_000, "models with numbers far apart")
	tame := flag.Uint64("tame", 20_000, "models with ordinary numbers")
	structured := flag.Uint64("structured", 300, "larger models whose truth is known by their structure")
	family := flag.String("family", "", "of the larger models: that one alone, and no others ("+strings.Join(truth.Families, ", ")+")")
	folder := flag.String("out", "", "folder for reproducers (default: a temporary one)")
	flag.Parse()

	s := &truth.Session{Out: os.Stdout, Workers: runtime.GOMAXPROCS(0), Limits: truth.DefaultLimits}
	if flag.NArg() > 0 {
		os.Exit(again(s, flag.Args()))
	}
	s.Reproduce = "go run ./internal/testing/truth/run"
	if err := prepare(s, *folder); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Printf("seed %d, reproducers in %s\n", *seed, s.Folder)

	drawn := truth.Structured(*seed)
	if *family != "" {
		if drawn = truth.OfFamily(*seed, *family); drawn == nil {
			fmt.Fprintf(os.Stderr, "no family %q: there are %s\n", *family, strings.Join(truth.Families, ", "))
			os.Exit(2)
		}
		*wild, *tame = 0, 0
	}

	violations := 0
	for _, part := range []struct {
		name string
		n    uint64
		draw truth.Source
	}{
		{"structured", *structured, drawn},
		{"wild", *wild, truth.Random(modeltest.Wild, *seed)},
		{"tame", *tame, truth.Random(modeltest.Tame, *seed)},
	} {
		start := time.Now()
		sum := &truth.Tally{}
		s.Cases(part.n, part.draw, sum)
		fmt.Printf("%s, seed %d, %.0f s:\n", part.name, *seed, time.Since(start).Seconds())
		sum.Print(os.Stdout)
		violations += sum.Total()
	}

	if violations > 0 {
		fmt.Printf("%d violations; reproducers in %s\n", violations, s.Folder)
		os.Exit(1)
	}
}

// prepare makes the folder for reproducers.
func prepare(s *truth.Session, folder string) (err error) {
	if s.Folder = folder; folder != "" {
		return os.MkdirAll(folder, 0o755)
	}
	s.Folder, err = os.MkdirTemp("", "truth-")
	return err
}

// again runs cases, by the names of their files or as they were drawn, prints their answers, and
// returns the exit code.
func again(s *truth.Session, names []string) int {
	code := 0
	for _, name := range names {
		c, known, err := find(name)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}

		o := truth.Run(c, s.Limits)
		text, err := json.MarshalIndent(o.Results, "", "  ")
		if err != nil {
			text = fmt.Appendf(nil, "%v: %+v", err, o.Results)
		}
		fmt.Printf("%s: error %v, %v\n%s\n", c.Name, o.Err, o.Took, text)
		if known == nil {
			known = truth.Solve(c.Model, c.Queries)
		}
		for q := range known {
			fmt.Printf("query %d: truth ln Z = %v, ratio %v\n", q, known[q].LnZ, known[q].LnRatio)
		}

		for _, v := range truth.Check(c, known, o) {
			fmt.Printf("query %d: %s: %s\n", v.Query, v.Class, v.Detail)
			code = 1
		}
	}

	return code
}

// find reads a reproducer, or draws the case of a name.
func find(name string) (*truth.Case, []truth.Truth, error) {
	if strings.HasSuffix(name, ".json") {
		c, err := truth.Load(name)
		return c, nil, err
	}
	return truth.Named(name)
}
