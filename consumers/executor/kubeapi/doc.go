// Package kubeapi asks a Kubernetes API server through its REST interface: as much of it
// as those need who keep a field or two of objects that are others'.
//
// States: there are none but connections. A bearer token is read again for each request,
// because tokens of service accounts change; it goes to nobody else, for redirects are
// not followed.
//
// Failures: an API server that can't be reached, is overloaded or doesn't know our token is
// ErrUnreachable; what isn't there is ErrAbsent; a version or a test of a patch that
// somebody else's write was before is ErrConflict; anything else that it, or an admission
// hook, will not do is ErrRefused.
package kubeapi
