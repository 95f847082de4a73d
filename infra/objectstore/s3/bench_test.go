package s3

import (
	"strings"
	"testing"

	"penstock/infra/objectstore"
	"penstock/infra/testserver"
)

func benchmarkStore(b *testing.B) *Store {
	server := testserver.VersityGW(b)
	s, err := Open(b.Context(), Options{
		Endpoint: server.Endpoint, Region: server.Region, AccessKey: server.AccessKey, SecretKey: server.SecretKey, Bucket: server.Bucket(b),
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	return s
}

// BenchmarkPut writes one small object again and again.
func BenchmarkPut(b *testing.B) {
	s := benchmarkStore(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Put(b.Context(), "o", "a", strings.NewReader("content"), objectstore.Mark{}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkStat reads a mark.
func BenchmarkStat(b *testing.B) {
	s := benchmarkStore(b)
	if err := s.Create(b.Context(), "o", objectstore.Mark{}); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Stat(b.Context(), "o"); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkHold takes the barrier and releases it.
func BenchmarkHold(b *testing.B) {
	s := benchmarkStore(b)
	if err := s.Create(b.Context(), "o", objectstore.Mark{}); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		h, err := s.Hold(b.Context(), "o", "")
		if err != nil {
			b.Fatal(err)
		}
		h.Release()
	}
}

// BenchmarkOpen connects, with the trial of the service.
func BenchmarkOpen(b *testing.B) {
	s := benchmarkStore(b)
	o := s.b.o
	b.ReportAllocs()
	for b.Loop() {
		s, err := Open(b.Context(), o)
		if err != nil {
			b.Fatal(err)
		}
		_ = s.Close()
	}
}
