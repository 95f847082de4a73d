package s3front

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/versity/versitygw/s3api/utils"
	"github.com/versity/versitygw/s3err"
	"github.com/versity/versitygw/s3response"

	"penstock/consumers/executor/coder"
)

// CompleteMultipartUpload implements backend.Backend.
func (b *storage) CompleteMultipartUpload(ctx context.Context, in *s3.CompleteMultipartUploadInput) (out s3response.CompleteMultipartUploadResult, version string, err error) {
	q := requestOf(ctx)
	met, err := onWrite(q.http.Header)
	if err != nil {
		return out, "", err
	}
	s := subject{bucket: q.bucket, key: q.key, upload: *in.UploadId}
	u, err := b.coder.Upload(living(ctx), q.bucket, q.key, *in.UploadId)
	if err != nil {
		return out, "", b.fault(ctx, err, s)
	}
	c := completion{upload: &u, said: in}
	refs, err := c.parts()
	if err != nil {
		return out, "", err
	}
	o, err := b.coder.CompleteUpload(living(ctx), coder.CompleteInput{
		Bucket: q.bucket, Key: q.key, Upload: *in.UploadId, Parts: refs, Conditions: met, Verify: c.verify,
	})
	if err != nil {
		return out, "", b.fault(ctx, err, s)
	}
	out = s3response.CompleteMultipartUploadResult{Bucket: &q.bucket, Key: &q.key, ETag: quoted(o.ETag)}
	if kind := spread(o.Checksums, &out.ChecksumCRC32, &out.ChecksumCRC32C, &out.ChecksumCRC64NVME, &out.ChecksumSHA1, &out.ChecksumSHA256); kind != "" {
		out.ChecksumType = &kind
	}
	return out, "", nil
}

// completion is an upload that is being completed, and what its client says of it.
type completion struct {
	upload *coder.Upload
	said   *s3.CompleteMultipartUploadInput
}

// parts are those that the client names.
func (c *completion) parts() ([]coder.PartRef, error) {
	named := c.said.MultipartUpload.Parts
	if len(named) > coder.MaxParts {
		return nil, s3err.GetAPIError(s3err.ErrMalformedXML)
	}
	refs := make([]coder.PartRef, 0, len(named))
	for _, p := range named {
		if p.PartNumber == nil || p.ETag == nil {
			return nil, s3err.GetAPIError(s3err.ErrMalformedXML)
		}
		if *p.PartNumber < 1 || *p.PartNumber > coder.MaxParts {
			return nil, s3err.GetInvalidPartErr(c.upload.ID, *p.PartNumber, *p.ETag)
		}
		if n := len(refs); n > 0 && refs[n-1].Number >= int(*p.PartNumber) {
			return nil, s3err.GetAPIError(s3err.ErrInvalidPartOrder)
		}
		refs = append(refs, coder.PartRef{Number: int(*p.PartNumber), ETag: strings.Trim(*p.ETag, `"`)})
	}
	return refs, nil
}

// verify compares the parts with what the client said of them, and makes the checksum of
// the whole.
func (c *completion) verify(o *coder.Object, parts []coder.Part) error {
	var size int64
	for i, p := range parts {
		size += p.Size
		if !c.agrees(i, p.Checksums) {
			return s3err.GetInvalidPartErr(c.upload.ID, int32(p.Number), p.ETag) //nolint:gosec // at most 10,000
		}
	}
	if said := c.said.MpuObjectSize; said != nil && *said != size {
		return s3err.GetIncorrectMpObjectSizeErr(*said, size)
	}
	if kind := c.said.ChecksumType; kind != "" && kind != checksumType(c.upload) {
		return s3err.GetChecksumTypeMismatchOnMpErr(checksumType(c.upload))
	}
	algorithm, said := c.saidOfWhole()
	switch {
	case c.upload.Checksum == "" && said == "":
		return nil
	case c.upload.Checksum != algorithm && said != "":
		return s3err.GetChecksumTypeMismatchErr(types.ChecksumAlgorithm(c.upload.Checksum), types.ChecksumAlgorithm(algorithm))
	}
	whole, err := c.whole(parts)
	if err != nil {
		return err
	}
	if said != "" && said != whole.Value && said != strings.TrimSuffix(whole.Value, fmt.Sprintf("-%d", len(parts))) {
		return s3err.GetChecksumBadDigestErr(types.ChecksumAlgorithm(algorithm))
	}
	o.Checksums = []coder.Checksum{whole}
	return nil
}

