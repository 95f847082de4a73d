package delayed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"go.uber.org/goleak"

	"penstock/infra/clock"
	"penstock/schemas/control"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open runs a service on a clock that is moved by hand, and a client of it.
func open(t *testing.T, m control.CodingModel) (*Server, *minio.Core, *clock.Manual) {
	t.Helper()
	c := clock.NewManual(time.Unix(0, 0))
	s, err := New(Options{Bucket: "bucket", Seed: 1, Delays: m, Clock: c, Counted: func(key string) bool { return key != "apart" }})
	if err != nil {
		t.Fatal(err)
	}
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- s.Run(ctx, l) }()
	transport, err := minio.DefaultTransport(false)
	if err != nil {
		t.Fatal(err)
	}
	client, err := minio.NewCore(l.Addr().String(), &minio.Options{Creds: credentials.NewStaticV4("who", "secret", ""), Region: "east", Transport: transport, MaxRetries: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		cancel()
		if err := <-ran; err != nil {
			t.Error(err)
		}
	})
	return s, client, c
}

// after lets time pass for a call that waits, and says how much.
func after(t *testing.T, c *clock.Manual, call func() error) time.Duration {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- call() }()
	if err := c.Await(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	for at := time.Millisecond; ; at += time.Millisecond {
		c.Advance(time.Millisecond)
		if c.Waiting() == 0 {
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			return at
		}
	}
}

var content = []byte(strings.Repeat("0123456789", 10_000))

func put(t *testing.T, client *minio.Core) func() error {
	return func() error {
		_, err := client.Client.PutObject(t.Context(), "bucket", "a/b", bytes.NewReader(content), int64(len(content)), minio.PutObjectOptions{})
		return err
	}
}

func get(t *testing.T, client *minio.Core, from, to int64) func() error {
	return func() error {
		var o minio.GetObjectOptions
		if to > 0 {
			if err := o.SetRange(from, to); err != nil {
				return err
			}
		}
		body, _, _, err := client.GetObject(t.Context(), "bucket", "a/b", o)
		if err != nil {
			return err
		}
		defer body.Close()
		got, err := io.ReadAll(body)
		want := content
		if to > 0 {
			want = content[from:min(to+1, int64(len(content)))]
		}
		if err == nil && !bytes.Equal(got, want) {
			err = errors.New("other bytes")
		}
		return err
	}
}

// TestAnswersTakeAsLongAsTheModelSays, by the bytes that go to and fro, and content is
// what was put there.
func TestAnswersTakeAsLongAsTheModelSays(t *testing.T) {
	s, client, c := open(t, control.CodingModel{Read: control.CodingDelay{Delta: 10, DeltaPerMB: 1000}, Write: control.CodingDelay{Delta: 40, DeltaPerMB: 100}})
	for _, x := range []struct {
		name string
		call func() error
		want int // ms
	}{
		{"put", put(t, client), 50},
		{"get", get(t, client, 0, 0), 110},
		{"get what isn't there, and is not counted", func() error {
			_, _, _, err := client.GetObject(t.Context(), "bucket", "apart", minio.GetObjectOptions{})
			if minio.ToErrorResponse(err).Code != "NoSuchKey" {
				return fmt.Errorf("answered: %w", err)
			}
			return nil
		}, 10},
		{"a range", get(t, client, 10, 50_009), 60},
		{"a range beyond the end", get(t, client, 90_000, 1<<40), 20},
		{"list", func() error { _, err := client.ListObjectsV2("bucket", "", "", "", "", 10); return err }, 10},
		{"delete", func() error { return client.RemoveObject(t.Context(), "bucket", "a/b", minio.RemoveObjectOptions{}) }, 40},
	} {
		if took := after(t, c, x.call); took != time.Duration(x.want)*time.Millisecond {
			t.Errorf("%s took %v, expected %d ms", x.name, took, x.want)
		}
	}
	if got := s.Counts(); got.Reads != 3 || got.Writes != 1 || got.Others != 3 || got.Gone != 0 || got.BytesRead != 160_000 || got.BytesWritten < 100_000 {
		t.Errorf("%+v", got)
	}
	s.SetDelays(control.CodingModel{Write: control.CodingDelay{Delta: 7}})
	if took := after(t, c, put(t, client)); took != 7*time.Millisecond {
		t.Errorf("by another model it took %v", took)
	}
}

// TestAClientThatGoesAwayIsNoticed: its request ends at once, and is not carried out.
func TestAClientThatGoesAwayIsNoticed(t *testing.T) {
	s, client, c := open(t, control.CodingModel{Write: control.CodingDelay{Delta: 3_600_000, Psi: 1}})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := client.Client.PutObject(ctx, "bucket", "x", bytes.NewReader(content), int64(len(content)), minio.PutObjectOptions{})
		done <- err
	}()
	if err := c.Await(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if got := s.Counts(); got.Waiting != 1 || got.Gone != 0 {
		t.Errorf("%+v", got)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	for s.Counts().Waiting > 0 { // until the server has seen it
		time.Sleep(time.Millisecond)
	}
	if got := s.Counts().Gone; got != 1 {
		t.Errorf("%d are gone", got)
	}
	if _, err := s.backend.HeadObject("bucket", "x"); err == nil {
		t.Error("it was carried out all the same")
	}
}
