package bench

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
)

// writeSnapshot writes a directory's snapshot (consumers/redirector/directory says
// how they look) with owners user-0, user-1, … on two sites in turn. Writing one is
// the fastest way to many owners: a bus with 10 million of them takes minutes.
func writeSnapshot(t testing.TB, name string, owners int) {
	t.Helper()
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	sum := xxhash.New()
	w := bufio.NewWriterSize(io.MultiWriter(f, sum), 1<<20)
	now := time.Now()
	b := append([]byte("\x89PNSTKD\n"), 1)
	b = binary.AppendUvarint(b, uint64(now.UnixMicro())) // in step with the bus
	b = binary.AppendUvarint(b, uint64(now.UnixNano()))  // whose stream was created
	b = binary.AppendUvarint(b, uint64(owners))          // the last message
	b = binary.AppendUvarint(b, uint64(now.UnixNano()))  // and its time
	b = append(b, 2, 4)
	b = append(b, "here"...)
	b = append(b, 5)
	b = append(b, "there"...)
	b = append(b, 0) // no ghosts
	var record, owner []byte
	for i := range owners {
		owner = fmt.Appendf(owner[:0], "user-%d", i)
		record = append(binary.AppendUvarint(record[:0], uint64(len(owner))), owner...)
		record = append(record, 0, byte(i%2))                     // live, the site
		record = binary.AppendUvarint(record, uint64(i%300+1))    // version
		record = binary.AppendVarint(record, now.Unix()-int64(i)) // since
		b = append(binary.AppendUvarint(b, uint64(len(record))), record...)
		_, _ = w.Write(b) // keeps its first error
		b = b[:0]
	}
	b = binary.AppendUvarint(append(b, 0), uint64(owners))
	_, _ = w.Write(b)
	err = w.Flush()
	_, last := f.Write(binary.LittleEndian.AppendUint64(nil, sum.Sum64()))
	if err := errors.Join(err, last, f.Close()); err != nil {
		t.Fatal(err)
	}
}

// statusOf asks for a URL and returns the status of the answer.
func statusOf(t testing.TB, url string) int {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	return resp.StatusCode
}
