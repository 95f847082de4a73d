package catalog

import (
	"context"
	"errors"
	"time"

	"penstock/consumers/executor/coder/object"
)

var errSoon = errors.New("not written yet")

// Options of Open.
type Options struct {
	// Coder is the coder's name; a catalog is of one coder for good.
	Coder string
	// Instance names the state in the stores' owner marker; it is kept when the
	// catalog is made. Defaults to a random one.
	Instance string
	// NoLog keeps no changes for a Shipper: nobody ships them.
	NoLog bool
	// NoSync leaves writing to the system, so that a crash of the machine, not of
	// the process, may lose or damage the catalog. For tests.
	NoSync bool
}

// Catalog is an open catalog.
type Catalog struct{}

// Identity is what the owner marker in the stores says.
type Identity struct {
	Coder, Instance string
	// Term is 1 for a fresh catalog and one more at each Rebuild. The highest owns.
	Term uint32
}

// Open opens the catalog in a file, makes it if there is none, and queues for deletion
// what intents of a dead process name. It returns ErrLocked if another process has it
// open, ErrForeign if it is another coder's, and ErrFormat if it is none.
func Open(path string, o Options) (*Catalog, error) { return nil, errSoon }

// Close waits for the transactions under way and closes the file. A second Close
// returns nil.
func (c *Catalog) Close() error { return errSoon }

// Identity of the state.
func (c *Catalog) Identity() Identity { return Identity{} }

// Seq is the sequence number of the last change.
func (c *Catalog) Seq() uint64 { return 0 }

// Bucket is a bucket. Created is UTC in whole microseconds.
type Bucket struct {
	Name    string
	Created time.Time
}

// CreateBucket returns ErrBucketExists, ErrInput.
func (c *Catalog) CreateBucket(ctx context.Context, b Bucket) error { return errSoon }

// DeleteBucket returns ErrNoBucket, ErrBucketNotEmpty.
func (c *Catalog) DeleteBucket(ctx context.Context, name string) error { return errSoon }

// Bucket returns ErrNoBucket.
func (c *Catalog) Bucket(name string) (Bucket, error) { return Bucket{}, errSoon }

// Buckets lists at most most buckets whose names begin with prefix and come after
// after, by name.
func (c *Catalog) Buckets(prefix, after string, most int) ([]Bucket, error) { return nil, errSoon }

// Begin opens an intent. It returns ErrTaken, ErrPlace, ErrInput.
func (c *Catalog) Begin(ctx context.Context, i Intent) error { return errSoon }

// Abandon ends intents and queues their places for deletion. Those that aren't open
// are passed over. Call it when nothing writes these blobs any more.
func (c *Catalog) Abandon(ctx context.Context, intents ...string) error { return errSoon }

// PutInput makes a version the object of a key.
type PutInput struct {
	Bucket string
	// Record has all but Parts, which follow from Version.
	Record  Record
	Version *object.Version
	// Intents that end with it; the version's places are theirs. Places that the
	// version hasn't are queued for deletion.
	Intents []string
	Rest    Rest
	If      Condition
}

// Put returns ErrNoBucket, ErrNoIntent, ErrPlace, ErrTaken, ErrInput, and what If says.
// It changed nothing then: the intents are open, see Abandon.
func (c *Catalog) Put(ctx context.Context, in PutInput) error { return errSoon }

// Delete removes a key and queues its blobs for deletion. It tells whether there was
// one, and returns ErrNoBucket and what condition says.
func (c *Catalog) Delete(ctx context.Context, bucket, key string, condition Condition) (bool, error) {
	return false, errSoon
}

// Amend changes a record's headers, metadata, checksums, etag and time, and nothing of
// its bytes. It returns ErrNoBucket, ErrNoKey, ErrInput and change's error.
func (c *Catalog) Amend(ctx context.Context, bucket, key string, change func(*Record) error) (Record, error) {
	return Record{}, errSoon
}

// Get returns ErrNoBucket, ErrNoKey.
func (c *Catalog) Get(bucket, key string) (Record, error) { return Record{}, errSoon }

// Held is a record whose versions' blobs aren't deleted before Release.
type Held struct {
	Record Record
}

// Release lets the blobs go. A second one does nothing.
func (h *Held) Release() {}

// Hold is Get for readers of the blobs. It returns ErrNoBucket, ErrNoKey.
func (c *Catalog) Hold(bucket, key string) (*Held, error) { return nil, errSoon }

// HoldVersion keeps the blobs of one version out of Deletes until release, also when it
// is overwritten meanwhile: for settling and repairing. It returns ErrNoVersion.
func (c *Catalog) HoldVersion(id string) (v *object.Version, r Rest, release func(), err error) {
	return nil, Rest{}, nil, errSoon
}

// Version gives a document, and what is left to do with it. It returns ErrNoVersion.
func (c *Catalog) Version(id string) (*object.Version, Rest, error) { return nil, Rest{}, errSoon }

// Versions lists at most most ids of versions after after, ascending: of records and
// of parts.
func (c *Catalog) Versions(after string, most int) ([]string, error) { return nil, errSoon }

// SettleInput replaces a document by another one of the same bytes.
type SettleInput struct {
	Version string
	// Document is the new one, nil if it stays. Its places are the old one's or of
	// Intents. Places that only the old one or the intents had are queued for deletion.
	Document *object.Version
	Intents  []string
	// Rest is what is left to do now.
	Rest Rest
}

// Settle returns ErrNoVersion if the version is gone; then the intents are ended and
// their places queued for deletion. It also returns ErrNoIntent, ErrPlace, ErrInput.
func (c *Catalog) Settle(ctx context.Context, in SettleInput) error { return errSoon }

// Landed says that blobs are in their stores. It returns ErrNoVersion.
func (c *Catalog) Landed(ctx context.Context, version string, blobs ...int) error { return errSoon }

