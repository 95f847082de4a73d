package coder

import (
	"fmt"
	"strings"
	"time"

	"penstock/consumers/executor/coder/catalog"
)

// matches tells whether an ETag is in a list as the headers If-Match and If-None-Match
// have it: with or without quotes, weak or not, and "*" is any.
func matches(list, etag string) bool {
	for one := range strings.SplitSeq(list, ",") {
		one = strings.TrimSpace(one)
		if one == "*" {
			return true
		}
		if strings.Trim(strings.TrimPrefix(one, "W/"), `"`) == strings.Trim(etag, `"`) {
			return true
		}
	}
	return false
}

// condition is what is asked in the transaction of a write; nil asks for nothing. S3
// says ErrNoKey where If-Match meets no object.
func condition(q Conditions) catalog.Condition {
	if q.IfMatch == "" && q.IfNoneMatch == "" {
		return nil
	}
	return func(now *catalog.Record) error {
		switch {
		case q.IfMatch != "" && now == nil:
			return fmt.Errorf("%w: If-Match", ErrNoKey)
		case q.IfMatch != "" && !matches(q.IfMatch, now.ETag):
			return fmt.Errorf("%w: If-Match", ErrPrecondition)
		case q.IfNoneMatch != "" && now != nil && matches(q.IfNoneMatch, now.ETag):
			return fmt.Errorf("%w: If-None-Match", ErrPrecondition)
		}
		return nil
	}
}

// read evaluates the conditions of a read in the order of RFC 9110, section 13.2.2.
// Dates of headers have whole seconds. It returns ErrPrecondition and ErrNotModified.
func (q Conditions) read(etag string, modified time.Time) error {
	modified = modified.Truncate(time.Second)
	switch {
	case q.IfMatch != "":
		if !matches(q.IfMatch, etag) {
			return fmt.Errorf("%w: If-Match", ErrPrecondition)
		}
	case !q.IfUnmodifiedSince.IsZero() && modified.After(q.IfUnmodifiedSince):
		return fmt.Errorf("%w: If-Unmodified-Since", ErrPrecondition)
	}
	switch {
	case q.IfNoneMatch != "":
		if matches(q.IfNoneMatch, etag) {
			return fmt.Errorf("%w: If-None-Match", ErrNotModified)
		}
	case !q.IfModifiedSince.IsZero() && !modified.After(q.IfModifiedSince):
		return fmt.Errorf("%w: If-Modified-Since", ErrNotModified)
	}
	return nil
}

// In says which bytes of an object a range is: length of them from offset on. It returns
// ErrBadRange for one that begins beyond the end, and ErrPart for a part that there
// isn't.
func (r Range) In(o *Object) (offset, length int64, err error) {
	if r.Part != 0 {
		return partOf(r.Part, o)
	}
	switch {
	case !r.Set:
		return 0, o.Size, nil
	case r.Last > 0:
		length = min(r.Last, o.Size)
		offset = o.Size - length
	default:
		end := o.Size
		if r.To >= 0 && r.To < o.Size {
			end = r.To + 1
		}
		offset, length = r.From, end-r.From
	}
	if offset < 0 || offset >= o.Size || length <= 0 {
		return 0, 0, fmt.Errorf("%w: %d bytes", ErrBadRange, o.Size)
	}
	return offset, length, nil
}

func partOf(number int, o *Object) (offset, length int64, err error) {
	if len(o.Parts) == 0 && number == 1 {
		return 0, o.Size, nil
	}
	for _, p := range o.Parts {
		if p.Number == number {
			return offset, p.Size, nil
		}
		offset += p.Size
	}
	return 0, 0, fmt.Errorf("%w: number %d", ErrPart, number)
}
