// Package s3 keeps people's data in a bucket of an S3 service.
//
//	PREFIX/.penstock/doc/OWNER        the document of an owner: mark, objects, lease
//	PREFIX/.penstock/blob/OWNER/ID    content of objects; written once, never changed
//	PREFIX/.penstock/probe/…          what Open tries the service with
//	PREFIX/alice/photos/1.jpg         was there before: object photos/1.jpg of alice
//
// Package manifest makes the store out of these: what an owner has is what its
// document says, and a document only changes by a conditional write (If-Match with
// its ETag, or If-None-Match: * for the first one). That is also the write barrier,
// so it holds for every process that goes through this package, and for none that
// writes to the bucket by itself.
//
// # Names
//
// In OWNER and ID every byte but a-z, 0-9 and '-' is written _xx in hex, so that
// services that ignore case, or keep objects as files, hold them apart. What would
// be longer than 200 bytes is written __ and its SHA-256 in hex; the document says
// whose it is. 200, because a gateway that keeps objects as files needs room in 255
// for a temporary name. The prefix may have 512 bytes: no key is longer than 1,024.
//
// An owner's plain objects, those that were there before Penstock, lie under the
// owner's id as it is, or, if that has a slash or control characters, isn't UTF-8,
// is "." or "..", or begins with "b64=" or ".penstock", under its encoding on the
// bus (b64=…). They become the owner's data when Penstock first touches the owner,
// as they lie, and from then on belong to its document. Nothing else under the
// prefix is touched: keys without a slash, those that end in one, those with empty
// elements, and everything above the prefix.
//
// # The service
//
// Open tries whether conditional writes are one step with the comparison, by
// writers whose requests have all begun before any of them is whole: exactly one
// may win. If not so, Capabilities has no Barrier, Hold returns ErrNoBarrier, and
// documents are compared before they are written, which keeps apart those who
// write through one Store only. The trial shows what the nodes do that it
// reached; a service whose nodes disagree can't be found out by it.
//
// Durable is the service's own promise, which nothing here can examine. (versitygw
// on a file system does not sync: with it an acknowledged write may be lost with
// the machine.)
//
// ETags may be anything. If one isn't the MD5 of the content, a document is read
// until two readings agree, since there are gateways that take content and ETag
// from two versions when a write comes between.
//
// With versioning, every change of a document leaves a version that only a rule for
// noncurrent versions removes. A lifecycle rule that expires anything under PREFIX/.penstock would destroy
// data; one that aborts multipart uploads after some days does no harm.
//
// # Failures
//
// A request that fails is tried again with growing pauses, Attempts times in all,
// and a service that says it is overloaded (503, 429, Retry-After) is left alone by
// the whole Store for the pause. A write of a document that got no answer, or one
// that doesn't tell (5xx, a cut, silence), is sent again as it was: its condition
// lets it through once only, and if it is refused the document is read and known
// by its nonce. If others have written since, the error says that the outcome is
// unknown, and package manifest finds out by the document's own history. An upload
// in parts that fails is aborted; one whose process died is listed and deleted as
// the blob that it would have been. Keys and what a service says of them are never
// part of an error or a log line.
package s3
