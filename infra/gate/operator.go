package gate

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"penstock/infra/bus"
	"penstock/schemas/subject"
)

// Entry is an entry point that is registered.
type Entry struct {
	Site string `json:"site"`
	Name string `json:"name"`
	// Alive says that it answered. One that doesn't keeps moves away from its site
	// from being made, unless the site's store has a barrier of its own.
	Alive bool `json:"alive"`
}

// Entries returns the entry points that are registered, in no particular order, and
// asks each whether it lives.
func Entries(ctx context.Context, c *bus.Client) ([]Entry, error) {
	kv, err := c.KV(ctx, subject.EntriesKV)
	if err != nil {
		return nil, err
	}
	keys, err := kv.ListKeysFiltered(ctx, entryKind+".>")
	if err != nil {
		return nil, fmt.Errorf("list entry points: %w", err)
	}
	var out []Entry
	for key := range keys.Keys() {
		if _, names, ok := parseKey(key); ok {
			out = append(out, Entry{Site: names[0], Name: names[1]})
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("list entry points: %w", err)
	}
	for i := range out {
		out[i].Alive = alive(ctx, onBus{c}, out[i].Site, out[i].Name)
	}
	return out, nil
}

func alive(ctx context.Context, l link, site, name string) bool {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	b, err := l.ask(ctx, subject.Gate(site, name), encode(request{Op: opWho}))
	if err != nil {
		return false
	}
	a, err := decode[answer](b)
	return err == nil && a.State == stateAlive
}

// Forget takes an entry point out of the register that will not come back. One that
// lives after all registers again within seconds; until then no mover asks it. It
// reports false if there was none of that name.
func Forget(ctx context.Context, c *bus.Client, site, name string) (bool, error) {
	kv, err := c.KV(ctx, subject.EntriesKV)
	if err != nil {
		return false, err
	}
	key := entryKey(site, name)
	_, err = kv.Get(ctx, key)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return false, nil
	}
	if err == nil {
		err = kv.Delete(ctx, key)
	}
	if err != nil {
		return false, fmt.Errorf("forget entry point %s of %s: %w", name, site, err)
	}
	return true, nil
}
