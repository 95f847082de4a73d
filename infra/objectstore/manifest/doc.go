// Package manifest makes an object store out of any place that has blobs and one
// small document an owner that can be changed by compare-and-set: a bucket with
// conditional writes, a key-value store.
package manifest
