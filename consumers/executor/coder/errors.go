package coder

import "errors"

var (
	// ErrOptions is returned by Open for options that make no coder. Nothing was opened.
	ErrOptions = errors.New("not the options of a coder")
	// ErrClosed is returned by calls after Close, or by a coder whose stores another
	// state has taken over.
	ErrClosed = errors.New("coder is closed")

	// ErrNoBucket is returned where the bucket isn't there. Nothing changed.
	ErrNoBucket = errors.New("no such bucket")
	// ErrBucketExists is returned by CreateBucket for a name that is taken.
	ErrBucketExists = errors.New("bucket exists")
	// ErrBucketNotEmpty is returned by DeleteBucket for one with objects or uploads.
	ErrBucketNotEmpty = errors.New("bucket is not empty")
	// ErrNoKey is returned where the bucket holds no object of the key.
	ErrNoKey = errors.New("no such key")
	// ErrKey is returned for a key that is empty, longer than 1024 bytes or not UTF-8,
	// or a bucket's name that breaks the rules of S3.
	ErrKey = errors.New("not a name of an object or bucket")
	// ErrHeaders is returned for metadata, headers or attributes beyond their limits.
	ErrHeaders = errors.New("metadata too large")

	// ErrNoUpload is returned for an upload that was never begun, or has ended.
	ErrNoUpload = errors.New("no such upload")
	// ErrPart is returned by CompleteUpload for a part that isn't there or has another
	// ETag, and by PutPart for a number outside 1 … 10,000. The upload stays.
	ErrPart = errors.New("no such part")
	// ErrPartOrder is returned by CompleteUpload for parts that don't ascend.
	ErrPartOrder = errors.New("parts out of order")
	// ErrPartTooSmall is returned by CompleteUpload if a part but the last is smaller
	// than MinPart.
	ErrPartTooSmall = errors.New("part too small")

	// ErrPrecondition is returned when a condition of the request failed (412).
	// Nothing changed.
	ErrPrecondition = errors.New("precondition failed")
	// ErrNotModified is returned by reads whose condition says that the client has the
	// object already (304).
	ErrNotModified = errors.New("not modified")
	// ErrBadRange is returned for a range that begins beyond the object's end (416).
	ErrBadRange = errors.New("range not satisfiable")
	// ErrBody is returned by Put and PutPart when the body has fewer or more bytes than
	// was said. Nothing was stored. Errors of the body itself are returned wrapped.
	ErrBody = errors.New("body is not of the size that was said")
	// ErrTooLarge is returned for objects beyond the most bytes that are coded.
	ErrTooLarge = errors.New("object too large")

	// ErrBusy is returned when the request queue is full: to be tried again later (503
	// SlowDown). Nothing changed.
	ErrBusy = errors.New("too many requests wait")
	// ErrTooFew is returned when so few chunks are whole or can be reached that the
	// object can't be read now, or can't be written to as many stores as durability
	// asks for (503). A write left nothing visible.
	ErrTooFew = errors.New("too few chunks")
	// ErrDamaged is returned by reads whose bytes fail the SHA-256 of the whole though
	// each strip passed: the document and the strips are not of one encoding. The last
	// byte was withheld.
	ErrDamaged = errors.New("object is damaged")
	// ErrNoStore is returned by TakeIn for a name that no store of the configuration has.
	ErrNoStore = errors.New("no store of this name")
	// ErrNotAbsent is returned by TakeIn for a store that has its owner marker, or no blobs
	// to lose. Nothing changed.
	ErrNotAbsent = errors.New("store is not absent")
	// ErrOwner is returned by Open when the stores belong to another state of the same
	// coder's name; Options.Adopt takes them over.
	ErrOwner = errors.New("stores belong to another state")
)
