package s3front

import (
	"context"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/versity/versitygw/s3err"
	"github.com/versity/versitygw/s3response"

	"penstock/consumers/executor/coder"
)

// CreateMultipartUpload implements backend.Backend.
func (b *storage) CreateMultipartUpload(ctx context.Context, in s3response.CreateMultipartUploadInput) (out s3response.InitiateMultipartUploadResult, err error) {
	q := requestOf(ctx)
	if in.ChecksumAlgorithm != "" {
		if _, ours := newSum(string(in.ChecksumAlgorithm)); !ours {
			return out, notImplemented("checksum algorithm " + string(in.ChecksumAlgorithm))
		}
	}
	u, err := b.coder.CreateUpload(living(ctx), coder.UploadInput{
		Bucket: q.bucket, Key: q.key, Headers: headersOf(q.http.Header), Metadata: in.Metadata,
		Checksum: string(in.ChecksumAlgorithm), Composite: in.ChecksumType == types.ChecksumTypeComposite,
	})
	if err != nil {
		return out, b.fault(ctx, err, subject{bucket: q.bucket, key: q.key})
	}
	return s3response.InitiateMultipartUploadResult{Bucket: q.bucket, Key: q.key, UploadId: u.ID}, nil
}

// UploadPart implements backend.Backend.
func (b *storage) UploadPart(ctx context.Context, in *s3.UploadPartInput) (*s3.UploadPartOutput, error) {
	q := requestOf(ctx)
	s := subject{bucket: q.bucket, key: q.key, upload: *in.UploadId, size: q.body.size}
	if err := b.agree(ctx, q, *in.UploadId); err != nil {
		return nil, b.fault(ctx, err, s)
	}
	p, err := b.coder.PutPart(living(ctx), coder.PartInput{
		Bucket: q.bucket, Key: q.key, Upload: *in.UploadId, Number: int(*in.PartNumber), Body: q.body, Size: q.body.size,
		Verify: func(o *coder.Object, sums coder.Sums) (err error) {
			o.Checksums, err = q.body.verify(sums)
			return err
		},
	})
	if err != nil {
		return nil, b.fault(ctx, err, s)
	}
	out := &s3.UploadPartOutput{ETag: quoted(p.ETag)}
	_ = spread(p.Checksums, &out.ChecksumCRC32, &out.ChecksumCRC32C, &out.ChecksumCRC64NVME, &out.ChecksumSHA1, &out.ChecksumSHA256)
	return out, nil
}

// agree has a part's checksum be of the algorithm that its upload was begun with.
func (b *storage) agree(ctx context.Context, q *request, upload string) error {
	u, err := b.coder.Upload(living(ctx), q.bucket, q.key, upload)
	switch {
	case err != nil:
		return err
	case u.Checksum == "" || u.Checksum == q.body.algorithm:
		return nil
	case q.body.algorithm != "":
		return s3err.GetChecksumTypeMismatchErr(types.ChecksumAlgorithm(u.Checksum), types.ChecksumAlgorithm(q.body.algorithm))
	}
	return q.body.use(u.Checksum)
}

// UploadPartCopy implements backend.Backend.
func (b *storage) UploadPartCopy(ctx context.Context, in *s3.UploadPartCopyInput) (out s3response.CopyPartResult, err error) {
	q := requestOf(ctx)
	from := coder.GetInput{Bucket: q.source.bucket, Key: q.source.key, Conditions: conditions(q.http.Header, copySource+"-")}
	if field := deref(in.CopySourceRange); field != "" {
		r, ok := parseRange(field)
		if !ok || r.Last > 0 || r.To < 0 {
			return out, s3err.GetInvalidArgumentErr(s3err.InvalidArgCopySourceRange, field)
		}
		o, err := b.coder.Head(living(ctx), coder.GetInput{Bucket: from.Bucket, Key: from.Key})
		switch {
		case err != nil:
			return out, b.fault(ctx, err, subject{bucket: from.Bucket, key: from.Key})
		case r.To >= o.Size:
			return out, s3err.GetInvalidArgExceedingRange(o.Size)
		}
		from.Range = r
	}
	u, err := b.coder.Upload(living(ctx), q.bucket, q.key, *in.UploadId)
	if err != nil {
		return out, b.fault(ctx, err, subject{bucket: q.bucket, key: q.key, upload: *in.UploadId})
	}
	p, err := b.copyPart(living(ctx), &u, from, int(*in.PartNumber))
	if err != nil {
		return out, b.fault(ctx, ofSource(err), subject{bucket: from.Bucket, key: from.Key, upload: *in.UploadId})
	}
	out = s3response.CopyPartResult{ETag: quoted(p.ETag), LastModified: p.Modified}
	_ = spread(p.Checksums, &out.ChecksumCRC32, &out.ChecksumCRC32C, &out.ChecksumCRC64NVME, &out.ChecksumSHA1, &out.ChecksumSHA256)
	return out, nil
}

