package s3front

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"
	"github.com/versity/versitygw/backend"
	"github.com/versity/versitygw/s3api/controllers"
	"github.com/versity/versitygw/s3err"
)

// TestSubresources: each that is not there is refused by its name, whatever the method,
// and nobody who has no key is told even that.
func TestSubresources(t *testing.T) {
	t.Parallel()
	f := memory(t, nil)
	w := serve(t, f, nil)
	b := w.bucket("a-bucket")
	n := 0
	for path, subs := range map[string]map[string]string{"/" + b: ofBuckets, "/" + b + "/k": ofObjects} {
		for arg, name := range subs {
			for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodDelete, http.MethodPost} {
				got := w.expect(method+" "+path+"?"+arg, wire{method: method, path: path + "?" + arg + "="}, 501, "NotImplemented")
				if !strings.Contains(got.text, name) && !strings.Contains(got.text, "CreateSession") {
					t.Errorf("%s %s: %s does not name %s", method, arg, got.text, name)
				}
				n++
			}
		}
	}
	if n < 100 {
		t.Errorf("%d tried", n)
	}
	w.expect("no key", wire{method: http.MethodGet, path: "/" + b + "?acl=", key: &Key{Access: "nobody", Secret: "x"}}, 403, "InvalidAccessKeyId")
	w.expect("a form", wire{method: http.MethodPost, path: "/" + b}, 501, "NotImplemented")
	w.expect("another method", wire{method: http.MethodPatch, path: "/" + b}, 405, "MethodNotAllowed")
	w.expect("preflight", wire{method: http.MethodOptions, path: "/" + b}, 501, "NotImplemented")
	w.expect("a version", wire{method: http.MethodGet, path: "/" + b + "/k?versionId=3"}, 501, "NotImplemented")
	w.expect("half an upload", put("/"+b+"/k?partNumber=1", "x"), 400, "InvalidArgument")
	w.expect("half an upload", put("/"+b+"/k?uploadId=1", "x"), 400, "InvalidArgument")
	for _, name := range headers {
		w.expect(name, put("/"+b+"/k", "x").with(name, "1"), 501, "NotImplemented")
	}
	w.expect("public", put("/"+b+"/k", "x").with("X-Amz-Acl", "public-read"), 501, "NotImplemented")
	w.expect("public", put("/public", "").with("X-Amz-Acl", "public-read"), 501, "NotImplemented")
	w.expect("a class", put("/"+b+"/k", "x").with("X-Amz-Storage-Class", "GLACIER"), 400, "InvalidStorageClass")
	f.nothing(b)
}

// supported are the operations of versitygw's Backend that are answered.
var supported = map[string]bool{
	"String": true, "Shutdown": true, "NormalizeObjectKey": true,
	// versitygw asks it before each write; clients never reach it.
	"GetObjectLockConfiguration": true,
	"ListBuckets":                true, "HeadBucket": true, "CreateBucket": true, "DeleteBucket": true,
	"CreateMultipartUpload": true, "CompleteMultipartUpload": true, "AbortMultipartUpload": true,
	"ListMultipartUploads": true, "ListParts": true, "UploadPart": true, "UploadPartCopy": true,
	"PutObject": true, "HeadObject": true, "GetObject": true, "GetObjectAttributes": true, "CopyObject": true,
	"ListObjects": true, "ListObjectsV2": true, "DeleteObject": true, "DeleteObjects": true,
	// It has no error; there is no way to it.
	"SelectObjectContent": true,
}

// TestBackend: what of versitygw's Backend is not ours says so.
func TestBackend(t *testing.T) {
	t.Parallel()
	v := reflect.ValueOf(&storage{})
	iface := reflect.TypeFor[backend.Backend]()
	refused := 0
	for i := range iface.NumMethod() {
		m := iface.Method(i)
		if supported[m.Name] {
			continue
		}
		refused++
		var in []reflect.Value
		for j := range m.Type.NumIn() {
			arg := m.Type.In(j)
			if arg == reflect.TypeFor[context.Context]() {
				in = append(in, reflect.ValueOf(context.Background()))
				continue
			}
			in = append(in, reflect.Zero(arg))
		}
		out := v.MethodByName(m.Name).Call(in)
		err, _ := out[len(out)-1].Interface().(error)
		if !errors.Is(err, s3err.GetAPIError(s3err.ErrNotImplemented)) {
			t.Errorf("%s: %v", m.Name, err)
		}
	}
	if refused < 30 {
		t.Errorf("%d are refused", refused)
	}
}

// TestEveryOperationIsNamed: the table has each operation once, with a name and an
// answer, and the ones with marks before those without.
func TestEveryOperationIsNamed(t *testing.T) {
	t.Parallel()
	ops := newOperations(controllers.S3ApiController{})
	for l, methods := range ops {
		for method, all := range methods {
			bare := false
			for _, o := range all {
				switch {
				case o.name == "" || (o.run == nil) == (o.fault == nil):
					t.Errorf("%d %s: %+v", l, method, o)
				case bare:
					t.Errorf("%s stands behind one that takes all", o.name)
				}
				bare = len(o.query) == 0 && o.header == ""
			}
		}
	}
	var args fasthttp.Args
	args.Parse("list-type=1")
	if got := ops.find(atBucket, http.MethodGet, &args, http.Header{}); got.name != "ListObjects" {
		t.Error(got.name)
	}
}
