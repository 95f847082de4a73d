package testserver_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/minio/minio-go/v7"

	"penstock/infra/testserver"
)

// TestS3Programs has each do all that it can against a server that isn't ours, and looks
// there by another client.
func TestS3Programs(t *testing.T) {
	s := testserver.VersityGW(t)
	for _, p := range testserver.S3Programs(t, s) {
		t.Run(p.Name, func(t *testing.T) {
			bucket, client := s.Bucket(t), s.Client(t)
			large := bytes.Repeat([]byte("0123456789abcdef"), (2*testserver.MinPart+4096)/16)
			for key, c := range map[string]struct {
				content []byte
				parts   int
			}{
				"empty": {nil, 0}, "a folder/ä b": {[]byte("content"), 0}, "large": {large, 0}, "parts": {large, testserver.MinPart},
			} {
				file := filepath.Join(t.TempDir(), "file")
				if err := os.WriteFile(file, c.content, 0o600); err != nil {
					t.Fatal(err)
				}
				var err error
				if c.parts > 0 {
					err = p.PutParts(t.Context(), bucket, key, file, c.parts)
				} else {
					err = p.Put(t.Context(), bucket, key, file)
				}
				if err != nil {
					t.Fatal(err)
				}
				info, err := client.StatObject(t.Context(), bucket, key, minio.StatObjectOptions{})
				if err != nil || info.Size != int64(len(c.content)) || (c.parts > 0) != strings.HasSuffix(info.ETag, "-3") {
					t.Errorf("%s is there as %d bytes, ETag %s: %v", key, info.Size, info.ETag, err)
				}
				back := file + " back"
				if err := p.Get(t.Context(), bucket, key, back); err != nil {
					t.Fatal(err)
				}
				if got, err := os.ReadFile(back); err != nil || !bytes.Equal(got, c.content) {
					t.Errorf("%s came back as %d bytes: %v", key, len(got), err)
				}
			}
			if got, err := p.Range(t.Context(), bucket, "large", 14, 5); !errors.Is(err, errors.ErrUnsupported) && (err != nil || string(got) != "ef012") {
				t.Errorf("a range is %q, %v", got, err)
			}
			check := func(want ...testserver.Listed) {
				t.Helper()
				got, err := p.List(t.Context(), bucket)
				slices.SortFunc(got, func(a, b testserver.Listed) int { return strings.Compare(a.Key, b.Key) })
				if err != nil || !slices.Equal(got, want) {
					t.Errorf("%v, %v", got, err)
				}
			}
			size := int64(len(large))
			check(testserver.Listed{Key: "a folder/ä b", Bytes: 7}, testserver.Listed{Key: "empty"}, testserver.Listed{Key: "large", Bytes: size}, testserver.Listed{Key: "parts", Bytes: size})
			if err := p.Delete(t.Context(), bucket, "large"); err != nil {
				t.Error(err)
			}
			check(testserver.Listed{Key: "a folder/ä b", Bytes: 7}, testserver.Listed{Key: "empty"}, testserver.Listed{Key: "parts", Bytes: size})
			if err := p.Get(t.Context(), bucket, "large", filepath.Join(t.TempDir(), "none")); err == nil {
				t.Error("got an object that isn't there")
			}
			if err := p.MakeBucket(t.Context(), bucket+"-more"); err != nil {
				t.Error(err)
			} else if err := client.RemoveBucket(t.Context(), bucket+"-more"); err != nil {
				t.Error(err)
			}
			bad := s
			bad.SecretKey = "not the secret"
			for _, q := range testserver.S3Programs(t, bad) {
				if _, err := q.List(t.Context(), bucket); q.Name == p.Name && (err == nil || !strings.Contains(err.Error(), "SignatureDoesNotMatch") && !strings.Contains(err.Error(), "403")) {
					t.Errorf("with a wrong secret: %v", err)
				}
			}
		})
	}
}
