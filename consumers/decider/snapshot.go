package decider

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"

	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/s2"

	"penstock/consumers/panes"
	"penstock/schemas/control"
)

// snapshotHead begins a snapshot; the open windows and the policy's state
// follow it.
type snapshotHead struct {
	Version int          `json:"version"`
	Kind    control.Kind `json:"kind"`
	Config  string       `json:"config"`       // digest of the policy's configuration
	Digest  string       `json:"state_digest"` // of the policy's state
	Loop    state        `json:"loop"`
}

const snapshotMagic = "penstock snapshot 1\n"

// maxHead bounds what is allocated for a head of unknown bytes: 256 MiB.
const maxHead = 256 << 20

// writeSnapshot writes the state of the loop, the open windows and the policy,
// compressed, and a checksum of that.
func writeSnapshot(out io.Writer, s *state, asm *panes.Assembler, p Policy) error {
	sum := xxhash.New()
	w := io.MultiWriter(out, sum)
	s.Answers.settle()
	head, err := json.Marshal(snapshotHead{
		Version: 1, Kind: p.Kind(), Config: ConfigDigest(p.Config()), Digest: p.Digest(), Loop: *s,
	})
	if err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	z := s2.NewWriter(w, s2.WriterConcurrency(1))
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], uint64(len(head)))
	for _, b := range [][]byte{[]byte(snapshotMagic), n[:], head} {
		if _, err := z.Write(b); err != nil {
			return fmt.Errorf("snapshot: %w", err)
		}
	}
	if err := asm.Snapshot(z); err != nil {
		return err
	}
	if err := p.Snapshot(z); err != nil {
		return fmt.Errorf("snapshot of policy %s: %w", p.Kind(), err)
	}
	if _, err := z.Write([]byte(snapshotMagic)); err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	if err := z.Close(); err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	if _, err := out.Write(binary.BigEndian.AppendUint64(nil, sum.Sum64())); err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	return nil
}

// openSnapshot reads the head of a snapshot; rest is what follows it.
func openSnapshot(body []byte) (*snapshotHead, *bytes.Reader, error) {
	cut := len(body) - 8
	if cut < 0 || xxhash.Sum64(body[:cut]) != binary.BigEndian.Uint64(body[cut:]) {
		return nil, nil, fmt.Errorf("%d bytes with another checksum: %w", len(body), ErrSnapshot)
	}
	body = body[:cut]
	raw, err := io.ReadAll(s2.NewReader(bytes.NewReader(body)))
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrSnapshot, err)
	}
	// The mark at the end tells a snapshot from what a policy wrote of one.
	begin := []byte(snapshotMagic)
	if len(raw) < 2*len(begin)+8 || !bytes.HasPrefix(raw, begin) || !bytes.HasSuffix(raw, begin) {
		return nil, nil, fmt.Errorf("%d bytes without the marks of a snapshot: %w", len(raw), ErrSnapshot)
	}
	raw = raw[len(begin) : len(raw)-len(begin)]
	size := binary.BigEndian.Uint64(raw)
	if raw = raw[8:]; size > maxHead || size > uint64(len(raw)) {
		return nil, nil, fmt.Errorf("head of %d bytes: %w", size, ErrSnapshot)
	}
	h := new(snapshotHead)
	if err := json.Unmarshal(raw[:size], h); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrSnapshot, err)
	}
	if h.Version != 1 {
		return nil, nil, fmt.Errorf("version %d: %w", h.Version, ErrSnapshot)
	}
	h.Loop.Answers.restore()
	if h.Loop.Epochs == nil {
		h.Loop.Epochs = map[string]uint64{}
	}
	return h, bytes.NewReader(raw[size:]), nil
}

// readSnapshot restores the open windows and the policy from what follows the
// head, and checks that the policy's state has the digest that it had.
func readSnapshot(h *snapshotHead, rest io.Reader, asm *panes.Assembler, p Policy) error {
	if h.Kind != p.Kind() {
		return fmt.Errorf("of kind %s: %w", h.Kind, ErrSnapshot)
	}
	if err := asm.Restore(rest); err != nil {
		return fmt.Errorf("%w: %w", ErrSnapshot, err)
	}
	if err := p.Restore(rest); err != nil {
		return fmt.Errorf("policy %s: %w: %w", p.Kind(), ErrSnapshot, err)
	}
	if d := p.Digest(); d != h.Digest {
		return fmt.Errorf("state %s comes back as %s: %w", h.Digest, d, ErrSnapshot)
	}
	return nil
}
