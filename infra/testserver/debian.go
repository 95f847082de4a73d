package testserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
)

// debianProgram returns the path of a program of a Debian package.
func debianProgram(ctx context.Context, program, pack string) (string, error) {
	return installed(ctx, pack, func() (string, error) {
		if path, err := exec.LookPath(program); err == nil {
			return path, nil
		}
		// Debian keeps servers where a user's path does not lead.
		if path := "/usr/sbin/" + program; present(path) {
			return path, nil
		}
		return "", errors.New("no " + program + " in PATH or /usr/sbin")
	})
}

// installed returns what find finds, and installs a Debian package before if that
// is missing and we may. Of several processes at once, one installs and the others
// wait.
func installed(ctx context.Context, pack string, find func() (string, error)) (string, error) {
	path, err := find()
	if err == nil || os.Geteuid() != 0 {
		return path, err
	}
	// There is one lock for all packages: apt-get runs once at a time.
	cache, err := cacheFolder("debian")
	if err != nil {
		return "", err
	}
	unlock, err := lockFolder(ctx, cache)
	if err != nil {
		return "", err
	}
	defer unlock()
	if path, err := find(); err == nil {
		return path, nil
	}
	if err := aptInstall(ctx, pack); err != nil {
		return "", err
	}
	return find()
}

// aptInstall installs a package of Debian. The caller has a lock.
func aptInstall(ctx context.Context, pack string) error {
	for _, args := range [][]string{
		{"update", "-qq"},
		{"install", "-y", "-qq", "--no-install-recommends", pack},
	} {
		cmd := exec.CommandContext(ctx, "apt-get", args...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("apt-get %s: %w: %s", args[0], err, out)
		}
	}
	return nil
}
