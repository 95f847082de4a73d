package spanfile

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"penstock/producers/otlp/join"
	"penstock/producers/otlp/span"
	"penstock/schemas/event"
)

func seeds(f *testing.F) {
	for _, s := range []string{
		call, string(protoCall(f)), string(delimited(protoCall(f))), csvHead + "1,2,root,a,op,1,2,3\n",
		`[{"traceId":"1","id":"2","kind":"SERVER","timestamp":1600000000000000,"duration":1,"shared":true,"localEndpoint":{"serviceName":"a"}}]`,
		`{"data":[{"spans":[{"traceID":"a","spanID":"1","startTime":1,"duration":-1,"references":[{"refType":"FOLLOWS_FROM","traceID":"a","spanID":"2"}]}],"processes":{}}]}`,
		"[[{},{\"a\":\"\\\"}\"}]]\n{\"b\":[{]}\n7\n", "{\n\"a\":1}{}\n{",
	} {
		f.Add([]byte(s))
	}
}

// Whatever the bytes, each format reads them without panic, all that it read is
// accounted for, and each request that comes of it may be written.
func FuzzFormats(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		mapper, err := span.NewMapper(span.Rules{})
		if err != nil {
			t.Fatal(err)
		}
		for _, format := range Formats() {
			bad := 0
			r := &reader{ctx: context.Background(), o: &Options{}, mapper: mapper, order: order{limit: 3, emit: func(q *event.Request) error {
				return q.Check()
			}}}
			r.joiner = join.New(join.Options{Window: 4, MaxSpans: 8, Trace64: format == Zipkin}, r.call)
			if err := sources[format](r, bufio.NewReader(bytes.NewReader(b))); errors.Is(err, errStop) {
				t.Fatal(r.order.err)
			}
			r.joiner.Flush()
			if err := r.order.flush(); err != nil {
				t.Fatal(err)
			}
			st := r.joiner.Stats()
			if st.Read != r.read || st.Account.Sum() != st.Read {
				t.Fatalf("%s: %d of %d spans, %d bad: %s", format, st.Read, r.read, bad, &st.Account)
			}
		}
	})
}

// Documents are found wherever reads end, and none holds what isn't of the file.
func FuzzDocuments(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		var whole [2][]string
		for i, size := range []int{1 << 16, 16} {
			d := newDocuments(bufio.NewReaderSize(bytes.NewReader(b), size))
			for {
				raw, err := d.next()
				if errors.Is(err, io.EOF) {
					break
				}
				if !bytes.Contains(b, raw) {
					t.Fatalf("%q is not of the file", raw)
				}
				if err == nil {
					whole[i] = append(whole[i], string(raw))
				}
			}
			if d.now < 1 || d.now > int64(bytes.Count(b, []byte("\n")))+1 {
				t.Fatalf("line %d", d.now)
			}
		}
		// With objects over lines what is found does not hang on the buffer; whether
		// objects stand on lines is told by what is in it.
		if bytes.IndexByte(b, '\n') < 0 && len(whole[0]) != len(whole[1]) {
			t.Fatalf("%q\n%q", whole[0], whole[1])
		}
	})
}

// Detection never panics and never names what is no format.
func FuzzDetect(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		format, err := detect("f", bufio.NewReaderSize(bytes.NewReader(b), buffer))
		if err == nil && sources[format] == nil || err != nil && !errors.Is(err, ErrFormat) {
			t.Fatalf("%q, %v", format, err)
		}
	})
}

// An empty file is no fault, and is not passed over in silence.
func TestEmptyFileIsNoted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "e")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if r := read(Options{}, path); r.err != nil || len(r.notes) != 1 {
		t.Errorf("%v, %v; expected a note", r.err, r.notes)
	}
}