// agrees tells whether what the client says of its i-th part are checksums that it has.
func (c *completion) agrees(i int, have []coder.Checksum) bool {
	named := c.said.MultipartUpload.Parts
	if i >= len(named) {
		return true
	}
	p := &named[i]
	for _, each := range given(p.ChecksumCRC32, p.ChecksumCRC32C, p.ChecksumCRC64NVME, p.ChecksumSHA1, p.ChecksumSHA256) {
		if checksum(have, each.Algorithm) != each.Value {
			return false
		}
	}
	return true
}

// saidOfWhole is the checksum that the client gave for the object.
func (c *completion) saidOfWhole() (algorithm, value string) {
	for _, each := range given(c.said.ChecksumCRC32, c.said.ChecksumCRC32C, c.said.ChecksumCRC64NVME, c.said.ChecksumSHA1, c.said.ChecksumSHA256) {
		return each.Algorithm, each.Value
	}
	return "", ""
}

// given are the checksums of a request that are set.
func given(crc32, crc32c, crc64nvme, sha1, sha256 *string) (all []coder.Checksum) {
	for _, each := range []struct {
		algorithm types.ChecksumAlgorithm
		value     *string
	}{
		{types.ChecksumAlgorithmCrc32, crc32},
		{types.ChecksumAlgorithmCrc32c, crc32c},
		{types.ChecksumAlgorithmCrc64nvme, crc64nvme},
		{types.ChecksumAlgorithmSha1, sha1},
		{types.ChecksumAlgorithmSha256, sha256},
	} {
		if each.value != nil {
			all = append(all, coder.Checksum{Algorithm: string(each.algorithm), Value: *each.value})
		}
	}
	return all
}

// checksum is the one of an algorithm.
func checksum(all []coder.Checksum, algorithm string) string {
	for _, c := range all {
		if c.Algorithm == algorithm {
			return c.Value
		}
	}
	return ""
}

// whole is the checksum of all parts: that of the bytes, put together from the parts'
// (which only the CRCs can), or that of the parts' checksums.
func (c *completion) whole(parts []coder.Part) (out coder.Checksum, err error) {
	algorithm := types.ChecksumAlgorithm(c.upload.Checksum)
	out = coder.Checksum{Algorithm: c.upload.Checksum, Composite: c.upload.Composite}
	var sums *utils.CompositeChecksumReader
	if c.upload.Composite {
		if sums, err = utils.NewCompositeChecksumReader(utils.HashType(strings.ToLower(c.upload.Checksum))); err != nil {
			return out, notImplemented("COMPOSITE checksum of " + c.upload.Checksum)
		}
	}
	for i, p := range parts {
		value := checksum(p.Checksums, c.upload.Checksum)
		switch {
		case value == "":
			return out, s3err.GetInvalidPartErr(c.upload.ID, int32(p.Number), p.ETag) //nolint:gosec // at most 10,000
		case c.upload.Composite:
			err = sums.Process(value)
		case i == 0:
			out.Value = value
		default:
			out.Value, err = utils.AddCRCChecksum(algorithm, out.Value, value, p.Size)
		}
		if err != nil {
			return out, fmt.Errorf("checksum of part %d: %w", p.Number, err)
		}
	}
	if c.upload.Composite {
		out.Value = fmt.Sprintf("%s-%d", sums.Sum(), len(parts))
	}
	return out, nil
}
