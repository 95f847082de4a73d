package s3front

import (
	"cmp"
	"crypto/sha1" //nolint:gosec // one of S3's checksums
	"encoding/base64"
	"encoding/hex"
	"errors"
	"hash"
	"hash/crc32"
	"hash/crc64"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/versity/versitygw/s3api/utils"
	"github.com/versity/versitygw/s3err"

	"penstock/consumers/executor/coder"
	"penstock/consumers/executor/coder/s3front/awschunked"
)

// maxObject is the most bytes of an object or part that is sent at once.
const maxObject = 5 << 30

// body is what the backend reads of a request: decoded, and verified at its end.
type body struct {
	r       io.Reader
	chunked *awschunked.Reader // nil: the body is the data
	signer  bool
	// size is how many bytes the data has, n how many were read.
	size, n int64
	// sha256 is the digest of the data in hexadecimal, md5 in base64; empty: not said.
	sha256, md5 string
	// algorithm is that of the checksum, want its value; empty: none, and none yet.
	algorithm, want string
	sum             hash.Hash // of algorithm; nil where the coder's digests do
	err             error
}

// crcNVMe is the polynomial of CRC64NVME.
var crcNVMe = crc64.MakeTable(0x9a6c9329ac4bc9b5)

// newSum returns the hash of a checksum's algorithm; nil for SHA256, which the coder
// does itself. ok tells that it is one of ours.
func newSum(algorithm string) (sum hash.Hash, ok bool) {
	switch types.ChecksumAlgorithm(algorithm) {
	case types.ChecksumAlgorithmCrc32:
		return crc32.NewIEEE(), true
	case types.ChecksumAlgorithmCrc32c:
		return crc32.New(crc32.MakeTable(crc32.Castagnoli)), true
	case types.ChecksumAlgorithmCrc64nvme:
		return crc64.New(crcNVMe), true
	case types.ChecksumAlgorithmSha1:
		return sha1.New(), true //nolint:gosec // as above
	case types.ChecksumAlgorithmSha256:
		return nil, true
	}
	return nil, false
}

// newBody returns the body of a request that was signed with a secret.
func newBody(q *request, secret string) (*body, error) {
	h := q.http.Header
	b := &body{r: q.raw, size: q.http.ContentLength, md5: h.Get("Content-Md5")}
	if err := b.announced(h); err != nil {
		return nil, err
	}
	switch kind := h.Get("X-Amz-Content-Sha256"); {
	case utils.IsStreamingPayload(kind):
		if err := b.decode(q, kind, secret); err != nil {
			return nil, err
		}
	case utils.IsSpecialPayload(kind) && !utils.IsUnsignedPaylod(kind):
		// versitygw lets these pass as if they were unsigned.
		return nil, notImplemented(kind)
	case h.Get("X-Amz-Trailer") != "":
		return nil, s3err.GetAPIError(s3err.ErrMalformedTrailer)
	case kind != "" && !utils.IsSpecialPayload(kind) && h.Get("Authorization") != "":
		b.sha256 = strings.ToLower(kind)
	}
	switch {
	case b.size < 0:
		return nil, s3err.GetAPIError(s3err.ErrMissingContentLength)
	case b.size > maxObject:
		return nil, s3err.GetEntityTooLargeErr(b.size, maxObject)
	}
	return b, nil
}

// announced reads which digests a request has, or will have behind its body.
func (b *body) announced(h http.Header) error {
	if values, said := h["Content-Md5"]; said {
		if d, err := base64.StdEncoding.DecodeString(b.md5); err != nil || len(d) != 16 {
			return s3err.GetInvalidDigestErr(strings.Join(values, ","))
		}
	}
	for name, values := range h {
		algorithm, found := strings.CutPrefix(name, "X-Amz-Checksum-")
		if !found || algorithm == "Type" || algorithm == "Algorithm" || algorithm == "Mode" {
			continue
		}
		if b.algorithm != "" || len(values) > 1 {
			return s3err.GetAPIError(s3err.ErrMultipleChecksumHeaders)
		}
		b.algorithm, b.want = strings.ToUpper(algorithm), values[0]
	}
	if trailer := h.Get("X-Amz-Trailer"); trailer != "" {
		algorithm, found := strings.CutPrefix(strings.ToUpper(trailer), "X-AMZ-CHECKSUM-")
		switch {
		case !found:
			return s3err.GetAPIError(s3err.ErrTrailerHeaderNotSupported)
		case b.algorithm != "":
			return s3err.GetAPIError(s3err.ErrMultipleChecksumHeaders)
		}
		b.algorithm = algorithm
	}
	said := strings.ToUpper(h.Get("X-Amz-Sdk-Checksum-Algorithm"))
	switch {
	case said != "" && b.algorithm == "":
		return s3err.GetAPIError(s3err.ErrChecksumSDKAlgoMismatch)
	case said != "" && said != b.algorithm:
		return s3err.GetInvalidChecksumHeaderErr("x-amz-sdk-checksum-algorithm")
	case b.algorithm == "":
		return nil
	}
	return b.use(b.algorithm)
}

