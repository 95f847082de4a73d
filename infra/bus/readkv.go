package bus

import "context"

// ReadKV is Read of a key-value bucket: each entry that it holds, then each
// change, deletions too. An entry that is overwritten before it was delivered is
// passed over. The key of a message is what follows KeyPrefix in its subject.
func (c *Client) ReadKV(ctx context.Context, bucket string, from uint64) (*Reader, error) {
	return c.read(ctx, c.KVStream(bucket), "KV_"+bucket, nil, from)
}

// KVStream is the stream of a bucket, with the prefix.
func (c *Client) KVStream(bucket string) string { return "KV_" + c.bus.name(bucket) }

// KeyPrefix is what precedes the key in the subjects of a bucket.
func (c *Client) KeyPrefix(bucket string) string { return "$KV." + c.bus.name(bucket) + "." }
