package testserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// S3Program is a command-line client of S3 servers that nobody here wrote, from a Debian
// package. Each call runs it once, and tries a request once: what a server answers is
// seen. Its errors have what the program said.
type S3Program struct {
	// Name of the program, for the names of tests.
	Name string

	path string
	env  []string
	args []string // before all others
	words
}

// words are how a program is told what to do.
type words struct {
	makeBucket, remove func(at string) []string
	put                func(file, at string, part int) []string // part bytes, 0: in one request
	get                func(at, file string) []string
	section            func(at string, off, n int64) []string // nil: it can't
	list               func(at string) []string
	listed             func(out []byte, bucket string) ([]Listed, error)
	address            func(bucket, key string) string
}

// Listed is an object in a listing.
type Listed struct {
	Key   string
	Bytes int64
}

// MinPart is the least size of a part that S3 servers take, and that these programs send.
const MinPart = 5 << 20

// programTimeout bounds one call, of 1 GB on a loaded machine.
const programTimeout = 15 * time.Minute

// S3Programs are all there are, for a server whose Endpoint, Region and keys are set.
func S3Programs(t testing.TB, s S3) []*S3Program {
	t.Helper()
	return []*S3Program{Rclone(t, s), S3cmd(t, s)}
}

// Rclone is rclone, which stands on the AWS SDK for Go v1. Where it can't be had the test
// fails.
func Rclone(t testing.TB, s S3) *S3Program {
	t.Helper()
	p := programOf(t, "rclone", "rclone")
	conf := filepath.Join(t.TempDir(), "rclone.conf")
	if err := writeFile(conf, ""); err != nil {
		t.Fatalf("rclone: %v", err)
	}
	p.env = []string{
		"RCLONE_CONFIG=" + conf, "RCLONE_CONFIG_S_TYPE=s3", "RCLONE_CONFIG_S_PROVIDER=Other",
		"RCLONE_CONFIG_S_ENDPOINT=" + s.Endpoint, "RCLONE_CONFIG_S_REGION=" + s.Region,
		"RCLONE_CONFIG_S_ACCESS_KEY_ID=" + s.AccessKey, "RCLONE_CONFIG_S_SECRET_ACCESS_KEY=" + s.SecretKey,
		"RCLONE_CONFIG_S_NO_CHECK_BUCKET=true",
	}
	// It is told to do everything anew, which it leaves out where size and time agree.
	p.args = []string{"--retries=1", "--low-level-retries=1", "--no-check-certificate", "--ignore-times"}
	p.words = words{
		address:    func(bucket, key string) string { return "S:" + bucket + "/" + key },
		makeBucket: func(at string) []string { return []string{"--s3-no-check-bucket=false", "mkdir", at} },
		remove:     func(at string) []string { return []string{"deletefile", at} },
		put: func(file, at string, part int) []string {
			args := []string{"copyto", file, at, "--s3-upload-cutoff=5Gi"}
			if part > 0 {
				args[3] = "--s3-upload-cutoff=0"
				args = append(args, fmt.Sprintf("--s3-chunk-size=%dB", part))
			}
			return args
		},
		get: func(at, file string) []string { return []string{"copyto", at, file} },
		section: func(at string, off, n int64) []string {
			return []string{"cat", at, fmt.Sprintf("--offset=%d", off), fmt.Sprintf("--count=%d", n)}
		},
		list: func(at string) []string { return []string{"lsjson", "--recursive", "--files-only", at} },
		listed: func(out []byte, _ string) ([]Listed, error) {
			var found []struct {
				Path string
				Size int64
			}
			if err := json.Unmarshal(out, &found); err != nil {
				return nil, err
			}
			var all []Listed
			for _, f := range found {
				all = append(all, Listed{f.Path, f.Size})
			}
			return all, nil
		},
	}
	return p
}

// s3cmdConf is a configuration of s3cmd. A bucket host without the bucket has it put the
// bucket into the path.
const s3cmdConf = `[default]
access_key = %s
secret_key = %s
host_base = %s
host_bucket = %[3]s
bucket_location = %s
use_https = %s
check_ssl_certificate = False
max_retries = 1
guess_mime_type = False
progress_meter = False
`

