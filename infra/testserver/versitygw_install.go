package testserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"time"

	"penstock/infra/clock"
)

// installPatience is how long a build of a server may take, together with
// waiting for another process that builds the same.
const installPatience = 8 * time.Minute

// install returns the path of a Go program in the user's cache, and builds it
// there before if it is missing. Of several processes at once, one builds and
// the others wait.
func install(ctx context.Context, module, version string) (string, error) {
	name := path.Base(module)
	cache, err := cacheFolder(name + "-" + version)
	if err != nil {
		return "", err
	}
	program := filepath.Join(cache, name)
	if present(program) {
		return program, nil
	}
	unlock, err := lockFolder(ctx, cache)
	if err != nil {
		return "", err
	}
	defer unlock()
	if present(program) {
		return program, nil
	}
	// It is built aside and renamed, so that a build that was cut off leaves
	// nothing that looks whole.
	aside, err := os.MkdirTemp(cache, "build-")
	if err != nil {
		return "", fmt.Errorf("install %s: %w", name, err)
	}
	defer func() { _ = os.RemoveAll(aside) }()
	cmd := exec.CommandContext(ctx, "go", "install", module+"@"+version)
	// Outside of any module, and without this one's flags: -mod=vendor or
	// -race would make go install refuse or build something else.
	cmd.Dir = aside
	cmd.Env = append(os.Environ(), "GOBIN="+aside, "GOFLAGS=", "GOWORK=off", "GO111MODULE=on", "GOOS=", "GOARCH=")
	cmd.WaitDelay = time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go install %s@%s: %w: %s", module, version, err, strings.TrimSpace(string(out)))
	}
	if err := os.Rename(filepath.Join(aside, name), program); err != nil {
		return "", fmt.Errorf("install %s: %w", name, err)
	}
	return program, nil
}

func present(program string) bool {
	info, err := os.Stat(program)
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o100 != 0
}

// cacheFolder makes a folder that outlives the test: where the user's cache is,
// or beside the temporary files if there is no such place.
func cacheFolder(name string) (string, error) {
	var failed error
	base, err := os.UserCacheDir()
	for _, dir := range []string{base, os.TempDir()} {
		if dir == "" {
			failed = err
			continue
		}
		folder := filepath.Join(dir, "penstock-test", name)
		if err := os.MkdirAll(folder, 0o755); err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		return folder, nil
	}
	return "", fmt.Errorf("make cache folder: %w", failed)
}

// lockFolder waits until no other process has the folder's lock.
func lockFolder(ctx context.Context, folder string) (unlock func(), err error) {
	f, err := os.OpenFile(filepath.Join(folder, "lock"), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("lock cache folder: %w", err)
	}
	for {
		locked, err := tryLock(f)
		switch {
		case err != nil:
			_ = f.Close()
			return nil, fmt.Errorf("lock cache folder: %w", err)
		case locked:
			return func() { _ = f.Close() }, nil
		}
		if err := clock.System().Sleep(ctx, 50*time.Millisecond); err != nil {
			_ = f.Close()
			return nil, fmt.Errorf("wait for another process that builds: %w", err)
		}
	}
}