// Lack says that blobs aren't in their stores, or are damaged. It returns ErrNoVersion,
// and ErrInput for a blob that the version hasn't.
func (c *Catalog) Lack(ctx context.Context, version string, blobs ...int) error { return errSoon }

// Intents lists at most most open intents with ids after after, by id.
func (c *Catalog) Intents(after string, most int) ([]Intent, error) { return nil, errSoon }

// Rests lists at most most versions after after with something left to do, by id.
func (c *Catalog) Rests(after string, most int) ([]Resting, error) { return nil, errSoon }

// Deletes lists at most most blobs of a store to delete, with keys after after, by key.
// Blobs that a reader holds are left out, so that fewer than most don't mean the end;
// next does: the key to go on after, empty at the end.
func (c *Catalog) Deletes(store, after string, most int) (list []Deletion, next string, err error) {
	return nil, "", errSoon
}

// Deleted takes blobs that are gone from their stores out of the queue. Those that
// aren't queued are passed over.
func (c *Catalog) Deleted(ctx context.Context, places ...object.Place) error { return errSoon }

// Discard queues blobs for deletion that a scrub found in a store and took for nobody's,
// unless the version's document, an open intent or the queue has them. It tells how many.
func (c *Catalog) Discard(ctx context.Context, version string, places ...object.Place) (int, error) {
	return 0, errSoon
}

// ListInput asks for records as S3 does.
type ListInput struct {
	Bucket, Prefix string
	// Delimiter rolls keys up to common prefixes, if not empty.
	Delimiter string
	// After is the last key or common prefix of the page before, or any other key.
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
func (c *Catalog) List(in ListInput) (Listing, error) { return Listing{}, errSoon }

// Upload is one under way.
type Upload struct {
	Bucket, Key string
	// ID is of the caller's choosing. Uploads of one key are listed by id, so ids
	// that ascend with time list as S3 does.
	ID       string
	Created  time.Time
	Headers  Headers
	Metadata map[string]string
	// Checksum is the algorithm asked for, if any, and Composite its type.
	Checksum  string
	Composite bool
}

// Part of an upload.
type Part struct {
	// Number is from 1 to 10000.
	Number    int
	Size      int64
	ETag      string
	Modified  time.Time
	Checksums []Checksum
	Version   string
}

// CreateUpload returns ErrNoBucket, ErrTaken, ErrInput.
func (c *Catalog) CreateUpload(ctx context.Context, u Upload) error { return errSoon }

// Upload returns ErrNoBucket, ErrNoUpload.
func (c *Catalog) Upload(bucket, key, id string) (Upload, error) { return Upload{}, errSoon }

// PartInput makes a version a part of an upload.
type PartInput struct {
	Bucket, Key, Upload string
	// Part has all but Version.
	Part    Part
	Version *object.Version
	Intents []string
	Rest    Rest
}

// PutPart replaces a part of that number, whose blobs are queued for deletion. It returns
// ErrNoBucket, ErrNoUpload and what Put does.
func (c *Catalog) PutPart(ctx context.Context, in PartInput) error { return errSoon }

// Parts lists at most most parts with numbers after after, ascending, and tells whether
// there are more. It returns ErrNoBucket, ErrNoUpload.
func (c *Catalog) Parts(bucket, key, upload string, after, most int) (parts []Part, more bool, err error) {
	return nil, false, errSoon
}

// PartRef is a part as the client names it. An empty ETag is any.
type PartRef struct {
	Number int
	ETag   string
}

// CompleteInput makes an upload the object of its key.
type CompleteInput struct {
	Bucket, Key, Upload string
	Parts               []PartRef
	// MinPart is the least size of all parts but the last, in bytes.
	MinPart  int64
	Modified time.Time
	If       Condition
	// Finish may change the record before it is stored: its checksums, or its etag. It
	// is called inside the transaction, as If is, and its error ends it.
	Finish func(r *Record, parts []Part) error
}

// CompleteUpload turns the parts named into the record of the key, with the upload's
// headers and metadata and the etag that S3 makes (MultipartETag), and queues the blobs
// of the other parts and of what the key held for deletion. It returns ErrNoBucket,
// ErrNoUpload, ErrPart, ErrPartOrder, ErrPartSize and what If and Finish say.
func (c *Catalog) CompleteUpload(ctx context.Context, in CompleteInput) (Record, error) {
	return Record{}, errSoon
}

// AbortUpload queues the blobs of all parts for deletion. It returns ErrNoBucket,
// ErrNoUpload.
func (c *Catalog) AbortUpload(ctx context.Context, bucket, key, id string) error { return errSoon }

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
func (c *Catalog) ListUploads(in ListUploadsInput) (UploadListing, error) {
	return UploadListing{}, errSoon
}

// Stats are kept with every change.
type Stats struct {
	Buckets, Objects int64
	// Bytes of all objects.
	Bytes int64
	// Versions of objects and parts.
	Versions int64
	// Staged versions, versions that lack blobs, and the blobs they lack.
	Staged, Lacking, LackingBlobs int64
	// Deletes are blobs to delete, Intents the open ones.
	Deletes, Intents int64
	// Uploads under way, their parts and the parts' bytes.
	Uploads, Parts, PartBytes int64
}

// Stats of the last commit.
func (c *Catalog) Stats() Stats { return Stats{} }

// CheckReport is what Check found.
type CheckReport struct {
	// Stored are the stats that were kept, Counted what the rows say.
	Stored, Counted Stats
	// Problems are in words; none means that the catalog is whole.
	Problems []string
}

// Check reads every row and compares all with all, slowly.
func (c *Catalog) Check(ctx context.Context) (CheckReport, error) { return CheckReport{}, errSoon }
