package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/rs/zerolog"

	"penstock/infra/testserver"
	"penstock/pipeline/config"
	"penstock/pipeline/topology"
)

// coderConfig is a coder of the layout shared over a folder; the second word is the
// section coding.
const coderConfig = `sites:
  - {name: here, lat: 37.4, lon: -79.8, capacity: 1TB/h}
coding: {%[2]s}
coders:
  - {name: objects, site: here, listen: "127.0.0.1:0", region: us-east-1, keys_file: "%[1]s/keys", stores: [{name: disk, url: "dir:%[1]s/blobs"}]}
privacy: {user_key: "a key of thirty-two bytes or more, for tests"}
telemetry: {listen: "127.0.0.1:0"}
`

const (
	coderAccess = "bench"
	coderSecret = "a-secret-of-this-benchmark"
)

// serveCoder is penstock coder with its state and blobs in a folder, where the file
// "coding" says by which policy.
func serveCoder(ctx context.Context, t *testing.T, folder, nats string) {
	policy, err := os.ReadFile(filepath.Join(folder, "coding"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := config.Read("coder.yaml", fmt.Appendf(nil, coderConfig, folder, policy))
	if err != nil {
		t.Fatal(err)
	}
	x := topology.Coder{Admin: "off", Alone: topology.Alone{
		Config: c, NATS: nats, Name: "bench", State: filepath.Join(folder, "state"), Logger: zerolog.New(os.Stderr).Level(zerolog.ErrorLevel),
		Started: func(address, telemetry string) { fmt.Printf("address %s %s\n", address, telemetry) },
	}}
	if err := x.Run(ctx); err != nil {
		t.Fatal(err)
	}
}

// storage is an S3 server that is measured, as a process of its own.
type storage struct {
	name   string
	core   *minio.Core
	bucket string
	pid    int
	// synced, if set, is where the server keeps the bucket's objects as files: the
	// client of a put waits until the file and its folder are on disk.
	synced string
	// rest waits until the server has nothing left to do.
	rest func(t testing.TB)
}

// startCoder starts a coder by a policy, in a folder of its own on the file system of
// temporary files.
func startCoder(t testing.TB, name, policy, nats string) *storage {
	t.Helper()
	folder := t.TempDir()
	for file, content := range map[string]string{"keys": coderAccess + " " + coderSecret, "coding": policy} {
		if err := os.WriteFile(filepath.Join(folder, file), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := processCommand(t, "coder", folder, nats)
	profiled(cmd, name)
	endpoint, telemetry, _ := strings.Cut(listening(t, cmd), " ")
	s := &storage{
		name: name, pid: cmd.Process.Pid, bucket: "bench", core: s3Client(t, endpoint, coderAccess, coderSecret),
		rest: func(t testing.TB) { journalRan(t, "http://"+telemetry+"/metrics") },
	}
	if err := s.core.MakeBucket(t.Context(), s.bucket, minio.MakeBucketOptions{}); err != nil {
		t.Fatal(err)
	}
	return s
}

// profiled lets a process write a profile of its processor time into the folder that
// PENSTOCK_BENCH_PROFILES names, if it does.
func profiled(cmd *exec.Cmd, name string) {
	if folder := os.Getenv("PENSTOCK_BENCH_PROFILES"); folder != "" {
		cmd.Args = append(cmd.Args, "-test.cpuprofile", filepath.Join(folder, strings.ReplaceAll(name, " ", "-")+".cpu"),
			"-test.memprofile", filepath.Join(folder, strings.ReplaceAll(name, " ", "-")+".mem"), "-test.memprofilerate", "65536")
	}
}

// startGateway is versitygw, twice: as it answers, and with a client that waits until
// the disk has what it put.
func startGateway(t testing.TB) (plain, synced *storage) {
	t.Helper()
	g := testserver.VersityGW(t)
	pid, err := g.PID()
	if err != nil {
		t.Fatal(err)
	}
	one := storage{
		name: "versitygw", pid: pid, bucket: g.Bucket(t), core: s3Client(t, g.Endpoint, g.AccessKey, g.SecretKey), rest: func(testing.TB) {},
	}
	two := one
	two.name, two.bucket = "versitygw, then synced", g.Bucket(t)
	two.synced = g.Folder(two.bucket)
	return &one, &two
}

// s3Client is a client that keeps its connections, and tries a request once.
func s3Client(t testing.TB, endpoint, access, secret string) *minio.Core {
	t.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true}
	t.Cleanup(transport.CloseIdleConnections)
	c, err := minio.NewCore(strings.TrimPrefix(endpoint, "http://"), &minio.Options{
		Creds: credentials.NewStaticV4(access, secret, ""), Region: "us-east-1", Transport: transport, MaxRetries: 1,
		BucketLookup: minio.BucketLookupPath,
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// put writes an object. The payload is not signed: what a client does over TLS.
func (s *storage) put(ctx context.Context, key string, content []byte, in io.Reader) error {
	_, err := s.core.PutObject(ctx, s.bucket, key, in, int64(len(content)), "", "", minio.PutObjectOptions{DisableContentSha256: true})
	if err != nil || s.synced == "" {
		return err
	}
	return errors.Join(syncFile(filepath.Join(s.synced, key)), syncFile(s.synced))
}

func syncFile(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// get reads an object to its end.
func (s *storage) get(ctx context.Context, key string, size int64, to io.Writer) error {
	body, _, _, err := s.core.GetObject(ctx, s.bucket, key, minio.GetObjectOptions{})
	if err != nil {
		return err
	}
	n, err := io.Copy(to, body)
	if err == nil && n != size {
		err = fmt.Errorf("%s: %d bytes of %d: %w", key, n, size, io.ErrUnexpectedEOF)
	}
	return errors.Join(err, body.Close())
}

// journalRan waits until a coder has nothing left to do, by its metrics: no version to
// settle or repair, no blob to delete.
func journalRan(t testing.TB, metrics string) {
	t.Helper()
	var left []string
	for range 3000 {
		left = left[:0]
		resp, err := http.Get(metrics)
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
			for _, name := range []string{"penstock_coder_unintended_versions{", "penstock_coder_blobs_to_delete{"} {
				if l := lines.Text(); strings.HasPrefix(l, name) {
					found++
					if v, err := strconv.ParseFloat(l[strings.LastIndexByte(l, ' ')+1:], 64); err != nil || v != 0 {
						left = append(left, l)
					}
				}
			}
		}
		_ = resp.Body.Close()
		if found != 2 {
			t.Fatalf("%s: %d of the two metrics", metrics, found)
		}
		if len(left) == 0 {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatalf("the coder has work left after a minute: %s", left)
}