// copyPart makes a part of an object. One that has a checksum is read here, for the
// checksum is this package's.
func (b *storage) copyPart(ctx context.Context, u *coder.Upload, from coder.GetInput, number int) (coder.Part, error) {
	to := coder.PartInput{Bucket: u.Bucket, Key: u.Key, Upload: u.ID, Number: number}
	if u.Checksum == "" {
		return b.coder.CopyPart(ctx, from, to)
	}
	r, err := b.coder.Get(ctx, from)
	if err != nil {
		return coder.Part{}, err
	}
	defer func() { _ = r.Close() }()
	copied := &body{r: r, size: r.Length}
	if err := copied.use(u.Checksum); err != nil {
		return coder.Part{}, err
	}
	to.Body, to.Size = copied, r.Length
	to.Verify = func(o *coder.Object, sums coder.Sums) (err error) {
		o.Checksums, err = copied.verify(sums)
		return err
	}
	return b.coder.PutPart(ctx, to)
}

// ListParts implements backend.Backend.
func (b *storage) ListParts(ctx context.Context, in *s3.ListPartsInput) (out s3response.ListPartsResult, err error) {
	q := requestOf(ctx)
	s := subject{bucket: q.bucket, key: q.key, upload: *in.UploadId}
	u, err := b.coder.Upload(living(ctx), q.bucket, q.key, *in.UploadId)
	if err != nil {
		return out, b.fault(ctx, err, s)
	}
	after, _ := strconv.Atoi(deref(in.PartNumberMarker)) // a number, or empty for 0
	out = s3response.ListPartsResult{
		Bucket: q.bucket, Key: q.key, UploadID: *in.UploadId, StorageClass: types.StorageClassStandard,
		ChecksumAlgorithm: types.ChecksumAlgorithm(u.Checksum), ChecksumType: checksumType(&u),
		Initiator: s3response.Initiator{ID: owner, DisplayName: owner}, Owner: s3response.Owner{ID: owner, DisplayName: owner},
		PartNumberMarker: after, MaxParts: int(*in.MaxParts),
	}
	if out.MaxParts == 0 {
		return out, nil
	}
	parts, more, err := b.coder.Parts(living(ctx), q.bucket, q.key, *in.UploadId, after, out.MaxParts)
	if err != nil {
		return out, b.fault(ctx, err, s)
	}
	out.IsTruncated = more
	for _, p := range parts {
		part := s3response.Part{PartNumber: p.Number, LastModified: p.Modified, ETag: *quoted(p.ETag), Size: p.Size}
		_ = spread(p.Checksums, &part.ChecksumCRC32, &part.ChecksumCRC32C, &part.ChecksumCRC64NVME, &part.ChecksumSHA1, &part.ChecksumSHA256)
		out.Parts = append(out.Parts, part)
		out.NextPartNumberMarker = p.Number
	}
	return out, nil
}

func checksumType(u *coder.Upload) types.ChecksumType {
	switch {
	case u.Checksum == "":
		return ""
	case u.Composite:
		return types.ChecksumTypeComposite
	}
	return types.ChecksumTypeFullObject
}

// AbortMultipartUpload implements backend.Backend.
func (b *storage) AbortMultipartUpload(ctx context.Context, in *s3.AbortMultipartUploadInput) error {
	q := requestOf(ctx)
	err := b.coder.AbortUpload(living(ctx), q.bucket, q.key, *in.UploadId)
	return b.fault(ctx, err, subject{bucket: q.bucket, key: q.key, upload: *in.UploadId})
}

