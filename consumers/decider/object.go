package decider

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"penstock/infra/bus"
	"penstock/schemas/subject"
)

// chunkBytes is the size of an object's messages, as the client library has it.
const chunkBytes = 128 << 10

// putObject writes an object in the format of NATS object stores: its chunks on
// a subject of their own, then its description, which makes them the object's,
// each once the one before is acknowledged; then it drops the chunks of what was
// there before.
//
// The library's own Put publishes without waiting, and its goroutine for that is
// left behind for good when the object is stored before the goroutine has begun
// (nats.go v1.55.0, resetPendingAcksOnReconnect).
func putObject(ctx context.Context, c *bus.Client, objects jetstream.ObjectStore, meta jetstream.ObjectMeta, body []byte) error {
	old, err := objects.GetInfo(ctx, meta.Name, jetstream.GetObjectInfoShowDeleted())
	if err != nil && !errors.Is(err, jetstream.ErrObjectNotFound) {
		return fmt.Errorf("object %s: %w", meta.Name, err)
	}
	bucket := c.Stream(subject.SnapshotsBucket)
	chunks := func(id string) string { return "$O." + bucket + ".C." + id }
	meta.Opts = &jetstream.ObjectMetaOptions{ChunkSize: chunkBytes}
	info := jetstream.ObjectInfo{ObjectMeta: meta, Bucket: bucket, NUID: rand.Text(), Size: uint64(len(body))}
	sum := sha256.New()
	sum.Write(body)
	info.Digest = jetstream.GetObjectDigestValue(sum)
	for rest := body; len(rest) > 0; info.Chunks++ {
		n := min(len(rest), chunkBytes)
		if _, err := c.JS.Publish(ctx, chunks(info.NUID), rest[:n]); err != nil {
			return fmt.Errorf("object %s, chunk %d: %w", meta.Name, info.Chunks, err)
		}
		rest = rest[n:]
	}
	m := nats.NewMsg("$O." + bucket + ".M." + base64.URLEncoding.EncodeToString([]byte(meta.Name)))
	m.Header.Set(jetstream.MsgRollup, jetstream.MsgRollupSubject)
	if m.Data, err = json.Marshal(info); err != nil {
		return fmt.Errorf("object %s: %w", meta.Name, err)
	}
	if _, err := c.JS.PublishMsg(ctx, m); err != nil {
		return fmt.Errorf("object %s: %w", meta.Name, err)
	}
	if old == nil || old.Deleted {
		return nil
	}
	s, err := c.JS.Stream(ctx, "OBJ_"+bucket)
	if err == nil {
		err = s.Purge(ctx, jetstream.WithPurgeSubject(chunks(old.NUID)))
	}
	if err != nil {
		return fmt.Errorf("object %s, drop what it was: %w", meta.Name, err)
	}
	return nil
}
