package catalog

import (
	"bytes"
	"strings"

	"go.etcd.io/bbolt"
)

// ListInput asks for records as S3 does.
type ListInput struct {
	Bucket, Prefix string
	// Delimiter rolls keys up to common prefixes, if not empty.
	Delimiter string
	// After is the last key or common prefix of the page before, or any other key.
	// Keys and common prefixes after it are listed; a prefix that isn't after it is
	// passed over with all its keys.
	After string
	// Max is the most keys and common prefixes together; 0 gives none.
	Max int
}

// Listing is a page. Records and Prefixes are ascending by bytes.
type Listing struct {
	Records  []Listed
	Prefixes []string
	// Truncated tells that there are more, after Next: the last key or prefix.
	Truncated bool
	Next      string
}

// List returns ErrNoBucket.
func (c *Catalog) List(in ListInput) (page Listing, err error) {
	w := walk{prefix: in.Prefix, delimiter: in.Delimiter, after: in.After, most: in.Max}
	w.rolled = func(prefix string) { page.Prefixes, page.Next = append(page.Prefixes, prefix), prefix }
	w.item = func(key, _ string, value []byte) error {
		l, _, err := decodeListed(value)
		l.Key = key
		page.Records, page.Next = append(page.Records, l), key
		return err
	}
	err = c.read(func(v *view) error {
		if err := v.bucket(in.Bucket); err != nil {
			return err
		}
		page.Truncated, err = w.run(v.cursor(records), join(in.Bucket, ""))
		return err
	})
	if !page.Truncated {
		page.Next = ""
	}
	return page, err
}

// ListUploadsInput asks for uploads as S3 does.
type ListUploadsInput struct {
	Bucket, Prefix, Delimiter string
	// AfterKey is the key-marker. With AfterID uploads of that key with greater ids
	// are listed too.
	AfterKey, AfterID string
	Max               int
}

// UploadListing is a page, uploads by key and id.
type UploadListing struct {
	Uploads  []Upload
	Prefixes []string
	// Truncated tells that there are more, after NextKey and NextID. NextID is empty
	// when the last item was a common prefix.
	Truncated       bool
	NextKey, NextID string
}

// ListUploads returns ErrNoBucket.
func (c *Catalog) ListUploads(in ListUploadsInput) (page UploadListing, err error) {
	w := walk{prefix: in.Prefix, delimiter: in.Delimiter, after: in.AfterKey, afterID: in.AfterID, most: in.Max}
	w.rolled = func(prefix string) {
		page.Prefixes = append(page.Prefixes, prefix)
		page.NextKey, page.NextID = prefix, ""
	}
	w.item = func(key, id string, value []byte) error {
		u, err := decodeUpload(in.Bucket, key, id, value)
		page.Uploads = append(page.Uploads, u)
		page.NextKey, page.NextID = key, id
		return err
	}
	err = c.read(func(v *view) error {
		if err := v.bucket(in.Bucket); err != nil {
			return err
		}
		page.Truncated, err = w.run(v.cursor(uploads), join(in.Bucket, ""))
		return err
	})
	if !page.Truncated {
		page.NextKey, page.NextID = "", ""
	}
	return page, err
}

// walk goes over rows whose keys are a bucket, a key and perhaps an id, as S3 lists them.
// It seeks past what it need not see: a common prefix costs one look-up, whatever is in
// it.
type walk struct {
	prefix, delimiter, after, afterID string
	most                              int
	rolled                            func(prefix string)
	item                              func(key, id string, value []byte) error
}

func (w *walk) run(cursor *bbolt.Cursor, within []byte) (truncated bool, err error) {
	if w.most <= 0 {
		return false, nil
	}
	n := 0
	row, value := cursor.Seek(append(bytes.Clone(within), max(w.prefix, w.after)...))
	for bytes.HasPrefix(row, within) {
		first, id, _ := bytes.Cut(row[len(within):], []byte{0})
		key := string(first)
		if !strings.HasPrefix(key, w.prefix) {
			return false, nil // Seek was not before the prefix, so this is after it
		}
		if common, ok := w.common(key); ok {
			if common > w.after {
				if n == w.most {
					return true, nil
				}
				n++
				w.rolled(common)
			}
			row, value = seekPast(cursor, within, common)
			continue
		}
		if key > w.after || (w.afterID != "" && key == w.after && string(id) > w.afterID) {
			if n == w.most {
				return true, nil
			}
			n++
			if err := w.item(key, string(id), value); err != nil {
				return false, err
			}
		}
		row, value = cursor.Next()
	}
	return false, nil
}

// common is the common prefix that a key is rolled up to.
func (w *walk) common(key string) (string, bool) {
	if w.delimiter == "" {
		return "", false
	}
	i := strings.Index(key[len(w.prefix):], w.delimiter)
	if i < 0 {
		return "", false
	}
	return key[:len(w.prefix)+i+len(w.delimiter)], true
}

// seekPast finds the first row after all whose keys begin with a prefix.
func seekPast(cursor *bbolt.Cursor, within []byte, prefix string) (row, value []byte) {
	next := append(bytes.Clone(within), prefix...)
	// The least string after all that begin so: the last byte that isn't the greatest
	// one more. There is one: within ends with a zero byte.
	for next[len(next)-1] == 0xff {
		next = next[:len(next)-1]
	}
	next[len(next)-1]++
	return cursor.Seek(next)
}
