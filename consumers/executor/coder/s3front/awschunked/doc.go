// Package awschunked reads bodies in the content coding aws-chunked, which clients of S3
// use to sign a body piece by piece, or to send its checksum behind it:
//
//	SIZE;chunk-signature=SIGNATURE CR LF DATA CR LF … 0;chunk-signature=… CR LF TRAILER CR LF
//
// SIZE is hexadecimal. An unsigned body has no extension behind SIZE. TRAILER is one line
// NAME:VALUE with the checksum, and in a signed body a line with the signature of it.
// (AWS, "Signature calculations for the Authorization header: transferring payload in
// multiple chunks", and the same with trailing headers.)
//
// States: a Reader gives data until io.EOF, which it gives only when the last chunk, the
// trailer and every signature were there and right, the data had the length that was
// said, and nothing followed. Failures: the sentinels in errors.go, which stay. What was
// read before is not to be believed then. Memory is a line, whatever sizes are claimed.
package awschunked
