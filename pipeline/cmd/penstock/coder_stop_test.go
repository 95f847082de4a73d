package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
	"github.com/minio/minio-go/v7"

	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/infra/testserver"
	"penstock/schemas/event"
	"penstock/schemas/subject"
)

// slowBody gives its first half, tells that it has, and gives the other when it is let.
type slowBody struct {
	halves [2]io.Reader
	begun  chan struct{}
	more   chan struct{}
	once   sync.Once
}

func newSlowBody(data []byte) *slowBody {
	half := len(data) / 2
	return &slowBody{
		halves: [2]io.Reader{bytes.NewReader(data[:half]), bytes.NewReader(data[half:])},
		begun:  make(chan struct{}), more: make(chan struct{}),
	}
}

func (b *slowBody) Read(p []byte) (int, error) {
	if n, err := b.halves[0].Read(p); n > 0 || !errors.Is(err, io.EOF) {
		return n, err
	}
	b.once.Do(func() { close(b.begun) })
	<-b.more
	return b.halves[1].Read(p)
}

// TestCoderStopsUnderLoad stops a coder as an operator does, in the middle of requests:
// those are answered, others find nobody, it ends with exit code 0, and the next one is
// there at once with all of it.
func TestCoderStopsUnderLoad(t *testing.T) {
	t.Parallel()
	w := newCoder(t, "nats://"+testserver.FreeAddress(t), coderSettings{})
	w.begin()
	w.makeBucket()
	large := noise(1, 24<<20) // more than lies in buffers between the two
	if err := w.client(0).put(t.Context(), "large", large); err != nil {
		t.Fatal(err)
	}
	c := w.client(1).(minioClient)
	var slow sync.WaitGroup
	var bodies []*slowBody
	contents := [][]byte{noise(2, 100_000), noise(3, 131_072*5+9)}
	for i, data := range contents {
		b := newSlowBody(data)
		bodies = append(bodies, b)
		slow.Go(func() {
			_, err := c.PutObject(context.Background(), coderBucket, fmt.Sprintf("slow/%d", i), b, int64(len(data)), "", "", minio.PutObjectOptions{})
			if err != nil {
				t.Errorf("put of %d bytes that was under way: %v", len(data), err)
			}
		})
	}
	got, err := w.client(0).(awsClient).GetObject(context.Background(), &s3.GetObjectInput{Bucket: aws.String(coderBucket), Key: aws.String("large")})
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	for _, b := range bodies {
		<-b.begun
	}
	var work sync.WaitGroup
	all := w.keepDiaries(&work, "load")
	eventually(t, "the load to have begun", func() bool { return len(w.keys()) > 20 })

	w.proc.signal(syscall.SIGTERM)
	eventually(t, "the process to stop", func() bool { return strings.Contains(w.proc.errs.String(), `"stopping"`) })
	for _, b := range bodies {
		close(b.more)
	}
	if read, err := io.ReadAll(got.Body); err != nil || !bytes.Equal(read, large) {
		t.Errorf("read that was under way: %d bytes of %d, %v", len(read), len(large), err)
	}
	slow.Wait()
	work.Wait()
	if code := w.proc.code(); code != 0 {
		t.Errorf("exit code %d: %s", code, w.proc.errs.String())
	}
	for _, d := range all {
		if isAnswer(d.ended) {
			t.Errorf("a request was refused: %v", d.ended)
		}
	}

	w.begin()
	w.kept(all, farAway)
	for i, data := range contents {
		if got, err := c.get(t.Context(), fmt.Sprintf("slow/%d", i)); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%d bytes of %d, %v", len(got), len(data), err)
		}
	}
	w.clean()
}

// isAnswer tells whether an error is an answer of the coder's, and not that there is
// nobody.
func isAnswer(err error) bool {
	var api smithy.APIError
	var response minio.ErrorResponse
	return errors.As(err, &api) || errors.As(err, &response) && response.StatusCode != 0
}

