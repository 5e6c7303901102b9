package faults

// Power cuts of all servers at once: their disk, a file system in a file, is set back to what was written to it. Pages that the servers
// had not synced are lost, as the kernel keeps them in memory alone.

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"

	"golang.org/x/sync/errgroup"
)

// powerBytes is the size of the disk, and powerRoom the room of the streams on it.
const (
	powerBytes = 512 << 20
	powerRoom  = 128 << 20
)

// syncLine is the line of the configuration that says how often the servers write to their disk.
var syncLine = regexp.MustCompile(`(?m)^(\s*sync_interval:).*$`)

// image is the file of the servers' disk.
func image(folder string) string { return filepath.Join(folder, "power.img") }

// mountImage mounts a new file system in a file.
func mountImage(folder string) error {
	file, err := os.Create(image(folder))
	if err != nil {
		return err
	}
	if err := errors.Join(file.Truncate(powerBytes), file.Close()); err != nil {
		return err
	}
	if err := run("a file system in a file", exec.Command("mkfs.ext4", "-q", "-F", image(folder))); err != nil {
		return err
	}
	return mountAgain(folder)
}

// mountAgain mounts the disk. The file system commits its journal where it is synced, and every five minutes.
func mountAgain(folder string) error {
	store := filepath.Join(folder, "nats")
	if err := os.MkdirAll(store, 0o755); err != nil {
		return err
	}
	return run("mounting a file is not permitted here", exec.Command("mount", "-o", "loop,commit=300", image(folder), store))
}

// written copies the disk as it is without the pages in memory, again where the kernel wrote some meanwhile.
func written(ctx context.Context, folder string) (copied string, err error) {
	copied = image(folder) + ".cut"
	for ctx.Err() == nil {
		before, err := os.Stat(image(folder))
		if err != nil {
			return "", err
		}
		if err := run("a copy of the disk", exec.CommandContext(ctx, "cp", "--sparse=always", image(folder), copied)); err != nil {
			return "", err
		}
		if after, err := os.Stat(image(folder)); err != nil || after.ModTime().Equal(before.ModTime()) {
			return copied, err
		}
	}
	return "", ctx.Err()
}

// cutPower stops all servers, sets their disk back and starts them again.
func cutPower(ctx context.Context, b *batch) error {
	store := filepath.Join(b.s.folder, "nats")
	b.mu.Lock()
	first := len(b.strikes) == 0
	b.mu.Unlock()
	if first { // a server that loses its configuration, or streams that were just set up, needs a person
		if err := run("the disk cannot be synced", exec.Command("sync", "-f", store)); err != nil {
			return err
		}
	}
	s := b.begin("of %d servers", len(b.s.servers))
	for _, server := range b.s.servers {
		server.Pause()
	}
	cut, err := written(ctx, b.s.folder)
	for _, server := range b.s.servers {
		server.Kill()
	}
	if err != nil {
		return err
	}
	if err := run("the disk cannot be unmounted", exec.Command("umount", store)); err != nil {
		return err
	}
	if err := errors.Join(os.Rename(cut, image(b.s.folder)), mountAgain(b.s.folder)); err != nil {
		return err
	}
	var all errgroup.Group
	for _, server := range b.s.servers {
		all.Go(server.Restart)
	}
	err = b.returned(s, all.Wait())
	if err == nil && b.s.cluster != nil {
		err = b.s.current(ctx)
	}
	return err
}