// ListMultipartUploads implements backend.Backend.
func (b *storage) ListMultipartUploads(ctx context.Context, in *s3.ListMultipartUploadsInput) (out s3response.ListMultipartUploadsResult, err error) {
	q := requestOf(ctx)
	s, err := spell(q)
	if err != nil {
		return out, err
	}
	w := walk{
		prefix: deref(in.Prefix), delimiter: deref(in.Delimiter), most: int(*in.MaxUploads),
		key: deref(in.KeyMarker), id: deref(in.UploadIdMarker),
	}
	if w.key == "" {
		w.id = "" // S3 passes over an id without a key
	}
	if err := w.uploads(living(ctx), b.coder, q.bucket); err != nil {
		return out, b.fault(ctx, err, subject{bucket: q.bucket})
	}
	s.fit(w.prefix, w.delimiter, deref(in.KeyMarker), w.key)
	s.fit(w.common...)
	out = s3response.ListMultipartUploadsResult{
		Bucket: q.bucket, KeyMarker: *s.name(deref(in.KeyMarker)), UploadIDMarker: deref(in.UploadIdMarker),
		Delimiter: *s.name(w.delimiter), Prefix: *s.name(w.prefix), EncodingType: string(s.kind()),
		MaxUploads: w.most, IsTruncated: w.more,
	}
	if w.more {
		out.NextKeyMarker, out.NextUploadIDMarker = *s.name(w.key), w.id
	}
	for i := range w.found {
		u := &w.found[i]
		out.Uploads = append(out.Uploads, s3response.Upload{
			Key: *s.name(u.Key), UploadID: u.ID, Initiated: u.Created, StorageClass: types.StorageClassStandard,
			Initiator: s3response.Initiator{ID: owner, DisplayName: owner}, Owner: s3response.Owner{ID: owner, DisplayName: owner},
			ChecksumAlgorithm: types.ChecksumAlgorithm(u.Checksum), ChecksumType: checksumType(u),
		})
	}
	for _, prefix := range w.common {
		out.CommonPrefixes = append(out.CommonPrefixes, s3response.CommonPrefix{Prefix: *s.name(prefix)})
	}
	return out, nil
}

// walk goes through uploads and puts those together that share a prefix up to the
// delimiter.
type walk struct {
	prefix, delimiter string
	most              int
	// key and id are the marker: uploads after it, and after all of its key if there is
	// no id. After the walk they are the marker of the next.
	key, id string
	found   []coder.Upload
	common  []string
	more    bool
}

func (w *walk) uploads(ctx context.Context, c *coder.Coder, name string) error {
	if w.most == 0 {
		_, err := c.Bucket(ctx, name)
		return err
	}
	in := coder.UploadsInput{Bucket: name, Prefix: w.prefix, AfterKey: w.key, AfterID: w.id}
	for {
		page, more, err := c.Uploads(ctx, in)
		if err != nil {
			return err
		}
		for i := range page {
			if w.more = !w.take(&page[i]); w.more {
				return nil
			}
			in.AfterKey, in.AfterID = page[i].Key, page[i].ID
		}
		if !more || len(page) == 0 {
			return nil
		}
	}
}

// take adds an upload; false if there is no room for it.
func (w *walk) take(u *coder.Upload) bool {
	if w.id == "" && w.key != "" && u.Key == w.key {
		return true // of the marker's own key
	}
	shared := ""
	if before, _, found := strings.Cut(strings.TrimPrefix(u.Key, w.prefix), w.delimiter); found && w.delimiter != "" {
		shared = w.prefix + before + w.delimiter
	}
	if shared != "" && strings.HasPrefix(w.key, shared) {
		return true // of a prefix that was told already
	}
	if len(w.found)+len(w.common) == w.most {
		return false
	}
	if shared != "" {
		w.common = append(w.common, shared)
		w.key, w.id = shared, ""
		return true
	}
	w.found = append(w.found, *u)
	w.key, w.id = u.Key, u.ID
	return true
}