// use has a checksum made of the data.
func (b *body) use(algorithm string) error {
	sum, ok := newSum(algorithm)
	if !ok {
		return notImplemented("checksum algorithm " + algorithm)
	}
	b.algorithm, b.sum = algorithm, sum
	if b.want != "" && !utils.IsValidChecksum(b.want, types.ChecksumAlgorithm(algorithm)) {
		return s3err.GetInvalidChecksumHeaderErr("x-amz-checksum-" + strings.ToLower(algorithm))
	}
	return nil
}

// decode has the body read as aws-chunked.
func (b *body) decode(q *request, kind, secret string) (err error) {
	h := q.http.Header
	said := h.Get("X-Amz-Decoded-Content-Length")
	if b.size, err = strconv.ParseInt(said, 10, 64); err != nil || b.size < 0 {
		return s3err.GetAPIError(s3err.ErrMissingContentLength)
	}
	trailing := strings.HasSuffix(kind, "-TRAILER")
	o := awschunked.Options{Length: b.size}
	if b.signer = strings.HasPrefix(kind, "STREAMING-AWS4"); b.signer {
		a, err := utils.ParseAuthorization(h.Get("Authorization"))
		if err != nil {
			return err
		}
		o.Signer = awschunked.NewSigner(secret, a.Date, a.Region, "s3", cmp.Or(h.Get("X-Amz-Date"), h.Get("Date")), a.Signature)
	}
	if trailer := strings.ToLower(h.Get("X-Amz-Trailer")); trailing {
		o.Trailer = trailer
	} else if trailer != "" {
		return s3err.GetAPIError(s3err.ErrMalformedTrailer)
	}
	b.chunked = awschunked.New(q.raw, o)
	b.r = b.chunked
	return nil
}

// Read implements io.Reader. Its errors are S3's.
func (b *body) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	n, err := b.r.Read(p)
	b.n += int64(n)
	if b.sum != nil {
		_, _ = b.sum.Write(p[:n]) // never fails
	}
	switch {
	case err == nil:
	case errors.Is(err, io.EOF):
		b.err = io.EOF
		if b.n != b.size {
			b.err = s3err.GetAPIError(s3err.ErrIncompleteBody)
		}
	default:
		b.err = ofBody(err)
	}
	return n, b.err
}

// ofBody is S3's error of a body that can't be read.
func ofBody(err error) error {
	switch {
	case errors.Is(err, awschunked.ErrSignature):
		return s3err.GetAPIError(s3err.ErrSignatureDoesNotMatch)
	case errors.Is(err, awschunked.ErrChunkSize):
		return s3err.GetAPIError(s3err.ErrInvalidChunkSize)
	case errors.Is(err, awschunked.ErrTrailer):
		return s3err.GetAPIError(s3err.ErrMalformedTrailer)
	case errors.Is(err, awschunked.ErrLength):
		return s3err.GetAPIError(s3err.ErrContentLengthMismatch)
	case errors.Is(err, awschunked.ErrMalformed), errors.Is(err, awschunked.ErrTruncated):
		return s3err.GetAPIError(s3err.ErrIncompleteBody)
	}
	return err
}

// verify compares what was read with what the client said, before it is stored. It
// returns the checksums that are kept.
func (b *body) verify(sums coder.Sums) ([]coder.Checksum, error) {
	// The trailer is read by the Read that finds the end.
	if n, err := b.Read(make([]byte, 1)); n > 0 || !errors.Is(err, io.EOF) {
		if n > 0 {
			err = s3err.GetAPIError(s3err.ErrContentLengthMismatch)
		}
		return nil, err
	}
	if got := hex.EncodeToString(sums.SHA256[:]); b.sha256 != "" && b.sha256 != got {
		return nil, s3err.GetContentSHA256MismatchErr(b.sha256, got)
	}
	if got := base64.StdEncoding.EncodeToString(sums.MD5[:]); b.md5 != "" && b.md5 != got {
		want, _ := base64.StdEncoding.DecodeString(b.md5) // it was one before
		return nil, s3err.GetBadDigestErr(hex.EncodeToString(sums.MD5[:]), hex.EncodeToString(want))
	}
	if b.algorithm == "" {
		return nil, nil
	}
	got := base64.StdEncoding.EncodeToString(b.digest(sums))
	if b.chunked != nil && b.want == "" {
		b.want = b.chunked.Trailer()
		if b.want != "" && !utils.IsValidChecksum(b.want, types.ChecksumAlgorithm(b.algorithm)) {
			return nil, s3err.GetInvalidTrailingChecksumHeaderErr("x-amz-checksum-" + strings.ToLower(b.algorithm))
		}
	}
	if b.want != "" && b.want != got {
		return nil, s3err.GetChecksumBadDigestErr(types.ChecksumAlgorithm(b.algorithm))
	}
	return []coder.Checksum{{Algorithm: b.algorithm, Value: got}}, nil
}

func (b *body) digest(sums coder.Sums) []byte {
	if b.sum == nil {
		return sums.SHA256[:]
	}
	return b.sum.Sum(nil)
}
