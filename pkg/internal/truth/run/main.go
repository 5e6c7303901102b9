// Run compares answers with the truth: so many wild and so many tame models at random, by every method, against enumeration
// in exact arithmetic. It prints counts and every violation with a minimised reproducer, and fails on any.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/basetensor/basetensor/pkg/internal/truth"
)

func main() {
	seed := flag.Uint64("seed", 1, "of the models")
	wild := flag.Uint64("wild", 20_000, "models with numbers far apart")
	tame := flag.Uint64("tame", 20_000, "models with ordinary numbers")
	folder := flag.String("out", "", "folder for reproducers (default: a temporary one)")
	flag.Parse()

	s := &truth.Session{Out: os.Stdout, Workers: runtime.GOMAXPROCS(0), Limits: truth.DefaultLimits}
	if flag.NArg() > 0 {
		os.Exit(again(s, flag.Args()))
	}
	s.Reproduce = "go run ./pkg/internal/truth/run"
	if err := prepare(s, *folder); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Printf("seed %d, reproducers in %s\n", *seed, s.Folder)

	violations := 0
	for _, part := range []struct {
		profile truth.Profile
		n       uint64
	}{{truth.Wild, *wild}, {truth.Tame, *tame}} {
		start := time.Now()
		sum := s.Cases(part.n, func(i uint64) *truth.Case { return truth.Draw(part.profile, *seed, i) })
		fmt.Printf("%s, seed %d, %.0f s:\n", part.profile, *seed, time.Since(start).Seconds())
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

// again runs reproducers, prints their answers, and returns the exit code.
func again(s *truth.Session, paths []string) int {
	code := 0
	for _, path := range paths {
		c, err := truth.Load(path)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		o := truth.Run(c, s.Limits)
		text, _ := json.MarshalIndent(o.Results, "", "  ")
		fmt.Printf("%s: error %v, %v\n%s\n", c.Name, o.Err, o.Took, text)
		t := truth.Solve(c.Model, c.Queries)
		for q := range t {
			fmt.Printf("query %d: truth ln Z = %v, ratio %v\n", q, t[q].LnZ, t[q].LnRatio)
		}
		for _, v := range truth.Check(c, t, o) {
			fmt.Printf("query %d: %s: %s\n", v.Query, v.Class, v.Detail)
			code = 1
		}
	}
	return code
}
