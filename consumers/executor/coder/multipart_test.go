package coder

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"penstock/consumers/executor/coder/object"
)

func (b *bench) part(t *testing.T, upload string, number int, data []byte) Part {
	t.Helper()
	p, err := b.PutPart(t.Context(), PartInput{
		Bucket: "bucket", Key: "k", Upload: upload, Number: number, Body: bytes.NewReader(data), Size: int64(len(data)),
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestMultipart(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		b.code.set(4, 2)
		b.put(t, "k", []byte("before"))
		u, err := b.CreateUpload(t.Context(), UploadInput{Bucket: "bucket", Key: "k", Metadata: map[string]string{"a": "b"}})
		if err != nil {
			t.Fatal(err)
		}
		one, three := noise(1, MinPart), noise(3, 3*testSegment+1)
		b.part(t, u.ID, 1, noise(9, 77))
		p1, p2 := b.part(t, u.ID, 1, one), b.part(t, u.ID, 2, noise(2, 10))
		p3 := b.part(t, u.ID, 3, three)
		if parts, more, err := b.Parts(t.Context(), "bucket", "k", u.ID, 0, 2); err != nil || !more || len(parts) != 2 {
			t.Fatal(parts, more, err)
		}
		if list, more, err := b.Uploads(t.Context(), UploadsInput{Bucket: "bucket"}); err != nil || more || len(list) != 1 || list[0].ID != u.ID {
			t.Fatal(list, more, err)
		}
		complete := func(parts ...Part) (Object, error) {
			in := CompleteInput{Bucket: "bucket", Key: "k", Upload: u.ID}
			for _, p := range parts {
				in.Parts = append(in.Parts, PartRef{Number: p.Number, ETag: p.ETag})
			}
			return b.CompleteUpload(t.Context(), in)
		}
		for _, wrong := range []struct {
			want  error
			parts []Part
		}{
			{ErrPartOrder, []Part{p1, p1}},
			{ErrPartTooSmall, []Part{p1, p2, p3}},
			{ErrPart, []Part{{Number: 1, ETag: p2.ETag}}},
			{ErrPart, []Part{{Number: 7, ETag: p2.ETag}}},
		} {
			if _, err := complete(wrong.parts...); !errors.Is(err, wrong.want) {
				t.Errorf("%v: %v", wrong.want, err)
			}
		}
		b.check(t, "k", []byte("before"))
		o, err := complete(p1, p3)
		want := append(bytes.Clone(one), three...)
		if err != nil || o.Size != int64(len(want)) || len(o.Parts) != 2 || o.Metadata["a"] != "b" {
			t.Fatal(o, err)
		}
		b.check(t, "k", want)
		for _, r := range []Range{{Set: true, From: MinPart - 5, To: MinPart + 5}, {Part: 3}} {
			from, to := MinPart-5, MinPart+6
			if r.Part != 0 {
				from, to = MinPart, len(want)
			}
			if got, err := b.read(t.Context(), "k", r); err != nil || !bytes.Equal(got, want[from:to]) {
				t.Errorf("%+v: %d bytes, %v", r, len(got), err)
			}
		}
		if _, err := complete(p1); !errors.Is(err, ErrNoUpload) {
			t.Errorf("completed twice: %v", err)
		}
		u, err = b.CreateUpload(t.Context(), UploadInput{Bucket: "bucket", Key: "k"})
		if err != nil {
			t.Fatal(err)
		}
		b.part(t, u.ID, 1, one)
		if err := b.AbortUpload(t.Context(), "bucket", "k", u.ID); err != nil {
			t.Fatal(err)
		}
		b.clean(t)
		if n := b.blobs(t); n != 2*max(2, len(b.stores)) {
			t.Errorf("%d blobs of two parts", n)
		}
	}, func(o *Options) { o.Segment = 1 << 20 })
}

func TestCopy(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		for i, size := range sizes {
			data := noise(uint64(i), size)
			_, err := b.Put(t.Context(), PutInput{
				Bucket: "bucket", Key: "from", Body: bytes.NewReader(data), Size: int64(size), Metadata: map[string]string{"a": "1"},
			})
			if err != nil {
				t.Fatal(err)
			}
			o, err := b.Copy(t.Context(), CopyInput{FromBucket: "bucket", FromKey: "from", To: PutInput{Bucket: "bucket", Key: "to"}})
			if err != nil || o.Metadata["a"] != "1" {
				t.Fatal(o, err)
			}
			b.check(t, "to", data)
			o, err = b.Copy(t.Context(), CopyInput{
				FromBucket: "bucket", FromKey: "to", Replace: true,
				To: PutInput{Bucket: "bucket", Key: "to", Metadata: map[string]string{"a": "2"}},
			})
			if err != nil || o.Metadata["a"] != "2" || o.Size != int64(size) {
				t.Fatal(o, err)
			}
			b.check(t, "to", data)
			if _, err := b.Copy(t.Context(), CopyInput{
				FromBucket: "bucket", FromKey: "from", From: Conditions{IfNoneMatch: "*"}, To: PutInput{Bucket: "bucket", Key: "to"},
			}); !errors.Is(err, ErrPrecondition) {
				t.Errorf("%v", err)
			}
		}
		u, err := b.CreateUpload(t.Context(), UploadInput{Bucket: "bucket", Key: "k"})
		if err != nil {
			t.Fatal(err)
		}
		p, err := b.CopyPart(t.Context(), GetInput{Bucket: "bucket", Key: "from", Range: Range{Set: true, From: 5, To: testSegment + 4}},
			PartInput{Bucket: "bucket", Key: "k", Upload: u.ID, Number: 2})
		if err != nil || p.Size != testSegment {
			t.Fatal(p, err)
		}
		if _, err := b.CompleteUpload(t.Context(), CompleteInput{Bucket: "bucket", Key: "k", Upload: u.ID, Parts: []PartRef{{Number: 2}}}); err != nil {
			t.Fatal(err)
		}
		b.check(t, "k", noise(uint64(len(sizes)-1), 3*testSegment+17)[5:testSegment+5])
		b.clean(t)
	}, nil)
}

