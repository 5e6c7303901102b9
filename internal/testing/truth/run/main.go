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

// main runs the cases that its arguments name, or else random cases of three kinds, and prints counts and violations. The exit code is 1 if
// there are violations.
func main() {
	seed := flag.Uint64("seed", 1, "of the models")
	wild := flag.Uint64("wild", 20_000, "models with numbers far apart")
	tame := flag.Uint64("tame", 20_000, "models with ordinary numbers")
	structured := flag.Uint64("structured", 300, "larger models whose truth is known by their structure")
	family := flag.String("family", "", "of the larger models: that one alone, and no others ("+strings.Join(truth.Families, ", ")+")")
	folder := flag.String("out", "", "folder for reproducers (default: a temporary one)")
	flag.Parse()

	// The cases of the arguments.
	s := &truth.Session{Out: os.Stdout, Workers: runtime.GOMAXPROCS(0), Limits: truth.DefaultLimits}
	if flag.NArg() > 0 {
		os.Exit(runNamed(s, flag.Args()))
	}

	s.Reproduce = "go run ./internal/testing/truth/run"
	if err := makeFolder(s, *folder); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Printf("seed %d, reproducers in %s\n", *seed, s.Folder)

	// The source of the larger models: all families or a single one.
	structuredSource := truth.Structured(*seed)
	if *family != "" {
		if structuredSource = truth.OfFamily(*seed, *family); structuredSource == nil {
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
		{"structured", *structured, structuredSource},
		{"wild", *wild, truth.Random(modeltest.Wild, *seed)},
		{"tame", *tame, truth.Random(modeltest.Tame, *seed)},
	} {
		start := time.Now()
		tally := &truth.Tally{}
		s.RunCases(part.n, part.draw, tally)
		fmt.Printf("%s, seed %d, %.0f s:\n", part.name, *seed, time.Since(start).Seconds())
		tally.Print(os.Stdout)
		violations += tally.Total()
	}

	if violations > 0 {
		fmt.Printf("%d violations; reproducers in %s\n", violations, s.Folder)
		os.Exit(1)
	}
}

// makeFolder makes the folder for the reproducers of a session, a temporary one if folder is empty.
func makeFolder(s *truth.Session, folder string) (err error) {
	if s.Folder = folder; folder != "" {
		return os.MkdirAll(folder, 0o755)
	}
	s.Folder, err = os.MkdirTemp("", "truth-")
	return err
}

// runNamed runs cases and prints their answers, the truth and violations. A name is the path of a reproducer, or the name of a case that
// was drawn. It returns the exit code: 1 if there is a violation.
func runNamed(s *truth.Session, names []string) int {
	code := 0
	for _, name := range names {
		c, answers, err := findCase(name)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}

		// What the product answers.
		o := truth.Run(c, s.Limits)
		text, err := json.MarshalIndent(o.Results, "", "  ")
		if err != nil {
			text = fmt.Appendf(nil, "%v: %+v", err, o.Results)
		}
		fmt.Printf("%s: error %v, %v\n%s\n", c.Name, o.Err, o.Took, text)

		// What is true.
		if answers == nil {
			answers = truth.Solve(c.Model, c.Queries)
		}
		for q := range answers {
			fmt.Printf("query %d: truth ln Z = %v, ratio %v\n", q, answers[q].LnZ, answers[q].LnRatio)
		}

		for _, v := range truth.Check(c, answers, o) {
			fmt.Printf("query %d: %s: %s\n", v.Query, v.Class, v.Detail)
			code = 1
		}
	}

	return code
}

// findCase reads a reproducer if name ends in .json, and otherwise draws the case of this name. The truth is nil if it is to be found by
// enumeration.
func findCase(name string) (*truth.Case, []truth.Truth, error) {
	if strings.HasSuffix(name, ".json") {
		c, err := truth.Load(name)
		return c, nil, err
	}
	return truth.Named(name)
}
