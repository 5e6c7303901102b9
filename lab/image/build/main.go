// Command build writes the container image of the commands as an OCI layout, and its bill of materials beside it.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/basetensor/basetensor/lab/image"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	o := image.Options{}
	flag.StringVar(&o.Source, "source", "..", "folder of the main module")
	flag.StringVar(&o.Version, "version", "devel", "release")
	flag.StringVar(&o.Arch, "arch", runtime.GOARCH, "processor: amd64, arm64, …")
	out := flag.String("out", "../bin/image", "folder that the image is written to; OUT.cdx.json beside it")
	flag.Parse()

	o.Revision = git(o.Source, "rev-parse", "HEAD")
	if git(o.Source, "status", "--porcelain", "--untracked-files=no") != "" {
		o.Revision += "+dirty"
	}
	epoch := os.Getenv("SOURCE_DATE_EPOCH")
	if epoch == "" {
		epoch = git(o.Source, "log", "-1", "--format=%ct")
	}
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil {
		return fmt.Errorf("needs the time of a commit, or SOURCE_DATE_EPOCH: %w", err)
	}
	o.Date = time.Unix(seconds, 0)

	built, materials, err := image.Build(o)
	if err != nil {
		return err
	}
	if err := image.Write(built, o, *out); err != nil {
		return err
	}
	if err := os.WriteFile(*out+".cdx.json", materials, 0o644); err != nil {
		return err
	}
	digest, err := built.Digest()
	if err == nil {
		fmt.Println(digest)
	}
	return err
}

// git returns the output of a git command, or nothing.
func git(dir string, args ...string) string {
	out, _ := exec.Command("git", append([]string{"-C", dir}, args...)...).Output()
	return strings.TrimSpace(string(out))
}
