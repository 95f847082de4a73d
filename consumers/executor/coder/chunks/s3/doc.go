// Package s3 keeps blobs in a bucket of an S3 service, any that has what it asks for:
// PUT, ranged GET, DELETE, a listing in order of bytes, and uploads in parts for blobs
// larger than one.
//
// A key a/b/c is the object PREFIX/a/b/c!. The mark, which comes before everything that
// a key has, keeps the order of keys, and lets a blob a/b lie beside it in gateways that
// keep objects as files. Objects without it are foreign and left alone.
//
// A blob of at most PartSize bytes is read into memory, so that its size is known to be
// right before anything is sent, and is one request. A larger one is an upload in parts,
// one in memory at a time, that is completed once the reader has ended where it should:
// nobody sees a part of either. Contents are sent with their SHA-256, so that what
// arrives damaged is refused.
//
// States: New sends nothing, so that a store may be away when its coder starts; Check
// tells whether it is there. A store is open until Close, which waits for what is being
// tidied up.
//
// Failures: those of package chunks, ErrOption, ErrTooLarge, and what the service
// answered, without secrets. A request that failed on the way or that the service had no
// room for is sent again, Attempts times in all; all requests of a store wait while the
// service says that it is overloaded. A reading that is cut off goes on where it was. An
// upload that fails is aborted; where that fails too, or the process dies, it stays until
// Tidy (counted as "upload-left"). Contexts end requests on their
// sockets; a Put that was ended so, or got no answer, may yet be carried out (Late).
package s3
