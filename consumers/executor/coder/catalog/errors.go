package catalog

import "errors"

// Sentinels of the catalog. After each of them the catalog is as it was before the call,
// but where it says otherwise.
var (
	// ErrBucketExists is returned by CreateBucket for a name that is taken.
	ErrBucketExists = errors.New("bucket exists")
	// ErrBucketNotEmpty is returned by DeleteBucket while there are keys or uploads.
	ErrBucketNotEmpty = errors.New("bucket is not empty")
	// ErrClosed is returned after Close.
	ErrClosed = errors.New("catalog is closed")
	// ErrDamaged is returned for a row of the catalog that isn't what was written: the
	// file is damaged. Other rows can still be read.
	ErrDamaged = errors.New("catalog is damaged")
	// ErrForeign is returned by Open for the catalog of a coder of another name.
	ErrForeign = errors.New("catalog of another coder")
	// ErrFormat is returned for a catalog, a row or a change of a format that this
	// version does not know, or for a file that is no catalog.
	ErrFormat = errors.New("unknown format of a catalog")
	// ErrInput is returned for names, keys, sizes and texts that the catalog can't hold.
	ErrInput = errors.New("can't be catalogued")
	// ErrLocked is returned by Open while another process has the catalog open.
	ErrLocked = errors.New("catalog is open in another process")
	// ErrNoBucket is returned for a bucket that doesn't exist.
	ErrNoBucket = errors.New("no such bucket")
	// ErrNoIntent is returned by what takes intents, for one that isn't open.
	ErrNoIntent = errors.New("no such intent")
	// ErrNoKey is returned for a key without a record.
	ErrNoKey = errors.New("no such key")
	// ErrNoUpload is returned for an upload that doesn't exist, or no longer.
	ErrNoUpload = errors.New("no such upload")
	// ErrNoVersion is returned for a version that doesn't exist, or no longer. After
	// Settle the places of its intents are queued for deletion.
	ErrNoVersion = errors.New("no such version")
	// ErrPart is returned by CompleteUpload for a part that was not uploaded or has
	// another etag.
	ErrPart = errors.New("no such part")
	// ErrPartOrder is returned by CompleteUpload for parts that don't ascend.
	ErrPartOrder = errors.New("parts are not in ascending order")
	// ErrPartSize is returned by CompleteUpload for a part, other than the last, that
	// is smaller than the least size.
	ErrPartSize = errors.New("part is too small")
	// ErrPlace is returned for a place that another intent or the queue for deletion
	// has, and for a version with a place that is in none of its intents.
	ErrPlace = errors.New("place of a blob is not free")
	// ErrPrecondition is returned when a condition didn't hold.
	ErrPrecondition = errors.New("precondition failed")
	// ErrTrimmed is returned for changes that are no longer in the file, or not in what
	// is to be restored.
	ErrTrimmed = errors.New("changes are gone")
	// ErrTaken is returned for an id of a version, an intent or an upload that is in use.
	ErrTaken = errors.New("id is taken")
)