// TestCoderWithoutBus runs a coder whose bus is not there: it serves, and the account of
// its events is exact when the bus has come, those of a process before among them.
func TestCoderWithoutBus(t *testing.T) {
	t.Parallel()
	at := testserver.FreeAddress(t)
	w := newCoder(t, "nats://"+at, coderSettings{policy: "policy: static, code: {n: 3, k: 2}"})
	w.begin()
	w.makeBucket()
	var want rows
	w.some(&want, "without")
	w.journalRan()
	w.proc.stop()

	w.begin()
	w.some(&want, "before")
	b := bustest.Start(t, func(o *bus.Options) { o.Partitions, o.Listen = 1, at })
	w.some(&want, "after")
	w.journalRan()
	w.proc.stop()
	// What a process says last may need the next one.
	w.begin()
	var have rows
	defer func() {
		if t.Failed() {
			t.Logf("%+v, expected %+v and tasks", have, want)
		}
	}()
	eventually(t, "the bus to have all requests", func() bool {
		have = readRows(t, bustest.Client(t, b))
		return have.reads+have.writes >= want.reads+want.writes
	})
	w.clean()
	have = readRows(t, bustest.Client(t, b))
	if have.reads != want.reads || have.writes != want.writes || have.other > 0 {
		t.Errorf("%d reads, %d writes, %d others; expected %d reads, %d writes", have.reads, have.writes, have.other, want.reads, want.writes)
	}
	// A write of one segment takes two or three of its tasks, and a read one or more.
	if have.tasks[event.Write] < 2*want.writes || have.tasks[event.Read] < want.reads {
		t.Errorf("tasks %v", have.tasks)
	}
}

// rows are those of a coder: requests of its clients by what they were, and tasks.
type rows struct {
	reads, writes, other int
	tasks                map[event.Op]int
}

// some does some requests that move content, and some that do not, and adds up their rows.
func (w *coderWorld) some(want *rows, prefix string) {
	w.t.Helper()
	ctx := w.t.Context()
	for i := range 6 {
		c, key := w.client(i), fmt.Sprintf("%s/%d", prefix, i)
		if err := c.put(ctx, key, noise(uint64(i), 10_000*(i+1))); err != nil {
			w.t.Fatal(err)
		}
		if _, err := c.get(ctx, key); err != nil {
			w.t.Fatal(err)
		}
		if none, err := c.get(ctx, "none"); err != nil || none != nil {
			w.t.Fatal(err)
		}
		if err := c.upload(ctx, key+"/parts", [][]byte{noise(1, 100)}); err != nil {
			w.t.Fatal(err)
		}
		if err := c.remove(ctx, key); err != nil {
			w.t.Fatal(err)
		}
		want.reads, want.writes = want.reads+1, want.writes+2
	}
}

// readRows reads all rows that the bus has.
func readRows(t *testing.T, c *bus.Client) (r rows) {
	t.Helper()
	r.tasks = map[event.Op]int{}
	s, err := c.State(t.Context(), subject.EventsStream)
	if err != nil {
		t.Fatal(err)
	}
	reader, err := c.Read(t.Context(), subject.EventsStream, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	var d event.Decoder
	for range s.Msgs {
		m := bustest.Take(t, reader, 1)[0]
		if event.IsMark(m.Header) {
			continue
		}
		h, err := event.ParseHeader(m.Header)
		if err != nil {
			t.Fatal(err)
		}
		if h.Schema != event.RequestSchema {
			continue
		}
		var batch event.Requests
		if err := d.Decode(m.Data, h.Encoding, &batch); err != nil {
			t.Fatal(err)
		}
		for i := range batch.Len() {
			r.add(batch.Row(i))
		}
	}
	return r
}

func (r *rows) add(x event.Request) {
	switch {
	case x.ToComponent != coderName || x.ToSite != "east":
		r.other++
	case x.Outcome != "":
		r.tasks[x.Op]++
		if x.ToServer != "store-0" || !slices.Contains([]string{"done", "cancelled", "failed"}, x.Outcome) {
			r.other++
		}
	case x.Status != http.StatusOK:
		r.other++
	case x.Op == event.Read:
		r.reads++
	default:
		r.writes++
	}
}
