package s3front

import (
	"net/http"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"
	"github.com/versity/versitygw/s3api/controllers"
	"github.com/versity/versitygw/s3err"
)

// level is what a request's target names.
type level int

const (
	atService level = iota
	atBucket
	atObject
)

func (t target) level() level {
	switch {
	case t.bucket == "":
		return atService
	case t.key == "":
		return atBucket
	}
	return atObject
}

// operation is one of S3's.
type operation struct {
	// name is S3's.
	name   string
	level  level
	method string
	// query are the arguments that tell it from others of the method, header a field
	// that does.
	query  []string
	header string
	// write operations are not for keys that may only read.
	write bool
	// stream says that the backend reads the body; others have it read before.
	stream bool
	// digest says that a body, and a digest of it, are needed.
	digest bool
	// anyRegion lets requests in that are signed for us-east-1: clients ask these before
	// they know the region.
	anyRegion bool
	// fault is what is answered instead; nil with run.
	fault error
	run   controllers.Controller
}

// matches tells whether a request is of this operation.
func (o *operation) matches(args *fasthttp.Args, h http.Header) bool {
	for _, name := range o.query {
		if name, value, valued := strings.Cut(name, "="); !args.Has(name) || valued && string(args.Peek(name)) != value {
			return false
		}
	}
	return o.header == "" || h.Get(o.header) != ""
}

// operations are all that are known, by level and method, those with the most marks
// first.
type operations map[level]map[string][]*operation

// newOperations returns the table over the controllers of versitygw.
func newOperations(c controllers.S3ApiController) operations {
	ops := operations{}
	for _, o := range refused() {
		ops.add(o)
	}
	for _, o := range answered(c) {
		ops.add(o)
	}
	return ops
}

func (ops operations) add(o *operation) {
	if ops[o.level] == nil {
		ops[o.level] = map[string][]*operation{}
	}
	ops[o.level][o.method] = append(ops[o.level][o.method], o)
}

// find returns the operation of a request; for none an operation that refuses it.
func (ops operations) find(l level, method string, args *fasthttp.Args, h http.Header) *operation {
	for _, o := range ops[l][method] {
		if o.matches(args, h) {
			return o
		}
	}
	if method == http.MethodOptions {
		return refuse("PreflightRequest", l, method)
	}
	var allowed []string
	for m := range ops[l] {
		allowed = append(allowed, m)
	}
	slices.Sort(allowed)
	kind := [...]s3err.ResourceType{s3err.ResourceTypeService, s3err.ResourceTypeBucket, s3err.ResourceTypeObject}[l]
	return &operation{name: method, level: l, method: method, fault: s3err.GetMethodNotAllowedErr(method, kind, allowed)}
}

const copySource = "X-Amz-Copy-Source"

// answered are the operations that are, the more special ones first.
func answered(c controllers.S3ApiController) []*operation {
	return []*operation{
		{name: "ListBuckets", level: atService, method: http.MethodGet, anyRegion: true, run: c.ListBuckets},

		{name: "DeleteObjects", level: atBucket, method: http.MethodPost, query: []string{"delete"}, write: true, digest: true, run: c.DeleteObjects},
		{name: "GetBucketLocation", level: atBucket, method: http.MethodGet, query: []string{"location"}, anyRegion: true, run: c.GetBucketLocation},
		{name: "ListMultipartUploads", level: atBucket, method: http.MethodGet, query: []string{"uploads"}, run: c.ListMultipartUploads},
		{name: "ListObjectsV2", level: atBucket, method: http.MethodGet, query: []string{"list-type=2"}, run: c.ListObjectsV2},
		{name: "ListObjects", level: atBucket, method: http.MethodGet, run: c.ListObjects},
		{name: "HeadBucket", level: atBucket, method: http.MethodHead, anyRegion: true, run: c.HeadBucket},
		{name: "CreateBucket", level: atBucket, method: http.MethodPut, write: true, anyRegion: true, run: c.CreateBucket},
		{name: "DeleteBucket", level: atBucket, method: http.MethodDelete, write: true, run: c.DeleteBucket},
		refuse("PostObject", atBucket, http.MethodPost),

		{name: "CreateMultipartUpload", level: atObject, method: http.MethodPost, query: []string{"uploads"}, write: true, run: c.CreateMultipartUpload},
		{name: "CompleteMultipartUpload", level: atObject, method: http.MethodPost, query: []string{"uploadId"}, write: true, run: c.CompleteMultipartUpload},
		{name: "UploadPartCopy", level: atObject, method: http.MethodPut, query: []string{"uploadId", "partNumber"}, header: copySource, write: true, run: c.UploadPartCopy},
		{name: "UploadPart", level: atObject, method: http.MethodPut, query: []string{"uploadId", "partNumber"}, write: true, stream: true, run: c.UploadPart},
		{name: "ListParts", level: atObject, method: http.MethodGet, query: []string{"uploadId"}, run: c.ListParts},
		{name: "AbortMultipartUpload", level: atObject, method: http.MethodDelete, query: []string{"uploadId"}, write: true, run: c.AbortMultipartUpload},
		{name: "UploadPart", level: atObject, method: http.MethodPut, query: []string{"partNumber"}, write: true, fault: s3err.GetInvalidArgumentErr(s3err.InvalidArgMissingUploadId, "partNumber")},
		{name: "UploadPart", level: atObject, method: http.MethodPut, query: []string{"uploadId"}, write: true, fault: s3err.GetInvalidArgumentErr(s3err.InvalidArgPartNumber, "")},

		{name: "CopyObject", level: atObject, method: http.MethodPut, header: copySource, write: true, run: c.CopyObject},
		{name: "PutObject", level: atObject, method: http.MethodPut, write: true, stream: true, run: c.PutObject},
		{name: "GetObjectAttributes", level: atObject, method: http.MethodGet, query: []string{"attributes"}, run: c.GetObjectAttributes},
		{name: "GetObject", level: atObject, method: http.MethodGet, run: c.GetObject},
		{name: "HeadObject", level: atObject, method: http.MethodHead, run: c.HeadObject},
		{name: "DeleteObject", level: atObject, method: http.MethodDelete, write: true, run: c.DeleteObject},
		refuse("PostObject", atObject, http.MethodPost),
	}
}

// notImplemented is the answer to what is known and not there.
func notImplemented(what string) s3err.APIError {
	return s3err.APIError{
		Code: "NotImplemented", HTTPStatusCode: http.StatusNotImplemented,
		Description: what + " is not implemented.",
	}
}

// refuse returns an operation that is answered with its name.
func refuse(name string, l level, method string, query ...string) *operation {
	return &operation{name: name, level: l, method: method, query: query, fault: notImplemented(name)}
}