// S3cmd is s3cmd, whose protocol and signatures are its own. It reads no ranges. Where it
// can't be had the test fails.
func S3cmd(t testing.TB, s S3) *S3Program {
	t.Helper()
	p := programOf(t, "s3cmd", "s3cmd")
	conf := filepath.Join(t.TempDir(), "s3cfg")
	scheme, host, _ := strings.Cut(s.Endpoint, "://")
	secure := "False"
	if scheme == "https" {
		secure = "True"
	}
	text := fmt.Sprintf(s3cmdConf, s.AccessKey, s.SecretKey, host, s.Region, secure)
	if err := writeFile(conf, text); err != nil {
		t.Fatalf("s3cmd: %v", err)
	}
	p.args = []string{"--config=" + conf}
	p.words = words{
		address:    func(bucket, key string) string { return "s3://" + bucket + "/" + key },
		makeBucket: func(at string) []string { return []string{"mb", at} },
		remove:     func(at string) []string { return []string{"del", at} },
		put: func(file, at string, part int) []string {
			if part > 0 {
				return []string{"put", fmt.Sprintf("--multipart-chunk-size-mb=%d", part>>20), file, at}
			}
			return []string{"put", "--disable-multipart", file, at}
		},
		get:  func(at, file string) []string { return []string{"get", "--force", at, file} },
		list: func(at string) []string { return []string{"ls", "--recursive", at} },
		listed: func(out []byte, bucket string) ([]Listed, error) {
			var all []Listed
			for line := range strings.Lines(string(out)) {
				// 2026-11-30 16:38           12  s3://bucket/key with spaces
				before, key, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "s3://"+bucket+"/")
				fields := strings.Fields(before)
				if !ok || len(fields) != 3 {
					return nil, fmt.Errorf("a line %q", line)
				}
				size, err := strconv.ParseInt(fields[2], 10, 64)
				if err != nil {
					return nil, err
				}
				all = append(all, Listed{key, size})
			}
			return all, nil
		},
	}
	return p
}

func programOf(t testing.TB, name, pack string) *S3Program {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), programPatience)
	defer cancel()
	path, err := debianProgram(ctx, name, pack)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return &S3Program{Name: name, path: path}
}

// MakeBucket makes a bucket.
func (p *S3Program) MakeBucket(ctx context.Context, bucket string) error {
	_, err := p.run(ctx, p.makeBucket(p.address(bucket, "")))
	return err
}

// Put stores a file, in one request.
func (p *S3Program) Put(ctx context.Context, bucket, key, file string) error {
	_, err := p.run(ctx, p.put(file, p.address(bucket, key), 0))
	return err
}

// PutParts stores a file as a multipart upload in parts of so many bytes, a multiple of 1
// MiB and at least MinPart.
func (p *S3Program) PutParts(ctx context.Context, bucket, key, file string, part int) error {
	_, err := p.run(ctx, p.put(file, p.address(bucket, key), part))
	return err
}

// Get writes an object to a file, which is replaced.
func (p *S3Program) Get(ctx context.Context, bucket, key, file string) error {
	if err := os.RemoveAll(file); err != nil {
		return fmt.Errorf("%s get: %w", p.Name, err)
	}
	if _, err := p.run(ctx, p.get(p.address(bucket, key), file)); err != nil {
		return err
	}
	// rclone takes an object that isn't there for a folder with nothing in it.
	if _, err := os.Stat(file); err != nil {
		return fmt.Errorf("%s get: nothing came: %w", p.Name, err)
	}
	return nil
}

// Range reads n bytes from byte off on. errors.ErrUnsupported if the program can't.
func (p *S3Program) Range(ctx context.Context, bucket, key string, off, n int64) ([]byte, error) {
	if p.section == nil {
		return nil, fmt.Errorf("%s: ranges: %w", p.Name, errors.ErrUnsupported)
	}
	return p.run(ctx, p.section(p.address(bucket, key), off, n))
}

// List lists all objects of a bucket.
func (p *S3Program) List(ctx context.Context, bucket string) ([]Listed, error) {
	out, err := p.run(ctx, p.list(p.address(bucket, "")))
	if err != nil {
		return nil, err
	}
	all, err := p.listed(out, bucket)
	if err != nil {
		return nil, fmt.Errorf("%s: listing: %w: %s", p.Name, err, out)
	}
	return all, nil
}

// Delete deletes an object.
func (p *S3Program) Delete(ctx context.Context, bucket, key string) error {
	_, err := p.run(ctx, p.remove(p.address(bucket, key)))
	return err
}

func (p *S3Program) run(ctx context.Context, args []string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, programTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, p.path, append(append([]string(nil), p.args...), args...)...)
	// Without what the machine says of other services than the test's.
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "AWS_") || strings.HasPrefix(v, "RCLONE_")
	}), p.env...)
	cmd.WaitDelay = time.Second
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s %s: %w: %s", p.Name, args[0], err, bytes.TrimSpace(said.Bytes()))
	}
	return out.Bytes(), nil
}
