package testserver_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"

	"penstock/infra/testserver"
)

// TestVersityGW writes and reads an object, and finds the same server again.
func TestVersityGW(t *testing.T) {
	s := testserver.VersityGW(t)
	if again := testserver.VersityGW(t); again != s {
		t.Errorf("a second server: %s and %s", s.Endpoint, again.Endpoint)
	}
	bucket, other := s.Bucket(t), s.Bucket(t)
	if bucket == other {
		t.Errorf("bucket %s twice", bucket)
	}
	c := s.Client(t)
	want := []byte("content")
	if _, err := c.PutObject(t.Context(), bucket, "a/b", bytes.NewReader(want), int64(len(want)), minio.PutObjectOptions{}); err != nil {
		t.Fatal(err)
	}
	o, err := c.GetObject(t.Context(), bucket, "a/b", minio.GetObjectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(o)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("read %q, %v", got, err)
	}
}

// TestEndsWithTheProcess starts a server from another test binary, kills that,
// and waits until nobody listens any more.
func TestEndsWithTheProcess(t *testing.T) {
	if os.Getenv("PENSTOCK_TESTSERVER_CHILD") != "" {
		_, _ = os.Stdout.WriteString(testserver.VersityGW(t).Endpoint + "\n")
		select {}
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestEndsWithTheProcess$", "-test.timeout=10m")
	cmd.Env = append(os.Environ(), "PENSTOCK_TESTSERVER_CHILD=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 256)
	n, err := out.Read(line)
	if err != nil {
		t.Fatal(err)
	}
	address, ok := strings.CutPrefix(strings.TrimSpace(string(line[:n])), "http://")
	if !ok {
		t.Fatalf("the other test binary said %q", line[:n])
	}
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	// The server's end of an open connection closes when the server is gone.
	defer func() { _ = conn.Close() }()
	if err := conn.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(line); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the server outlives the test binary")
	}
}
