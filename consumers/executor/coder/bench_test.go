package coder

import (
	"bytes"
	"fmt"
	"io"
	"testing"

	"penstock/consumers/executor/coder/chunks"
	"penstock/consumers/executor/coder/chunks/dir"
	"penstock/consumers/executor/coder/object"
)

// onDisk is a coder of the layout shared over a folder, as `penstock coder` runs by
// default.
func onDisk(b *testing.B) *bench {
	b.Helper()
	return setup(b, object.Shared, 0, 0, func(o *Options) {
		disk, err := dir.Open("disk", b.TempDir())
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = disk.Close() })
		o.Segment, o.LogEvery, o.Stores = 0, 0, []chunks.Store{disk}
	})
}

var benched = []struct {
	name string
	size int
}{{"64KB", 64 << 10}, {"3MB", 3 << 20}, {"64MB", 64 << 20}}

func BenchmarkPut(b *testing.B) {
	for _, of := range benched {
		for _, code := range [][2]int{{1, 1}, {12, 6}} {
			b.Run(fmt.Sprintf("%s/%d-%d", of.name, code[0], code[1]), func(b *testing.B) {
				c := onDisk(b)
				c.code.set(code[0], code[1])
				data := noise(1, of.size)
				b.SetBytes(int64(of.size))
				b.ReportAllocs()
				i := 0
				for b.Loop() {
					i++
					in := PutInput{Bucket: "bucket", Key: fmt.Sprint("k", i%100), Body: bytes.NewReader(data), Size: int64(len(data))}
					if _, err := c.Put(b.Context(), in); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkGet(b *testing.B) {
	for _, of := range benched {
		for _, code := range [][2]int{{1, 1}, {12, 6}} {
			b.Run(fmt.Sprintf("%s/%d-%d", of.name, code[0], code[1]), func(b *testing.B) {
				c := onDisk(b)
				c.code.set(1, 1)
				data := noise(1, of.size)
				c.put(b, "k", data)
				c.settled(b)
				c.code.set(code[0], code[1])
				b.SetBytes(int64(of.size))
				b.ReportAllocs()
				for b.Loop() {
					r, err := c.Get(b.Context(), GetInput{Bucket: "bucket", Key: "k"})
					if err != nil {
						b.Fatal(err)
					}
					if n, err := io.Copy(io.Discard, r); err != nil || n != int64(of.size) {
						b.Fatal(n, err)
					}
					_ = r.Close()
				}
			})
		}
	}
}

// BenchmarkPutTogether is of many clients at a time.
func BenchmarkPutTogether(b *testing.B) {
	c := onDisk(b)
	c.code.set(1, 1)
	data := noise(1, 64<<10)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	b.SetParallelism(16)
	b.RunParallel(func(p *testing.PB) {
		i := 0
		for p.Next() {
			i++
			in := PutInput{Bucket: "bucket", Key: fmt.Sprint("k", i%1000), Body: bytes.NewReader(data), Size: int64(len(data))}
			if _, err := c.Put(b.Context(), in); err != nil {
				b.Error(err)
				return
			}
		}
	})
}
