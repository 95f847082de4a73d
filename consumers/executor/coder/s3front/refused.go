package s3front

import (
	"net/http"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"
	"github.com/versity/versitygw/s3err"
)

// ofBuckets are subresources of buckets that are not there, by query argument, with what
// S3 calls them.
var ofBuckets = map[string]string{
	"abac":                   "BucketAbac",
	"accelerate":             "BucketAccelerateConfiguration",
	"acl":                    "BucketAcl",
	"analytics":              "BucketAnalyticsConfiguration",
	"cors":                   "BucketCors",
	"encryption":             "BucketEncryption",
	"intelligent-tiering":    "BucketIntelligentTieringConfiguration",
	"inventory":              "BucketInventoryConfiguration",
	"lifecycle":              "BucketLifecycleConfiguration",
	"logging":                "BucketLogging",
	"metadataConfiguration":  "BucketMetadataConfiguration",
	"metadataInventoryTable": "BucketMetadataInventoryTableConfiguration",
	"metadataJournalTable":   "BucketMetadataJournalTableConfiguration",
	"metadataTable":          "BucketMetadataTableConfiguration",
	"metrics":                "BucketMetricsConfiguration",
	"notification":           "BucketNotificationConfiguration",
	"object-lock":            "ObjectLockConfiguration",
	"ownershipControls":      "BucketOwnershipControls",
	"policy":                 "BucketPolicy",
	"policyStatus":           "BucketPolicyStatus",
	"publicAccessBlock":      "PublicAccessBlock",
	"replication":            "BucketReplication",
	"requestPayment":         "BucketRequestPayment",
	"session":                "Session",
	"tagging":                "BucketTagging",
	"versioning":             "BucketVersioning",
	"versions":               "ObjectVersions",
	"website":                "BucketWebsite",
}

// ofObjects are those of objects.
var ofObjects = map[string]string{
	"acl":          "ObjectAcl",
	"annotation":   "ObjectAnnotation",
	"encryption":   "ObjectEncryption",
	"legal-hold":   "ObjectLegalHold",
	"renameObject": "RenameObject",
	"restore":      "RestoreObject",
	"retention":    "ObjectRetention",
	"select":       "SelectObjectContent",
	"tagging":      "ObjectTagging",
	"torrent":      "ObjectTorrent",
}

// named are operations whose names are not the method's verb and the subresource.
var named = map[string]string{
	"GetObjectVersions": "ListObjectVersions", "GetSession": "CreateSession",
	"PutRenameObject": "RenameObject", "PostRestoreObject": "RestoreObject",
	"PostSelectObjectContent": "SelectObjectContent",
}

// refused are the operations that are answered with NotImplemented and their name.
func refused() (ops []*operation) {
	verbs := map[string]string{
		http.MethodGet: "Get", http.MethodHead: "Head", http.MethodPut: "Put", http.MethodPost: "Post", http.MethodDelete: "Delete",
	}
	for l, subs := range map[level]map[string]string{atBucket: ofBuckets, atObject: ofObjects} {
		for arg, name := range subs {
			for method, verb := range verbs {
				full := verb + name
				if other, ok := named[full]; ok {
					full = other
				}
				ops = append(ops, refuse(full, l, method, arg))
			}
		}
	}
	slices.SortFunc(ops, func(a, b *operation) int { return strings.Compare(a.name, b.name) })
	return ops
}

// headers are fields that would change what is stored, or how: to pass over one would be
// to say that it was done.
var headers = []string{
	"X-Amz-Bucket-Object-Lock-Enabled",
	"X-Amz-Grant-Full-Control", "X-Amz-Grant-Read", "X-Amz-Grant-Read-Acp", "X-Amz-Grant-Write", "X-Amz-Grant-Write-Acp",
	"X-Amz-If-Match-Last-Modified-Time", "X-Amz-If-Match-Size", "X-Amz-If-Match-Initiated-Time",
	"X-Amz-Object-Lock-Legal-Hold", "X-Amz-Object-Lock-Mode", "X-Amz-Object-Lock-Retain-Until-Date",
	"X-Amz-Server-Side-Encryption", "X-Amz-Server-Side-Encryption-Aws-Kms-Key-Id",
	"X-Amz-Server-Side-Encryption-Bucket-Key-Enabled", "X-Amz-Server-Side-Encryption-Context",
	"X-Amz-Server-Side-Encryption-Customer-Algorithm", "X-Amz-Server-Side-Encryption-Customer-Key",
	"X-Amz-Copy-Source-Server-Side-Encryption-Customer-Algorithm", "X-Amz-Copy-Source-Server-Side-Encryption-Customer-Key",
	"X-Amz-Tagging", "X-Amz-Website-Redirect-Location", "X-Amz-Write-Offset-Bytes",
}

// unsupported returns the error of what a request asks for beside its operation, or nil.
func unsupported(h http.Header, args *fasthttp.Args) error {
	for _, name := range headers {
		if v := h.Get(name); v != "" && !strings.EqualFold(v, "false") && !strings.EqualFold(v, "off") {
			return s3err.GetNotImplementedErr(name, "")
		}
	}
	switch acl := h.Get("X-Amz-Acl"); acl {
	case "", "private", "bucket-owner-full-control":
		// That is what everything has.
	default:
		return s3err.GetNotImplementedErr("X-Amz-Acl", "")
	}
	if owned := h.Get("X-Amz-Object-Ownership"); owned != "" && owned != "BucketOwnerEnforced" {
		return s3err.GetNotImplementedErr("X-Amz-Object-Ownership", "")
	}
	if class := h.Get("X-Amz-Storage-Class"); class != "" && class != "STANDARD" {
		return s3err.APIError{
			Code: "InvalidStorageClass", HTTPStatusCode: http.StatusBadRequest,
			Description: "The storage class you specified is not valid.",
		}
	}
	if directive := h.Get("X-Amz-Tagging-Directive"); directive != "" && directive != "COPY" {
		return s3err.GetNotImplementedErr("X-Amz-Tagging-Directive", "")
	}
	if version := string(args.Peek("versionId")); version != "" && version != "null" {
		return notImplemented("versionId")
	}
	return nil
}
