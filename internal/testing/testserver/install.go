package testserver

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// Install finds a redis-server, or gets one by apt-get: as root it installs the package, otherwise it calls Unpack. It reports to w. If
// neither is possible, the error says which package to install.
func Install(w io.Writer) error {
	if path, _, err := FindRedis(); err == nil {
		fmt.Fprintf(w, "redis-server: found %s\n", path)
		return nil
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		return fmt.Errorf("%w: no redis-server and no apt-get on this machine; install redis, or "+
			"set BTN_REDIS_SERVER",
			ErrUnavailable)
	}

	// Install it as root; if that fails, once more with current package lists.
	if os.Geteuid() == 0 {
		err := runAptGet(w, "install", "-y", "--no-install-recommends", "redis-server")
		if err != nil {
			if err = runAptGet(w, "update"); err == nil {
				err = runAptGet(w, "install", "-y", "--no-install-recommends", "redis-server")
			}
		}
		if path, lookError := exec.LookPath("redis-server"); err == nil && lookError == nil {
			fmt.Fprintf(w, "redis-server: installed by apt-get, %s\n", path)
			return nil
		}
		fmt.Fprintf(w, "redis-server: apt-get install failed (%v), unpacking instead\n", err)
	}
	return Unpack(w)
}

// runAptGet runs apt-get with these arguments. An error has the end of its output.
func runAptGet(w io.Writer, args ...string) error {
	fmt.Fprintf(w, "redis-server: apt-get %v\n", args)
	cmd := exec.Command("apt-get", args...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("apt-get %v: %w: %s", args, err, out[max(0, len(out)-400):])
	}
	return nil
}

// Unpack downloads Debian's packages of redis-server and its libraries by apt-get, and unpacks them into the user's cache folder. It needs
// no rights and does not change the system.
func Unpack(w io.Writer) error {
	dir, err := cacheFolder()
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "redis-packages")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}

	// Download. redis-server is a link into redis-tools, so both are needed. The libraries have different names in different releases; those
	// that this release does not have are not needed by its redis-server.
	packages := []string{"redis-server", "redis-tools", "libjemalloc2", "liblzf1", "liblua5.1-0",
		"lua-bitop", "lua-cjson",
		"libhiredis0.14", "libhiredis1.1.0", "libatomic1"}
	const required = 2 // of the packages, from the first on
	for i, p := range packages {
		cmd := exec.Command("apt-get", "download", p)
		cmd.Dir = work
		if out, err := cmd.CombinedOutput(); err != nil && i < required {
			return fmt.Errorf("%w: apt-get download %s: %v: %s", ErrUnavailable, p, err, out[max(0, len(out)-400):])
		}
	}

	// Unpack.
	debs, err := filepath.Glob(filepath.Join(work, "*.deb"))
	if err != nil {
		return err
	}
	for _, deb := range debs {
		if out, err := exec.Command("dpkg", "-x", deb, dir).CombinedOutput(); err != nil {
			return fmt.Errorf("%w: dpkg -x %s: %v: %s", ErrUnavailable, filepath.Base(deb), err, out)
		}
	}

	// Does it run?
	path, env := unpackedRedis(dir)
	if !canRun(path, env) {
		cmd := exec.Command(path, "--version")
		cmd.Env = append(os.Environ(), env...)
		out, err := cmd.CombinedOutput()
		return fmt.Errorf("%w: the unpacked %s does not run: %v: %s", ErrUnavailable, path, err, out)
	}
	fmt.Fprintf(w, "redis-server: unpacked %d packages, %s\n", len(debs), path)
	return nil
}

// cacheFolder returns the folder into which Unpack unpacks packages.
func cacheFolder() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("testserver: %w", err)
	}
	return filepath.Join(dir, "basetensor", "redis"), nil
}

// unpackedRedis returns the path of the redis-server in packages that are unpacked into dir, and the environment variable by which it finds
// its libraries.
func unpackedRedis(dir string) (path string, env []string) {
	arch := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH] + "-linux-gnu"
	lib := filepath.Join(dir, "usr", "lib", arch)
	return filepath.Join(dir, "usr", "bin", "redis-server"),
		[]string{"LD_LIBRARY_PATH=" + lib + string(os.PathListSeparator) + filepath.Join(dir, "lib", arch)}
}

// canRun reports whether the program prints its version, which it does not if it or a library is missing.
func canRun(path string, env []string) bool {
	cmd := exec.Command(path, "--version")
	cmd.Env = append(os.Environ(), env...)
	return cmd.Run() == nil
}
