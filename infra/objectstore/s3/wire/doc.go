// Package wire is the way to an S3 service that stores share: connections that end when
// the service is silent, what an answer tells about the request, and retries paced by
// that.
//
// States: a Client is open until Close. Failures: those of the client library, classified
// by Classify; Safe leaves out of them what must not be logged. Content that a request
// was given (WithContent) is read by nobody once the request has returned, however it
// ended.
package wire