func TestConditions(t *testing.T) {
	t.Parallel()
	b := setup(t, object.Shared, 0, 0, nil)
	o := b.put(t, "k", []byte("x"))
	past, future := o.Modified.Add(-time.Hour), o.Modified.Add(time.Hour)
	for _, c := range []struct {
		q        Conditions
		get, put error
	}{
		{Conditions{IfMatch: `"` + o.ETag + `"`}, nil, nil},
		{Conditions{IfMatch: `"nope", W/"` + o.ETag + `"`}, nil, nil},
		{Conditions{IfMatch: "*"}, nil, nil},
		{Conditions{IfMatch: "nope"}, ErrPrecondition, ErrPrecondition},
		{Conditions{IfNoneMatch: "*"}, ErrNotModified, ErrPrecondition},
		{Conditions{IfNoneMatch: o.ETag}, ErrNotModified, ErrPrecondition},
		{Conditions{IfNoneMatch: "nope"}, nil, nil},
		{Conditions{IfModifiedSince: past}, nil, nil},
		{Conditions{IfModifiedSince: future}, ErrNotModified, nil},
		{Conditions{IfUnmodifiedSince: past}, ErrPrecondition, nil},
		{Conditions{IfUnmodifiedSince: future}, nil, nil},
		{Conditions{IfMatch: o.ETag, IfUnmodifiedSince: past}, nil, nil},
		{Conditions{IfNoneMatch: "nope", IfModifiedSince: future}, nil, nil},
	} {
		in := GetInput{Bucket: "bucket", Key: "k", Conditions: c.q}
		r, err := b.Get(t.Context(), in)
		if err == nil {
			_ = r.Close()
		}
		_, headed := b.Head(t.Context(), in)
		if !errors.Is(err, c.get) || !errors.Is(headed, c.get) {
			t.Errorf("%+v: %v, %v, want %v", c.q, err, headed, c.get)
		}
		_, err = b.Put(t.Context(), PutInput{Bucket: "bucket", Key: "k", Body: bytes.NewReader([]byte("x")), Size: 1, Conditions: c.q})
		if !errors.Is(err, c.put) {
			t.Errorf("%+v: put %v, want %v", c.q, err, c.put)
		}
	}
	if _, err := b.Put(t.Context(), PutInput{Bucket: "bucket", Key: "new", Body: bytes.NewReader(nil), Conditions: Conditions{IfMatch: "*"}}); !errors.Is(err, ErrNoKey) {
		t.Errorf("If-Match of nothing: %v", err)
	}
	if _, err := b.Put(t.Context(), PutInput{Bucket: "none", Key: "new", Body: bytes.NewReader(nil)}); !errors.Is(err, ErrNoBucket) {
		t.Errorf("%v", err)
	}
	if err := b.DeleteBucket(t.Context(), "bucket"); !errors.Is(err, ErrBucketNotEmpty) {
		t.Errorf("%v", err)
	}
	verify := errors.New("not what I meant")
	_, err := b.Put(t.Context(), PutInput{
		Bucket: "bucket", Key: "new", Body: bytes.NewReader(noise(1, 5000)), Size: 5000,
		Verify: func(*Object, Sums) error { return verify },
	})
	if !errors.Is(err, verify) {
		t.Errorf("%v", err)
	}
	b.clean(t)
}

// TestAdopt: a coder whose state is lost is made again from its stores, and the old one
// serves no longer; without being told so no other takes the stores.
func TestAdopt(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		data := noise(1, 2*testSegment+1)
		b.put(t, "k", data)
		b.put(t, "gone", data)
		if err := b.Delete(t.Context(), "bucket", "gone", Conditions{}); err != nil {
			t.Fatal(err)
		}
		b.settled(t)
		old := b.Coder
		o := b.options
		o.State, o.Chooser = t.TempDir(), b.code
		if _, err := Open(t.Context(), o); !errors.Is(err, ErrOwner) {
			t.Fatalf("stores with two owners: %v", err)
		}
		o.State, o.Adopt = t.TempDir(), true
		other := &bench{options: o, stores: b.stores, counts: b.counts, code: b.code}
		other.start(t)
		defer other.stop()
		other.check(t, "k", data)
		if _, err := other.Head(t.Context(), GetInput{Bucket: "bucket", Key: "gone"}); !errors.Is(err, ErrNoKey) {
			t.Errorf("%v", err)
		}
		other.clean(t)
		b.stop = func() {}
		deadline := time.Now().Add(patience)
		for !old.replaced.Load() {
			_, _ = old.Put(t.Context(), PutInput{Bucket: "bucket", Key: "late", Body: bytes.NewReader(data), Size: int64(len(data))})
			if time.Now().After(deadline) {
				t.Fatal("the old one goes on")
			}
		}
		if _, err := old.Put(t.Context(), PutInput{Bucket: "bucket", Key: "late", Body: bytes.NewReader(data), Size: int64(len(data))}); !errors.Is(err, ErrClosed) {
			t.Errorf("%v", err)
		}
		if err := old.Close(); err != nil {
			t.Error(err)
		}
	}, nil)
}
