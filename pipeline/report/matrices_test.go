package report

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/apache/arrow/go/v15/parquet/file"
	"github.com/apache/arrow/go/v15/parquet/pqarrow"

	"penstock/schemas/window"
)

func traffic(hour int64, owner string, requests int64) *window.Table {
	t := window.NewTable(window.Traffic)
	t.Append(hour*3600e6, []string{owner, "east"}, []int64{requests, requests, 0, requests * 10, 0})
	return t
}

func TestMatricesAreEqualForEqualWindows(t *testing.T) {
	write := func() string {
		dir := t.TempDir()
		m, err := NewMatrices(dir)
		if err != nil {
			t.Fatal(err)
		}
		for h := range int64(3) {
			if err := m.Add(traffic(h, "ann", h+1), h == 1); err != nil {
				t.Fatal(err)
			}
		}
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
		return filepath.Join(dir, "matrices", "traffic.parquet")
	}
	a, b := write(), write()
	first, err := os.ReadFile(a)
	if err != nil {
		t.Fatal(err)
	}
	second, _ := os.ReadFile(b)
	if !bytes.Equal(first, second) {
		t.Error("two writes of the same windows differ")
	}
	r, err := file.OpenParquetFile(a, false)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	fr, err := pqarrow.NewFileReader(r, pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
	if err != nil {
		t.Fatal(err)
	}
	table, err := fr.ReadTable(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer table.Release()
	names := ""
	for _, f := range table.Schema().Fields() {
		names += f.Name + " "
	}
	if names != "window_start window_end owner site requests reads writes bytes bytes_written incomplete " {
		t.Errorf("columns %s", names)
	}
	requests := table.Column(4).Data().Chunk(0).(*array.Int64).Int64Values()
	if len(requests) != 3 || requests[2] != 3 {
		t.Errorf("requests %v", requests)
	}
	inc := table.Column(9).Data().Chunk(0).(*array.Boolean)
	if inc.Value(0) || !inc.Value(1) || inc.Value(2) {
		t.Errorf("incomplete %v", inc)
	}
}

func TestAbortLeavesWhatWasThere(t *testing.T) {
	dir := t.TempDir()
	m, err := NewMatrices(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if m, err = NewMatrices(dir); err != nil {
		t.Fatal(err)
	}
	if err := m.Abort(); err != nil {
		t.Fatal(err)
	}
	left, _ := filepath.Glob(filepath.Join(dir, "matrices", "*"))
	if len(left) != len(window.Rollups) {
		t.Errorf("left are %v", left)
	}
}
